"""`AdvantageTriage`: what it estimates, whom it defers, how often, and where humans do not help."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn
from hypothesis import given, settings
from hypothesis import strategies as st
from joblib import parallel_config
from sklearn.base import clone
from sklearn.ensemble import RandomForestRegressor
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.neighbors import KNeighborsRegressor
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import deferlearn
from conventions import expected_failures
from deferlearn.evaluation import automation_curve
from deferlearn.humans.coding import code_signs
from deferlearn.metrics import make_team_scorer
from deferlearn.teams import FullAutomation, UncertaintyTriage, make_assisted_pipeline
from deferlearn.teams.advantage import AdvantageTriage
from deferlearn.teams.advantage_model import AdvantageModel, Truth
from deferlearn.teams.forest import ForestRegressor
from tuned import (
    HUMAN,
    LOSS,
    NEW,
    NEW_HUMAN,
    READERS,
    SEED,
    SPLITS,
    N,
    X,
    Y,
    hair,
    held_out_margins,
    isotonic_cost,
    rate_by_answer,
    reader_errors,
    tuned,
)

FEW_TREES = RandomForestRegressor(5, min_samples_leaf=5)


def fitted(human=HUMAN, **options):
    clf = AdvantageTriage(**{"budget": 0.25, "alpha": 0.1, "random_state": 0, **options})
    return clf.fit(X, Y, human_labels=human)


@parametrize_with_checks(
    [AdvantageTriage(), AdvantageTriage(kernel="rbf", cv=2)],
    expected_failed_checks=expected_failures,
)
def test_scikit_learns_conventions(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(
    [
        AdvantageTriage(machine_error="forest", human_error="forest", cv=2),
        AdvantageTriage(use_full_budget=True, class_weight="balanced"),
    ],
    expected_failed_checks=expected_failures,
)
def test_scikit_learns_conventions_of_the_costly_ones(estimator, check):
    check(estimator)


# -- what it estimates ------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:.*no answer was given for")
@pytest.mark.parametrize(
    ("human", "errors", "options"),
    [
        ({}, np.zeros(N), {}),
        ({"human_labels": HUMAN}, HUMAN != Y, {}),
        ({"human_labels": HUMAN}, HUMAN != Y, {"class_weight": {1: 4.0}, "deferral_cost": 0.2}),
        ({"human_labels": READERS}, reader_errors(READERS), {}),
        ({"human_loss": LOSS}, LOSS / 2, {"alpha": 1.0}),
        ({"human_scores": 3.0 * HUMAN}, HUMAN != Y, {}),  # of scores only the side counts
    ],
    ids=["nothing", "labels", "prices", "readers", "loss", "scores"],
)
def test_score_equals_isotonic_fits_and_class_rates_of_scikit_learn(human, errors, options):
    alpha = options.get("alpha", 0.1)
    clf = AdvantageTriage(**{"alpha": alpha, "cv": SPLITS, **options}).fit(X, Y, **human)
    prices = np.where(Y > 0, options.get("class_weight", {}).get(1, 1.0), 1.0)
    margin = held_out_margins(X, Y, prices, alpha, SPLITS)
    machine_cost = prices * (np.where(margin > 0, 1, -1) != Y)
    human_cost = prices * errors + options.get("deferral_cost", 0.0)
    new = clf.decision_function(NEW)
    expected = isotonic_cost(margin, machine_cost, new)
    expected -= rate_by_answer(margin, human_cost, new) + hair(new, machine_cost, human_cost)
    # libsvm's margins are good to some 1e-6, which isotonic fits pass on by their slopes.
    np.testing.assert_allclose(clf.deferral_score(NEW), expected, atol=1e-4)


def test_score_with_forests_equals_those_fitted_by_hand():
    clf = fitted(machine_error="forest", human_error="forest", cv=SPLITS, random_state=0)
    margin = held_out_margins(X, Y, np.ones(N), 0.1, SPLITS)
    wrong = (np.where(margin > 0, 1, -1) != Y).astype(float)
    new = clf.decision_function(NEW)

    def forest():
        return ForestRegressor(random_state=SEED)

    machine = forest().fit(np.column_stack([X, margin]), wrong)
    human = forest().fit(X, (HUMAN != Y).astype(float))
    expected = machine.predict(np.column_stack([NEW, new])) - human.predict(NEW)
    # A split between two margins may fall on the other side of a new one's sixth digit.
    assert np.mean(np.abs(clf.deferral_score(NEW) - expected) < 1e-5) > 0.97


def test_any_regressor_can_say_where_who_errs():
    clf = fitted(machine_error=KNeighborsRegressor(9), human_error=LinearRegression())
    model = clf._ranker
    human = LinearRegression().fit(X, HUMAN != Y).predict(NEW)
    new = clf.decision_function(NEW)
    machine = model.machine_.predict(np.column_stack([NEW, new]))
    np.testing.assert_allclose(clf.deferral_score(NEW), machine - human, atol=1e-5)
    assert set(np.round(machine * 9, 9)) <= set(range(10))


@pytest.mark.parametrize("how", ["simple", "regressors"])
def test_expected_errors_are_what_the_score_is_made_of(how):
    """The score is the machine's expected error minus the human's, but for a hair between ties."""
    models = {"machine_error": KNeighborsRegressor(9), "human_error": LinearRegression()}
    clf = fitted(**(models if how == "regressors" else {}))
    machine, human = clf.expected_errors(NEW)
    margin = clf.decision_function(NEW)
    np.testing.assert_allclose(clf.deferral_score(NEW), machine - human, atol=1e-5)
    if how == "regressors":
        np.testing.assert_allclose(human, LinearRegression().fit(X, HUMAN != Y).predict(NEW))
        return
    assert ((machine >= 0) & (machine <= 1)).all()
    for side in (margin > 0, margin <= 0):
        assert len(set(human[side])) == 1  # by the machine's answer alone
        # Where the machine is surer it errs less, for each of its answers.
        order = np.argsort(np.abs(margin[side]))
        assert (np.diff(machine[side][order]) <= 0).all()


def test_expected_errors_of_what_is_not_fitted_or_has_other_columns():
    with pytest.raises(NotFittedError):
        AdvantageTriage().expected_errors(NEW)
    with pytest.raises(ValueError, match="features"):
        fitted().expected_errors(NEW[:, :1])


def test_the_machine_is_that_of_uncertainty_triage():
    clf, other = fitted(), UncertaintyTriage(alpha=0.1).fit(X, Y)
    np.testing.assert_array_equal(clf.decision_function(NEW), other.decision_function(NEW))
    np.testing.assert_array_equal(clf.coef_, other.coef_)
    np.testing.assert_array_equal(clf.support_, other.support_)


def test_where_humans_err_alike_everywhere_it_is_uncertainty_of_a_calibrated_machine():
    """For one answer of the machine the order is that of its uncertainty."""
    clf = fitted(human=None)
    margin, score = clf.decision_function(NEW), clf.deferral_score(NEW)
    for side in (margin > 0, margin <= 0):
        order = np.argsort(np.abs(margin[side]))
        assert (np.diff(score[side][order]) < 0).all()


def test_prices_have_no_unit():
    """Whether errors are paid in cents or in millions, the same cases are deferred."""
    expected = fitted(class_weight={-1: 1.0, 1: 2.0}, deferral_cost=0.05)
    for unit in (1e-7, 100.0, 1e7):
        clf = fitted(class_weight={-1: unit, 1: 2 * unit}, deferral_cost=0.05 * unit)
        np.testing.assert_array_equal(clf.defer(NEW), expected.defer(NEW))
        np.testing.assert_array_equal(clf.defer_top(NEW), expected.defer_top(NEW))
        np.testing.assert_allclose(clf.deferral_score(NEW), unit * expected.deferral_score(NEW))


# -- whom it defers, and how often ------------------------------------------------------------


def noisy(n, seed, noise=0.9):
    """A line that cannot be told apart near it."""
    rng = np.random.RandomState(seed)
    X = rng.normal(size=(n, 2))
    return X, np.where(X[:, 0] + noise * rng.normal(size=n) > 0, 1, -1)


def rates_on_new_data(share_wrong, repeats=20, n=100, noise=0.9, **options):
    """Rates of `defer` on new data, and those promised, over many training sets."""
    rates, promised = [], []
    for seed in range(repeats):
        X, y = noisy(n, seed, noise)
        wrong = np.random.RandomState(seed).rand(n) < share_wrong
        human = {"human_labels": np.where(wrong, -y, y)} if share_wrong else {}
        clf = AdvantageTriage(alpha=0.1, random_state=seed, **options).fit(X, y, **human)
        rates.append(clf.defer(noisy(1000, 10_000 + seed, noise)[0]).mean())
        promised.append(clf.deferral_rate_)
    return np.array(rates), np.array(promised)


def standard_errors_from(rates, target):
    return abs(rates.mean() - target) / (rates.std(ddof=1) / np.sqrt(len(rates)))


@pytest.mark.parametrize("budget", [0.1, 0.3])
def test_rate_is_the_budget_where_humans_are_perfect(budget):
    rates, promised = rates_on_new_data(0.0, budget=budget)
    assert (promised == budget).all()
    assert standard_errors_from(rates, budget) < 3.3
    assert rates.std() < 0.1


def test_rate_is_lower_where_humans_do_not_help_everywhere():
    rates, promised = rates_on_new_data(0.4, budget=0.8)
    assert rates.mean() < 0.5
    assert abs(rates - promised).mean() < 0.12


def test_nearly_nobody_is_deferred_where_humans_are_worse_than_the_machine():
    # On the line itself the machine guesses, too.
    rates, promised = rates_on_new_data(0.5, budget=0.3, noise=0.1)
    assert rates.mean() < 0.1
    assert promised.mean() < 0.1
    rates, promised = rates_on_new_data(0.8, budget=0.3, noise=0.5)
    assert rates.mean() < 0.05
    assert promised.mean() < 0.05
    rates, promised = rates_on_new_data(1.0, 10, budget=0.3)
    assert rates.max() == promised.max() == 0.0


def test_the_whole_budget_is_spent_if_asked_for():
    rates, promised = rates_on_new_data(0.5, budget=0.3, use_full_budget=True)
    assert (promised == 0.3).all()
    assert standard_errors_from(rates, 0.3) < 3.3


@pytest.mark.slow
@pytest.mark.parametrize("n", [60, 200])
@pytest.mark.parametrize("error", ["class", "forest"])
def test_rate_is_the_budget_for_every_model_of_errors(n, error):
    """Also where the folds' models have other steps and scales than the final one."""
    models = {"human_error": error, "machine_error": "margin" if error == "class" else error}
    rates, _ = rates_on_new_data(0.2, 60, n, budget=0.3, use_full_budget=True, **models)
    assert abs(rates.mean() - 0.3) < 0.03
    assert rates.std() < {60: 0.1, 200: 0.07}[n]


