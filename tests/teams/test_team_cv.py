"""`TeamCV`: machines of any kind times policies, against plain loops with scikit-learn."""

from __future__ import annotations

import pickle
import re
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import f1_score
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import check_estimator

import deferlearn
from brought import HUMAN, NEW, SPLITS, Counting, N, X, Y, held_out_log_odds
from conventions import WEIGHTS
from deferlearn.teams import (
    AdvantageTriage,
    AssistedSVC,
    AssistedSVCCV,
    AssistedTriage,
    FullAutomation,
    TeamCV,
    UncertaintyTriage,
)
from tuned import SEED, held_out_advantage, top

BAYES, LOGISTIC, TREE = GaussianNB(), LogisticRegression(), DecisionTreeClassifier(max_depth=3)
NAMES = {"GaussianNB": BAYES, "LogisticRegression": LOGISTIC}
WRONG = (HUMAN != Y).astype(float)


def search(**options):
    quick = {
        "machines": [BAYES, LOGISTIC],
        "policies": ["uncertainty", "advantage", "automation"],
        "blend": False,
        "cv": SPLITS,
        "budget": 0.2,
        "random_state": 0,
    }
    return TeamCV(**{**quick, **options})


def fitted(X=X, y=Y, human=HUMAN, groups=None, **options):
    return search(**options).fit(X, y, human_labels=human, groups=groups)


def trial(policy, margin, splits, budget=0.2, human=WRONG):
    """Who is deferred, and what each sample costs, for a quick policy and held-out decision values."""
    wrong = ((margin > 0) != Y).astype(float)
    if policy == "automation":
        deferred = np.zeros(N, dtype=bool)
    elif policy == "uncertainty":
        deferred = top(-np.abs(margin), int(budget * N))
    else:
        advantage = held_out_advantage(margin, wrong, human, splits)
        deferred = top(advantage, int(budget * N)) & (advantage > 0)
    return deferred, np.where(deferred, human, wrong)


def rows(results):
    """Places of the candidates by policy and machine."""
    keys = zip(results["param_policy"], results["param_machine"], strict=True)
    return {key: place for place, key in enumerate(keys)}


# -- against loops ----------------------------------------------------------------------------


def test_every_candidate_and_the_winner_by_hand():
    clf = fitted(n_standard_errors=0.0)
    results = clf.cv_results_
    found = rows(results)
    assert len(found) == len(results["params"]) == 6
    costs = {}
    for name, machine in NAMES.items():
        margin = held_out_log_odds(machine, X, Y, SPLITS)
        for policy in ("uncertainty", "advantage", "automation"):
            deferred, cost = trial(policy, margin, SPLITS)
            place, costs[policy, name] = found[policy, name], cost.mean()
            assert_allclose(results["mean_test_score"][place], -cost.mean(), atol=1e-12)
            assert_allclose(results["deferral_rate"][place], deferred.mean(), atol=1e-12)
            for k, (_, test) in enumerate(SPLITS):
                score = results[f"split{k}_test_score"][place]
                assert_allclose(score, -cost[test].mean(), atol=1e-12)
    policy, name = min(costs, key=costs.get)
    assert costs[policy, name] < min(v for k, v in costs.items() if k != (policy, name))  # no tie
    assert clf.best_params_ == {"policy": policy, "machine": name}
    assert clf.best_score_ == pytest.approx(-costs[policy, name])
    assert clf.best_index_ == found[policy, name]


