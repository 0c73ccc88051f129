"""Where the best offset is an interval, its middle is reported, as libsvm does."""

from __future__ import annotations

import numpy as np
import pytest

from checks import check_seeds
from problems import FULL, Problem, chunks


def best_offsets(scores: np.ndarray, y: np.ndarray, u: np.ndarray) -> tuple[float, float]:
    """The interval that minimises sum u [1 - y (scores + b)]_+ over b, both classes present.

    The sum is convex and piecewise linear: its slope starts at minus the weight of the positives
    and grows by u_i at b = y_i - scores_i.
    """
    kinks = y - scores
    order = np.argsort(kinks)
    slopes = np.cumsum(u[order]) - u[y > 0].sum()
    flat = 1e-12 * u.sum()
    first = int(np.argmax(slopes >= -flat))
    last = first + 1 if abs(slopes[first]) <= flat else first
    return float(kinks[order[first]]), float(kinks[order[last]])


def intercept_faults(p: Problem, rng: np.random.Generator) -> list[str] | None:
    """At the start and along removals, where alpha and scale leave w well determined."""
    if p.hard or not p.params["fit_intercept"] or "(corner)" in p.name or "(wide)" in p.name:
        return None
    objective, faults = p.objective(), []
    weights = np.ones(p.n) if p.params["weights"] is None else p.params["weights"]
    for step, k in enumerate(rng.permutation(p.n)):
        kept = np.asarray(objective.kept)
        if abs(p.y[kept].sum()) == kept.sum():
            break
        if step % 4 == 0:
            b = float(objective.intercept)
            scores = np.asarray(objective.decision_function(p.X)) - b
            low, high = best_offsets(scores[kept], p.y[kept], weights[kept])
            # The scores and the kinks carry a few roundings each, no more.
            if not abs(b - (low + high) / 2) <= 1e-8 * max(1.0, np.abs(scores).max()):
                faults.append(f"{p.name}: {kept.sum()} kept, b = {b!r} of [{low!r}, {high!r}]")
        objective.remove(k)
    return faults


def test_best_offsets_by_hand() -> None:
    one = np.ones(2)
    # Two samples with equal scores: any b from -1 to 1 costs 2.
    assert best_offsets(np.zeros(2), np.array([1.0, -1.0]), one) == (-1.0, 1.0)
    # The heavier one decides.
    assert best_offsets(np.zeros(2), np.array([1.0, -1.0]), np.array([2.0, 1.0])) == (1.0, 1.0)


@pytest.mark.parametrize("seeds", chunks(100_000, 2_800 if FULL else 280, 70), ids=str)
def test_intercept_is_the_middle_of_its_interval(seeds: range) -> None:
    check_seeds(seeds, intercept_faults, checked_share=0.08)