def test_batches_get_what_gains_most_up_to_the_budget():
    clf = fitted(human=np.where(Y > 0, Y, -Y))  # humans always say +1
    score = clf.deferral_score(NEW)
    for budget in (None, 0.1, 7, 1.0):
        asked = clf.defer_top(NEW, budget)
        count = {None: 50, 0.1: 20, 7: 7, 1.0: 200}[budget]
        assert asked.sum() == min(count, int(np.sum(score > 0)))
        assert asked.sum() == 0 or score[asked].min() > 0
        assert score[asked].min(initial=np.inf) >= score[~asked & (score > 0)].max(initial=-np.inf)
    whole = fitted(human=np.where(Y > 0, Y, -Y), use_full_budget=True)
    np.testing.assert_array_equal(whole.deferral_score(NEW), score)
    assert whole.defer_top(NEW).sum() == 50
    assert whole.defer_top(NEW, 1.0).all()
    assert clf.defer_top(NEW, 1.0).sum() < 200


def test_humans_who_know_one_class_are_asked_where_it_is_suspected():
    """They always say +1: right about the cases that the machine takes for +1, wrong about the rest."""
    clf = fitted(human=np.ones(N), budget=1.0)
    deferred = clf.defer(NEW)
    margin = clf.decision_function(NEW)
    assert deferred[margin > 0].mean() > deferred[margin <= 0].mean() + 0.2


