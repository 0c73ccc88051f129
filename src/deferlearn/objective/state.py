"""What the engine knows at one moment: the problem, its exact solution, and a working set."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deferlearn.kernels import Array, Gram, Index, LinearGram
from deferlearn.objective.doubledouble import balance
from deferlearn.objective.path import LOW, OUT, UP
from deferlearn.objective.scaling import mu_from_alpha

# Up to this size every sample is in the working set, and nothing needs to be checked outside of it.
WHOLE_SET_LIMIT = 768
# Closer to a bound than this share of the largest dual variable (of the box), a sample is on it.
INTERIOR = 1e-11
_EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class Problem:
    """The data, in scaled units; never changes."""

    gram: Gram
    y: Array
    weight: Array
    upper: Array  # of the dual variables: the weights, or infinity for a hard margin
    alpha: float
    offset: bool
    root: Array  # square roots of the Gram matrix's diagonal
    hard: bool  # errors are forbidden instead of paid for


@dataclass
class State:
    """A point of the dual with everything that follows from it.

    ``G`` is the gradient of `path`, valid for every kept sample; ``members`` are the free samples, in
    the order of ``R``, the inverse of their (bordered) Gram matrix.
    """

    problem: Problem
    kept: NDArray[np.bool_]
    a: Array
    a_lo: Array
    G: Array
    beta: float
    status: NDArray[np.int8]
    members: Index
    R: Array
    precise: bool = False
    removed: list[int] = field(default_factory=list)
    _derived: dict[str, Any] = field(default_factory=dict, repr=False)

    def copy(self) -> State:
        """An independent state; the problem is shared."""
        arrays = ("kept", "a", "a_lo", "G", "status", "members", "R")
        changed = {name: getattr(self, name).copy() for name in arrays}
        return replace(self, removed=list(self.removed), _derived=dict(self._derived), **changed)

    def changed(self) -> None:
        """Forget what was derived; whoever changes a state says so by this."""
        self._derived.clear()

    def _once(self, name: str, compute: Callable[[], Any]) -> Any:
        if name not in self._derived:
            self._derived[name] = compute()
        return self._derived[name]

    @property
    def total_weight(self) -> float:
        """Sum of the weights of the kept samples: their number, if nobody is weighted."""
        return self._once("total", lambda: float(self.problem.weight[self.kept].sum()))

    @property
    def mu(self) -> float:
        """Weight of ``|w|^2 / 2`` for the kept samples."""
        return mu_from_alpha(self.problem.alpha, self.total_weight)

    def mu_without(self, k: Index) -> Array:
        """``mu`` after the removal of each of the samples k."""
        return mu_from_alpha(self.problem.alpha, self.total_weight - self.problem.weight[k])

    @property
    def trivial(self) -> bool:
        """Nothing kept, or one class only and an offset: w = 0 is optimal and F = 0."""
        return self._once("trivial", lambda: is_trivial(self.problem, self.kept))

    @property
    def class_counts(self) -> tuple[int, int]:
        """How many negative and positive samples are kept."""

        def count() -> tuple[int, int]:
            positive = int((self.problem.y[self.kept] > 0).sum())
            return int(self.kept.sum()) - positive, positive

        return self._once("counts", count)

    @property
    def images(self) -> Array:
        """``(Qa)_i``, for every kept sample."""
        return self._once("images", lambda: self.G - self.problem.y * self.beta + self.mu)

    @property
    def quadratic(self) -> float:
        """``a'Qa``, the squared norm of ``mu * w``."""
        return self._once("quadratic", lambda: max(0.0, float(self.a @ self.images)))

    @property
    def total(self) -> float:
        """Sum of the dual variables."""
        return self._once("sum", lambda: float(self.a.sum()))

    @property
    def length(self) -> float:
        """Sum of the lengths of the dual variables' images: the size of what adds up to w."""
        return self._once("length", lambda: float(self.problem.root @ self.a))

    @property
    def value(self) -> float:
        """F of the kept samples: the dual value, equal to the primal one up to `gap`."""
        if self.trivial:
            return 0.0
        return self._once("value", lambda: self.total - self.quadratic / (2.0 * self.mu))

    @property
    def unit(self) -> float:
        """What errors of F are relative to: one hinge, or F; a hard margin has no hinges."""
        return self.value if self.problem.hard else max(1.0, self.value)

    def drop_members(self) -> None:
        """Have no free set, and so no inverse."""
        self.members, self.R = np.empty(0, dtype=np.int64), np.empty((0, 0))

    def refresh(self) -> None:
        """Clip the dual variables to their box and compute the gradient from them, afresh."""
        self.clip()
        self.changed()
        self.G = self.fresh_gradient()

    def fresh_gradient(self) -> Array:
        """G computed from the dual variables alone, so that no rounding of the past is in it."""
        used = np.flatnonzero(self.a)
        gram = self.problem.gram
        if self.precise:
            image = gram.image_pair(used, self.a[used], self.a_lo[used])
        else:
            image = gram.image(used, self.a[used])
        return image + self.problem.y * self.beta - self.mu

    def clip(self) -> None:
        """Put dual variables that rounding left outside of their box back on its border."""
        outside = (self.a + self.a_lo < 0.0) | (self.a + self.a_lo > self.problem.upper)
        self.a[outside] = np.clip(self.a[outside], 0.0, self.problem.upper[outside])
        self.a_lo[outside] = 0.0

    def violations(self) -> Array:
        """By how much each kept sample misses its optimality condition, relative to the terms of G."""
        G = np.where(self.status == LOW, np.minimum(self.G, 0.0), self.G)
        G = np.where(self.status == UP, np.maximum(self.G, 0.0), G)
        size = self.mu + abs(self.beta) + self.problem.root * np.sqrt(self.quadratic)
        return np.where(self.kept, np.abs(G), 0.0) / np.maximum(size, np.finfo(float).tiny)

    def imbalance(self) -> float:
        """``y.a``, which must be zero with an offset; summed in two doubles."""
        if not self.problem.offset:
            return 0.0
        return float(balance(self.problem.y, self.a, self.a_lo))

    def rounding(self) -> float:
        """How far rounding alone can move the relative gradient, in the present arithmetic."""
        if self.precise:
            return _EPS
        root = self.problem.root
        size = self.mu + abs(self.beta) + np.sqrt(self.quadratic) * root.max(initial=0.0)
        return float(_EPS * root.max(initial=0.0) * self.length / max(size, 1e-300))

    def gap(self) -> float:
        """Primal minus dual value at this point, for balanced dual variables."""
        if self.trivial:
            return 0.0
        a, G = self.a[self.kept], self.G[self.kept]
        if self.problem.hard:
            short = float(np.maximum(-G, 0.0).max(initial=0.0)) / self.mu
            return float(a @ np.maximum(G, 0.0)) / self.mu + 2.0 * short * self.value
        upper = self.problem.upper[self.kept]
        terms = a * np.maximum(G, 0.0) + (upper - a) * np.maximum(-G, 0.0)
        return float(terms.sum()) / self.mu

    def beta_interval(self) -> tuple[float, float]:
        """All optimal ``beta``; a single point as soon as a sample is strictly inside its box."""
        a, upper = self.a, self.problem.upper
        at_low = self.kept & (a <= INTERIOR * a.max(initial=0.0))
        at_up = self.kept & ~at_low & (upper - a <= INTERIOR * upper)
        if not self.problem.offset or (self.kept & ~at_low & ~at_up).any():
            return self.beta, self.beta
        # Moving beta by d changes G_i by y_i d, which must stay >= 0 at the lower bound, <= 0 above.
        y, room = self.problem.y, np.where(at_low, self.G, -self.G)
        falls = (at_low & (y > 0)) | (at_up & (y < 0))
        rises = (at_low & (y < 0)) | (at_up & (y > 0))
        lowest = self.beta - max(0.0, float(room[falls].min(initial=np.inf)))
        highest = self.beta + max(0.0, float(room[rises].min(initial=np.inf)))
        return lowest, highest

    def make_trivial(self) -> None:
        """Put the state of a single class: no dual variable, f constant."""
        self.a[:] = 0.0
        self.a_lo[:] = 0.0
        self.status[self.kept] = LOW
        self.status[~self.kept] = OUT
        self.drop_members()
        self.changed()
        label = self.problem.y[self.kept][0] if self.kept.any() else 0.0
        self.beta = float(label) * self.mu
        self.changed()
        self.G[:] = self.problem.y * self.beta - self.mu


