"""Distances of reduced hulls against an independent quadratic programme and closed forms."""

from __future__ import annotations

import numpy as np
import piqp
import pytest
import scipy.sparse as sp

from deferlearn.bounds import reduced_hull_distance, separating_hulls
from deferlearn.objective import SVMObjective


def _witness(K: np.ndarray, y: np.ndarray, caps: np.ndarray) -> float:
    """sqrt(min mu' Q mu) by an interior-point method."""
    solver = piqp.SparseSolver()
    solver.settings.eps_abs = solver.settings.eps_rel = 1e-14
    solver.settings.max_iter = 500
    n = len(y)
    A = sp.csc_matrix(np.array([y > 0, y < 0], dtype=float))
    P = sp.csc_matrix(2.0 * K * np.outer(y, y))
    empty = sp.csc_matrix((0, n))
    solver.setup(P, np.zeros(n), A, np.ones(2), empty, None, None, np.zeros(n), caps)
    solver.solve()
    mu = np.asarray(solver.result.x)
    return float(np.sqrt(max(0.0, (mu * y) @ K @ (mu * y))))


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("seed", range(6))
def test_distances_agree_with_a_quadratic_programme(kernel: str, seed: int) -> None:
    rng = np.random.default_rng([7, seed])
    size, scale = 30, float(10.0 ** rng.integers(-3, 4))
    y = np.where(rng.random(size) < 0.4, 1.0, -1.0)
    X = (rng.normal(size=(size, 3)) + 0.6 * y[:, None]) * scale
    weights = rng.uniform(0.5, 2.0, size=size) if seed % 2 else np.ones(size)
    objective = SVMObjective(X, y, kernel=kernel, weights=weights)
    K = X @ X.T / scale**2
    unit = scale
    if kernel == "rbf":
        squares = ((X[:, None] - X) ** 2).sum(axis=2)
        K, unit = np.exp(-squares / (3 * X.var())), 1.0
    most = min(weights[y > 0].sum(), weights[y < 0].sum())
    previous = 0.0
    for s in np.linspace(0.15, 1.0, 6) * most:
        found = reduced_hull_distance(objective, s)
        assert 0.0 <= found.distance - found.lower <= 1e-9 * unit
        assert (found.weights >= 0).all()
        assert (found.weights <= weights / s * (1 + 1e-9)).all()
        assert found.weights[y > 0].sum() == pytest.approx(1.0, abs=1e-12)
        assert found.distance >= previous - 1e-9 * unit
        previous = found.distance
        witness = _witness(K, y, weights / s)
        # Near zero the witness sees only the square, to 1e-14.
        assert found.distance / unit == pytest.approx(witness, rel=1e-7, abs=1e-6)


def test_closed_forms() -> None:
    X = np.array([[0.0, 0.0], [0.0, 2.0], [3.0, 0.0], [3.0, 2.0]])
    objective = SVMObjective(X, [-1, -1, 1, 1])
    for s in (1, 1.5, 2):
        assert reduced_hull_distance(objective, s).distance == pytest.approx(3.0, rel=1e-12)
    assert separating_hulls(objective).s == 1
    # One dimension: reduced hulls are [mean of the s smallest, mean of the s largest].
    left, right = np.array([0.0, 1.0, 2.0, 5.0]), np.array([1.5, 4.0, 6.0, 7.0])
    objective = SVMObjective(np.r_[left, right][:, None], [-1] * 4 + [1] * 4)
    for s in range(1, 5):
        expected = max(0.0, np.sort(right)[:s].mean() - np.sort(left)[-s:].mean())
        assert reduced_hull_distance(objective, s).distance == pytest.approx(expected, abs=1e-9)
    found = separating_hulls(objective)
    assert (found.s, found.distance) == (3, pytest.approx(11.5 / 3 - 8 / 3))


def test_hulls_that_always_meet() -> None:
    same = np.array([[1.0], [2.0], [1.0], [2.0]])
    found = separating_hulls(SVMObjective(same, [1, 1, -1, -1]))
    assert (found.s, found.distance) == (0, 0.0)
    found = separating_hulls(SVMObjective(np.zeros((4, 2)), [1, 1, -1, -1]))
    assert (found.s, found.distance) == (0, 0.0)


def test_bad_sizes_and_single_classes_are_errors() -> None:
    objective = SVMObjective([[0.0], [1.0], [2.0]], [-1, 1, 1])
    for s in (0, -1, 1.5, np.nan):
        with pytest.raises(ValueError, match="smaller class"):
            reduced_hull_distance(objective, s)
    with pytest.raises(ValueError, match="one class"):
        reduced_hull_distance(SVMObjective([[0.0], [1.0]], [1, 1]), 1)
    objective.remove(2)
    with pytest.raises(ValueError, match="initial state"):
        reduced_hull_distance(objective, 1)
