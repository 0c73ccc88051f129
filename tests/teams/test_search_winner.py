"""The winner is the very estimator that one would fit by hand; the search answers as it does."""

from __future__ import annotations

import re

import numpy as np
import pytest
import scipy.sparse as sp
from joblib import parallel_config
from sklearn.base import BaseEstimator, clone
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import StratifiedKFold

from deferlearn import AssistedSVC, AssistedSVCCV
from deferlearn._utils.progress import Progress
from deferlearn.teams import (
    AdvantageTriage,
    DeferralPolicy,
    FullAutomation,
    PredictedErrorTriage,
    UncertaintyTriage,
    search_team,
)
from deferlearn.teams.candidates import DEFAULT_POLICIES, TEAMS
from deferlearn.teams.context import SELECTION
from deferlearn.teams.forest import ForestClassifier, ForestRegressor
from deferlearn.teams.samples import Samples
from deferlearn.teams.selector import Selector
from tuned import HUMAN, LOSS, NEW, NEW_HUMAN, SCORES, SEED, SPLITS, N, X, Y, tuned

FOREST = DeferralPolicy(ForestClassifier(), features="both")
FEW_TREES = RandomForestRegressor(5, min_samples_leaf=5)
BY_HAND = {
    "uncertainty": UncertaintyTriage(),
    "advantage": AdvantageTriage(),
    "expected_cost": AdvantageTriage(machine_error="probability", human_error="truth"),
    "advantage_by_region": AdvantageTriage(human_error="forest"),
    "advantage_forest": AdvantageTriage(machine_error="forest", human_error="forest"),
    "margin": AssistedSVC(),
    "forest": AssistedSVC(policy=FOREST),
    "automation": FullAutomation(),
}


def assert_same_team(clf, other, new=NEW, human=NEW_HUMAN):
    np.testing.assert_array_equal(clf.decision_function(new), other.decision_function(new))
    np.testing.assert_array_equal(clf.predict(new), other.predict(new))
    np.testing.assert_array_equal(clf.deferral_score(new), other.deferral_score(new))
    np.testing.assert_array_equal(clf.defer(new), other.defer(new))
    assert clf.deferral_threshold_ == other.deferral_threshold_
    assert clf.deferral_rate_ == other.deferral_rate_
    for budget in (None, 0.1, 17):
        np.testing.assert_array_equal(clf.defer_top(new, budget), other.defer_top(new, budget))
    for batch in (False, True):
        np.testing.assert_array_equal(
            clf.predict_assisted(new, human, batch=batch),
            other.predict_assisted(new, human, batch=batch),
        )
    assert clf.score_assisted(new, human, human) == other.score_assisted(new, human, human)


SLOW = {"advantage_forest": pytest.mark.slow}


@pytest.mark.parametrize(
    "policy", [pytest.param(name, marks=SLOW.get(name, ())) for name in BY_HAND]
)
def test_winner_equals_the_same_estimator_fitted_alone(policy):
    clf = tuned(policies=[policy], alphas=[0.1], deferral_cost=0.05, class_weight={1: 1.5})
    clf.fit(X, Y, human_labels=HUMAN)
    known = {
        "budget": 0.25,
        "alpha": 0.1,
        "cv": SPLITS,
        "random_state": SEED,
        "deferral_cost": 0.05,
        "class_weight": {1: 1.5},
    }
    team = clone(BY_HAND[policy])
    team.set_params(**{k: v for k, v in known.items() if k in team.get_params()})
    team.fit(X, Y, human_labels=HUMAN)
    assert type(clf.best_estimator_) is type(team)
    assert_same_team(clf, team)
    assert clf.best_params_ == {"policy": policy, "alpha": 0.1, "kernel": "linear"}


def test_every_default_policy_was_tested_and_the_slow_ones_are_not_default():
    assert set(BY_HAND) >= set(DEFAULT_POLICIES)
    # The last of these is for machines other than SVMs.
    assert set(TEAMS) - set(BY_HAND) == {"predicted_error", "mlp", "assisted"}


def test_folds_of_a_number_are_stratified_and_shared_with_the_winner():
    clf = tuned(policies=["margin"], alphas=[0.1], cv=4).fit(X, Y, human_labels=HUMAN)
    folds = StratifiedKFold(4, shuffle=True, random_state=SEED).split(X, Y)
    team = AssistedSVC(0.25, alpha=0.1, cv=list(folds), random_state=SEED)
    assert_same_team(clf, team.fit(X, Y, human_labels=HUMAN))


