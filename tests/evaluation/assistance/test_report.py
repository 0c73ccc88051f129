"""The report's numbers, against plain loops, scikit-learn and brute force."""

from itertools import product

import numpy as np
import pytest
from joblib import parallel_config
from sklearn import config_context
from sklearn.base import BaseEstimator
from sklearn.metrics import recall_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from deferlearn import AssistedSVC, assistance_report
from deferlearn.datasets import make_shifted
from deferlearn.humans import UniformHuman, majority_labels
from deferlearn.metrics import team_cost, team_error
from deferlearn.teams import PredictedErrorTriage, UncertaintyTriage, make_assisted_pipeline
from stub_team import StubTeam

X, Y = make_shifted(120, n_features=3, shift=0.5, random_state=0)
HUMAN = UniformHuman(0.15).labels(Y, random_state=0)
BUDGETS = [0.25, 0.5, 1.0]
# Every case is tested once, but for the first ten, which are tested twice.
SPLITS = [
    (np.arange(60), np.arange(60, 120)),
    (np.arange(60, 120), np.arange(60)),
    (np.arange(20, 120), np.arange(10)),
]


class Team(StubTeam):
    """Defers nobody at a budget of 0, also one at a time."""

    def defer(self, X):
        return super().defer(X) & (self.rate_ > 0)


def loop(budget, splits=SPLITS, batch=True):
    """Team's errors and deferrals of each case, mean over its tests."""
    wrong, deferred, times = np.zeros(120), np.zeros(120), np.zeros(120)
    for train, test in splits:
        team = Team(budget=budget).fit(X[train], Y[train])
        wrong[test] += team.predict_assisted(X[test], HUMAN[test], batch=batch) != Y[test]
        deferred[test] += team.defer_top(X[test]) if batch else team.defer(X[test])
        times[test] += 1
    return wrong / times, deferred / times


def report_of(**changes):
    options = {"budgets": BUDGETS, "cv": SPLITS, "random_state": 0} | changes
    return assistance_report(Team(), X, Y, HUMAN, **options)


@pytest.mark.parametrize("batch", [True, False])
def test_numbers_equal_a_plain_loop(batch):
    report = report_of(batch=batch, budgets=[0.25, 0.5], false_negative=4.0, deferral_cost=0.3)
    price = np.where(Y == 1, 4.0, 1.0)
    machine, _ = loop(0.0, batch=batch)
    human = HUMAN != Y
    for row, budget in zip(report.teams[:-1], [0.0, 0.25, 0.5], strict=True):
        wrong, deferred = loop(budget, batch=batch)
        assert row["budget"] == budget
        assert row["deferred"] == pytest.approx(deferred.mean())
        assert row["error"] == pytest.approx(wrong.mean())
        assert row["sensitivity"] == pytest.approx(1 - wrong[Y == 1].mean())
        assert row["specificity"] == pytest.approx(1 - wrong[Y == -1].mean())
        cost = wrong * price + 0.3 * deferred
        assert row["cost"] == pytest.approx(cost.mean())
        assert row["versus_human"] == pytest.approx(np.mean(cost - human * price - 0.3))
        if budget:
            assert row["difference"] == pytest.approx(np.mean(cost - machine * price))
            rate = (deferred * human).sum() / deferred.sum()
            assert row["human_error_on_deferred"] == pytest.approx(rate)
    assert [row["who"] for row in report.teams] == ["machine", "team", "team", "human"]
    assert report.measure == "cost"


def test_numbers_are_those_of_the_metrics():
    """With every case tested once, the metrics of all answers together."""
    splits = SPLITS[:2]
    report = report_of(cv=splits, false_positive=2.0, false_negative=3.0, deferral_cost=0.1)
    for row in report.teams[1:-1]:
        answers, deferred = np.empty_like(Y), np.zeros(120, dtype=bool)
        for train, test in splits:
            team = Team(budget=row["budget"]).fit(X[train], Y[train])
            answers[test] = team.predict_assisted(X[test], HUMAN[test], batch=True)
            deferred[test] = team.defer_top(X[test])
        assert row["error"] == pytest.approx(team_error(Y, answers))
        assert row["sensitivity"] == pytest.approx(recall_score(Y, answers))
        assert row["specificity"] == pytest.approx(recall_score(Y, answers, pos_label=-1))
        prices = {"false_positive": 2.0, "false_negative": 3.0, "deferral_cost": 0.1}
        assert row["cost"] == pytest.approx(team_cost(Y, answers, deferred, **prices))
    human = report.teams[-1]
    everybody = np.ones(120, dtype=bool)
    assert human["cost"] == pytest.approx(team_cost(Y, HUMAN, everybody, **prices))
    assert human["error"] == pytest.approx(team_error(Y, HUMAN))


