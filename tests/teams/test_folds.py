"""Folds: whole groups, every row once, whatever the classes, groups and splitters are."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    LeaveOneGroupOut,
    ShuffleSplit,
    StratifiedGroupKFold,
    StratifiedKFold,
)

from deferlearn import AssistedSVC
from deferlearn.teams.folds import splits_from, stratified_folds
from tuned import HUMAN, NEW, SEED, SPLITS, N, X, Y, tuned

PATIENTS = np.array([f"p{i}" for i in np.random.RandomState(0).randint(0, 20, N)])


def check_partition(folds, n):
    assert len(folds) >= 2
    np.testing.assert_array_equal(np.sort(np.concatenate(folds)), np.arange(n))
    assert all(len(fold) for fold in folds)


labels = st.lists(st.booleans(), min_size=4, max_size=40).filter(lambda y: 0 < sum(y) < len(y))


@given(labels, st.integers(2, 7), st.integers(0, 2**31 - 1))
def test_a_number_of_folds(y, k, seed):
    y = np.array(y)
    folds = stratified_folds(k, np.zeros((len(y), 1)), y, None, seed)
    check_partition(folds, len(y))
    smaller = min(y.sum(), (~y).sum())
    assert len(folds) == (min(k, smaller) if smaller > 1 else 2)
    if smaller > 1:  # then every part has both classes
        for train, test in splits_from(folds, len(y)):
            assert len(set(y[train])) == len(set(y[test])) == 2
            np.testing.assert_array_equal(np.sort([*train, *test]), np.arange(len(y)))


@given(labels, st.integers(2, 7), st.integers(0, 2**31 - 1), st.data())
def test_groups_are_never_torn_apart(y, k, seed, data):
    y = np.array(y)
    groups = data.draw(
        st.lists(st.integers(0, 9), min_size=len(y), max_size=len(y)).filter(
            lambda g: len(set(g)) > 1
        )
    )
    groups = np.array(groups)
    folds = stratified_folds(k, np.zeros((len(y), 1)), y, groups, seed)
    check_partition(folds, len(y))
    for i, fold in enumerate(folds):
        for other in folds[:i]:
            assert not set(groups[fold]) & set(groups[other])


def test_groups_reach_the_search_and_the_winner():
    options = {"policies": ["uncertainty", AssistedSVC(submodularity_ratio=0.5)], "cv": 3}
    clf = tuned(**options).fit(X, Y, human_labels=HUMAN, groups=PATIENTS)
    splitter = StratifiedGroupKFold(3, shuffle=True, random_state=SEED)
    splits = list(splitter.split(X, Y, PATIENTS))
    by_hand = tuned(**{**options, "cv": splits}).fit(
        X, Y, human_labels=HUMAN, groups=PATIENTS.tolist()
    )
    for name, values in by_hand.cv_results_.items():
        if name != "params":
            np.testing.assert_array_equal(clf.cv_results_[name], values)
    np.testing.assert_array_equal(clf.defer(NEW), by_hand.defer(NEW))
    assert clf.best_estimator_.cv == 3  # its folds were these, but a clone has other rows
    clone(clf.best_estimator_).fit(X[:40], Y[:40], human_labels=HUMAN[:40])


@pytest.mark.parametrize("cv", [KFold(4), StratifiedKFold(3), GroupKFold(3), LeaveOneGroupOut()])
def test_splitters_equal_their_splits(cv):
    groups = np.arange(N) % 5 if "Group" in type(cv).__name__ else None
    splits = list(cv.split(X, Y, groups))
    one = tuned(cv=cv).fit(X, Y, human_labels=HUMAN, groups=groups)
    for given_as in (splits, iter(splits), [(a.tolist(), b.tolist()) for a, b in splits]):
        other = tuned(cv=given_as).fit(X, Y, human_labels=HUMAN, groups=groups)
        assert other.cv_results_["mean_test_score"].tolist() == (
            one.cv_results_["mean_test_score"].tolist()
        )
        assert f"split{len(splits) - 1}_test_score" in other.cv_results_
        np.testing.assert_array_equal(one.defer(NEW), other.defer(NEW))


def test_a_splitter_that_does_not_look_at_groups_says_so():
    with pytest.warns(UserWarning, match="groups parameter is ignored by KFold"):
        tuned(cv=KFold(3)).fit(X, Y, groups=PATIENTS)


def test_a_huge_group_counts_as_the_cases_it_has():
    """Fold scores are means of folds, and the mean score is that of all cases, however folds differ."""
    groups = np.where(np.arange(N) < N - 6, 0, np.arange(N))
    clf = tuned(cv=3, policies=["automation"], alphas=[1.0]).fit(X, Y, groups=groups)
    folds = stratified_folds(3, X, Y, groups, SEED)
    sizes = np.array([len(fold) for fold in folds])
    assert sizes.max() >= N - 6
    scores = np.array([clf.cv_results_[f"split{k}_test_score"][0] for k in range(3)])
    errors = -scores * sizes
    np.testing.assert_allclose(errors, errors.round(), atol=1e-9)
    assert clf.best_score_ == pytest.approx(-errors.sum() / N)
    assert clf.cv_results_["std_test_score"][0] == pytest.approx(scores.std())


@pytest.mark.parametrize("n_rare", [1, 2, 3])
@pytest.mark.parametrize("policy", ["uncertainty", "advantage", "margin", "automation"])
@pytest.mark.filterwarnings("ignore:Humans take")
def test_a_class_smaller_than_the_folds(n_rare, policy):
    rare = np.where(np.arange(N) < n_rare, "rare", "usual")
    clf = tuned(policies=[policy], alphas=[0.1], cv=5, budget=0.1).fit(X, rare)
    k = max(2, n_rare)
    assert f"split{k - 1}_test_score" in clf.cv_results_
    assert f"split{k}_test_score" not in clf.cv_results_
    assert set(clf.predict(NEW)) <= {"rare", "usual"}
    assert -1 <= clf.best_score_ <= 0


def test_a_part_with_one_class_gets_the_machine_that_knows_it_alone():
    """All positive cases in one fold: its machine answers -1, and has nobody to defer."""
    order = np.argsort(-Y, kind="stable")
    n_positive = int(np.sum(Y > 0))
    splits = [(order[n_positive:], order[:n_positive]), (order[:n_positive], order[n_positive:])]
    clf = tuned(policies=["margin", "automation"], alphas=[0.1], cv=splits).fit(X, Y)
    assert clf.cv_results_["mean_test_score"].tolist() == [-1.0, -1.0]
    assert clf.cv_results_["deferral_rate"].tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    ("cv", "says"),
    [
        (ShuffleSplit(2, random_state=0), "exactly once, but holds out row"),
        ([(np.arange(40), np.arange(40, N))], "row 0 0 times"),
        ([*SPLITS, *SPLITS], "row 0 2 times"),
        ([(np.arange(0), np.arange(N))], "leaves none to learn from"),
    ],
)
def test_folds_that_are_none(cv, says):
    with pytest.raises(ValueError, match=says):
        tuned(cv=cv).fit(X, Y)


@pytest.mark.parametrize(
    ("groups", "says"),
    [
        (np.arange(5), r"groups has the shape \(5,\), but y has 72"),
        (np.zeros((N, 2)), r"groups has the shape \(72, 2\)"),
        (np.full(N, 7), "groups has one group, 7,"),
        (["a"] * 40 + [None] * 32, "groups has no value for row 40"),
        ([1.0] * 3 + [np.nan] + [2.0] * 68, "groups has no value for row 3"),
        (["a"] * 71 + [np.nan], "groups has no value for row 71"),
    ],
)
def test_groups_that_are_none(groups, says):
    with pytest.raises(ValueError, match=says):
        tuned().fit(X, Y, groups=groups)