@pytest.mark.parametrize("budget", [18, np.int64(18), 0.25, np.float32(0.25)])
def test_budgets_reach_the_winner_as_they_were_given(budget):
    clf = tuned(budget=budget, policies=["uncertainty"]).fit(X, Y, human_labels=HUMAN)
    assert clf.best_estimator_.budget == budget
    assert clf.deferral_rate_ == 0.25
    assert clf.defer_top(NEW).sum() == 50


def test_kernel_of_the_winner_is_that_of_all_samples():
    clf = tuned(kernels=["rbf"], alphas=[0.1], policies=["uncertainty"])
    clf.fit(X, Y, human_labels=HUMAN)
    squares = [((a - b) ** 2).sum() for i, a in enumerate(X) for b in X[:i]]
    widths = np.array([0.3, 1.0, 3.0]) / np.median(squares)
    tried = [params["gamma"] for params in clf.cv_results_["params"]]
    np.testing.assert_allclose(sorted(tried), widths)
    gamma = clf.best_params_["gamma"]
    team = UncertaintyTriage(
        0.25, alpha=0.1, kernel="rbf", gamma=gamma, cv=SPLITS, random_state=SEED
    )
    assert_same_team(clf, team.fit(X, Y, human_labels=HUMAN))


@pytest.mark.parametrize(
    "policy",
    ["uncertainty", "advantage", AdvantageTriage(human_error=FEW_TREES), AssistedSVC(delta=0.4)],
    ids=["uncertainty", "advantage", "by region", "margin"],
)
def test_precomputed_kernels_are_cut_on_both_sides(policy):
    options = {"policies": [policy], "alphas": [0.1], "budget": 0.2}
    K = rbf_kernel(X, gamma=0.3)
    clf = tuned(kernels=["precomputed"], **options).fit(K, Y, human_labels=HUMAN)
    K_new = rbf_kernel(NEW, X, gamma=0.3)
    if isinstance(
        policy, AdvantageTriage
    ):  # its forest sees the rows of the kernel: other features
        assert clf.defer(K_new).shape == (200,)
        return
    kernel = {"kernel": "rbf", "gamma": 0.3}
    other = tuned(kernels=[kernel], **options).fit(X, Y, human_labels=HUMAN)
    np.testing.assert_allclose(clf.best_score_, other.best_score_)
    np.testing.assert_allclose(clf.decision_function(K_new), other.decision_function(NEW))
    np.testing.assert_array_equal(clf.defer(K_new), other.defer(NEW))
    assert clf.__sklearn_tags__().input_tags.pairwise
    assert not other.__sklearn_tags__().input_tags.pairwise


def test_own_kernel_functions():
    def own(A, B):
        return rbf_kernel(A, B, gamma=0.3)

    clf = tuned(kernels=[own], alphas=[0.1]).fit(X, Y, human_labels=HUMAN)
    kernel = {"kernel": "rbf", "gamma": 0.3}
    other = tuned(kernels=[kernel], alphas=[0.1]).fit(X, Y, human_labels=HUMAN)
    assert clf.best_params_["kernel"] is own
    np.testing.assert_array_equal(clf.defer(NEW), other.defer(NEW))


@pytest.mark.parametrize("make", [sp.csr_matrix, sp.csr_array, sp.coo_array])
def test_sparse_cases(make):
    small_forest = DeferralPolicy(RandomForestClassifier(5), features="both")
    policies = ["uncertainty", "advantage", AdvantageTriage(human_error=FEW_TREES), small_forest]
    rounded = np.round(X) * (np.abs(X) > 0.5)
    options = {"policies": policies, "alphas": [0.1], "n_refined": 1}
    clf = tuned(**options).fit(make(rounded), Y, human_labels=HUMAN)
    other = tuned(**options).fit(rounded, Y, human_labels=HUMAN)
    np.testing.assert_allclose(
        clf.cv_results_["mean_test_score"][:3], other.cv_results_["mean_test_score"][:3]
    )
    assert clf.defer(make(NEW)).tolist() == clf.defer(NEW).tolist()
    assert clf.__sklearn_tags__().input_tags.sparse
    assert not tuned(kernels=["linear", "rbf"]).__sklearn_tags__().input_tags.sparse
    with pytest.raises(TypeError, match=r"[Ss]parse"):
        tuned(kernels=["rbf"]).fit(make(rounded), Y)


# -- repeated ---------------------------------------------------------------------------------