def test_experts_of_a_region_are_recognised():
    """Below 0 they know, above it they guess; the machine sees the other feature, and errs everywhere."""

    def draw(n, rng):
        X = rng.normal(size=(n, 2))
        y = np.where(rng.rand(n) < 0.35, -1, 1) * np.where(X[:, 0] > 0, 1, -1)
        return X, y, np.where((X[:, 1] < 0) | (rng.rand(n) < 0.5), y, -y)

    X, y, human = draw(300, np.random.RandomState(0))
    new, truth, answers = draw(1000, np.random.RandomState(1))
    gain, share = {}, {}
    for name in ("class", "forest"):
        clf = AdvantageTriage(0.3, human_error=name, alpha=0.1, random_state=0)
        clf.fit(X, y, human_labels=human)
        share[name] = np.mean(new[clf.defer_top(new), 1] < 0)
        gain[name] = clf.score_assisted(new, truth, answers, batch=True) - clf.score(new, truth)
    assert share["forest"] > 0.95
    assert share["class"] < 0.65
    assert gain["forest"] > gain["class"] + 0.04


@pytest.mark.parametrize(("budget", "rate"), [(0.29, 0.29), (18, 0.25), (np.int64(18), 0.25)])
def test_budget_is_a_fraction_or_a_number(budget, rate):
    clf = fitted(budget=budget, use_full_budget=True)
    assert clf.deferral_rate_ == rate
    assert clf.defer_top(NEW).sum() == int(rate * 200 + 1e-9)