def test_finalists_are_judged_by_other_folds_too():
    """Both sets of folds count alike."""
    clf = fitted(cv=3, n_repeats=2, n_finalists=3, n_standard_errors=0.0)
    results = clf.cv_results_
    costs = {}
    for name, machine in NAMES.items():
        for policy in ("uncertainty", "advantage", "automation"):
            for k in range(2):
                folds = StratifiedKFold(3, shuffle=True, random_state=SEED + k)
                splits = list(folds.split(X, Y))
                _, cost = trial(policy, held_out_log_odds(machine, X, Y, splits), splits)
                costs[policy, name, k] = cost.mean()
    for (policy, name), place in rows(results).items():
        first, second = costs[policy, name, 0], costs[policy, name, 1]
        assert_allclose(
            np.mean([results[f"split{k}_test_score"][place] for k in range(3)]), -first, atol=1e-12
        )
        expected = (first + second) / 2 if results["finalist"][place] else first
        assert_allclose(results["mean_test_score"][place], -expected, atol=1e-12)
    # The best ones, and those that are taken on a tie if they are not among them.
    first = np.array([costs[policy, name, 0] for policy, name in rows(results)])
    assert results["finalist"][np.argsort(first, kind="stable")[:2]].all()
    assert 3 <= results["finalist"].sum() <= 5
    assert results["finalist"][results["param_policy"] == "automation"].any()
    left_out = ~results["finalist"] & (results["param_policy"] == "automation")
    assert (first[left_out] >= first[results["param_policy"] == "automation"].min()).all()
    assert results["finalist"][clf.best_index_]
    assert clf.best_score_ == max(results["mean_test_score"][results["finalist"]])


def test_the_winner_equals_the_team_by_itself():
    few = AssistedTriage(max_rounds=1)
    for policy, team in (
        ("uncertainty", UncertaintyTriage()),
        ("advantage", AdvantageTriage()),
        ("expected_cost", AdvantageTriage(machine_error="probability", human_error="truth")),
        (few, clone(few)),
    ):
        clf = fitted(policies=[policy], machines=[TREE])
        alone = team.set_params(machine=TREE, budget=0.2, cv=SPLITS, random_state=SEED)
        alone.fit(X, Y, human_labels=HUMAN)
        assert_array_equal(clf.decision_function(NEW), alone.decision_function(NEW))
        assert_array_equal(clf.deferral_score(NEW), alone.deferral_score(NEW))
        assert_array_equal(clf.defer(NEW), alone.defer(NEW))
        assert clf.deferral_threshold_ == alone.deferral_threshold_
        # A clone of the winner can be fitted on other samples, with the folds that were asked for.
        again = clone(fitted(policies=[policy], machines=[TREE], cv=3).best_estimator_)
        assert again.cv == 3
        again.fit(X[:50], Y[:50], human_labels=HUMAN[:50])
        assert again.defer(NEW).shape == (150,)


def test_svms_are_those_of_the_search_among_svms():
    options = {"policies": ["uncertainty", "advantage"], "alphas": [0.03, 0.3]}
    team = fitted(machines=["linear", "rbf"], **options)
    svms = AssistedSVCCV(0.2, kernels=["linear", "rbf"], cv=SPLITS, random_state=0, **options)
    svms.fit(X, Y, human_labels=HUMAN)

    def table(clf, policy):
        results = clf.cv_results_
        return {
            (p["kernel"], p["alpha"], p.get("gamma")): score
            for p, score in zip(results["params"], results["mean_test_score"], strict=True)
            if p["policy"] == policy
        }

    for policy in ("uncertainty", "advantage"):
        assert table(team, policy) == table(svms, policy)
        assert len(table(team, policy)) == 8


# -- the choice -------------------------------------------------------------------------------


@pytest.mark.parametrize("blend", [False, True])
@pytest.mark.parametrize("repeats", [1, 2])
def test_no_human_where_nothing_beats_the_machine(blend, repeats):
    """A human who is always wrong."""
    clf = fitted(human=1 - Y, cv=3, n_repeats=repeats, blend=blend)
    assert clf.best_params_["policy"] == "automation"
    assert isinstance(clf.best_estimator_, FullAutomation)
    assert not clf.defer(NEW).any()
    assert clf.deferral_rate_ == 0.0


def test_a_human_who_is_always_right_is_asked():
    with pytest.warns(UserWarning, match="equals y everywhere"):
        clf = fitted(human=Y)
    assert clf.best_params_["policy"] != "automation"
    assert clf.defer(NEW).mean() > 0.05