def test_seeds_and_jobs():
    small_forest = DeferralPolicy(RandomForestClassifier(5), features="both")
    options = {
        "policies": ["uncertainty", "advantage", AssistedSVC(policy=small_forest)],
        "cv": 3,
        "n_refined": 1,
    }
    one = tuned(**options).fit(X, Y, human_labels=HUMAN)
    again = tuned(**options, random_state=np.random.RandomState(0)).fit(X, Y, human_labels=HUMAN)
    with parallel_config("threading"):
        two_jobs = tuned(**options, n_jobs=2).fit(X, Y, human_labels=HUMAN)
    other = tuned(**options, random_state=1).fit(X, Y, human_labels=HUMAN)
    for clf in (again, two_jobs):
        assert_same_team(clf, one)
        for name, values in one.cv_results_.items():
            if name != "params":
                np.testing.assert_array_equal(clf.cv_results_[name], values)
    assert (other.cv_results_["mean_test_score"] != one.cv_results_["mean_test_score"]).any()


def test_verbose_prints_a_line_a_candidate(capsys):
    tuned(policies=["uncertainty", "automation"]).fit(X, Y)
    assert capsys.readouterr().out == ""
    clf = tuned(policies=["uncertainty", "automation"], verbose=1).fit(X, Y)
    lines = [line for line in capsys.readouterr().out.splitlines() if " left" not in line]
    assert len(lines) == 4
    means = clf.cv_results_["mean_test_score"]
    assert lines[0].startswith("[AssistedSVCCV] uncertainty, linear SVM (alpha 0.03): ")
    assert sorted(float(line.split()[-1]) for line in lines) == sorted(means.round(4))


def test_verbose_says_how_long_it_takes(monkeypatch, capsys):
    monkeypatch.setattr(search_team, "sometimes", lambda show: show)
    policies = ["uncertainty", "advantage", "margin", "forest"]
    tuned(policies=policies, verbose=1).fit(X, Y, human_labels=HUMAN)
    shares = re.findall(r"AssistedSVCCV\] (\d+)% done, about \d+ s left", capsys.readouterr().out)
    assert len(shares) > 20  # machines, folds and trials
    assert shares[-1] == "100"


def test_every_unit_of_a_search_is_counted(monkeypatch):
    made = []
    begin = Progress.begin

    def counted(self, kind):
        begin(self, kind)
        made.append(self)

    monkeypatch.setattr(Progress, "begin", counted)
    tuned(policies=["uncertainty", "margin", FirstFeature()]).fit(X, Y, human_labels=HUMAN)
    outer = made[0]
    assert set(outer._open.values()) == {0}
    assert {"machine", "winner", "margin"} < outer._open.keys()


# -- teams of one's own -----------------------------------------------------------------------


class FirstFeature(BaseEstimator):
    """A team with the public methods alone. It defers the largest x; without row 0, another share."""

    def __init__(self, budget=0.2, shift=0.0, other_rate=0.0):
        self.budget = budget
        self.shift = shift
        self.other_rate = other_rate

    def fit(self, X, y, human_labels=None):
        knows = (X == ROW_0).all(axis=1).any()
        self.deferral_rate_ = self.budget if knows else self.other_rate
        self.deferral_threshold_ = float(np.quantile(X[:, 0], 1 - self.deferral_rate_))
        return self

    def decision_function(self, X):
        return X[:, 0] - self.shift

    def deferral_score(self, X):
        # Of the other share the scores say the opposite of what is to be done.
        return X[:, 0] + {0.0: 50.0, 1.0: -50.0}.get(self.deferral_rate_, 0.0)

    def defer(self, X):
        return X[:, 0] > self.deferral_threshold_

    def defer_top(self, X, budget=None):
        return self.defer(X)

    def predict_assisted(self, X, human_labels, batch=False):
        raise NotImplementedError


ROW_0 = X[0]


def test_a_team_with_public_methods_alone():
    team = FirstFeature(shift=0.3)
    clf = tuned(policies=[team]).fit(X, Y, human_labels=HUMAN)
    assert clf.best_estimator_.shift == 0.3
    assert clf.best_estimator_.budget == 0.25
    np.testing.assert_array_equal(clf.predict(NEW), np.where(NEW[:, 0] > 0.3, 1, -1))
    np.testing.assert_array_equal(clf.deferral_score(NEW), NEW[:, 0])
    np.testing.assert_array_equal(clf.defer(NEW), NEW[:, 0] > np.quantile(X[:, 0], 0.75))
    np.testing.assert_array_equal(
        clf.predict_assisted(NEW, NEW_HUMAN),
        np.where(clf.defer(NEW), NEW_HUMAN, clf.predict(NEW)),
    )


