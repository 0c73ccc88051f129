"""Forests: compared with scikit-learn's trees, which are grown in another way."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.ensemble import RandomForestRegressor
from sklearn.metrics import r2_score, roc_auc_score
from sklearn.tree import DecisionTreeRegressor

from deferlearn.teams.forest import ForestClassifier, ForestRegressor
from deferlearn.teams.trees import MOST_BINS, bin_features, grow, mean_of_trees


def smooth(n, seed=0, d=6):
    rng = np.random.RandomState(seed)
    X = rng.normal(size=(n, d))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] * (X[:, 2] > 0) + 0.3 * rng.normal(size=n)


def one_tree(X, y, smallest_leaf):
    n, d = X.shape
    return grow(*bin_features(X), y, 1, n, d, smallest_leaf, 0)


@pytest.mark.parametrize("smallest_leaf", [1, 3, 10])
@pytest.mark.parametrize("seed", range(5))
def test_a_tree_of_all_samples_equals_that_of_scikit_learn(seed, smallest_leaf):
    X, y = smooth(MOST_BINS, seed)  # a bin for each value
    found = mean_of_trees(X, one_tree(X, y, smallest_leaf))
    expected = DecisionTreeRegressor(min_samples_leaf=smallest_leaf, random_state=0).fit(X, y)
    np.testing.assert_allclose(found, expected.predict(X), atol=1e-12)
    if smallest_leaf == 1:
        return  # of two samples every feature makes the same parts
    # Where a cut falls between two samples of a node differs, by little.
    new, _ = smooth(500, seed + 100)
    ours = mean_of_trees(new, one_tree(X, y, smallest_leaf))
    assert np.isclose(ours, expected.predict(new)).mean() > 0.8


@pytest.mark.parametrize("n", [10, 100, 1000])
def test_bins_are_what_their_edges_say(n):
    X, _ = smooth(n)
    X[:, 1] = np.round(X[:, 1])  # few values
    X[:, 2] = 7.0
    X[:, 3] = np.where(np.arange(n) < 0.9 * n, 0.0, X[:, 3])  # most are the same
    bins, edges = bin_features(X)
    for k, (own, upper) in enumerate(zip(bins, edges, strict=True)):
        assert (np.diff(upper[np.isfinite(upper)]) > 0).all()
        for b, edge in enumerate(upper):
            np.testing.assert_array_equal(own <= b, X[:, k] <= edge)
    assert len(np.unique(bins[1])) == len(np.unique(X[:, 1]))
    assert not bins[2].any()
    # Values in general position fill their bins evenly.
    assert np.bincount(bins[0]).max() <= 2 * max(1, n // MOST_BINS)


def test_leaves_are_not_smaller_than_they_may_be():
    X, y = smooth(400)
    roots, feature, edge, left, value = one_tree(X, y, 7)
    node = np.zeros(len(X), dtype=np.int64)
    while (feature[node] >= 0).any():
        inner = feature[node] >= 0
        right = X[np.arange(len(X)), feature[node]] > edge[node]
        node = np.where(inner, left[node] + right, node)
    leaves, counts = np.unique(node, return_counts=True)
    assert counts.min() >= 7
    for leaf in leaves:
        np.testing.assert_allclose(value[leaf], y[node == leaf].mean())
    assert len(roots) == 1


def test_forests_predict_as_well_as_those_of_scikit_learn():
    X, y = smooth(800)
    new, truth = smooth(2000, 1)
    ours = ForestRegressor(random_state=0).fit(X, y).predict(new)
    theirs = RandomForestRegressor(50, min_samples_leaf=5, max_features=1 / 3, random_state=0)
    theirs = theirs.fit(X, y).predict(new)
    assert r2_score(truth, ours) > r2_score(truth, theirs) - 0.01
    rare = (y > 1.0, truth > 1.0)
    forest = ForestClassifier(random_state=0).fit(X, rare[0])
    assert roc_auc_score(rare[1], forest.predict_proba(new)[:, 1]) > 0.85
    np.testing.assert_allclose(forest.predict_proba(new).sum(axis=1), 1.0)
    np.testing.assert_array_equal(forest.predict(new), forest.predict_proba(new)[:, 1] > 0.5)


def test_the_seed_decides():
    X, y = smooth(100)

    def predicted(seed):
        return ForestRegressor(10, random_state=seed).fit(X, y).predict(X)

    np.testing.assert_array_equal(predicted(3), predicted(3))
    assert (predicted(3) != predicted(4)).any()


@pytest.mark.parametrize(
    ("X", "y"),
    [
        (np.zeros((1, 1)), [2.0]),
        (np.zeros((30, 2)), np.arange(30.0)),  # nothing tells the samples apart
        (np.arange(60.0).reshape(30, 2), np.full(30, 2.0)),
    ],
)
def test_where_there_is_nothing_to_learn_the_mean_is_predicted(X, y):
    found = ForestRegressor(200, random_state=0).fit(X, y).predict(X)
    np.testing.assert_allclose(found, np.mean(y), atol=1.0)
    assert np.ptp(found) == 0.0


def test_sparse_features_go_to_scikit_learn():
    X, y = smooth(60)
    X[np.abs(X) < 1] = 0.0
    sparse = sp.csr_array(X)
    options = {"min_samples_leaf": 5, "max_features": 1 / 3, "random_state": 0}
    expected = RandomForestRegressor(50, **options).fit(sparse, y).predict(sparse)
    found = ForestRegressor(random_state=0).fit(sparse, y).predict(sparse)
    np.testing.assert_array_equal(found, expected)


def test_a_classifier_needs_two_classes():
    with pytest.raises(ValueError, match="1 classes"):
        ForestClassifier().fit(np.zeros((3, 1)), [1, 1, 1])


def test_they_are_estimators():
    assert is_regressor(ForestRegressor())
    assert is_classifier(ForestClassifier())
    assert clone(ForestRegressor(7)).get_params() == ForestRegressor(7).get_params()