@pytest.mark.parametrize("order", [1, -1])
def test_of_near_ties_the_first_policy_wins(order):
    policies = ["uncertainty", "advantage"][::order]
    clf = fitted(policies=policies, n_standard_errors=1e6)
    assert clf.best_params_["policy"] == policies[0]
    best = [
        score
        for score, policy in zip(
            clf.cv_results_["mean_test_score"], clf.cv_results_["param_policy"], strict=True
        )
        if policy == policies[0]
    ]
    assert clf.best_score_ == max(best)


def test_deferral_costs_count():
    cheap, dear = fitted(deferral_cost=0.0), fitted(deferral_cost=0.9)
    assert cheap.defer(NEW).any()
    assert dear.best_params_["policy"] == "automation"
    place = rows(dear.cv_results_)["uncertainty", "GaussianNB"]
    deferred, cost = trial("uncertainty", held_out_log_odds(BAYES, X, Y, SPLITS), SPLITS)
    expected = -(cost + 0.9 * deferred).mean()
    assert dear.cv_results_["mean_test_score"][place] == pytest.approx(expected)


def test_metrics():
    clf = fitted(policies=["uncertainty"], scoring="f1")
    for name, machine in NAMES.items():
        margin = held_out_log_odds(machine, X, Y, SPLITS)
        deferred, _ = trial("uncertainty", margin, SPLITS)
        said = np.where(deferred, HUMAN, margin > 0)
        place = rows(clf.cv_results_)["uncertainty", name]
        for k, (_, test) in enumerate(SPLITS):
            score = clf.cv_results_[f"split{k}_test_score"][place]
            assert score == pytest.approx(f1_score(Y[test], said[test]))
    with pytest.raises(ValueError, match="scoring='beauty'"):
        fitted(scoring="beauty")


# -- several budgets --------------------------------------------------------------------------


@pytest.mark.parametrize("budgets", [[0.1, 0.3], (9, 27), np.array([0.1, 0.3])], ids=str)
def test_several_budgets_share_all_fits(budgets):
    options = {"cv": 3, "n_repeats": 2, "machines": [Counting(), BAYES], "blend": True}
    Counting.fits.clear()
    several = fitted(budget=budgets, **options)
    together = len(Counting.fits)
    separate = []
    for budget in budgets:
        Counting.fits.clear()
        clf = fitted(budget=budget, **options)
        separate.append(len(Counting.fits))
        team = several.teams_[budget]
        assert type(team) is type(clf.best_estimator_)
        assert_array_equal(team.decision_function(NEW), clf.decision_function(NEW))
        assert_array_equal(team.deferral_score(NEW), clf.deferral_score(NEW))
        assert_array_equal(team.defer(NEW), clf.defer(NEW))
        assert team.budget == budget
        if budget is budgets[0]:
            for name, values in clf.cv_results_.items():
                assert_array_equal(several.cv_results_[name], values)
    assert list(several.teams_) == list(budgets)
    # Its methods are those of the first.
    assert_array_equal(several.defer(NEW), several.teams_[budgets[0]].defer(NEW))
    assert max(separate) <= together <= 3 + 3 + 1  # two sets of folds, and all samples once
    assert not hasattr(fitted(machines=[BAYES]), "teams_")


@pytest.mark.parametrize(
    ("budget", "message"),
    [([], "is empty"), ([0.1, 1.5], r"budget=1\.5"), ([0.1, "much"], "budget='much'")],
)
def test_budgets_are_checked(budget, message):
    with pytest.raises((ValueError, TypeError), match=message):
        fitted(budget=budget)


# -- folds ------------------------------------------------------------------------------------


def test_groups_stay_whole():
    groups = np.arange(N) // 3
    opened = search(cv=3, n_repeats=3).open_search(X, Y, human_labels=HUMAN, groups=groups)
    contexts = [opened.context, *opened.repeats]
    assert len(contexts) == 3
    for context in contexts:
        assert sorted(np.concatenate(context.folds)) == list(range(N))
        for fold in context.folds:
            assert all(
                np.isin(np.flatnonzero(groups == group), fold).all() for group in groups[fold]
            )
    one, other = ({tuple(fold) for fold in context.folds} for context in contexts[:2])
    assert one != other
    clf = fitted(cv=3, groups=groups)
    assert clf.defer(NEW).shape == (150,)
    with pytest.raises(ValueError, match="groups has the shape"):
        fitted(groups=groups[1:])


