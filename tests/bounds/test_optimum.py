"""The upper bound against the best selection, by trying every set or by an exact solver."""

from __future__ import annotations

import numpy as np
import pytest

from bounds.brute import KINDS, best_value, tiny
from deferlearn.bounds import optimum_upper_bound
from deferlearn.objective import SVMObjective
from problems import FULL

SEEDS = range(40 if FULL else 4)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_no_selection_is_better_than_the_upper_bound(kind: str, weighted: bool) -> None:
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        size = int(rng.integers(7, 11))
        objective = tiny(seed, size, kind, weighted)
        loss = rng.choice([0.0, 0.1, 0.6]) * rng.uniform(0.0, 2.0, size=size)
        for n in (1, 3, size) if seed == 0 else (1 + seed % 4,):
            best = best_value(objective, loss, n)
            bound = optimum_upper_bound(objective, loss, n)
            assert bound.value <= objective.value, f"{kind} {seed} n={n}"
            for name, value in bound.bounds.items():
                # F(V) itself may differ from a sum of gains in its last digit.
                assert best <= value * (1 + 1e-14), f"{kind} {seed} n={n}: {name}"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("alphas", "most"), [((0.3, 3.0), 1.11), ((0.05, 0.3), 1.35), ((0.003, 0.05), 1.74)]
)
def test_the_upper_bound_is_informative(alphas: tuple[float, float], most: float) -> None:
    """Median ratio to the optimum on sets of twelve; F(V) alone is 1.4 to 4.5 times the optimum."""
    ratios = []
    for seed in range(20):
        rng = np.random.default_rng([5, seed])
        y = rng.choice([-1.0, 1.0], size=12)
        y[:2] = [1.0, -1.0]
        X = rng.normal(size=(12, 2)) + 0.5 * y[:, None]
        alpha = float(np.exp(rng.uniform(*np.log(alphas))))
        objective = SVMObjective(X, y, alpha=alpha, fit_intercept=bool(seed % 2))
        loss, n = rng.uniform(0.0, 0.6, size=12), int(rng.integers(1, 5))
        best = best_value(objective, loss, n)
        if best > 1e-9:  # nobody worth deferring: there is no ratio
            ratios.append(optimum_upper_bound(objective, loss, n).value / best)
    assert len(ratios) >= 15
    assert min(ratios) >= 1.0
    assert np.median(ratios) <= most


@pytest.mark.slow
@pytest.mark.parametrize("offset", [True, False])
def test_the_upper_bound_against_an_exact_solver_on_larger_sets(offset: bool) -> None:
    pytest.importorskip("pyscipopt", reason="pyscipopt, which finds the best selection, is absent")
    for seed, size in ((0, 20), (1, 30), (2, 40)):
        rng = np.random.default_rng([6, seed])
        y = np.where(np.arange(size) % 2 == 0, 1.0, -1.0)
        X = rng.normal(size=(size, 2)) + 0.6 * y[:, None]
        loss, n, alpha = rng.uniform(0.0, 0.6, size=size), 3, 0.5
        objective = SVMObjective(X, y, alpha=alpha, fit_intercept=offset)
        low, high = _optimum(X, y, alpha, offset, loss, n)
        cost = optimum_upper_bound(objective, loss, n)
        # The solver's answer satisfies its constraints to 1e-6.
        assert objective.value - high <= cost.value + 1e-5
        if size == 20:  # the solver itself against every set
            best = best_value(objective, loss, n)
            assert objective.value - high - 1e-5 <= best <= objective.value - low + 1e-5


def _optimum(
    X: np.ndarray, y: np.ndarray, alpha: float, offset: bool, loss: np.ndarray, n: int
) -> tuple[float, float]:
    """Bounds on the least F + c: a mixed-integer quadratic programme for each size of S."""
    from pyscipopt import Model, quicksum

    lows, highs = [], []
    reach = 1.0 + np.sqrt(0.5 / alpha) * np.linalg.norm(X, axis=1).max()
    for size in range(n + 1):
        model = Model()
        model.hideOutput()
        model.setParam("limits/time", 60)
        w = [model.addVar(lb=None, ub=None) for _ in range(X.shape[1])]
        b = model.addVar(lb=-reach if offset else 0.0, ub=reach if offset else 0.0)
        hinge = [model.addVar(lb=0.0) for _ in y]
        defer = [model.addVar(vtype="B") for _ in y]
        square = model.addVar(lb=0.0)
        model.addCons(quicksum(v * v for v in w) <= square)
        model.addCons(quicksum(defer) == size)
        for i in range(len(y)):
            score = quicksum(float(X[i, j]) * w[j] for j in range(X.shape[1])) + b
            model.addCons(hinge[i] >= 1 - float(y[i]) * score - 2.0 * (1.0 + reach) * defer[i])
        model.setObjective(
            alpha * (len(y) - size) * square
            + quicksum(hinge)
            + quicksum(float(loss[i]) * defer[i] for i in range(len(y)))
        )
        model.optimize()
        lows.append(model.getDualbound())
        highs.append(model.getObjVal())
    return min(lows), min(highs)