def test_error_on_what_is_handed_over():
    row = report_of(cv=SPLITS[:2]).teams[1]
    wrong_before, _ = loop(0.0, SPLITS[:2])
    _, deferred = loop(0.25, SPLITS[:2])
    expected = wrong_before[deferred == 1].mean()
    assert row["machine_error_on_deferred"] == pytest.approx(expected)


def test_a_budget_of_one_is_the_human_alone():
    report = report_of()
    team, human = report.teams[3], report.teams[-1]
    assert team["budget"] == 1.0
    # The first ten cases count once although they were tested twice.
    for name in ("error", "sensitivity", "specificity", "cost"):
        assert team[name] == pytest.approx(human[name])
    assert team["versus_human"] == 0.0
    # The human needs no training: the same numbers, told with more certainty.
    assert human["error_high"] - human["error_low"] < team["error_high"] - team["error_low"]


def test_more_budgets_ask_for_wider_intervals():
    """One of several differences is more easily far from zero by chance."""
    one, several = report_of(budgets=[0.25]).teams[1], report_of().teams[1]
    assert one["difference"] == several["difference"]
    assert several["difference_high"] > one["difference_high"] + 1e-3
    assert several["error_high"] == one["error_high"]  # which speaks for itself


def test_steps_are_differences_of_neighbours():
    report = report_of()
    costs = [row["cost"] for row in report.teams[:-1]]
    np.testing.assert_allclose([row["difference"] for row in report.steps], np.diff(costs))
    assert [row["from_budget"] for row in report.steps] == [0.0, 0.25, 0.5]
    assert [row["to_budget"] for row in report.steps] == BUDGETS
    assert all(row["difference_low"] < row["difference_high"] for row in report.steps)


# -- human error by a factor -------------------------------------------------------------------------


class Fixed(BaseEstimator):
    """A machine that always says 1, and hands over the first cases of a batch."""

    def __init__(self, budget=0.5):
        self.budget = budget

    def fit(self, X, y, human_labels=None, human_scores=None, human_loss=None):
        return self

    def defer_top(self, X):
        return np.arange(len(X)) < round(self.budget * len(X))

    def predict_assisted(self, X, human_labels, batch=False):
        return np.where(self.defer_top(X), human_labels, 1)


TINY_Y = np.array([1, 1, 1, -1, -1, -1, -1, -1, 1, -1, 1, -1])
TINY_HUMAN = np.array([1, -1, 1, -1, -1, 1, -1, -1, 1, -1, 1, -1])
# The first eight are handed over: one of three positive and one of five negative answers is wrong.
TINY = {"budgets": [2 / 3], "cv": [(np.arange(12), np.arange(12))], "false_negative": 3.0}


def expected_cost(factor):
    """Over all subsets of answers that could turn, each with its probability: no closed form."""
    price = np.where(TINY_Y == 1, 3.0, 1.0)
    kept = np.sum(price[8:] * (TINY_Y[8:] != 1))
    total = 0.0
    for label in (1, -1):
        rows = np.flatnonzero(TINY_Y[:8] == label)
        wrong = TINY_HUMAN[rows] != label
        rate = wrong.mean()
        if factor <= 1:
            able, chance = wrong, 1 - factor  # wrong answers that turn right
        else:
            able, chance = ~wrong, min(1.0, (factor - 1) * rate / (1 - rate))
        for turned in product([0, 1], repeat=int(able.sum())):
            probability = np.prod([chance if t else 1 - chance for t in turned])
            after = wrong.copy()
            after[able] ^= np.array(turned, dtype=bool)
            total += probability * after.sum() * price[rows][0]
    return (kept + total) / 12