@pytest.mark.parametrize(
    "cv", [SPLITS, KFold(3), StratifiedKFold(3)], ids=["list", "plain", "classes"]
)
def test_a_splitter_is_not_repeated(cv):
    """It may give the same folds again, which would tell nothing new."""
    opened = search(cv=cv, n_repeats=4).open_search(X, Y, human_labels=HUMAN)
    assert len(opened.repeats) == 0
    assert "finalist" not in fitted(cv=cv, n_repeats=4).cv_results_


def test_jobs_change_nothing():
    options = {"cv": 3, "blend": True, "machines": [LOGISTIC, DecisionTreeClassifier(max_depth=2)]}
    policies = ["uncertainty", "advantage", "automation"]
    one, two = (fitted(n_jobs=jobs, policies=policies, **options) for jobs in (None, 2))
    for name, values in one.cv_results_.items():
        assert_array_equal(two.cv_results_[name], values)
    assert one.best_params_ == two.best_params_
    assert_array_equal(one.deferral_score(NEW), two.deferral_score(NEW))
    assert_array_equal(one.defer(NEW), two.defer(NEW))


# -- machines ---------------------------------------------------------------------------------


def test_names_and_estimators_together():
    clf = fitted(machines=["linear", BAYES, TREE], alphas=[0.1], blend=True)
    families = list(dict.fromkeys(clf.cv_results_["param_machine"]))
    assert set(families) == {"linear SVM", "GaussianNB", "DecisionTreeClassifier", "blend"}
    for params in clf.cv_results_["params"]:
        assert ("alpha" in params) == (params["machine"] == "linear SVM")
        assert ("members" in params) == (params["machine"] == "blend")
    (blend,) = {p["members"] for p in clf.cv_results_["params"] if p["machine"] == "blend"}
    assert set(blend) == {"linear SVM (alpha 0.1)", "GaussianNB", "DecisionTreeClassifier"}
    assert not hasattr(BAYES, "classes_")  # what was given is left as it is


def test_policies_get_the_machines_that_suit_them():
    clf = fitted(
        machines=["linear", BAYES],
        alphas=[0.1],
        policies=["uncertainty", AssistedSVC(delta=0.5), AssistedTriage(max_rounds=1)],
        n_refined=5,
    )
    found = {
        (type(policy).__name__, machine)
        for policy, machine in zip(
            clf.cv_results_["param_policy"], clf.cv_results_["param_machine"], strict=True
        )
    }
    assert ("AssistedSVC", "linear SVM") in found
    assert ("AssistedTriage", "GaussianNB") in found
    assert not {("AssistedSVC", "GaussianNB"), ("AssistedTriage", "linear SVM")} & found


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"machines": "forest"}, "machines='forest' must be 'auto' or a list"),
        ({"machines": []}, r"machines=\[\] must be 'auto' or a list"),
        ({"machines": ["linear", "trees"]}, "machines has 'trees', which is not known"),
        ({"machines": [GaussianNB]}, r"machines\[0\]=.*is a class; give an instance"),
        ({"machines": [LinearRegression()]}, "must be a scikit-learn classifier"),
        ({"machines": [AssistedSVC()]}, "is a team itself"),
        ({"machines": [TeamCV()]}, "is a team itself"),
        ({"machines": [AdvantageTriage()]}, "is a team itself"),
        ({"policies": "advantage"}, "policies='advantage' must be 'auto' or a list"),
        ({"policies": []}, r"policies=\[\] must be 'auto' or a list"),
        ({"policies": ["guess"]}, "policies has 'guess', which is not known"),
        ({"policies": [UncertaintyTriage]}, "policies has .*UncertaintyTriage"),
        ({"policies": [TeamCV()]}, "a search itself"),
        ({"policies": ["margin"]}, r"None of policies=\['margin'\] can have any of these machines"),
        (
            {"policies": ["assisted"], "machines": ["linear"]},
            "can have any of these machines: linear SVM",
        ),
        ({"blend": "yes"}, "blend='yes'"),
        ({"n_repeats": 0}, "n_repeats=0 must be a whole number"),
        ({"n_finalists": 1.5}, r"n_finalists=1\.5 must be a whole number"),
        ({"n_refined": 0}, "n_refined=0 must be a whole number"),
        ({"cv": None}, "cv=None"),
        ({"alphas": [], "machines": ["linear"]}, "alphas=.* is empty"),
    ],
    ids=lambda value: None if isinstance(value, str) else str(value)[:40],
)
def test_bad_parameters(options, message):
    clf = search(**options)
    with pytest.raises(ValueError, match=message):
        clf.fit(X, Y, human_labels=HUMAN)
    assert not hasattr(clf, "best_estimator_")


