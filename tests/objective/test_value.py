"""F of every variant against the witness, on every degenerate shape."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from checks import check_seeds, state_faults, value_faults
from deferlearn.datasets import make_shifted
from deferlearn.objective import SVMObjective
from problems import FULL, Problem, chunks
from witness import OWN_GAP


@pytest.mark.parametrize("seeds", chunks(0, 10_000 if FULL else 500, 50), ids=str)
def test_value_equals_the_witness(seeds: range) -> None:
    def check(p: Problem, _: np.random.Generator) -> list[str]:
        objective = p.objective()
        return value_faults(p, objective) + state_faults(p, objective)

    check_seeds(seeds, check)


@pytest.mark.parametrize("seeds", chunks(20_000, 2_800 if FULL else 280, 70), ids=str)
def test_published_solution_proves_the_value(seeds: range) -> None:
    """`dual`, `coef` and `intercept` form a duality gap of zero: no solver needed to believe F."""

    def check(p: Problem, _: np.random.Generator) -> list[str]:
        gap = p.own_gap(p.objective())
        return [] if gap <= OWN_GAP else [f"{p.name}: own gap {gap:.1e}"]

    check_seeds(seeds, check)


@pytest.mark.parametrize("mean", [1e2, 1e4, 1e6])
def test_far_from_the_origin(mean: float) -> None:
    """With an offset a translation of X changes nothing but b."""
    X, y = make_shifted(50, 3, random_state=0)
    here = SVMObjective(X, y, alpha=0.05)
    there = SVMObjective(X + mean, y, alpha=0.05)
    blur = mean * 1e-14  # what adding the mean rounded off X
    assert there.value == pytest.approx(here.value, rel=10 * blur)
    np.testing.assert_allclose(there.gains(range(50)), here.gains(range(50)), atol=1e4 * blur)
    np.testing.assert_allclose(
        there.decision_function(X + mean), here.decision_function(X), atol=1e4 * blur
    )


def test_objectives_can_be_pickled() -> None:
    X, y = make_shifted(30, 3, random_state=0)
    for kernel in ("linear", "rbf", "poly"):
        objective = SVMObjective(X, y, alpha=0.05, kernel=kernel)
        again = pickle.loads(pickle.dumps(objective))
        again.remove(3)
        objective.remove(3)
        assert again.value == objective.value