def test_a_team_of_another_author_gets_sample_weight_if_it_takes_it():
    seen = []

    class Weighing(FirstFeature):
        def fit(self, X, y, human_labels=None, sample_weight=None):
            seen.append((X, sample_weight))
            return super().fit(X, y, human_labels)

    weights = np.where(X[:, 1] > 0, 2.0, 0.5)
    search = {"policies": [Weighing()], "alphas": [1.0]}
    tuned(**search).fit(X, Y, human_labels=HUMAN, sample_weight=weights)
    for part, given in seen:
        np.testing.assert_array_equal(given, np.where(part[:, 1] > 0, 2.0, 0.5))
    assert [len(part) for part, _ in seen].count(len(X)) == 1
    assert len(seen) > 2  # the folds, and the winner
    seen.clear()
    tuned(**search).fit(X, Y, human_labels=HUMAN)
    assert {given is None for _, given in seen} == {True}


def test_a_team_whose_fit_takes_no_sample_weight_is_tried_as_well():
    clf = tuned(policies=[FirstFeature()], alphas=[1.0])
    clf.fit(X, Y, human_labels=HUMAN, sample_weight=np.full(len(X), 2.0))
    assert isinstance(clf.best_estimator_, FirstFeature)


@pytest.mark.parametrize("other_rate", [0.0, 1.0])
def test_a_fold_whose_team_defers_nobody_or_everybody_does_so(other_rate):
    """The scores of such a team mean nothing, and must not compete with those of other folds."""
    team = FirstFeature(other_rate=other_rate)
    clf = tuned(policies=[team], alphas=[1.0]).fit(X, Y, human_labels=HUMAN)
    odd = next(test for _, test in SPLITS if 0 in test)
    others = np.setdiff1d(np.arange(N), odd)
    deferred = np.zeros(N, dtype=bool)
    deferred[odd] = other_rate == 1.0
    deferred[others[np.argsort(-X[others, 0])[: int(0.25 * len(others))]]] = True
    answers = np.where(deferred, HUMAN, np.where(X[:, 0] > 0, 1, -1))
    assert clf.best_score_ == pytest.approx(-np.mean(answers != Y))
    assert clf.cv_results_["deferral_rate"][0] == pytest.approx(deferred.mean())


def test_parameters_of_a_given_team_are_kept_but_for_the_shared_ones():
    team = AssistedSVC(submodularity_ratio=0.5, alpha=77.0, budget=0.9, min_kept_per_class=3)
    clf = tuned(policies=[team], alphas=[0.1], deferral_cost=0.1).fit(X, Y, human_labels=HUMAN)
    params = clf.best_estimator_.get_params()
    assert (params["submodularity_ratio"], params["min_kept_per_class"]) == (0.5, 3)
    assert (params["alpha"], params["budget"], params["deferral_cost"]) == (0.1, 0.25, 0.1)
    assert team.alpha == 77.0
    assert not hasattr(team, "classes_")
    assert clf.best_params_["policy"] is team


def test_the_search_for_a_predicted_error_team():
    from sklearn.linear_model import LogisticRegression

    team = PredictedErrorTriage(error_model=LogisticRegression())
    clf = tuned(policies=[team], alphas=[0.1]).fit(X, Y, human_labels=HUMAN)
    alone = PredictedErrorTriage(
        0.25, alpha=0.1, error_model=LogisticRegression(), cv=SPLITS, random_state=SEED
    )
    assert_same_team(clf, alone.fit(X, Y, human_labels=HUMAN))


# -- warnings ---------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", ["uncertainty", "advantage", AssistedSVC(tol=0.1)])
def test_what_is_odd_about_the_human_is_said_once(policy):
    some = HUMAN.astype(float)
    some[:7] = np.nan
    for human, says in [(some, "7 of 72 cases"), (Y, "equals y everywhere")]:
        with pytest.warns(UserWarning, match=says) as record:
            tuned(policies=[policy], alphas=[0.1]).fit(X, Y, human_labels=human)
        assert len(record) == 1


def test_what_is_odd_about_the_winner_is_said():
    rare = np.where(np.arange(N) < 4, 1, -1)
    with pytest.warns(UserWarning, match="left without a class"):
        tuned(policies=["margin"], alphas=[0.1], cv=2).fit(X, rare)
    with pytest.warns(UserWarning, match="no sample was deferred"):
        tuned(policies=["margin"], alphas=[0.1]).fit(X, Y, human_loss=LOSS + 50)


