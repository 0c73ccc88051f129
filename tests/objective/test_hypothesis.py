"""Small whole-number problems, where nearly every event is a tie; hypothesis shrinks failures."""

from __future__ import annotations

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from checks import fail_with, state_faults, value_faults
from problems import FULL, Problem, small_problems, small_separable_problems

# The same examples every time in `make test`; new ones whenever everything is run.
thorough = settings(
    max_examples=3_000 if FULL else 100,
    deadline=None,
    derandomize=not FULL,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
seeds = st.integers(0, 2**16)


def remove_all(p: Problem, seed: int) -> None:
    objective = p.objective()
    faults = value_faults(p, objective) + state_faults(p, objective)
    for k in np.random.default_rng(seed).permutation(p.n):
        before, gain = objective.value, objective.gain(k)
        objective.remove(k)
        faults += value_faults(p, objective) + state_faults(p, objective)
        if not abs(before - objective.value - gain) <= 1e-8 * p.size(before):
            faults.append(f"gain({k}) = {gain!r}, but F fell by {before - objective.value!r}")
        if not gain >= -1e-9 * p.size(before):
            faults.append(f"gain({k}) = {gain!r} is negative")
    fail_with(faults)


@given(small_problems(), seeds)
@thorough
def test_soft_margin(p: Problem, seed: int) -> None:
    remove_all(p, seed)


@given(small_separable_problems(), seeds)
@thorough
def test_hard_margin(p: Problem, seed: int) -> None:
    remove_all(p, seed)


@given(small_problems())
@thorough
def test_bounds(p: Problem) -> None:
    objective = p.objective()
    ks = np.arange(p.n)
    lower, upper = objective.gain_bounds(ks)
    exact = objective.gains(ks)
    slack = 1e-9 * p.size(objective.value)
    assert (np.asarray(lower) <= exact + slack).all()
    assert (exact <= np.asarray(upper) + slack).all()
