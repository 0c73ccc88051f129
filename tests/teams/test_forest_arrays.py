"""Forests as arrays: against scikit-learn, bit for bit."""

import numpy as np
import pytest
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)

from deferlearn.teams.forest_arrays import forest_arrays


@pytest.mark.parametrize("kind", [RandomForestRegressor, ExtraTreesRegressor])
@pytest.mark.parametrize("leaf", [1, 5, 200])
def test_means_of_regression_trees(kind, leaf):
    rng = np.random.default_rng(0)
    X, new = rng.normal(size=(2, 150, 4))
    X[:, 0], new[:, 0] = X[:, 0] > 0, new[:, 0] > 0  # many values at the edges
    forest = kind(50, min_samples_leaf=leaf, random_state=0).fit(X, X[:, 1] + rng.normal(size=150))
    arrays, expected = forest_arrays(forest), forest.predict(new)
    np.testing.assert_array_equal(arrays.mean(new), expected)
    alone = [arrays.mean(new[row : row + 1])[0] for row in range(len(new))]
    np.testing.assert_array_equal(alone, expected)
    assert len(arrays.mean(new[:0])) == 0


@pytest.mark.parametrize("kind", [RandomForestClassifier, ExtraTreesClassifier])
def test_probabilities_of_the_second_class(kind):
    rng = np.random.default_rng(0)
    X, new = rng.normal(size=(2, 150, 4))
    forest = kind(20, min_samples_leaf=3, random_state=0).fit(X, X[:, 0] + X[:, 1] > 0.5)
    expected = forest.predict_proba(new)[:, 1]
    np.testing.assert_array_equal(forest_arrays(forest).mean(new), expected)


def test_probabilities_of_several_classes():
    X, new = np.random.default_rng(0).normal(size=(2, 60, 2))
    forest = RandomForestClassifier(7, random_state=0).fit(X, np.digitize(X[:, 0], [-0.5, 0.5]))
    arrays = forest_arrays(forest)
    np.testing.assert_allclose(arrays.mean(new), forest.predict_proba(new), rtol=1e-12)
    assert arrays.mean(new[:0]).shape == (0, 3)


def test_other_models_have_no_such_arrays():
    X = np.random.default_rng(0).normal(size=(60, 2))
    assert forest_arrays(RandomForestRegressor(3).fit(X, X)) is None
    assert forest_arrays(GradientBoostingRegressor().fit(X, X[:, 0])) is None
