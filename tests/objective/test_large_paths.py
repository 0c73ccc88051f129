"""What only large problems reach: working sets that hold a part, guesses to start from, cached columns.

The limits are shrunk, so that the generated problems, with all their degenerate shapes, take those
ways; every check is the one that small problems pass.
"""

from __future__ import annotations

import numpy as np
import pytest

import deferlearn.kernels.columns as columns
import deferlearn.kernels.gram as kernels
import deferlearn.objective.active_set as active_set
import deferlearn.objective.decomposition as decomposition
import deferlearn.objective.response as response
import deferlearn.objective.solver as solver
import deferlearn.objective.start as start
import deferlearn.objective.state as state
import deferlearn.objective.svm as svm
from checks import check_seeds, reference_value, state_faults, value_faults
from deferlearn.datasets import make_shifted
from deferlearn.objective import SVMObjective
from problems import FULL, Problem, chunks


@pytest.fixture(autouse=True, params=["few features", "many features"])
def tiny_limits(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of linear problems, the guess for few features or that for many, with Newton steps."""
    if request.param == "many features":
        monkeypatch.setattr(start, "INTERIOR_POINT_FEATURES", 0)
        monkeypatch.setattr(active_set, "LEAST_FREE", 1)
    monkeypatch.setattr(state, "WHOLE_SET_LIMIT", 6)
    monkeypatch.setattr(solver, "COLD_START_LIMIT", 6)
    monkeypatch.setattr(solver, "LEAST_EXTRA", 2)
    monkeypatch.setattr(solver, "EXTRA", 0)
    monkeypatch.setattr(solver, "MOST_VIOLATORS", 5)
    monkeypatch.setattr(kernels, "WHOLE_GRAM_LIMIT", 20)
    monkeypatch.setattr(svm, "check_cache_size", lambda size: 4096)
    monkeypatch.setattr(columns, "LEAST_COLUMNS", 3)
    monkeypatch.setattr(decomposition, "COLUMN_ENTRIES", 200)
    monkeypatch.setattr(decomposition, "LEAST_AT_ONCE", 4)
    monkeypatch.setattr(response, "CHUNK", 3)


@pytest.mark.parametrize("seeds", chunks(130_000, 2_800 if FULL else 84, 28), ids=str)
def test_values_gains_and_bounds(seeds: range) -> None:
    def check(p: Problem, rng: np.random.Generator) -> list[str]:
        objective = p.objective()
        faults = value_faults(p, objective) + state_faults(p, objective)
        everyone = np.arange(p.n)
        total, slack = float(objective.value), 2e-9 * p.size(float(objective.value))
        gains = objective.gains(everyone)
        one_by_one = np.array([objective.gain(k) for k in everyone])
        lower, upper = objective.gain_bounds(everyone)
        if not (np.abs(gains - one_by_one) <= slack).all():
            faults.append(
                f"{p.name}: gains and gain differ by {np.abs(gains - one_by_one).max():.1e}"
            )
        if not ((lower <= gains + slack) & (gains <= upper + slack)).all():
            faults.append(f"{p.name}: bounds miss a gain")
        for k in rng.choice(p.n, min(2, p.n), replace=False):
            kept = everyone != k
            expected = total - (reference_value(p, kept) if kept.any() else 0.0)
            if not abs(gains[k] - expected) <= slack:
                faults.append(f"{p.name}: gain {k} is {gains[k]!r}, witness {expected!r}")
        return faults

    check_seeds(seeds, check)


@pytest.mark.parametrize("seeds", chunks(140_000, 1_400 if FULL else 84, 28), ids=str)
def test_removals(seeds: range) -> None:
    def check(p: Problem, rng: np.random.Generator) -> list[str]:
        objective, faults = p.objective(), []
        for step, k in enumerate(rng.permutation(p.n)[:-1]):
            gain, before = objective.gain(k), objective.value
            objective.remove(k)
            if not abs(before - objective.value - gain) <= 2e-9 * p.size(before):
                faults.append(f"{p.name}: step {step} fell by another amount than its gain")
            if step % 7 == 0:
                faults += state_faults(p, objective) + value_faults(p, objective)
        return faults

    check_seeds(seeds, check)


@pytest.mark.parametrize(
    ("scale", "alpha", "offset", "margin"),
    [
        (1.0, 0.005, True, "soft"),
        (1e3, 0.01, False, "soft"),
        (1e3, 1e-6, True, "soft"),
        (1.0, 0.01, True, "hard"),
    ],
)
def test_a_guess_that_breaks_down_is_no_guess(
    scale: float, alpha: float, offset: bool, margin: str
) -> None:
    """Duplicated columns, sums of columns, separable classes: what interior points stumble over."""
    X, y = make_shifted(150, 8, random_state=0)
    if margin == "hard":
        X[:, 0] += 12.0 * y
    X = np.hstack([X, X[:, :3], X[:, :1] + X[:, 1:2]]) * scale
    objective = SVMObjective(X, y, alpha=alpha, fit_intercept=offset, margin=margin)
    assert objective.optimality_residual() < 1e-8
    k = int(objective.dual.argmax())
    gain = objective.gain(k)
    fresh = SVMObjective(
        np.delete(X, k, axis=0), np.delete(y, k), alpha=alpha, fit_intercept=offset, margin=margin
    )
    size = objective.value if margin == "hard" else max(1.0, objective.value)
    assert gain == pytest.approx(objective.value - fresh.value, abs=1e-8 * size)