def test_budgets_at_the_ends():
    assert not fitted(budget=0.0).defer(NEW).any()
    assert not fitted(budget=0).defer_top(NEW).any()
    assert fitted(budget=1.0, use_full_budget=True).defer(NEW).all()
    open_end = fitted(budget=1.0)
    assert open_end.deferral_threshold_ == 0.0
    np.testing.assert_array_equal(open_end.defer(NEW), open_end.deferral_score(NEW) > 0)


# -- odd data ---------------------------------------------------------------------------------


def test_a_machine_that_always_answers_alike():
    X = np.zeros((30, 2))
    y = np.where(np.arange(30) < 4, 1, -1)
    clf = AdvantageTriage(0.2, random_state=0).fit(X, y)
    assert (clf.predict(X) == -1).all()
    assert clf.defer_top(X).sum() == 6
    assert np.ptp(clf.deferral_score(X)) == 0
    assert 0 < clf.defer(X).sum() < 15  # equal rows: the coin keeps to the rate
    # Its other answer was never seen: what is known of it is the mean of all.
    other = clf._ranker.predict(X[:1], np.array([1.0]))
    assert other[0] == pytest.approx(4 / 30, abs=1e-5)


@pytest.mark.parametrize("human_error", ["class", FEW_TREES], ids=["class", "forest"])
def test_duplicate_rows_share_the_coin(human_error):
    rows = np.repeat(X[:6], 12, axis=0)
    y = np.tile([1, -1, 1], 24)
    clf = AdvantageTriage(0.3, human_error=human_error, random_state=0, use_full_budget=True)
    clf.fit(rows, y)
    assert clf.defer_top(rows).sum() == 21
    assert abs(clf.defer(rows).mean() - 0.3) < 0.15
    alone = [clf.defer(rows[i : i + 1])[0] for i in range(0, 72, 12)]
    assert alone == clf.defer(rows[::12]).tolist()


