"""F of every variant against the witness, on every degenerate shape."""

from __future__ import annotations

import numpy as np
import pytest

from checks import check_seeds, state_faults, value_faults
from problems import FULL, Problem, chunks
from witness import OWN_GAP


@pytest.mark.parametrize("seeds", chunks(0, 10_000 if FULL else 1_000, 50), ids=str)
def test_value_equals_the_witness(seeds: range) -> None:
    def check(p: Problem, _: np.random.Generator) -> list[str]:
        objective = p.objective()
        return value_faults(p, objective) + state_faults(p, objective)

    check_seeds(seeds, check)


@pytest.mark.parametrize("seeds", chunks(20_000, 2_800 if FULL else 560, 70), ids=str)
def test_published_solution_proves_the_value(seeds: range) -> None:
    """`dual`, `coef` and `intercept` form a duality gap of zero: no solver needed to believe F."""

    def check(p: Problem, _: np.random.Generator) -> list[str]:
        gap = p.own_gap(p.objective())
        return [] if gap <= OWN_GAP else [f"{p.name}: own gap {gap:.1e}"]

    check_seeds(seeds, check)
