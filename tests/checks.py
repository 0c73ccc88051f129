"""What must hold of an objective at any moment; failures come back as text, to be collected."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from problems import Problem, problem
from witness import OWN_GAP

VALUE_TOLERANCE = 1e-9  # |F - F_witness|, relative to Problem.size
FRESH_TOLERANCE = 1e-8  # the state against a fresh solve
RESIDUAL_TOLERANCE = 1e-8  # of the optimality conditions, relative


def reference_value(problem: Problem, kept: np.ndarray) -> float:
    """F of the kept rows from the witness, or where it fails, from a certified fresh solve."""
    witness = problem.witness(kept)
    if witness.ok:
        return witness.value
    rest = problem.restrict(kept)
    fresh = rest.objective()
    assert rest.own_gap(fresh) <= OWN_GAP, f"neither witness nor gap: {rest.name}"
    return float(fresh.value)


def value_faults(problem: Problem, objective: Any) -> list[str]:
    """F against the witness; where that has no answer, the objective's own duality gap."""
    witness = problem.witness(np.asarray(objective.kept))
    if not witness.ok:
        gap = problem.own_gap(objective)
        return [] if gap <= OWN_GAP else [f"{problem.name}: no witness, own gap {gap:.1e}"]
    error = abs(float(objective.value) - witness.value)
    # Written so that NaN is a fault.
    if error <= VALUE_TOLERANCE * problem.size(witness.value):
        return []
    return [f"{problem.name}: F = {objective.value!r}, witness {witness.value!r}"]


def state_faults(problem: Problem, objective: Any) -> list[str]:
    """Optimality residual, and feasibility of the public dual variables."""
    faults = []
    kept = np.asarray(objective.kept)
    a = np.asarray(objective.dual, dtype=float)
    weights = problem.params["weights"]
    u = np.ones(problem.n) if weights is None else weights
    upper = np.inf if problem.hard else u
    if not objective.optimality_residual() <= RESIDUAL_TOLERANCE:
        faults.append(f"residual {objective.optimality_residual():.1e}")
    if kept.shape != (problem.n,) or a.shape != (problem.n,):
        faults.append(f"shapes {kept.shape}, {a.shape}")
    if not ((a >= 0) & (a <= upper)).all():
        beyond = max(-a.min(), (a - upper).max())
        faults.append(f"dual variables outside of their box by {beyond:.1e}")
    if a[~kept].any():
        faults.append("dual variables of removed samples are not zero")
    # D(a) is off by b y.a: this keeps that below 1e-10 for offsets up to 100.
    rounding = 1e-12 * max(1.0, float(a.sum()))
    if problem.params["fit_intercept"] and abs(float(problem.y @ a)) > rounding:
        faults.append(f"y.a = {float(problem.y @ a):.1e}")
    where = f" with {int(kept.sum())} kept"
    return [f"{problem.name}: {fault}{where}" for fault in faults]


def check_seeds(
    seeds: Sequence[int],
    check: Callable[[Problem, np.random.Generator], list[str] | None],
    *,
    checked_share: float = 1.0,
) -> None:
    """Run a check on every seed and fail once, naming all that went wrong, errors included.

    A check that does not apply to a problem returns None; it must apply to this share of the seeds.
    """
    faults: list[str] = []
    checked = 0
    for seed in seeds:
        p = problem(seed)
        try:
            found = check(p, np.random.default_rng(seed))
            checked += found is not None
            faults += found or []
        except Exception as error:
            faults.append(f"{p.name}: {type(error).__name__}: {error}")
    fail_with(faults)
    assert checked >= checked_share * len(seeds), f"only {checked} of {len(seeds)} were checked"


def fail_with(faults: list[str]) -> None:
    """Fail if there are faults, with a message that stays readable when much is broken."""
    if faults:
        more = f"\n... and {len(faults) - 20} more" if len(faults) > 20 else ""
        pytest.fail(f"{len(faults)} faults:\n" + "\n".join(faults[:20]) + more, pytrace=False)