@pytest.mark.parametrize("n_rare", [1, 2])
@pytest.mark.parametrize("human_error", ["class", FEW_TREES], ids=["class", "forest"])
def test_a_class_of_a_case_or_two(n_rare, human_error):
    y = np.where(np.arange(40) < n_rare, "rare", "usual")
    clf = AdvantageTriage(human_error=human_error, random_state=0).fit(X[:40], y)
    assert set(clf.predict(NEW)) <= {"rare", "usual"}
    assert clf.defer(NEW).shape == (200,)


tiny = st.lists(
    st.tuples(st.integers(-1, 1), st.integers(-1, 1), st.booleans(), st.booleans()),
    min_size=4,
    max_size=24,
).filter(lambda rows: len({row[2] for row in rows}) == 2)


@settings(max_examples=40, deadline=None)
@given(tiny, st.floats(0, 1), st.booleans(), st.integers(2, 5), st.floats(0.01, 10))
def test_any_small_table(rows, budget, whole, cv, alpha):
    """Ties, duplicates, one-sided machines: scores are finite, budgets and the sign are respected."""
    table = np.array(rows, dtype=float)
    y, human = table[:, 2] > 0, table[:, 3] > 0
    if (y == human).all():
        human = ~human
    clf = AdvantageTriage(budget, use_full_budget=whole, cv=cv, alpha=alpha, random_state=0)
    clf.fit(table[:, :2], y, human_labels=human)
    score = clf.deferral_score(table[:, :2])
    top, one_by_one = clf.defer_top(table[:, :2]), clf.defer(table[:, :2])
    assert np.isfinite(score).all()
    assert np.abs(score).max() <= 1 + 1e-5
    count = int(np.floor(budget * len(y) + 1e-9))
    assert top.sum() == count if whole else top.sum() <= count
    assert 0 <= clf.deferral_rate_ <= budget + 1e-12
    if not whole:
        assert (score[top] > 0).all()
        assert (score[one_by_one] >= 0).all()


def test_sparse_cases_are_the_same_cases():
    thin = np.round(X) * (np.abs(X) > 0.7)
    for options in ({}, {"human_error": FEW_TREES, "machine_error": LinearRegression()}):
        clf = AdvantageTriage(alpha=0.1, random_state=0, **options)
        dense = clone(clf).fit(thin, Y, human_labels=HUMAN)
        for make in (sp.csr_matrix, sp.csr_array, sp.csc_array):
            sparse = clone(clf).fit(make(thin), Y, human_labels=HUMAN)
            np.testing.assert_allclose(
                sparse.deferral_score(make(NEW)), dense.deferral_score(NEW), atol=1e-9
            )
            np.testing.assert_array_equal(sparse.defer(NEW), sparse.defer(make(NEW)))


@pytest.mark.parametrize("human_error", ["class", FEW_TREES], ids=["class", "forest"])
def test_precomputed_kernels(human_error):
    K, K_new = rbf_kernel(X, gamma=0.3), rbf_kernel(NEW, X, gamma=0.3)
    options = {"alpha": 0.1, "human_error": human_error, "random_state": 0}
    clf = AdvantageTriage(kernel="precomputed", **options).fit(K, Y, human_labels=HUMAN)
    other = AdvantageTriage(kernel="rbf", gamma=0.3, **options).fit(X, Y, human_labels=HUMAN)
    np.testing.assert_allclose(clf.decision_function(K_new), other.decision_function(NEW))
    if human_error == "class":
        np.testing.assert_allclose(clf.deferral_score(K_new), other.deferral_score(NEW))
        np.testing.assert_array_equal(clf.defer(K_new), other.defer(NEW))
    else:  # the forest sees the rows of the kernel
        assert clf.defer(K_new).any()


