"""F of every variant against the witness, on every degenerate shape (issue 2, 'It must show' 1)."""

from __future__ import annotations

import pytest

from checks import report, state_faults, value_faults
from problems import FULL, chunks, problem
from witness import OWN_GAP


@pytest.mark.parametrize("seeds", chunks(0, 10_000 if FULL else 1_000, 50), ids=str)
def test_value_equals_the_witness(seeds: range) -> None:
    faults = []
    for seed in seeds:
        p = problem(seed)
        objective = p.objective()
        faults += value_faults(p, objective) + state_faults(p, objective)
    assert not faults, report(faults)


@pytest.mark.parametrize("seeds", chunks(20_000, 2_800 if FULL else 280, 70), ids=str)
def test_published_solution_proves_the_value(seeds: range) -> None:
    """`dual`, `coef` and `intercept` form a duality gap of zero: no solver needed to believe F."""
    faults = []
    for seed in seeds:
        p = problem(seed)
        gap = p.own_gap(p.objective())
        if not gap <= OWN_GAP:
            faults.append(f"{p.name}: own gap {gap:.1e}")
    assert not faults, report(faults)