def test_factors_are_expectations_over_answers_that_turn():
    factors = [0.0, 0.5, 1.0, 2.0, 2.9, 3.5, 10.0]
    report = assistance_report(
        Fixed(), np.zeros((12, 1)), TINY_Y, TINY_HUMAN, human_error_factors=factors, **TINY
    )
    assert [row["factor"] for row in report.factors] == factors
    for row in report.factors:
        assert row["cost"] == pytest.approx(expected_cost(row["factor"]))
        gain = row["cost"] - report.teams[0]["cost"]
        assert row["difference"] == pytest.approx(gain)
    rates = [row["human_error"] for row in report.factors]
    # Of 3 and 5 cases 1 is wrong each; errors stop growing at 3 and at 5 times as many.
    np.testing.assert_allclose(rates, np.array([0, 1, 2, 4, 5.8, 6.5, 8]) / 8)
    assert report.factors[2]["difference_low"] == report.teams[1]["difference_low"]


@pytest.mark.parametrize("time", [0.0, 0.2, 0.4])
def test_break_even_is_where_the_difference_vanishes(time):
    options = TINY | {"deferral_cost": time}
    first = assistance_report(Fixed(), np.zeros((12, 1)), TINY_Y, TINY_HUMAN, **options)
    factor = first.teams[1]["break_even_factor"]
    again = assistance_report(
        Fixed(), np.zeros((12, 1)), TINY_Y, TINY_HUMAN, human_error_factors=[factor], **options
    )
    row = next(r for r in again.factors if r["factor"] == factor)
    assert row["difference"] == pytest.approx(0.0, abs=1e-12)


def test_break_even_beyond_reach():
    # Time that costs more than the machine's errors: not even perfect humans are worth it.
    dear = assistance_report(
        Fixed(), np.zeros((12, 1)), TINY_Y, TINY_HUMAN, **(TINY | {"deferral_cost": 9.0})
    )
    assert dear.teams[1]["break_even_factor"] == 0.0
    # Humans who never err: no multiple of nothing changes that.
    right = assistance_report(Fixed(), np.zeros((12, 1)), TINY_Y, TINY_Y, **TINY)
    assert right.teams[1]["break_even_factor"] is None
    assert any("equal y in every case" in sentence for sentence in right.verdict)
    assert any("made no error" in sentence for sentence in right.verdict)


# -- subgroups, groups, readers, labels ---------------------------------------------------------------


def test_subgroups_equal_a_plain_loop():
    sex = np.where(X[:, 1] > 0, "f", "m")
    report = report_of(subgroup=sex)
    assert len(report.subgroups) == 2 * len(BUDGETS)
    before, _ = loop(0.0)
    for row in report.subgroups:
        own = sex == row["subgroup"]
        wrong, deferred = loop(row["budget"])
        assert row["n_cases"] == own.sum()
        assert row["n_positive"] == np.sum(Y[own] == 1)
        assert row["deferred"] == pytest.approx(deferred[own].mean())
        assert row["machine_error"] == pytest.approx(before[own].mean())
        assert row["team_error"] == pytest.approx(wrong[own].mean())
        assert row["human_error"] == pytest.approx(np.mean((HUMAN != Y)[own]))
        assert row["difference"] == pytest.approx(np.mean((wrong - before)[own]))
        for name in ("machine_error", "human_error", "team_error", "difference"):
            assert row[f"{name}_low"] <= row[name] <= row[f"{name}_high"]
    assert {row["subgroup"] for row in report.subgroups} == {"f", "m"}


def test_subgroup_by_a_column_and_with_gaps():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    frame["site"] = (frame["a"] > 0).astype(int)
    options = {"budgets": [0.3], "cv": SPLITS[:2]}
    by_name = assistance_report(Team(), frame, Y, HUMAN, subgroup="site", **options)
    assert by_name.subgroup_name == "site"
    by_array = assistance_report(Team(), frame, Y, HUMAN, subgroup=frame["site"], **options)
    assert by_name.subgroups == by_array.subgroups
    gaps = [None if i < 30 else "known" for i in range(120)]
    report = report_of(subgroup=gaps)
    assert {r["subgroup"]: r["n_cases"] for r in report.subgroups} == {
        "(missing)": 30,
        "known": 90,
    }
    with pytest.raises(ValueError, match=r"names no column of X \(the columns are \['a'"):
        assistance_report(Team(), frame, Y, HUMAN, subgroup="size", **options)