def test_words_as_labels_and_frames():
    words, said = np.where(Y > 0, "well", "sick"), np.where(HUMAN > 0, "well", "sick")
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    clf = AdvantageTriage(0.25, alpha=0.1, random_state=0, human_error=FEW_TREES)
    clf.fit(frame, words, human_labels=pd.Series(said))
    other = fitted(human_error=FEW_TREES)
    np.testing.assert_array_equal(clf.defer(frame), other.defer(X))
    np.testing.assert_array_equal(clf.predict(frame) == "well", other.predict(X) > 0)
    assert clf.feature_names_in_.tolist() == ["a", "b", "c"]


# -- scikit-learn's and deferlearn's tools ----------------------------------------------------


def test_seeds_and_jobs():
    options = {"human_error": FEW_TREES}
    one, again = fitted(**options), fitted(**options)
    with parallel_config("threading"):
        two_jobs = fitted(**options, n_jobs=2)
    other = fitted(**options, random_state=1)
    for clf in (again, two_jobs):
        np.testing.assert_array_equal(clf.deferral_score(NEW), one.deferral_score(NEW))
        assert clf.deferral_threshold_ == one.deferral_threshold_
    assert (other.deferral_score(NEW) != one.deferral_score(NEW)).any()


def test_parameters_are_kept():
    clf = AdvantageTriage(0.3, human_error=RandomForestRegressor(5), use_full_budget=True)
    clf.fit(X, Y)
    other = clone(clf)
    assert other.get_params()["human_error__n_estimators"] == 5
    assert not hasattr(clf.human_error, "estimators_")
    assert not hasattr(other, "classes_")
    other.set_params(human_error__n_estimators=3, budget=4).fit(X, Y)
    assert len(other._ranker.human_.estimators_) == 3
    assert clf.human_error.n_estimators == 5
    assert clf.human_error.random_state is None


def test_pipelines_and_searches():
    team = make_assisted_pipeline(StandardScaler(), AdvantageTriage(0.25, random_state=0))
    grid = {"advantagetriage__alpha": [0.1, 1.0], "advantagetriage__human_error": ["class"]}
    with sklearn.config_context(enable_metadata_routing=True):
        scoring = make_team_scorer("error", batch=True)
        search = GridSearchCV(team, grid, cv=KFold(2), scoring=scoring)
        search.fit(X, Y, human_labels=HUMAN)
    expected = []
    for alpha in (0.1, 1.0):
        errors = []
        for train, test in KFold(2).split(X):
            scaler = StandardScaler().fit(X[train])
            clf = AdvantageTriage(0.25, alpha=alpha, random_state=0)
            clf.fit(scaler.transform(X[train]), Y[train], human_labels=HUMAN[train])
            answers = clf.predict_assisted(scaler.transform(X[test]), HUMAN[test], batch=True)
            errors.append(np.mean(answers != Y[test]))
        expected.append(-np.mean(errors))
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], expected, atol=1e-12)
    assert search.best_estimator_.defer(NEW).shape == (200,)


