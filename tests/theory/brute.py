"""Tiny problems on which every subset can be tried."""

from __future__ import annotations

from typing import Any

import numpy as np

from deferlearn.objective import SVMObjective

KINDS = ("linear", "rbf", "no offset", "rbf no offset", "hard", "hard no offset")


def tiny(seed: int, size: int, kind: str, weighted: bool = False) -> SVMObjective:
    """A problem of one kind: both classes, alpha from 0.003 to 30."""
    rng = np.random.default_rng([31, seed, KINDS.index(kind)])
    y = rng.choice([-1.0, 1.0], size=size)
    y[:4] = [1.0, -1.0, 1.0, -1.0][: len(y)]
    X = rng.normal(size=(size, int(rng.integers(1, 4))))
    X += rng.choice([0.3, 1.0]) * y[:, None]
    if kind.startswith("hard"):
        X[:, 0] = y * (np.abs(X[:, 0]) + 0.3)
    params: dict[str, Any] = {
        "alpha": float(10.0 ** rng.uniform(-2.5, 1.5)),
        "fit_intercept": "no offset" not in kind,
        "margin": "hard" if kind.startswith("hard") else "soft",
        "kernel": "rbf" if kind.startswith("rbf") else "linear",
        "weights": rng.uniform(0.3, 3.0, size=size) if weighted else None,
    }
    return SVMObjective(X, y, **params)


def all_values(objective: SVMObjective) -> np.ndarray:
    """F of every kept set, by bit mask; each is one removal away from another."""
    size = objective.n_samples
    values = np.zeros(2**size)

    def visit(state: SVMObjective, mask: int, first: int) -> None:
        values[mask] = state.value
        for k in range(first, size):
            child = state.copy()
            child.remove(k)
            visit(child, mask & ~(1 << k), k + 1)

    visit(objective, 2**size - 1, 0)
    return values


def true_ratio(values: np.ndarray, size: int, n: int) -> float:
    """Least sum of single gains over joint gain, over |S| <= n and every L disjoint from S."""
    full = 2**size - 1
    masks = np.arange(2**size)
    counts = np.array([int(m).bit_count() for m in masks])
    tiny_gain = 1e-9 * max(1.0, values[full])
    least = 1.0
    for deferred in masks[counts <= n]:
        kept = full & ~deferred
        single = np.array(
            [values[kept] - values[kept & ~(1 << k)] if kept >> k & 1 else 0.0 for k in range(size)]
        )
        joint_sets = masks[(masks & deferred) == 0]
        joint = values[kept] - values[kept & ~joint_sets]
        sums = ((joint_sets[:, None] >> np.arange(size)) & 1) @ single
        real = joint > tiny_gain
        if real.any():
            least = min(least, float((sums[real] / joint[real]).min()))
    return least


def best_value(objective: SVMObjective, loss: np.ndarray, n: int) -> float:
    """The largest g - c over all sets of at most n samples."""
    start = objective.value
    best = 0.0

    def visit(state: SVMObjective, first: int, count: int, cost: float) -> None:
        nonlocal best
        best = max(best, start - state.value - cost)
        rest = np.arange(first, len(loss))
        if count == n or not len(rest):
            return
        if count == n - 1:  # the last level needs gains, no states
            best = max(
                best, float((start - state.value + state.gains(rest) - cost - loss[rest]).max())
            )
            return
        for k in rest:
            child = state.copy()
            child.remove(int(k))
            visit(child, int(k) + 1, count + 1, cost + float(loss[k]))

    visit(objective, 0, 0, 0.0)
    return best
