"""Bounds made for the best score: they hold, state after state, and leave few rivals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from checks import VALUE_TOLERANCE, check_seeds
from deferlearn.datasets import make_shifted
from deferlearn.objective import SVMObjective
from problems import FULL, Problem, chunks


def score_faults(
    name: str, objective: Any, scale: float, cost: np.ndarray, size: float
) -> list[str]:
    ks = np.flatnonzero(objective.kept)
    exact = np.asarray(objective.copy().gains(ks))
    lower, upper = objective.score_bounds(ks, scale, cost[ks])
    slack = VALUE_TOLERANCE * size
    faults = []
    # Each written so that NaN is a fault.
    if not (lower <= exact + slack).all():
        faults.append(f"{name}: lower exceeds the gain by {(lower - exact).max():.1e}")
    if not (exact <= upper + slack).all():
        faults.append(f"{name}: upper falls short of the gain by {(exact - upper).max():.1e}")
    return faults


@pytest.mark.parametrize("seeds", chunks(90_000, 2_000 if FULL else 140, 35), ids=str)
def test_they_bracket_the_gains(seeds: range) -> None:
    """The best candidate leaves, and the responses of the others are carried into the next state."""

    def check(p: Problem, rng: np.random.Generator) -> list[str]:
        objective, faults = p.objective(), []
        scale = float(rng.uniform(0.1, 1.0))
        spread = float(objective.gains(range(p.n)).max(initial=0.0))
        cost = rng.uniform(0.0, 0.5, p.n) * spread * rng.integers(0, 2)
        for step in range(min(6, p.n - 1)):
            value = p.size(float(objective.value))
            faults += score_faults(f"{p.name}, step {step}", objective, scale, cost, value)
            ks = np.flatnonzero(objective.kept)
            objective.remove(int(ks[np.argmax(scale * objective.gains(ks) - cost[ks])]))
        return faults

    check_seeds(seeds, check)


@pytest.mark.parametrize(("size", "alpha"), [(120, 0.5), (400, 0.01), (900, 0.02)])
def test_most_candidates_are_dismissed(size: int, alpha: float) -> None:
    """On data as they come, few gains are solved; the third is beyond the compiled round."""
    X, y = make_shifted(size, 20, random_state=0)
    objective = SVMObjective(X, y, alpha=alpha)
    cost = np.random.default_rng(0).uniform(0.0, 0.5, size)
    for step in range(8):
        ks = np.flatnonzero(objective.kept)
        assert not score_faults(f"step {step}", objective, 0.9, cost, max(1.0, objective.value))
        lower, upper = objective.score_bounds(ks, 0.9, cost[ks])
        certain = 0.9 * lower - cost[ks]
        rivals = 0.9 * upper - cost[ks] > certain.max()
        assert rivals.sum() <= 20
        objective.remove(int(ks[certain.argmax()]))


def test_a_tolerance_leaves_more_open() -> None:
    X, y = make_shifted(200, 10, random_state=0)
    ks, cost = np.arange(200), np.zeros(200)
    lower, upper = SVMObjective(X, y, alpha=0.01).score_bounds(ks, 1.0, cost, tol=0.5)
    assert lower.max() >= 0.5 * upper.max()
    tight = SVMObjective(X, y, alpha=0.01).score_bounds(ks, 1.0, cost)
    assert (upper - lower).sum() > (tight[1] - tight[0]).sum()


@pytest.mark.parametrize(
    ("scale", "cost", "tol", "message"),
    [
        (0.0, [0.0, 0.0], 0.0, "scale=0.0"),
        (np.nan, [0.0, 0.0], 0.0, "scale=nan"),
        (1.0, [0.0], 0.0, "each of 2 samples"),
        (1.0, [0.0, np.inf], 0.0, "finite"),
        (1.0, [0.0, 0.0], 1.0, "tol=1.0"),
    ],
)
def test_what_is_no_score(scale: float, cost: list[float], tol: float, message: str) -> None:
    objective = SVMObjective([[0.0], [1.0]], [-1, 1])
    with pytest.raises(ValueError, match=message):
        objective.score_bounds([0, 1], scale, cost, tol)