def test_policies_that_suit_none_of_the_svms():
    clf = AssistedSVCCV(policies=["assisted"], alphas=[0.1], kernels=["linear"], cv=2)
    with pytest.raises(ValueError, match="can have any of these machines: linear SVM"):
        clf.fit(X, Y, human_labels=HUMAN)


def test_sparse_cases():
    few = np.round(X) * (np.abs(X) > 0.5)
    options = {"machines": ["linear", LOGISTIC], "alphas": [0.1]}
    sparse, dense = fitted(X=sp.csr_array(few), **options), fitted(X=few, **options)
    assert_allclose(
        sparse.cv_results_["mean_test_score"], dense.cv_results_["mean_test_score"], atol=0.02
    )
    assert sparse.defer(sp.csr_array(NEW)).tolist() == sparse.defer(NEW).tolist()
    assert search(machines="auto").__sklearn_tags__().input_tags.sparse
    assert not search(machines=[BAYES]).__sklearn_tags__().input_tags.sparse
    assert not search(machines=["rbf"]).__sklearn_tags__().input_tags.sparse
    with pytest.raises(TypeError, match=r"[Ss]parse"):
        fitted(X=sp.csr_array(few))


# -- around it --------------------------------------------------------------------------------


def test_columns_of_the_results():
    clf = fitted(cv=3, blend=True)
    results = clf.cv_results_
    assert set(results) == {
        "params",
        "param_policy",
        "param_machine",
        "param_alpha",
        "param_kernel",
        *(f"split{k}_test_score" for k in range(3)),
        "mean_test_score",
        "std_test_score",
        "rank_test_score",
        "deferral_rate",
        "finalist",
    }
    assert len({len(column) for column in results.values()}) == 1
    assert np.isnan(results["param_alpha"]).all()
    best = results["mean_test_score"] == results["mean_test_score"].max()
    assert (results["rank_test_score"][best] == 1).all()
    assert (results["deferral_rate"] <= 0.2).all()


def test_verbose_prints_a_line_per_candidate(capsys):
    fitted()
    assert capsys.readouterr().out == ""
    clf = fitted(verbose=1, blend=True)
    lines = [line for line in capsys.readouterr().out.splitlines() if " left" not in line]
    assert len(lines) == len(clf.cv_results_["params"])
    assert any(re.fullmatch(r"\[TeamCV\] advantage, GaussianNB: -0\.\d{4}", line) for line in lines)
    assert any(re.fullmatch(r"\[TeamCV\] uncertainty, blend: -0\.\d{4}", line) for line in lines)
    said = sorted(float(line.split()[-1]) for line in lines)
    assert said == sorted(clf.cv_results_["mean_test_score"].round(4))


