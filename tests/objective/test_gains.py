"""Exact gains against witness refits, and the paper's monotonicity: none is negative."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from checks import VALUE_TOLERANCE, check_seeds, reference_value
from problems import FULL, Problem, chunks, problem

REFITS = 3  # witness refits a problem


def started(p: Problem, rng: np.random.Generator) -> Any:
    """An objective from which up to a third has been removed: no special initial state."""
    objective = p.objective()
    for k in rng.permutation(p.n)[: rng.integers(0, p.n // 3 + 1)]:
        objective.remove(k)
    return objective


@pytest.mark.parametrize("seeds", chunks(60_000, 2_800 if FULL else 140, 28), ids=str)
def test_gains_equal_refits(seeds: range) -> None:
    check_seeds(seeds, refit_faults)


def refit_faults(p: Problem, rng: np.random.Generator) -> list[str]:
    objective, faults = started(p, rng), []
    kept = np.asarray(objective.kept).copy()
    total = reference_value(p, kept)
    rows = np.flatnonzero(kept)
    for k in rng.choice(rows, size=min(REFITS, len(rows)), replace=False):
        without = kept.copy()
        without[k] = False
        refit = total - reference_value(p, without)
        gain = float(objective.gain(k))
        # A difference of two values, each with its tolerance.
        if not abs(gain - refit) <= 2 * VALUE_TOLERANCE * p.size(total):
            faults.append(f"{p.name}: gain({k}) = {gain!r}, refits {refit!r}")
    return faults


@pytest.mark.parametrize("seeds", chunks(70_000, 2_800 if FULL else 280, 70), ids=str)
def test_gains_of_all_samples(seeds: range) -> None:
    """One call or many, the same numbers; none negative; none above F; the state is untouched."""
    check_seeds(seeds, all_gains_faults)


def all_gains_faults(p: Problem, rng: np.random.Generator) -> list[str]:
    objective, faults = started(p, rng), []
    ks = rng.permutation(np.flatnonzero(objective.kept))
    value, dual = objective.value, objective.dual.copy()
    gains = np.asarray(objective.gains(ks))
    slack = VALUE_TOLERANCE * p.size(value)
    if gains.shape != ks.shape or not np.isfinite(gains).all():
        return [f"{p.name}: gains of shape {gains.shape}, or not finite"]
    # F without k is between 0 and F.
    if not (gains >= -slack).all() or not (gains <= value + slack).all():
        faults.append(f"{p.name}: gains from {gains.min()!r} to {gains.max()!r}, F = {value!r}")
    single = np.array([objective.gain(k) for k in ks[:5]])
    if not (np.abs(single - gains[:5]) <= slack).all():
        faults.append(f"{p.name}: gains {gains[:5]} but one by one {single}")
    if objective.value != value or (objective.dual != dual).any():
        faults.append(f"{p.name}: asking for gains changed the state")
    return faults


@pytest.mark.parametrize("seeds", chunks(70_000, 2_800 if FULL else 280, 70), ids=str)
def test_gains_of_idle_samples_with_a_hard_margin(seeds: range) -> None:
    """Appendix: a sample without a multiplier leaves w alone, and its gain is its share of F."""
    check_seeds(seeds, hard_margin_faults, checked_share=0.1)


def hard_margin_faults(p: Problem, rng: np.random.Generator) -> list[str] | None:
    if not p.hard:
        return None
    objective = started(p, rng)
    ks = np.flatnonzero(objective.kept)
    gains = np.asarray(objective.gains(ks))
    u = np.ones(p.n) if p.params["weights"] is None else p.params["weights"]
    share = objective.value * u[ks] / u[objective.kept].sum()
    idle = objective.dual[ks] == 0
    if not idle.any():
        return None
    worst = np.abs(gains - share)[idle].max()
    return [] if worst <= 1e-9 * p.size(objective.value) else [f"{p.name}: {worst:.1e} off F u/m"]


def test_no_samples_no_gains() -> None:
    objective = problem(0).objective()
    assert np.asarray(objective.gains([])).shape == (0,)
    lower, upper = objective.gain_bounds([])
    assert np.asarray(lower).shape == np.asarray(upper).shape == (0,)


def test_counters_count() -> None:
    objective = problem(0).objective()
    before = repr(objective.counters)
    objective.gains(np.flatnonzero(objective.kept))
    objective.remove(int(np.flatnonzero(objective.dual)[0]))
    assert repr(objective.counters) != before