def test_automation_curve_starts_at_the_machine():
    teams = {"advantage": AdvantageTriage(alpha=0.1), "machine": FullAutomation(alpha=0.1)}
    curves = automation_curve(
        teams, X, Y, human_labels=HUMAN, budgets=[0.0, 0.3], metrics="error", cv=KFold(2)
    )
    advantage, machine = curves["advantage"].values["error"], curves["machine"].values["error"]
    np.testing.assert_array_equal(advantage[:, 0], machine[:, 0])
    assert (curves["advantage"].deferred <= 0.3).all()


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"human_error": "forest", "machine_error": "forest", "kernel": "rbf"},
        {"human_error": LinearRegression(), "machine_error": KNeighborsRegressor(3)},
        {"cv": KFold(3)},
    ],
    ids=["default", "forests", "regressors", "splitter"],
)
def test_stored_and_loaded(options, tmp_path):
    clf = fitted(**options)
    deferlearn.save(clf, tmp_path / "team.skops")
    other = deferlearn.load(tmp_path / "team.skops")
    np.testing.assert_array_equal(other.decision_function(NEW), clf.decision_function(NEW))
    np.testing.assert_array_equal(other.deferral_score(NEW), clf.deferral_score(NEW))
    np.testing.assert_array_equal(other.defer(NEW), clf.defer(NEW))
    np.testing.assert_array_equal(other.defer_top(NEW), clf.defer_top(NEW))
    assert other.score_assisted(NEW, NEW_HUMAN, NEW_HUMAN) == clf.score_assisted(
        NEW, NEW_HUMAN, NEW_HUMAN
    )
    np.testing.assert_array_equal(other.fit(X, Y, human_labels=HUMAN).defer(NEW), clf.defer(NEW))


def test_it_is_a_policy_of_a_search_with_its_own_models():
    team = AdvantageTriage(human_error=LinearRegression(), use_full_budget=True)
    clf = tuned(policies=[team], alphas=[0.1]).fit(X, Y, human_labels=HUMAN)
    alone = fitted(
        human_error=LinearRegression(), use_full_budget=True, cv=SPLITS, random_state=SEED
    )
    np.testing.assert_array_equal(clf.defer(NEW), alone.defer(NEW))
    assert clf.cv_results_["deferral_rate"].tolist() == [0.25]


# -- bad input --------------------------------------------------------------------------------


BAD = [
    ({"budget": 1.5}, r"budget=1\.5"),
    ({"budget": N + 1}, "budget=73"),
    ({"budget": "all"}, "budget='all'"),
    ({"machine_error": "class"}, "machine_error='class' must be 'margin', 'probability', 'forest'"),
    ({"machine_error": None}, "machine_error=None"),
    ({"machine_error": RandomForestRegressor}, "machine_error=<class.*instance"),
    ({"machine_error": LogisticRegression()}, r"machine_error=LogisticRegression\(\)"),
    ({"human_error": "margin"}, "human_error='margin' must be 'class', 'truth', 'forest'"),
    ({"human_error": 3}, "human_error=3"),
    ({"human_error": StandardScaler()}, r"human_error=StandardScaler\(\)"),
    ({"use_full_budget": "no"}, "use_full_budget='no' must be True or False"),
    ({"use_full_budget": 1}, "use_full_budget=1 must be"),
    ({"deferral_cost": -1}, "deferral_cost=-1 must"),
    ({"deferral_cost": None}, "deferral_cost=None must"),
    ({"alpha": 0}, "alpha=0 must"),
    ({"alpha": "1"}, "alpha='1' must"),
    ({"kernel": "cubic"}, "kernel='cubic' is not known"),
    ({"kernel": "rbf", "gamma": 0}, "gamma=0 must"),
    ({"kernel": "poly", "degree": 0}, "degree=0 must"),
    ({"kernel": "poly", "coef0": "x"}, "coef0='x' must"),
    ({"kernel": "rbf", "margin": "hard"}, "margin='hard' is for kernel='linear' only"),
    ({"margin": "wide"}, "margin='wide' is not known"),
    ({"fit_intercept": None}, "fit_intercept=None must"),
    ({"class_weight": {1: -1.0}}, r"class_weight of 1 must be a positive number, got -1\.0"),
    ({"class_weight": "fair"}, "class_weight='fair'"),
    ({"cv": None}, "cv=None: errors are learned from held-out samples"),
    ({"cv": 1}, "cv=1 must"),
    ({"cv": "five"}, "cv='five' must"),
    ({"cv": [(np.arange(40), np.arange(40, N))]}, "exactly once"),
    ({"n_jobs": 0}, "n_jobs=0 must"),
    ({"random_state": "x"}, "'x' cannot be used to seed"),
]