def is_trivial(problem: Problem, kept: NDArray[np.bool_]) -> bool:
    """Whether w = 0 is optimal because nobody, or with an offset one class only, is kept."""
    labels = problem.y[kept]
    return len(labels) == 0 or (problem.offset and bool((labels == labels[0]).all()))


def empty_state(problem: Problem) -> State:
    """All samples kept, all dual variables zero."""
    n = len(problem.y)
    state = State(
        problem=problem,
        kept=np.ones(n, dtype=bool),
        a=np.zeros(n),
        a_lo=np.zeros(n),
        G=np.zeros(n),
        beta=0.0,
        status=np.full(n, LOW, dtype=np.int8),
        members=np.empty(0, dtype=np.int64),
        R=np.empty((0, 0)),
    )
    state.G = np.full(n, -state.mu)
    return state


def capacity(problem: Problem, size: int) -> int:
    """The most samples that can be free at once."""
    gram = problem.gram
    if isinstance(gram, LinearGram):
        return min(size, gram.n_features + (1 if problem.offset else 0))
    return size


class WorkingSet:
    """The samples a path may move, with their Gram matrix."""

    def __init__(self, problem: Problem, index: Index, precise: bool) -> None:
        self.problem = problem
        self.index = index
        self.precise = precise
        self.whole = len(index) == problem.gram.n
        self.position = np.full(problem.gram.n, -1, dtype=np.int64)
        self.position[index] = np.arange(len(index))
        self.Q_lo: Array | None = None
        if precise:
            self.Q, self.Q_lo = problem.gram.block_pair(index, index)
        else:
            self.Q = problem.gram.block(index, index)
        self.y = problem.y[index]
        self.upper = problem.upper[index]
        self.root = problem.root[index]

    def covers(self, members: Index) -> bool:
        """Whether all members are in the working set."""
        return bool((self.position[members] >= 0).all())


def nearest(state: State, extra: int, must: Index | None = None) -> Index:
    """A working set's samples: the free ones, `must`, and those closest to becoming free."""
    problem = state.problem
    if len(problem.y) <= WHOLE_SET_LIMIT:
        return np.arange(len(problem.y))
    chosen = np.zeros(len(problem.y), dtype=bool)
    chosen[state.members] = True
    if must is not None:
        chosen[must] = True
    distance = np.abs(state.G) / np.maximum(problem.root, 1e-3)
    bound = state.kept & ((state.status == LOW) | (state.status == UP))
    # Some of each kind, so that beta can move either way.
    for label in (-1.0, 1.0):
        for side in (LOW, UP):
            kind = np.flatnonzero(bound & (problem.y == label) & (state.status == side))
            chosen[_smallest(kind, distance, 8)] = True
    chosen[_smallest(np.flatnonzero(bound & ~chosen), distance, extra)] = True
    return np.flatnonzero(chosen)


def _smallest(candidates: Index, key: Array, count: int) -> Index:
    if len(candidates) <= count:
        return candidates
    return candidates[np.argpartition(key[candidates], count)[:count]]
