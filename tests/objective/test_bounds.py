"""Certified bounds bracket every exact gain, in every variant."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from checks import VALUE_TOLERANCE, check_seeds
from problems import FULL, Problem, chunks


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
    """u_k (alpha |w|^2 + hinge_k), which costs nothing once w is known: F is concave in u."""
    u, norm = weights_of(p), alpha_times_squared_norm(p, objective)
    if p.hard:
        return np.asarray(u[ks] * norm)
    hinges = np.maximum(0.0, 1.0 - p.y * np.asarray(objective.decision_function(p.X)))
    return np.asarray(u[ks] * (norm + hinges[ks]))


def alpha_times_squared_norm(p: Problem, objective: Any) -> float:
    """From the dual value: F = sum(a) - alpha m |w|^2."""
    total = weights_of(p)[objective.kept].sum()
    return max(0.0, float((objective.dual.sum() - objective.value) / total))


def weights_of(p: Problem) -> np.ndarray:
    return np.ones(p.n) if p.params["weights"] is None else p.params["weights"]


@pytest.mark.parametrize("seeds", chunks(80_000, 2_800 if FULL else 140, 35), ids=str)
def test_bounds_bracket_the_gain(seeds: range) -> None:
    """At the start, and after removals that leave two thirds, one third, two samples and one."""

    def check(p: Problem, rng: np.random.Generator) -> list[str]:
        objective, faults = p.objective(), []
        stops = {0, p.n // 3, 2 * p.n // 3, p.n - 2, p.n - 1}
        for step, k in enumerate(rng.permutation(p.n)):
            if step in stops:
                faults += bound_faults(p, objective)
            objective.remove(k)
        return faults

    check_seeds(seeds, check)


@pytest.mark.parametrize("seeds", chunks(90_000, 2_800 if FULL else 280, 70), ids=str)
def test_bounds_meet_where_the_multiplier_is_zero(seeds: range) -> None:
    """Dropping a sample with a_k = 0 leaves a feasible dual point, and w its primal partner.

    With mu' = 2 alpha (m - u_k) and a unchanged, D' = D - alpha |w|^2 u_k m / (m - u_k), while
    the free lower bound is u_k alpha |w|^2: they are u_k^2 alpha |w|^2 / (m - u_k) apart, of second
    order. Any engine can do that much; `gain_bounds` may do better, never worse.
    """
    check_seeds(seeds, idle_faults, checked_share=0.3)


def idle_faults(p: Problem, _: np.random.Generator) -> list[str] | None:
    objective = p.objective()
    idle = np.flatnonzero(np.asarray(objective.dual) == 0)
    if not len(idle) or p.n == 1:
        return None
    u, norm = weights_of(p), alpha_times_squared_norm(p, objective)
    lower, upper = (np.asarray(bound) for bound in objective.gain_bounds(idle))
    apart = upper - lower - u[idle] ** 2 * norm / (u.sum() - u[idle])
    if (apart <= VALUE_TOLERANCE * p.size(objective.value)).all():
        return []
    return [f"{p.name}: bounds {apart.max():.1e} farther apart than the simplest"]
