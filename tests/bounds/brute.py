"""Tiny problems on which every subset can be tried."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np

from deferlearn.objective import Objective, SVMObjective

KINDS = ("linear", "rbf", "no offset", "rbf no offset", "hard", "hard no offset")


def tiny(
    seed: int, size: int, kind: str, weighted: bool = False, apart: float = 0.0
) -> SVMObjective:
    """A problem of one kind: both classes, ``apart`` if asked for, alpha from 0.003 to 30."""
    rng = np.random.default_rng([31, seed, KINDS.index(kind)])
    y = rng.choice([-1.0, 1.0], size=size)
    y[:4] = [1.0, -1.0, 1.0, -1.0][: len(y)]
    X = rng.normal(size=(size, int(rng.integers(1, 4))))
    X += (apart + rng.choice([0.3, 1.0])) * y[:, None]
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


def true_ratio(
    values: np.ndarray, size: int, n: int, most: int | None = None, unit: float | None = None
) -> float:
    """Least sum of single gains over joint gain, over |S| <= n and every L disjoint from S.

    ``most`` bounds |L|; gains below 1e-9 of ``unit``, max(1, F) by default, are rounding.
    """
    full = 2**size - 1
    masks = np.arange(2**size)
    counts = np.array([int(m).bit_count() for m in masks])
    tiny_gain = 1e-9 * (max(1.0, values[full]) if unit is None else unit)
    least = 1.0
    for deferred in masks[counts <= n]:
        kept = full & ~deferred
        single = np.array(
            [values[kept] - values[kept & ~(1 << k)] if kept >> k & 1 else 0.0 for k in range(size)]
        )
        joint_sets = masks[((masks & deferred) == 0) & (counts <= (size if most is None else most))]
        joint = values[kept] - values[kept & ~joint_sets]
        sums = ((joint_sets[:, None] >> np.arange(size)) & 1) @ single
        real = joint > tiny_gain
        if real.any():
            least = min(least, float((sums[real] / joint[real]).min()))
    return least


class Sets:
    """g and c of every deferred set, by bit mask."""

    def __init__(self, values: np.ndarray, loss: np.ndarray) -> None:
        masks = np.arange(len(values))
        members = (masks[:, None] >> np.arange(len(loss))) & 1
        self.g = values[-1] - values[masks[::-1]]
        self.c = members @ loss
        self.counts = members.sum(axis=1)

    def most(self, factor: float, n: int) -> float:
        """The largest ``factor * g(T) - c(T)`` over all T of at most n samples."""
        return float((factor * self.g - self.c)[self.counts <= n].max())

    def value(self, order: np.ndarray) -> float:
        """g - c of one set."""
        mask = sum(1 << int(k) for k in order)
        return float(self.g[mask] - self.c[mask])


class Table(Objective):
    """An objective that looks up F, and knows gains beforehand only up to a factor."""

    kept: Any = None  # each has its own

    def __init__(self, values: np.ndarray, size: int, doubt: float = 1.0, seed: int = 0) -> None:
        self._values, self._doubt = values, doubt
        self._rng = np.random.default_rng(seed)
        self.kept = np.ones(size, dtype=bool)

    def _mask(self) -> int:
        return sum(1 << int(k) for k in np.flatnonzero(self.kept))

    @property
    def value(self) -> float:
        return float(self._values[self._mask()])

    def gain(self, k: int) -> float:
        return max(0.0, self.value - float(self._values[self._mask() & ~(1 << int(k))]))

    def gain_bounds(self, ks: Any) -> tuple[np.ndarray, np.ndarray]:
        """The gain is between 1 / doubt and doubt times what is said."""
        gains = np.array([self.gain(k) for k in ks])
        lower, upper = self._doubt ** self._rng.uniform(0.0, 1.0, size=(2, len(gains)))
        return gains / lower, gains * upper

    def remove(self, k: int) -> None:
        self.kept[k] = False

    def copy(self) -> Table:
        other = copy(self)
        other.kept = self.kept.copy()
        return other


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