@pytest.mark.parametrize(
    ("options", "says"),
    BAD,
    ids=[f"{place} {next(iter(options))}" for place, (options, _) in enumerate(BAD)],
)
def test_parameters_of_the_wrong_kind_or_size(options, says):
    clf = AdvantageTriage(**options)
    with pytest.raises(ValueError, match=says):
        clf.fit(X, Y, human_labels=HUMAN)
    with pytest.raises(NotFittedError):
        clf.defer(X)


@pytest.mark.parametrize(
    ("human", "says"),
    [
        ({"human_loss": LOSS, "human_labels": HUMAN}, "human_loss and human_labels were given"),
        ({"human_labels": lambda rows: rows}, "human_labels is a function"),
        ({"human_labels": HUMAN[:9]}, "human_labels has 9 rows"),
        ({"human_loss": -LOSS}, "human_loss must be finite and not negative"),
    ],
)
def test_humans_that_are_none(human, says):
    with pytest.raises(ValueError, match=says):
        AdvantageTriage().fit(X, Y, **human)


def test_nothing_is_known_before_the_fit():
    clf = AdvantageTriage()
    for ask in (clf.predict, clf.defer, clf.defer_top, clf.deferral_score, clf.decision_function):
        with pytest.raises(NotFittedError, match="AdvantageTriage instance is not fitted"):
            ask(X)
    assert not hasattr(clf, "coef_")


def test_the_model_of_advantages_alone():
    """Two answers, one of them always right; humans err on every second case of the other."""
    margin = np.array([-2.0, -1.0, 1.0, 2.0, 3.0, 4.0])
    machine = np.array([0.0, 0.0, 1.0, 1.0, 0.0, 0.0])
    human = np.array([0.0, 0.0, 1.0, 0.0, 1.0, 0.0])
    coding, codes = code_signs(np.where(machine > 0, -1.0, 1.0) * np.sign(margin))
    truth = Truth(codes, np.ones(6), coding)
    X = np.zeros((6, 1))
    model = AdvantageModel("margin", "class").fit(X, margin, machine, human, truth, 0)
    mean = 1 / 3
    rates = {False: (0 + 2 * mean) / 4, True: (2 + 2 * mean) / 6}
    new = np.array([-9.0, -0.1, 0.5, 2.0, 2.5, 9.0])
    expected = np.array([0, 0, 1, 1, 0.5, 0]) - [rates[bool(m > 0)] for m in new]
    np.testing.assert_allclose(model.predict(np.zeros((6, 1)), new), expected, atol=1.1e-6)


def test_expected_costs_by_the_classes():
    """Against sums over the classes, with probabilities by scikit-learn's logistic regression."""
    rng = np.random.RandomState(5)
    margin = rng.normal(size=200)
    y = np.where(margin + rng.normal(size=200) > 0, 1.0, -1.0)
    weights = np.where(y > 0, 3.0, 1.0)
    wrong = weights * (np.sign(margin) != y)
    human = weights * (rng.uniform(size=200) < np.where(y > 0, 0.3, 0.1))
    X = np.zeros((200, 1))
    model = AdvantageModel("probability", "truth")
    coding, codes = code_signs(y)
    model.fit(X, margin, wrong, human, Truth(codes, weights, coding), 0)
    scaled = (margin - margin.mean()) / margin.std()
    logistic = LogisticRegression(C=100.0, tol=1e-10).fit(scaled[:, None], y)
    p = logistic.predict_proba(scaled[:, None])
    rates = [(human[y == s].sum() + 2 * human.mean()) / ((y == s).sum() + 2) for s in (-1, 1)]
    found = model.expected(X, margin)
    by_hand = np.where(margin > 0, p[:, 0] * 1.0, p[:, 1] * 3.0)
    np.testing.assert_allclose(found[0], by_hand, atol=1e-5)
    np.testing.assert_allclose(found[1], p @ rates, atol=1e-5)