# -- what candidates share, and what each checks for itself -----------------------------------


def test_folds_may_come_from_a_generator():
    options = {"alphas": [0.1], "policies": ["uncertainty", "margin"]}
    clf = tuned(**options, cv=(split for split in SPLITS)).fit(X, Y, human_labels=HUMAN)
    assert_same_team(clf, tuned(**options).fit(X, Y, human_labels=HUMAN))


def test_teams_that_differ_in_their_policy_share_selections(monkeypatch):
    calls = []
    run = Selector.run
    monkeypatch.setattr(Selector, "run", lambda *arguments: calls.append(1) or run(*arguments))
    counts = []
    for policies in (["margin"], ["margin", "forest"]):
        calls.clear()
        search = tuned(policies=policies, alphas=[0.1]).open_search(X, Y, human_labels=HUMAN)
        search.run(0.25)
        counts.append(len(calls))
    assert counts == [1 + len(SPLITS)] * 2  # the sweep on all samples, and one run per part


def count_calls(monkeypatch, owner, name):
    """A list that grows by one entry with each call of a method."""
    calls = []
    method = getattr(owner, name)

    def counted(*arguments, **options):
        calls.append(1)
        return method(*arguments, **options)

    monkeypatch.setattr(owner, name, counted)
    return calls


@pytest.mark.parametrize("budget", [0.25, 18])
@pytest.mark.parametrize("policy", ["margin", "forest"])
def test_the_winner_selects_nothing_again(monkeypatch, policy, budget):
    calls = count_calls(monkeypatch, Selector, "run")
    tuned(policies=[policy], alphas=[0.1], budget=budget).fit(X, Y, human_labels=HUMAN)
    assert len(calls) == 1 + len(SPLITS)


@pytest.mark.parametrize(
    ("policy", "owner", "expected"),
    [
        # Without each fold for every machine, and the winner's on all samples.
        ("uncertainty", Samples, 2 * 3 + 1),
        ("forest", ForestClassifier, 2 * 3 + 1),
        # Where humans err is the same beside every machine.
        ("advantage_by_region", ForestRegressor, 3 + 1),
        ("advantage_forest", ForestRegressor, (3 + 2 * 3) + 2),
    ],
)
def test_the_winner_shares_what_was_fitted_without_the_folds(monkeypatch, policy, owner, expected):
    calls = count_calls(monkeypatch, owner, "machine_in" if owner is Samples else "fit")
    tuned(policies=[policy], n_jobs=1).fit(X, Y, human_labels=HUMAN)
    assert len(calls) == expected


def test_where_humans_err_is_learned_once_for_all_budgets(monkeypatch):
    calls = count_calls(monkeypatch, ForestRegressor, "fit")
    search = tuned(policies=["advantage_by_region"]).open_search(X, Y, human_labels=HUMAN)
    for budget in (0.1, 0.2, 0.3):
        search.run(budget)
    assert len(calls) == len(SPLITS)


def test_a_search_at_several_budgets_keeps_the_objectives_of_one():
    search = tuned(policies=["margin"]).open_search(X, Y, human_labels=HUMAN)
    for budget in (0.1, 0.2):
        search.run(budget)
        kept = [key for key in search.context._made if key[0] == SELECTION]
        assert len(kept) == len(search.machines)


def test_the_winner_of_several_budgets_equals_that_of_one():
    search = tuned(policies=["forest"], alphas=[0.1]).open_search(X, Y, human_labels=HUMAN)
    search.run(0.1)
    winner = search.fit(search.run(0.25), 0.25)
    alone = tuned(policies=["forest"], alphas=[0.1]).fit(X, Y, human_labels=HUMAN)
    assert_same_team(winner, alone)


@pytest.mark.parametrize(
    ("team", "human", "says"),
    [
        (AssistedSVC(min_kept_per_class=N), {"human_labels": HUMAN}, "min_kept_per_class=72"),
        (AssistedSVC(human_bound=0.1), {"human_scores": SCORES}, r"outside \[-0.1, 0.1\]"),
        (AssistedSVC(tol=2.0), {"human_labels": HUMAN}, "tol"),
        (AssistedSVCCV(), {"human_labels": HUMAN}, "a search itself"),
    ],
)
def test_a_team_that_loses_is_checked_like_the_winner(team, human, says):
    with pytest.raises(ValueError, match=says):
        tuned(policies=["uncertainty", team], alphas=[0.1]).fit(X, Y, **human)
