"""Whoever wins is stored, and answers as before once it is loaded."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold, KFold, StratifiedGroupKFold, StratifiedKFold
from sklearn.preprocessing import StandardScaler

import deferlearn
from deferlearn.teams import DeferralPolicy, PredictedErrorTriage, make_assisted_pipeline
from deferlearn.teams.candidates import DEFAULT_POLICIES
from tuned import HUMAN, NEW, NEW_HUMAN, X, Y, tuned

FEW = slice(0, 30)  # a stored team that defers in training needs its certificate, which takes long


def again(clf, folder):
    deferlearn.save(clf, folder / "team.skops")
    return deferlearn.load(folder / "team.skops")


def assert_same(one, other):
    np.testing.assert_array_equal(one.decision_function(NEW), other.decision_function(NEW))
    np.testing.assert_array_equal(one.deferral_score(NEW), other.deferral_score(NEW))
    np.testing.assert_array_equal(one.defer(NEW), other.defer(NEW))
    np.testing.assert_array_equal(one.defer_top(NEW), other.defer_top(NEW))
    np.testing.assert_array_equal(
        one.predict_assisted(NEW, NEW_HUMAN), other.predict_assisted(NEW, NEW_HUMAN)
    )


# The other one with a forest is as this one, but for a second forest.
SLOW = {"advantage_by_region": pytest.mark.slow}


@pytest.mark.parametrize(
    "policy", [pytest.param(name, marks=SLOW.get(name, ())) for name in DEFAULT_POLICIES]
)
def test_every_default_policy(policy, tmp_path):
    clf = tuned(policies=[policy], alphas=[0.1], cv=2, budget=0.2)
    clf.fit(X[FEW], Y[FEW], human_labels=HUMAN[FEW])
    other = again(clf, tmp_path)
    assert_same(clf, other)
    assert other.best_params_ == clf.best_params_
    assert other.best_score_ == clf.best_score_
    assert list(other.cv_results_) == list(clf.cv_results_)
    for name, values in clf.cv_results_.items():
        np.testing.assert_array_equal(other.cv_results_[name], values)
    if "forest" not in policy:
        assert_same(clf, other.fit(X[FEW], Y[FEW], human_labels=HUMAN[FEW]))


def test_triage_by_predicted_errors(tmp_path):
    team = PredictedErrorTriage(error_model=LogisticRegression())
    clf = tuned(policies=[team], alphas=[0.1]).fit(X, Y, human_labels=HUMAN)
    assert_same(clf, again(clf, tmp_path))


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["predicted_error", "mlp"])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_named_policies_that_are_slow(policy, tmp_path):
    clf = tuned(policies=[policy], alphas=[0.1], cv=2)
    clf.fit(X[FEW], Y[FEW], human_labels=HUMAN[FEW])
    assert_same(clf, again(clf, tmp_path))


@pytest.mark.parametrize(
    "cv", [KFold(3), StratifiedKFold(3), GroupKFold(3), StratifiedGroupKFold(3)], ids=str
)
def test_splitters_as_folds(cv, tmp_path):
    groups = np.arange(len(Y)) // 2 if "Group" in type(cv).__name__ else None
    policies = ["uncertainty", DeferralPolicy(LogisticRegression())]
    clf = tuned(cv=cv, policies=policies, alphas=[1.0], n_standard_errors=9.0)
    clf.fit(X, Y, human_labels=HUMAN, groups=groups)
    other = again(clf, tmp_path)
    assert_same(clf, other)
    assert repr(other.cv) == repr(cv)
    assert other.kernels == ["linear"]


def test_a_pipeline_an_unfitted_one_and_other_copies(tmp_path):
    kernels = ["linear", {"kernel": "rbf", "gamma": 0.5}]
    team = make_assisted_pipeline(StandardScaler(), tuned(kernels=kernels)).fit(X, Y)
    assert_same(team, again(team, tmp_path))
    assert again(tuned(kernels=kernels), tmp_path).kernels == kernels
    clf = tuned().fit(X, Y, human_labels=HUMAN)
    for other in (copy.deepcopy(clf), pickle.loads(pickle.dumps(clf))):
        assert_same(clf, other)