class Torn(StubTeam):
    """Fails if a group is on both sides; the group is the first feature."""

    def fit(self, X, y, human_labels=None, human_scores=None, human_loss=None):
        self.seen_ = set(X[:, 0])
        return super().fit(X, y, human_labels)

    def predict_assisted(self, X, human_labels, batch=False):
        assert not self.seen_ & set(X[:, 0])
        return super().predict_assisted(X, human_labels, batch)


@pytest.mark.parametrize("cv", [None, 4])
def test_groups_stay_together(cv):
    groups = np.repeat([f"patient {i}" for i in range(30)], 4)
    codes = np.repeat(np.arange(30.0), 4)
    data = np.column_stack([codes, X])
    options = {"budgets": [0.2], "cv": cv, "random_state": 0}
    report = assistance_report(Torn(), data, Y, HUMAN, groups=groups, **options)
    assert report.settings["n_groups"] == 30
    assert report.settings["n_splits"] == (10 if cv is None else 4)
    with pytest.raises(AssertionError):
        assistance_report(Torn(), data, Y, HUMAN, **options)


def test_cases_of_one_patient_do_not_count_as_many():
    rows = np.repeat(np.arange(120), 3)
    tripled = [
        (np.flatnonzero(np.isin(rows, train)), np.flatnonzero(np.isin(rows, test)))
        for train, test in SPLITS[:2]
    ]
    known = assistance_report(Team(), X[rows], Y[rows], HUMAN[rows], [0.5], cv=tripled, groups=rows)
    ignored = assistance_report(Team(), X[rows], Y[rows], HUMAN[rows], [0.5], cv=tripled)
    widths = [r.teams[-1]["error_high"] - r.teams[-1]["error_low"] for r in (known, ignored)]
    assert widths[0] > 1.6 * widths[1]
    once = report_of(budgets=[0.5], cv=SPLITS[:2]).teams[-1]
    assert known.teams[-1]["error_low"] == pytest.approx(once["error_low"])


class Asking(StubTeam):
    """Wants to know the groups, as an estimator with folds of its own does."""

    def fit(self, X, y, human_labels=None, groups=None):
        assert groups is not None
        assert len(groups) == len(X)
        return super().fit(X, y, human_labels)


def test_groups_reach_an_estimator_that_asks_for_them():
    groups = np.repeat(np.arange(40), 3)
    options = {"budgets": [0.2], "cv": 3, "random_state": 0, "groups": groups}
    plain = assistance_report(Asking(), X, Y, HUMAN, **options)
    piped = assistance_report(make_pipeline(StandardScaler(), Asking()), X, Y, HUMAN, **options)
    assert plain.settings["n_groups"] == piped.settings["n_groups"] == 40


def test_several_readers_with_gaps():
    readers = np.column_stack([HUMAN, UniformHuman(0.3).labels(Y, random_state=1), -Y]).astype(
        float
    )
    readers[::2, 2] = np.nan  # the third hardly ever answers, and is always wrong
    readers[5:15] = np.nan  # nobody does
    report = assistance_report(
        Team(), X, Y, readers, BUDGETS[:2], cv=SPLITS[:2], human_scores=HUMAN
    )
    read = np.setdiff1d(np.arange(120), np.arange(5, 15))
    majority = majority_labels(readers[read])
    assert report.settings["n_left_out"] == 10
    assert report.settings["n_cases"] == 110
    assert report.teams[-1]["error"] == pytest.approx(np.mean(majority != Y[read]))
    wrong = np.zeros(120)
    for train, test in SPLITS[:2]:
        team = Team(budget=0.25).fit(X[train], Y[train])
        test = np.intersect1d(test, read)
        said = np.zeros(120)
        said[read] = majority
        wrong[test] = team.predict_assisted(X[test], said[test], batch=True) != Y[test]
    assert report.teams[1]["error"] == pytest.approx(wrong[read].mean())
    assert any(s.startswith("10 cases were not judged, for want of") for s in report.verdict)
    assert any("the majority of 3 readers" in s for s in report.verdict)


