"""Teams of several experts: capacities, answers, bad input, storage."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import get_tags

from deferlearn import AdvantageTriage, AssistedSVC, FullAutomation, NoAutomation, load, save
from deferlearn.experts import ExpertTeam
from deferlearn.experts.fitting import _as_of_new_cases

CAPACITY = {"left": 0.1, "right": 0.05, "poor": 0.1}


def draw(n, seed=0):
    luck = np.random.default_rng(seed)
    X = luck.normal(size=(n, 3))
    y = np.where(luck.random(n) < 1 / (1 + np.exp(-2 * X[:, 0])), "sick", "well")
    error = np.column_stack(
        [np.where(X[:, 1] < 0, 0.03, 0.4), np.where(X[:, 1] > 0, 0.03, 0.4), np.full(n, 0.45)]
    )
    other = np.where(y == "sick", "well", "sick")
    said = np.where(luck.random((n, 3)) < error, other[:, None], y[:, None])
    return X, y, pd.DataFrame(said, columns=list(CAPACITY))


def machine(**more):
    return AdvantageTriage(machine=LogisticRegression(), random_state=0, **more)


@pytest.fixture(scope="module")
def team():
    X, y, answers = draw(900)
    return ExpertTeam(machine(), CAPACITY, skills="linear", random_state=0).fit(X, y, answers)


def test_cases_go_to_those_who_know_them(team):
    X, y, answers = draw(4000, seed=1)
    who = team.assign(X)
    assert X[who == "left", 1].max() < X[who == "right", 1].min() + 1.0
    assert np.mean(who == "poor") < CAPACITY["poor"] / 2  # errs nearly as often as the machine
    for name in ("left", "right"):
        assert np.mean(who == name) == pytest.approx(CAPACITY[name], abs=0.03)
    assert team.score_assisted(X, y, answers) > team.score(X, y) + 0.03
    assert team.prices_["left"] > 0
    assert team.prices_["poor"] == pytest.approx(0.0, abs=0.02)
    np.testing.assert_array_equal(team.defer(X), who != None)  # noqa: E711
    np.testing.assert_array_equal(team.defer(X), team.deferral_score(X) > 0)


def test_one_case_at_a_time_is_pointwise(team):
    X, _, _ = draw(40, seed=2)
    np.testing.assert_array_equal([team.assign(X[[i]])[0] for i in range(40)], team.assign(X))


def test_batches_keep_hard_capacities(team):
    X, _, _ = draw(500, seed=3)
    who = team.assign_batch(X)
    assert np.sum(who == "left") == 50
    assert np.sum(who == "right") == 25
    who = team.assign_batch(X, {"left": 7, "right": 0.01})
    assert (np.sum(who == "left"), np.sum(who == "right"), np.sum(who == "poor")) == (7, 5, 0)
    assert np.sum(team.assign_batch(X, {"left": 10_000}) == "left") <= 500
    assert np.sum(team.assign_batch(X, budget=9) != None) == 9  # noqa: E711
    assert team.defer_top(X, budget=9).sum() == 9


def test_a_batch_is_the_best_one_within_its_capacities(team):
    X, _, _ = draw(300, seed=4)
    gains, who = team.gains(X), team.assign_batch(X)
    names = list(CAPACITY)
    own = sum(gains[i, names.index(who[i])] for i in range(300) if who[i] is not None)
    luck = np.random.default_rng(0)
    for _ in range(200):  # no exchange of two cases is better
        i, j = luck.integers(0, 300, 2)
        changed = who.copy()
        changed[i], changed[j] = changed[j], changed[i]
        other = sum(gains[k, names.index(changed[k])] for k in range(300) if changed[k] is not None)
        assert other <= own + 1e-9


def test_answers_as_function_matrix_and_table(team):
    X, _, answers = draw(200, seed=5)
    asked = []

    def ask(rows, expert):
        asked.append((len(rows), expert))
        return answers[expert].to_numpy()[rows]

    by_function = team.predict_assisted(X, ask)
    np.testing.assert_array_equal(by_function, team.predict_assisted(X, answers))
    np.testing.assert_array_equal(by_function, team.predict_assisted(X, answers.to_numpy()))
    who = team.assign(X)
    assert {name: count for count, name in asked} == {
        name: int(np.sum(who == name)) for name in CAPACITY if np.any(who == name)
    }
    gaps = answers.copy().astype(object)
    gaps.loc[np.flatnonzero(who == "left")[0], "left"] = None
    with pytest.raises(
        ValueError, match="goes to 'left', but answers has no answer of this expert"
    ):
        team.predict_assisted(X, gaps)


@pytest.mark.filterwarnings("ignore:no answer was given")
def test_a_long_table_with_gaps_is_the_matrix_with_gaps():
    X, y, answers = draw(300, seed=6)
    wide = answers.astype(object).mask(np.random.default_rng(0).random(answers.shape) < 0.5)
    frame = pd.DataFrame(X, index=[f"case {i}" for i in range(300)], columns=list("abc"))
    long = (
        wide.set_axis(frame.index)
        .rename_axis("case")
        .reset_index()
        .melt("case", var_name="expert", value_name="answer")
        .dropna()
    )
    made = [
        ExpertTeam(machine(), CAPACITY, skills="class", random_state=0).fit(frame, y, table)
        for table in (long.sample(frac=1.0, random_state=0), wide.set_axis(frame.index))
    ]
    assert made[0].prices_ == made[1].prices_
    np.testing.assert_array_equal(made[0].assign(frame), made[1].assign(frame))


def test_an_expert_without_answers_is_the_average(recwarn):
    X, y, answers = draw(300)
    team = ExpertTeam(machine(), CAPACITY | {"new": 0.1}, skills="class", random_state=0)
    team.fit(X, y, answers)
    _, experts = team.expected_errors(X)
    assert experts[:, :3].min() < experts[:, 3].mean() < experts[:, :3].max()
    assert team.skills_.answers[3].sum() == 0
    assert team.skills_.verdict[3] == "too few answers to tell"


@pytest.mark.parametrize(
    ("capacity", "said"),
    [
        (None, "must be a dict"),
        ({}, "must be a dict"),
        ({"left": 0.0, "right": 0, "poor": 0}, "leaves no time to any expert"),
        ({"left": -1, "right": 1, "poor": 1}, "must be a share from 0.0 to 1.0"),
        ({"left": 1.5, "right": 1, "poor": 1}, "must be a share from 0.0 to 1.0"),
        ({"left": True, "right": 1, "poor": 1}, "must be a share from 0.0 to 1.0"),
        ({"left": 0.1, "right": 0.1}, "answers has the expert 'poor'"),
        ({None: 0.1}, "None cannot be the name of an expert"),
        ({1.5: 0.1}, "1.5 cannot be the name of an expert"),
        ({1: 0.1, "1": 0.1}, "two experts of the same name"),
    ],
)
def test_bad_capacities(capacity, said):
    X, y, answers = draw(60)
    with pytest.raises(ValueError, match=said):
        ExpertTeam(machine(), capacity).fit(X, y, answers)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"team": LogisticRegression()}, "must be a team such as"),
        ({"skills": "magic"}, "skills='magic' is not known"),
        ({"readings": 4}, "must be 1, 2 or 3"),
        ({"arbiter": "left"}, "with one reading nobody disagrees"),
        ({"arbiter": "nobody", "readings": 2}, "has no capacity"),
        ({"arbiter": "left", "readings": 3}, "needs as many experts"),
        ({"budget": "all"}, "must be a share, a number, or None"),
        ({"team": machine(cv=None)}, "cv"),
        ({"team": NoAutomation()}, "no machine that could be helped"),
        ({"team": AssistedSVC(), "readings": 2}, "single readings"),
        ({"cv": 1}, "cv=1 must be a number of folds"),
        ({"cv": None}, "cv=None: what experts err on is learned on folds"),
        ({"n_jobs": 0}, "n_jobs=0 must be a whole number"),
    ],
)
def test_bad_parameters(more, said):
    X, y, answers = draw(60)
    with pytest.raises(ValueError, match=said):
        ExpertTeam(**{"team": machine(), "capacity": CAPACITY, **more}).fit(X, y, answers)


def test_bad_answers(team):
    X, y, answers = draw(60)
    new = ExpertTeam(machine(), CAPACITY, skills="class")
    # The row is that of the whole column, gaps or not.
    gaps = answers.astype(object)
    gaps.loc[:20, "right"] = None
    gaps.loc[41, "right"] = "maybe"
    with pytest.raises(ValueError, match="answers of 'right' holds 'maybe' at row 41"):
        new.fit(X, y, gaps)
    who = team.assign(draw(500)[0])
    first = np.flatnonzero(who == "left")[0]
    words = f"answers of 'left' holds 'maybe' at row {first},"
    with pytest.raises(ValueError, match=words):
        team.predict_assisted(draw(500)[0], lambda rows, expert: ["maybe"] * len(rows))
    for method in (team.predict_assisted, team.score_assisted):
        arguments = (X, answers) if method == team.predict_assisted else (X, y, answers)
        with pytest.raises(ValueError, match="batch='no' must be True or False"):
            method(*arguments, batch="no")
    with pytest.raises(ValueError, match="59 rows"):
        new.fit(X, y, answers[:59])
    with pytest.raises(ValueError, match="has 2 columns"):
        new.fit(X, y, answers.to_numpy()[:, :2])
    with pytest.raises(ValueError, match="no answer of any of the experts"):
        new.fit(X, y, answers.mask(np.ones(answers.shape, dtype=bool)))
    with pytest.raises(ValueError, match="capacity has 'nobody'"):
        team.assign_batch(X, {"nobody": 3})
    with pytest.raises(ValueError, match="load has 'nobody'"):
        team.update_prices({"nobody": 3}, 10)
    with pytest.raises(ValueError, match="n_cases=0"):
        team.update_prices({"left": 3}, 0)
    with pytest.raises(ValueError, match="return one answer per row"):
        team.predict_assisted(draw(500)[0], lambda rows, expert: ["sick"])
    with pytest.raises(ValueError, match="no selection to certify"):
        team.certify()


def test_prices_follow_the_load(team):
    X, _, _ = draw(3000, seed=7)
    moved = ExpertTeam.__new__(ExpertTeam)
    moved.__dict__.update(team.__dict__)
    before = np.mean(moved.assign(X) == "left")
    moved.update_prices({"left": 1000}, 1000, step=0.2)  # got all of them
    assert moved.prices_["left"] > team.prices_["left"]
    assert np.mean(moved.assign(X) == "left") < before
    for _ in range(50):
        moved.update_prices({}, 1000, step=1.0)
    assert moved.prices_ == dict.fromkeys(CAPACITY, 0.0)
    for got, step in (({"left": -1}, 0.1), ({"left": 0.5}, 0.1), ({"left": 11}, 0.1), ({}, 0.0)):
        with pytest.raises(ValueError, match=r"load\['left'\]|step=0.0"):
            moved.update_prices(got, 10, step=step)


@pytest.mark.parametrize(("readings", "arbiter"), [(2, None), (3, None), (2, "poor")])
def test_second_readings(readings, arbiter):
    X, y, answers = draw(900)
    team = ExpertTeam(
        machine(), CAPACITY, skills="class", readings=readings, arbiter=arbiter, random_state=0
    ).fit(X, y, answers)
    new, _, told = draw(400, seed=8)
    who = team.assign_batch(new)
    readers = [names for names in who if names is not None]
    assert all(len(names) == readings for names in readers)
    for name, share in CAPACITY.items():
        assert sum(name in names for names in readers) <= share * 400
    # By hand: the majority, and where there is none the arbiter.
    said = team.predict_assisted(new, told, batch=True)
    machine_says = team.predict(new)
    for i, names in enumerate(who):
        if names is None:
            assert said[i] == machine_says[i]
            continue
        votes = [told.loc[i, name] for name in names]
        if len(set(votes)) == 1 or readings == 3:
            assert said[i] == max(set(votes), key=votes.count)
        else:
            assert said[i] == (machine_says[i] if arbiter is None else told.loc[i, arbiter])
    rows = team.compare_readings(new)
    assert [row["readings"] for row in rows] == [1, 2, 3][: 3 - (arbiter is not None)]
    assert rows[0]["time"] == pytest.approx(rows[0]["deferred"])
    assert rows[1]["time"] >= 2 * rows[1]["deferred"] - 1e-12


def test_several_classes_and_grades():
    luck = np.random.default_rng(0)
    X = luck.normal(size=(500, 2))
    y = np.clip(np.round(X[:, 0] + luck.normal(0, 0.6, 500)) + 1, 0, 2).astype(int)
    near = np.clip(y + (luck.random(500) < 0.2), 0, 2)
    far = np.where(luck.random(500) < 0.2, 2 - y, y)
    answers = np.column_stack([near, far])
    for classes in ("auto", "grades"):
        base = AdvantageTriage(classes=classes, machine=LogisticRegression(), random_state=0)
        team = ExpertTeam(base, {"near": 0.2, "far": 0.2}, skills="class", random_state=0)
        team.fit(X, y, answers)
        _, experts = team.expected_errors(X)
        if classes == "grades":  # two grades off cost twice as much
            assert experts[:, 1].mean() > 1.2 * experts[:, 0].mean()
        assert set(team.predict_assisted(X, answers)) <= {0, 1, 2}


def test_clone_and_storage(team, tmp_path):
    assert clone(team).get_params()["capacity"] == CAPACITY
    save(team, tmp_path / "team.dfl")
    again = load(tmp_path / "team.dfl")
    X, _, _ = draw(100, seed=9)
    np.testing.assert_array_equal(again.assign(X), team.assign(X))
    np.testing.assert_array_equal(again.assign_batch(X), team.assign_batch(X))
    assert again.prices_ == team.prices_


def test_time_has_a_price():
    X, y, answers = draw(600)
    cheap, dear = (
        ExpertTeam(machine(deferral_cost=cost), CAPACITY, skills="class", random_state=0)
        .fit(X, y, answers)
        .deferral_rate_
        for cost in (0.0, 0.3)
    )
    assert dear < cheap


def test_groups_stay_together_and_searches_take_them():
    X, y, answers = draw(200)
    groups = np.arange(200) // 10
    team = ExpertTeam(AssistedSVC(), CAPACITY, skills="class", random_state=0)
    team.fit(X, y, answers, groups=groups)
    assert team.team_.cv == 5  # as it was given
    assert team.assign(X).shape == (200,)
    other = ExpertTeam(FullAutomation(), CAPACITY, skills="class", random_state=0)
    assert other.fit(X, y, answers).assign(X).shape == (200,)


def test_an_expert_without_time_gets_no_case():
    X, y, answers = draw(600)
    new, _, _ = draw(4000, seed=11)
    team = ExpertTeam(machine(), CAPACITY | {"left": 0}, skills="class", random_state=0)
    team.fit(X, y, answers)
    assert not np.any(team.assign(new) == "left")
    assert not np.any(team.preferred(team.gains(new)) == "left")
    assert not np.any(team.assign_batch(new) == "left")
    assert all(who is None for who in team.assign_batch(new, {"right": 0}))


def test_a_budget_has_a_price_of_its_own():
    X, y, answers = draw(600)
    new, _, _ = draw(3000, seed=12)
    ample = CAPACITY | {"left": 0.5, "right": 0.5}
    team = ExpertTeam(machine(), ample, budget=0.1, skills="linear", random_state=0).fit(
        X, y, answers
    )
    assert team.budget_price_ > 0
    assert team.prices_["left"] == pytest.approx(0.0, abs=1e-9)  # has time left
    assert team.defer(new).mean() == pytest.approx(0.1, abs=0.03)
    assert team.defer_top(new).sum() <= 300
    for _ in range(50):
        team.update_prices({}, 100, step=1.0)
    assert team.budget_price_ == 0


@pytest.mark.parametrize("scale", [1e-4, 1e4])
def test_the_unit_of_costs_hardly_matters(scale):
    X, y, answers = draw(600)
    new, _, _ = draw(2000, seed=13)
    who = [
        ExpertTeam(
            # A machine that does not care how large its weights are.
            machine(cost_matrix=unit * (1.0 - np.eye(2))).set_params(machine=GaussianNB()),
            CAPACITY,
            skills="class",
            random_state=0,
        )
        .fit(X, y, answers)
        .assign(new)
        for unit in (1.0, scale)
    ]
    # Probabilities are fitted with weights, and so differ a little.
    assert np.mean(who[0] == who[1]) > 0.95
    assert np.mean(who[1] == "poor") < 0.03


def test_nobody_is_asked_where_the_machine_is_better():
    X, y, answers = draw(600)
    new, _, _ = draw(2000, seed=14)
    ample = dict.fromkeys(CAPACITY, 1.0)
    team = ExpertTeam(machine(), ample, skills="linear", random_state=0).fit(X, y, answers)
    assert (team.gains(new)[team.defer(new)].max(axis=1) > 0).all()


def test_long_tables_go_by_the_index_in_answers_too():
    X, y, answers = draw(300)
    names = np.random.default_rng(0).permutation(300)
    frame = pd.DataFrame(X, index=names, columns=list("abc"))
    team = ExpertTeam(machine(), CAPACITY, skills="class", random_state=0).fit(
        frame, y, answers.to_numpy()
    )
    wide = answers.set_axis(names)
    long = (
        wide.rename_axis("case").reset_index().melt("case", var_name="expert", value_name="answer")
    )
    np.testing.assert_array_equal(
        team.predict_assisted(frame, long), team.predict_assisted(frame, wide)
    )
    with pytest.warns(UserWarning, match="another order"):
        team.predict_assisted(frame, wide.sort_index())


def test_masked_answers_are_no_answers():
    X, y, answers = draw(200)
    said = (answers.to_numpy() == "sick").astype(int)
    truth = (y == "sick").astype(int)
    masked = {
        name: np.ma.array(said[:, e], mask=np.arange(200) % 2 == 0)
        for e, name in enumerate(CAPACITY)
    }
    with pytest.warns(UserWarning, match="no answer was given"):
        team = ExpertTeam(machine(), CAPACITY, skills="class", random_state=0).fit(X, truth, masked)
    assert team.skills_.answers.sum() == 300


def test_classes_that_cost_more_and_forests():
    X, y, answers = draw(200)
    dear = machine(class_weight={"sick": 5.0, "well": 1.0})
    with pytest.raises(ValueError, match="does not know on which class"):
        ExpertTeam(dear, CAPACITY, skills="forest", random_state=0).fit(X, y, answers)
    team = ExpertTeam(dear, CAPACITY, random_state=0).fit(X, y, answers)
    assert team.skill_model_ in ("class", "linear")


def test_time_counts_for_every_reader():
    X, y, answers = draw(400)
    free, paid = (
        ExpertTeam(
            machine(deferral_cost=cost), CAPACITY, readings=2, skills="class", random_state=0
        )
        .fit(X, y, answers)
        .gains(X)
        for cost in (0.0, 0.1)
    )
    np.testing.assert_allclose(free - paid, 0.2, atol=1e-9)


def test_a_class_that_nobody_answered_is_named():
    X, y, answers = draw(200)
    answers = answers.astype(object)
    answers.loc[y == "well"] = None
    team = ExpertTeam(FullAutomation(), CAPACITY, skills="class", random_state=0)
    with pytest.warns(UserWarning, match="No expert has answered any sample of the class 'well'"):
        team.fit(X, y, answers)
    assert (abs(team._routing.model.rates_[:, 1] - 0.5) < 0.05).all()  # as the warning says


def test_numbers_as_names_of_experts():
    X, y, answers = draw(300)
    columns = answers.set_axis([1, 2, 3], axis=1)
    numbers = {1: 0.1, 2: 0.05, 3: 0.1}
    options = {"skills": "class", "readings": 2, "random_state": 0}
    team = ExpertTeam(machine(), numbers, arbiter=3, **options).fit(X, y, columns)
    same = ExpertTeam(
        machine(), {str(name): share for name, share in numbers.items()}, arbiter="3", **options
    ).fit(X, y, answers.set_axis(list("123"), axis=1))
    assert team.prices_ == same.prices_
    assert team.experts_ == ("1", "2", "3")
    assert set(team.assign_batch(X, {1: 5, 2: 3, 3: 10})) == {None, ("1", "2")}
    assert team.update_prices({1: 200}, 200).prices_["1"] > same.prices_["1"]
    assert team.predict_assisted(X, columns).shape == (300,)


def test_it_says_which_features_it_takes():
    X, y, answers = draw(100)
    frame = pd.DataFrame(X, columns=list("abc"))
    team = ExpertTeam(FullAutomation(), CAPACITY, skills="class", random_state=0)
    team.fit(frame, y, answers)
    assert team.feature_names_in_.tolist() == ["a", "b", "c"]
    assert team.n_features_in_ == 3
    with pytest.raises(ValueError, match="feature names"):
        team.assign(frame.rename(columns={"a": "z"}))
    assert not hasattr(team.fit(X, y, answers), "feature_names_in_")
    for own in (AssistedSVC(), AssistedSVC(kernel="precomputed"), FullAutomation()):
        tags = get_tags(ExpertTeam(own, CAPACITY)).input_tags
        assert tags.sparse == get_tags(own).input_tags.sparse


def test_capacities_as_shares(team):
    assert team.capacity_ == CAPACITY
    X, y, answers = draw(100)
    counts = {"left": 10, "right": 0.05, "poor": 400}
    own = ExpertTeam(FullAutomation(), counts, skills="class", random_state=0).fit(X, y, answers)
    assert own.capacity_ == {"left": 0.1, "right": 0.05, "poor": 1.0}


def test_all_at_once_is_each_by_itself(team):
    X, _, _ = draw(60, seed=21)
    found = team.consider(X)
    np.testing.assert_array_equal(found.who, team.assign(X))
    np.testing.assert_array_equal(found.score, team.deferral_score(X))
    np.testing.assert_array_equal(found.gains, team.gains(X))
    np.testing.assert_array_equal(found.machine, team.expected_errors(X)[0])
    np.testing.assert_array_equal(found.experts, team.expected_errors(X)[1])


@pytest.mark.parametrize("seed", [0, 36])
def test_a_machine_that_knows_nothing_leaves_the_choice_to_fair_coins(seed):
    """All cases are alike, and so are all experts: their coins must not move together.

    The probabilities of held-out samples differ between folds, by luck.
    """
    luck = np.random.default_rng(0)
    X, y = luck.normal(size=(2000, 2)), luck.integers(0, 2, 2000)
    said = np.where(luck.random((2000, 10)) < 0.1, 1 - y[:, None], y[:, None])
    capacity = {f"e{k}": 0.02 + 0.004 * k for k in range(10)}
    base = FullAutomation(machine=DummyClassifier(), random_state=seed)
    team = ExpertTeam(base, capacity, skills="class", random_state=0).fit(X, y, said)
    assert np.ptp(team.team_.held_out_probabilities()[:, 0]) > 1e-4
    who = team.assign(luck.normal(size=(20_000, 2)))
    for name, share in capacity.items():
        assert team.load_[name] == pytest.approx(share, abs=0.0015)
        error = np.sqrt(share * (1 - share) * (1 / 2000 + 1 / 20_000))
        assert np.mean(who == name) == pytest.approx(share, abs=4 * error)


@pytest.mark.parametrize("seed", [0, 10])
def test_a_machine_of_few_answers_leaves_experts_the_share_they_can_take(seed):
    """Held-out answers differ between folds: prices among them gave experts no case, or all of a leaf."""
    luck = np.random.default_rng(seed)
    X = luck.normal(size=(2000, 2))
    y = (luck.random(2000) < 1 / (1 + np.exp(-2 * X[:, 0]))).astype(int)
    said = np.where(luck.random((2000, 3)) < 0.1, 1 - y[:, None], y[:, None])
    stump = DecisionTreeClassifier(max_depth=1, random_state=0)
    team = ExpertTeam(
        AdvantageTriage(machine=stump, random_state=seed),
        dict.fromkeys("abc", 0.03),
        skills="class",
        random_state=seed,
    ).fit(X, y, said)
    who = team.assign(luck.normal(size=(20_000, 2)))
    error = np.sqrt(0.03 * 0.97 * (1 / 2000 + 1 / 20_000))
    for name in "abc":
        assert np.mean(who == name) == pytest.approx(0.03, abs=4 * error)


def test_held_out_answers_are_those_that_the_machine_gives():
    class Machine:
        def __init__(self, held_out, now):
            self.held_out, self.now = held_out, now

        def held_out_probabilities(self):
            return self.held_out

        def predict_proba(self, X):
            return self.now

    luck = np.random.default_rng(0)
    leaf = luck.integers(0, 3, 600)
    rates = np.array([0.1, 0.4, 0.9])
    held_out = rates[leaf] + luck.uniform(-0.05, 0.05, 600)
    few = Machine(np.column_stack([1 - held_out, held_out]), np.column_stack([1 - rates, rates]))
    np.testing.assert_allclose(_as_of_new_cases(few, None)[:, 1], rates[leaf])
    many = Machine(few.held_out, few.held_out[::-1])
    assert _as_of_new_cases(many, None) is many.held_out
    certain = np.eye(2)[(held_out > 0.5).astype(int)]
    by_heart = Machine(few.held_out, certain)
    assert _as_of_new_cases(by_heart, None) is few.held_out


@pytest.mark.parametrize(
    "machine",
    [
        KNeighborsClassifier(25, weights="distance"),
        ExtraTreesClassifier(5, random_state=0),
        ExtraTreesClassifier(20, random_state=0),
    ],
    ids=["neighbours", "five trees", "twenty trees"],
)
def test_a_machine_that_knows_its_samples_by_heart_does_not_overload_experts(machine):
    """Its two answers to training samples are not those to new cases."""
    luck = np.random.default_rng(0)
    X = luck.normal(size=(600, 2))
    y = (luck.random(600) < 1 / (1 + np.exp(-2 * X[:, 0]))).astype(int)
    said = np.where(luck.random((600, 3)) < 0.1, 1 - y[:, None], y[:, None])
    team = ExpertTeam(
        AdvantageTriage(machine=machine), dict.fromkeys("abc", 0.03), skills="class", random_state=0
    ).fit(X, y, said)
    who = team.assign(luck.normal(size=(5000, 2)))
    assert all(np.mean(who == name) < 0.08 for name in "abc")
