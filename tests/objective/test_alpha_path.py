"""Another alpha from a solution: along the path, it must be what a fresh solution is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from checks import VALUE_TOLERANCE, check_seeds, state_faults
from deferlearn.datasets import make_shifted
from deferlearn.objective import Rounds, SVMObjective
from problems import FULL, GRAM_OVER_ALPHA, Problem, chunks, replace


def another(p: Problem, alpha: float) -> Problem:
    """The problem with this alpha."""
    return replace(p, params={**p.params, "alpha": alpha}, name=f"{p.name}, alpha {alpha!r}")


def alphas_around(p: Problem, rng: np.random.Generator) -> np.ndarray:
    """Up and down by up to 1000, and back; not where F depends on the last digit of the kernel."""
    factors = 10.0 ** np.append(rng.uniform(-3.0, 3.0, 2), [rng.choice([-3.0, 3.0]), 0.0])
    gram, linear = p.objective().problem.gram, p.params["kernel"] == "linear"
    least = 0.0 if linear else float(gram.diagonal.max()) * gram.unit / GRAM_OVER_ALPHA
    return np.maximum(p.params["alpha"] * factors, least)


def size_of_decisions(p: Problem, objective: Any) -> float:
    """w.phi_i + b is a sum of terms that may cancel: rounding is relative to these."""
    root = objective.problem.root * np.sqrt(objective.problem.gram.unit)
    total = float(weights_of(p)[objective.kept].sum())
    length = float(objective.dual @ root) / (2.0 * p.params["alpha"] * total)
    return 1.0 + abs(objective.intercept) + length * float(root.max())


def weights_of(p: Problem) -> np.ndarray:
    return np.ones(p.n) if p.params["weights"] is None else p.params["weights"]


def alpha_faults(p: Problem, objective: Any, fresh: Any, name: str) -> list[str]:
    """An objective that came along the path against one that was solved afresh."""
    faults = state_faults(p, objective)
    slack = VALUE_TOLERANCE * p.size(float(fresh.value))
    if not abs(objective.value - fresh.value) <= slack:
        faults.append(f"{name}: F = {objective.value!r}, fresh {fresh.value!r}")
    kept, size = objective.kept, size_of_decisions(p, objective)
    own = objective.own_decisions
    asked = np.asarray(objective.decision_function(p.X))
    if not np.abs(own - asked).max() <= 1e-9 * size:
        faults.append(f"{name}: decisions {np.abs(own - asked).max():.1e} of {size:.1e} off")
    # The machine is as unique as F is curved.
    others = fresh.own_decisions
    apart = np.abs(own[kept] - others).max()
    if not apart <= 1e-9 * size:
        faults.append(f"{name}: decisions {apart:.1e} of {size:.1e} from fresh ones")
    return faults


@pytest.mark.parametrize("seeds", chunks(110_000, 2_800 if FULL else 280, 70), ids=str)
def test_alphas_up_and_down(seeds: range) -> None:
    """From the first state and from states with removed samples; hard margins and one class, too."""

    def check(p: Problem, rng: np.random.Generator) -> list[str]:
        faults = []
        objective = p.objective()
        gone = rng.permutation(p.n)[: rng.integers(0, p.n // 2 + 1) * rng.integers(0, 2)]
        for k in gone:
            objective.remove(int(k))
        value, kept = objective.value, objective.kept
        there = objective
        for alpha in alphas_around(p, rng):
            there, q = there.with_alpha(alpha), another(p, float(alpha))
            name = f"{q.name}, {len(gone)} removed"
            faults += alpha_faults(q, there, q.restrict(kept).objective(), name)
            if (there.kept != kept).any() or there.removed.tolist() != gone.tolist():
                faults.append(f"{name}: other samples are kept")
            if there.fingerprint() != q.objective().fingerprint():
                faults.append(f"{name}: fingerprint {there.fingerprint()}")
        if objective.value != value:
            faults.append(f"{p.name}: the objective itself has changed")
        return faults

    check_seeds(seeds, check)