def test_words_as_labels():
    words = np.where(Y == 1, "sick", "well")
    said = np.where(HUMAN == 1, "sick", "well").astype(object)
    options = {"budgets": [0.25], "cv": SPLITS}
    numbers = report_of(budgets=[0.25])
    named = assistance_report(Team(), X, words, said, pos_label="sick", **options)
    for one, other in zip(named.teams, numbers.teams, strict=True):
        for key in ("error", "sensitivity", "specificity", "sensitivity_low"):
            assert one[key] == pytest.approx(other[key])
    turned = assistance_report(Team(), X, words, list(said), pos_label="well", **options)
    assert turned.teams[1]["sensitivity"] == pytest.approx(numbers.teams[1]["specificity"])
    truth = Y == 1
    flags = assistance_report(Team(), X, truth, HUMAN == 1, **options)
    assert flags.teams[1]["sensitivity"] == pytest.approx(numbers.teams[1]["sensitivity"])
    assert flags.settings["pos_label"] is True


# -- estimators ----------------------------------------------------------------------------------------


def test_numbers_of_samples_as_budgets():
    report = report_of(budgets=[30, 0, 15, 30], cv=SPLITS[:2])
    assert [row["budget"] for row in report.teams] == [0, 15, 30, None]
    assert all(isinstance(row["budget"], int) for row in report.teams[:-1])
    assert report.teams[1]["deferred"] == pytest.approx(0.25)
    assert "training samples" in str(report)


def test_what_fit_is_told():
    class Told(StubTeam):
        def predict_assisted(self, X, human_labels, batch=False):
            assert self.human_ == ["loss"]
            return super().predict_assisted(X, human_labels, batch)

    report = assistance_report(Told(), X, Y, HUMAN, [0.25], cv=SPLITS[:2], human_loss=np.zeros(120))
    assert report.teams[1]["error"] == report_of(budgets=[0.25], cv=SPLITS[:2]).teams[1]["error"]


TEAMS = {
    "svc": AssistedSVC(alpha=0.1, cv=None, submodularity_ratio=0.5, random_state=0),
    "pipeline": make_assisted_pipeline(
        StandardScaler(), AssistedSVC(alpha=0.1, cv=None, submodularity_ratio=0.5, random_state=0)
    ),
    "plain pipeline": make_pipeline(StandardScaler(), UncertaintyTriage(cv=None, random_state=0)),
    "triage": UncertaintyTriage(alpha=0.1, cv=3, random_state=0),
}


@pytest.mark.parametrize("name", TEAMS)
@pytest.mark.parametrize("batch", [True, False])
def test_teams_of_all_kinds(name, batch):
    team = TEAMS[name]
    before = repr(team)
    options = {"cv": 3, "random_state": 0, "batch": batch}
    report = assistance_report(team, X, Y, HUMAN, [0.1, 0.3], **options)
    assert repr(team) == before
    assert not hasattr(team, "classes_")
    assert report.teams[0]["deferred"] == 0.0
    assert 0.0 < report.teams[1]["deferred"] < report.teams[2]["deferred"]
    assert assistance_report(team, X, Y, HUMAN, [0.1, 0.3], **options).teams == report.teams


@pytest.mark.filterwarnings("ignore:Stochastic Optimizer:sklearn.exceptions.ConvergenceWarning")
def test_predicted_errors_with_several_readers():
    readers = np.column_stack([UniformHuman(0.3).labels(Y, random_state=i) for i in range(4)])
    team = PredictedErrorTriage(cv=None, random_state=0)
    report = assistance_report(team, X[:60], Y[:60], readers[:60], [0.3], cv=2, random_state=0)
    assert report.settings["n_readers"] == 4


def test_fitted_estimators_and_routing():
    team = UncertaintyTriage(cv=None).fit(X, Y)
    threshold = team.deferral_threshold_
    options = {"cv": 3, "random_state": 0}
    plain = assistance_report(team, X, Y, HUMAN, [0.2], **options)
    assert team.deferral_threshold_ == threshold
    with config_context(enable_metadata_routing=True), parallel_config("threading"):
        routed = assistance_report(make_pipeline(team), X, Y, HUMAN, [0.2], n_jobs=2, **options)
    assert routed.teams == plain.teams


def test_kernel_matrices_are_cut_both_ways():
    options = {"cv": 3, "random_state": 0}
    settings = {"cv": None, "submodularity_ratio": 0.5, "random_state": 0, "alpha": 0.1}
    plain = assistance_report(AssistedSVC(**settings), X, Y, HUMAN, [0.2], **options)
    gram = assistance_report(
        AssistedSVC(kernel="precomputed", **settings), X @ X.T, Y, HUMAN, [0.2], **options
    )
    assert [row["error"] for row in gram.teams] == [row["error"] for row in plain.teams]