def test_copies(tmp_path):
    clf = fitted(machines=[BAYES, LOGISTIC, TREE], blend=True)
    deferlearn.save(clf, tmp_path / "team.skops")
    other = clone(clf)
    assert not hasattr(other, "best_estimator_")
    for copy in (
        pickle.loads(pickle.dumps(clf)),
        deferlearn.load(tmp_path / "team.skops"),
        other.fit(X, Y, human_labels=HUMAN),
    ):
        assert_array_equal(copy.decision_function(NEW), clf.decision_function(NEW))
        assert_array_equal(copy.defer(NEW), clf.defer(NEW))
        assert_array_equal(copy.predict(NEW), clf.predict(NEW))
        assert copy.best_params_ == clf.best_params_


def test_several_budgets_can_be_stored(tmp_path):
    clf = fitted(budget=[0.1, 0.3])
    deferlearn.save(clf, tmp_path / "team.skops")
    other = deferlearn.load(tmp_path / "team.skops")
    for budget, team in clf.teams_.items():
        assert_array_equal(other.teams_[budget].defer(NEW), team.defer(NEW))


def test_labels_of_any_type():
    names = np.array(["benign", "malign"])
    clf = fitted(y=names[Y], human=names[HUMAN])
    other = fitted()
    assert_array_equal(clf.cv_results_["mean_test_score"], other.cv_results_["mean_test_score"])
    assert_array_equal(clf.predict(NEW), names[other.predict(NEW)])
    assert_array_equal(clf.defer(NEW), other.defer(NEW))


@pytest.mark.slow
def test_scikit_learns_conventions():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        clf = search(machines=[LOGISTIC, "linear"], alphas=[0.1], cv=2)
        check_estimator(clf, on_skip=None, expected_failed_checks=WEIGHTS)


def test_the_defaults():
    clf = TeamCV(random_state=0).fit(X, Y, human_labels=HUMAN)
    families = set(clf.cv_results_["param_machine"])
    assert {"linear SVM", "rbf SVM", "random forest", "gradient boosting", "blend"} <= families
    assert clf.defer(NEW).mean() <= 0.4


# -- odd data ---------------------------------------------------------------------------------


@settings(max_examples=8, deadline=None)
@given(
    st.integers(2, 4),
    st.integers(3, 12),
    st.sampled_from(["right", "wrong", "half"]),
    st.sampled_from([KNeighborsClassifier(1), DummyClassifier(), Counting()]),
    st.integers(0, 3),
)
def test_tiny_classes_and_equal_rows(few, more, human, machine, seed):
    rng = np.random.RandomState(seed)
    y = np.r_[np.zeros(more, int), np.ones(few, int)]
    A = rng.randint(0, 2, size=(len(y), 2)).astype(float)
    answers = {"right": y, "wrong": 1 - y, "half": rng.randint(0, 2, len(y))}[human]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        clf = fitted(
            X=A, y=y, human=answers, machines=[machine, "linear"], alphas=[0.1], cv=3, blend=True
        )
    assert np.isfinite(clf.decision_function(A)).all()
    assert clf.defer_top(A).sum() <= int(0.2 * len(y))
    assert np.isfinite(clf.cv_results_["mean_test_score"]).all()
    if human == "wrong":
        assert not clf.defer(A).any()


@pytest.mark.parametrize(
    ("n", "n_classes", "left_out"),
    [(5000, 2, False), (5001, 2, True), (1000, 5, False), (1001, 5, True)],
)
def test_large_searches_leave_out_machines_trained_without_the_deferred(
    n, n_classes, left_out, capsys
):
    cases = np.random.default_rng(0).normal(size=(n, 2))
    labels = np.arange(n) % n_classes
    human = np.roll(labels, 1)
    for kind, costly in (
        (TeamCV, {"margin", "forest", "assisted"}),
        (AssistedSVCCV, {"margin", "forest"}),
    ):
        everything = kind().open_search(cases[:20], labels[:20], human_labels=human[:20])
        policies = kind(verbose=1).open_search(cases, labels, human_labels=human).policies
        missing = set(everything.policies) - set(policies)
        assert missing == (costly if left_out else set())
        said = capsys.readouterr().out
        assert (f"{n:,} samples: without margin, forest" in said) == left_out
        asked = kind(policies=["margin"]).open_search(cases, labels, human_labels=human)
        assert list(asked.policies) == ["margin"]
