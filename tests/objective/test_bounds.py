"""Certified bounds bracket every exact gain, in every variant (issue 2, point 3)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from checks import VALUE_TOLERANCE, report
from problems import FULL, Problem, chunks, problem


def bound_faults(p: Problem, objective: Any) -> list[str]:
    ks = np.flatnonzero(objective.kept)
    value = float(objective.value)
    slack = VALUE_TOLERANCE * p.size(value)
    lower, upper = (np.asarray(bound) for bound in objective.gain_bounds(ks))
    exact = np.asarray(objective.gains(ks))
    name = f"{p.name}, {len(ks)} kept"
    faults = []
    # Each written so that NaN is a fault.
    if not (lower <= exact + slack).all():
        faults.append(f"{name}: lower exceeds the gain by {(lower - exact).max():.1e}")
    if not (exact <= upper + slack).all():
        faults.append(f"{name}: upper falls short of the gain by {(exact - upper).max():.1e}")
    # Bounds that hold and say nothing would pass the above.
    if not (upper <= value + slack).all():
        faults.append(f"{name}: upper {upper.max()!r} exceeds F = {value!r}")
    free = free_lower_bound(p, objective, ks)
    if not (lower >= free - slack).all():
        faults.append(f"{name}: lower is below the free bound by {(free - lower).max():.1e}")
    return faults


def free_lower_bound(p: Problem, objective: Any, ks: np.ndarray) -> np.ndarray:
    """ENGINE.md section 2: u_k (alpha |w|^2 + hinge_k), which costs nothing once w is known.

    They add up to F, so alpha |w|^2 is what F leaves beyond the hinges, by unit of weight.
    """
    u = np.ones(p.n) if p.params["weights"] is None else p.params["weights"]
    if p.hard:
        return np.asarray(objective.value * u[ks] / u[ks].sum())
    hinges = np.maximum(0.0, 1.0 - p.y * np.asarray(objective.decision_function(p.X)))[ks]
    norm = (objective.value - u[ks] @ hinges) / u[ks].sum()
    return np.asarray(u[ks] * (norm + hinges))


@pytest.mark.parametrize("seeds", chunks(80_000, 2_800 if FULL else 280, 35), ids=str)
def test_bounds_bracket_the_gain(seeds: range) -> None:
    """At the start, and after removals that leave two thirds, one third, two samples and one."""
    faults = []
    for seed in seeds:
        p, rng = problem(seed), np.random.default_rng(seed)
        objective = p.objective()
        stops = {0, p.n // 3, 2 * p.n // 3, p.n - 2, p.n - 1}
        for step, k in enumerate(rng.permutation(p.n)):
            if step in stops:
                faults += bound_faults(p, objective)
            objective.remove(k)
    assert not faults, report(faults)


@pytest.mark.parametrize("seeds", chunks(90_000, 280, 70), ids=str)
def test_bounds_meet_where_the_multiplier_is_zero(seeds: range) -> None:
    """Dropping a sample with a_k = 0 leaves a feasible dual point, and w its primal partner.

    With mu' = 2 alpha (m - u_k): D'(a) = sum(a) - a'Qa/(2 mu'), so that
    U - L <= u_k alpha |w|^2 * u_k / (m - u_k): the bounds meet up to second order in 1/m. Any
    engine can do that much; `gain_bounds` may do better, never worse.
    """
    faults = []
    for seed in seeds:
        p = problem(seed)
        objective = p.objective()
        idle = np.flatnonzero(np.asarray(objective.dual) == 0)
        u = np.ones(p.n) if p.params["weights"] is None else p.params["weights"]
        total = u.sum()
        if not len(idle) or p.n == 1 or p.hard:
            continue
        lower, upper = objective.gain_bounds(idle)
        hinges = np.maximum(0.0, 1.0 - p.y * np.asarray(objective.decision_function(p.X)))
        norm = max(0.0, (objective.value - u @ hinges) / total)
        allowed = u[idle] ** 2 * norm / (total - u[idle])
        excess = (np.asarray(upper) - np.asarray(lower) - allowed).max()
        if not excess <= VALUE_TOLERANCE * p.size(objective.value):
            faults.append(f"{p.name}: bounds {excess:.1e} farther apart than the trivial ones")
    assert not faults, report(faults)
