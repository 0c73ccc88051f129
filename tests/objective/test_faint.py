"""Columns that alpha leaves nothing of: F is the same without them, and quick."""

import numpy as np
import pytest

from deferlearn.objective import SVMObjective
from deferlearn.objective import svm as module
from deferlearn.objective.faint import MOST_CHANGE, faint_columns


def concentration_and_age(n, seed=0):
    rng = np.random.RandomState(seed)
    concentration, age = 5e-9 + 1e-9 * rng.normal(size=n), 60 + 10 * rng.normal(size=n)
    y = np.where((concentration - 5e-9) / 1e-9 + (age - 60) / 20 + rng.normal(size=n) > 0, 1, -1)
    return np.column_stack([concentration, age]), y


def with_every_column(monkeypatch, *arguments, **options):
    """The objective without the shortcut."""
    with monkeypatch.context() as patch:
        patch.setattr(module, "faint_columns", lambda X, *_: np.zeros(X.shape[1], dtype=bool))
        return SVMObjective(*arguments, **options)


@pytest.mark.parametrize("offset", [True, False])
def test_values_and_gains_are_the_same(monkeypatch, offset):
    X, y = concentration_and_age(80)
    options = {"alpha": 0.001, "fit_intercept": offset}
    found, whole = SVMObjective(X, y, **options), with_every_column(monkeypatch, X, y, **options)
    assert found._faint.tolist() == [True, False]
    assert found.value == pytest.approx(whole.value, abs=1e-10, rel=1e-12)
    ks = np.arange(0, 80, 5)
    np.testing.assert_allclose(found.gains(ks), whole.gains(ks), atol=1e-9)
    for k in ks:
        found.remove(k)
        whole.remove(k)
    assert found.value == pytest.approx(whole.value, abs=1e-10, rel=1e-12)
    assert found.coef[0] == 0.0
    assert found.coef[1] == pytest.approx(whole.coef[1], rel=1e-8)


def test_hundreds_of_rows_are_not_refused():
    X, y = concentration_and_age(300)
    assert SVMObjective(X, y, alpha=0.001).slow_columns == ""


@pytest.mark.parametrize("seed", range(20))
def test_the_bound_holds(seed):
    """What leaving a column out changes, against what is said, for columns of every size."""
    rng = np.random.RandomState(seed)
    X = rng.normal(size=(12, 2)) * [1.0, 10.0 ** rng.uniform(-4, 0)] + rng.normal(size=2)
    y, weights = np.where(rng.rand(12) < 0.5, -1, 1), rng.uniform(0.5, 2.0, 12)
    alpha = 10.0 ** rng.uniform(-2, 1)
    for offset in (True, False):
        options = {"alpha": alpha, "weights": weights, "fit_intercept": offset}
        whole, less = (SVMObjective(Z, y, **options).value for Z in (X, X * [1.0, 0.0]))
        column = X[:, 1] - X[:, 1].mean() if offset else X[:, 1]
        most = weights @ column**2 / (4 * alpha)
        assert -1e-9 <= less - whole <= most + 1e-9


def test_small_data_are_not_faint_by_themselves():
    rng = np.random.RandomState(0)
    X, weight = 1e-9 * rng.normal(size=(20, 3)), np.ones(20)
    assert not faint_columns(X, weight, 1.0, True).any()
    X[:, 0] *= 1e9
    assert faint_columns(X, weight, 1.0, True).tolist() == [False, True, True]
    # Each would be faint, but not all of them together.
    each = np.sqrt(MOST_CHANGE * 4 / 20 * 0.6)
    X[:, 1:] = each
    assert faint_columns(X, weight, 1.0, False).sum() == 1


def test_a_smaller_alpha_takes_the_column_back():
    X, y = concentration_and_age(40)
    X[:, 0] *= 1e2
    objective = SVMObjective(X, y, alpha=10.0)
    objective.remove(3)
    assert objective._faint.tolist() == [True, False]
    there = objective.with_alpha(1e-3)
    fresh = SVMObjective(X, y, alpha=1e-3)
    fresh.remove(3)
    assert there._faint.tolist() == fresh._faint.tolist() == [False, False]
    assert there.value == pytest.approx(fresh.value, rel=1e-12)
    assert there.removed.tolist() == [3]
    back = there.with_alpha(10.0)
    assert back.value == pytest.approx(objective.value, rel=1e-9)
