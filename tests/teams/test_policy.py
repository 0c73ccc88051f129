"""Policies: what they see, what they are short for, and what they do where nothing can be learned."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier

from deferlearn import AssistedSVC
from deferlearn.datasets import make_linear
from deferlearn.teams.policy import DeferralPolicy, resolve_policy

RNG = np.random.RandomState(0)
X = RNG.normal(size=(80, 2))
MARGIN = RNG.normal(size=80)
DEFERRED = np.abs(MARGIN) + 0.3 * RNG.normal(size=80) < 0.5


def test_margin_is_logistic_regression_on_the_absolute_margin():
    policy = resolve_policy("margin").fit(X, MARGIN, DEFERRED)
    sure = np.abs(MARGIN)
    standard = ((sure - sure.mean()) / sure.std())[:, None]
    expected = LogisticRegression().fit(standard, DEFERRED).decision_function(standard)
    np.testing.assert_allclose(policy.deferral_score(X, MARGIN), expected)
    small = resolve_policy("margin").fit(X, 1e-9 * MARGIN, DEFERRED)
    np.testing.assert_allclose(small.deferral_score(X, 1e-9 * MARGIN), expected)


def test_asked_before_it_was_fitted():
    with pytest.raises(NotFittedError):
        DeferralPolicy().deferral_score(X, MARGIN)


@pytest.mark.parametrize("signed", [True, False])
def test_one_slope_of_the_appendix(signed):
    """``pi(d | x) = 1 / (1 + exp(-slope * margin))``: no intercept, so the score of margin 0 is 0."""
    policy = DeferralPolicy(LogisticRegression(fit_intercept=False), signed=signed)
    policy.fit(X, MARGIN, DEFERRED)
    score = policy.deferral_score(X[:3], [0.0, 2.0, -2.0])
    assert score[0] == 0.0
    assert score[1] == pytest.approx(-score[2] if signed else score[2])


@pytest.mark.parametrize(("features", "columns"), [("x", 2), ("margin", 1), ("both", 3)])
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_features(features, columns, kind):
    policy = DeferralPolicy(LogisticRegression(), features=features)
    policy.fit(kind(X), MARGIN, DEFERRED)
    assert policy.estimator_.n_features_in_ == columns
    assert policy.deferral_score(kind(X), MARGIN).shape == (80,)
    assert policy.sees_margin == (features != "x")


def test_names_and_classifiers_are_short_for_policies():
    assert isinstance(resolve_policy("mlp").estimator[-1], MLPClassifier)
    assert resolve_policy("mlp").features == "x"
    assert resolve_policy(GaussianNB()).features == "x"
    own = DeferralPolicy(GaussianNB(), features="both")
    assert resolve_policy(own) is not own
    assert resolve_policy(own).features == "both"


def test_probabilities_where_there_is_no_decision_function():
    policy = DeferralPolicy(GaussianNB(), features="x").fit(X, None, DEFERRED)
    expected = GaussianNB().fit(X, DEFERRED).predict_proba(X)[:, 1]
    np.testing.assert_array_equal(policy.deferral_score(X, None), expected)


@pytest.mark.parametrize("everybody", [False, True])
def test_nothing_to_learn_is_a_constant(everybody):
    policy = DeferralPolicy().fit(X, MARGIN, np.full(80, everybody))
    assert (policy.deferral_score(X, MARGIN) == float(everybody)).all()
    assert policy.estimator_ is None


def test_seeds_reach_every_part_that_has_none():
    forest = DeferralPolicy(RandomForestClassifier(5), features="x")
    first, second = (clone(forest).fit(X, None, DEFERRED, 3) for _ in range(2))
    np.testing.assert_array_equal(first.deferral_score(X, None), second.deferral_score(X, None))
    fixed = DeferralPolicy(RandomForestClassifier(5, random_state=8), features="x")
    assert fixed.fit(X, None, DEFERRED, 3).estimator_.random_state == 8


def test_no_samples():
    with pytest.raises(ValueError, match="no samples"):
        DeferralPolicy().fit(X[:0], MARGIN[:0], [])


def test_parameters_are_reached_through_the_estimator():
    clf = AssistedSVC(policy=DeferralPolicy(RandomForestClassifier(5), features="both"), cv=None)
    clf.set_params(policy__estimator__max_depth=2, submodularity_ratio=0.5)
    Z, y = make_linear(60, random_state=0)
    clf.fit(Z, y)
    assert clf.policy_.estimator_.max_depth == 2
    assert not hasattr(clf.policy, "estimator_")


def test_a_policy_learned_on_x_finds_where_the_machine_cannot():
    """One class lies on both sides of the other: no line helps, a forest sees the region."""
    Z, y = make_linear(200, random_state=1)
    clf = AssistedSVC(
        budget=0.3,
        policy=RandomForestClassifier(50),
        cv=None,
        submodularity_ratio=0.5,
        random_state=0,
    ).fit(Z, y)
    new, truth = make_linear(1000, random_state=2)
    alone = AssistedSVC(budget=0.0).fit(Z, y).score(new, truth)
    assert clf.score_assisted(new, truth, truth, batch=True) > alone + 0.15
