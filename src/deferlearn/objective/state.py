"""What the engine knows at one moment: the problem, its exact solution, and a working set."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from deferlearn._utils.types import Array, Bools, Index
from deferlearn.kernels import Gram, LinearGram
from deferlearn.objective.arrays import (
    FreeSet,
    Numbers,
    Point,
    Samples,
    Snapshot,
    Statuses,
    Working,
)
from deferlearn.objective.measures import INTERIOR, Measures, Tally, clip, measure, tally
from deferlearn.objective.path import LOW, OUT, UP
from deferlearn.objective.scaling import mu_from_alpha

# Up to this size every sample is in the working set, and nothing needs to be checked outside of it.
WHOLE_SET_LIMIT = 768
_EPS = float(np.finfo(np.float64).eps)
# Where an image is costly, it is moved while that takes this many times fewer columns than a fresh one,
MOVED_SHARE = 2
# counting these roundings for an entry of Q, evaluated in another way than before,
ENTRY_ROUNDINGS = 64
# and until they may add up to this share of the gradient.
CARRIED = 1e-12
# What sums over all samples may lose, relative to their terms, so that a bound stays one.
SUM_ROUNDING = 64 * _EPS


@dataclass(frozen=True, kw_only=True)
class Problem:
    """The data, in scaled units; never changes."""

    gram: Gram
    y: Array
    weight: Array
    upper: Array  # of the dual variables: the weights, or infinity for a hard margin
    alpha: float
    offset: bool
    root: Array  # square roots of the Gram matrix's diagonal
    hard: bool  # errors are forbidden, not only costly

    @cached_property
    def longest(self) -> float:
        """Length of the longest image."""
        return float(self.root.max(initial=0.0))

    @cached_property
    def reach(self) -> float:
        """Sum of the lengths of all images, times the most that their dual variables can be."""
        return 0.0 if self.hard else float(self.root @ self.upper)

    @cached_property
    def whole_pair(self) -> tuple[Array, Array]:
        """The Gram matrix of all samples as a sum of two doubles: many working sets are made of all."""
        every = np.arange(self.gram.n)
        return self.gram.block_pair(every, every)

    @cached_property
    def samples(self) -> Samples:
        """What compiled code is given of a problem."""
        return Samples(
            self.y, self.weight, self.upper, self.root, self.gram.diagonal,
            self.alpha, self.offset, self.hard,
        )  # fmt: skip


@dataclass(frozen=True)
class Image:
    """``Qa`` of the dual variables that a state had, with what rounding may have added since.

    Each entry is off by no more than ``error`` times the length of its sample's image, on top of
    what a sum that is made afresh is off by.
    """

    Qa: Array
    a: Array
    error: float

    def moved_to(self, state: "State") -> "Image | None":
        """The image of a state's dual variables from this one; None if it is better made afresh."""
        problem = state.problem
        change = state.a - self.a
        moved = np.flatnonzero(change)
        if MOVED_SHARE * len(moved) > np.count_nonzero(state.a):
            return None
        # Rounding: of each product with an entry of Q that was itself rounded, of each addition, and of
        # the last to an entry that is at most its sample's length times that of mu w.
        length = float(problem.root[moved] @ np.abs(change[moved]))
        norm = math.sqrt(max(float(self.a @ self.Qa), 0.0)) + length
        error = self.error + _EPS * ((len(moved) + ENTRY_ROUNDINGS) * length + norm)
        if error * problem.longest > CARRIED * (state.mu + norm * problem.longest):
            return None
        Qa = self.Qa + problem.gram.image(moved, change[moved])
        return Image(Qa, state.a.copy(), error)


@dataclass(kw_only=True)
class State:
    """A point of the dual with everything that follows from it.

    ``G`` is the gradient of `path`, valid for every kept sample; ``members`` are the free samples, in
    the order of ``R``, the inverse of their (bordered) Gram matrix.
    """

    problem: Problem
    kept: Bools
    a: Array
    a_lo: Array
    G: Array
    beta: float
    status: Statuses
    members: Index
    R: Array
    precise: bool = False
    removed: list[int] = field(default_factory=list)
    image: Image | None = None
    _derived: dict[str, Any] = field(default_factory=dict, repr=False)

    def copy(self) -> "State":
        """An independent state; the problem is shared. Of what was derived, numbers go along."""
        own = ("kept", "a", "a_lo", "G", "status", "members", "R", "removed")
        copies = {name: getattr(self, name).copy() for name in own}
        numbers = {name: known for name, known in self._derived.items() if name != "start"}
        return replace(self, **copies, _derived=numbers)

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays that belong to this state alone."""
        image = () if self.image is None else (self.image.Qa, self.image.a)
        return sum(array.nbytes for array in (*self.point, self.kept, *self.free, *image))

    def changed(self) -> None:
        """Forget what was derived; to be called after every change."""
        self._derived.clear()

    def once(self, name: str, compute: Callable[[], Any]) -> Any:
        """What is computed once and belongs to this state alone."""
        known = self._derived.get(name)
        if known is None:
            known = self._derived[name] = compute()
        return known

    @property
    def total_weight(self) -> float:
        """Sum of the weights of the kept samples: their number, if all weights are one."""
        return self._tally.weight

    @property
    def mu(self) -> float:
        """Weight of ``|w|^2 / 2`` for the kept samples."""
        known = self._derived.get("mu")  # asked for so often that a call of `once` would count
        if known is None:
            known = self._derived["mu"] = mu_from_alpha(self.problem.alpha, self.total_weight)
        return float(known)

    def mu_without(self, k: Index) -> Array:
        """``mu`` after the removal of each of the samples k."""
        return mu_from_alpha(self.problem.alpha, self.total_weight - self.problem.weight[k])

    @property
    def trivial(self) -> bool:
        """Nothing kept, or one class only and an offset: w = 0 is optimal and F = 0."""
        known: bool | None = self._derived.get("trivial")  # as for `mu`
        if known is None:
            known = self._derived["trivial"] = self._is_trivial(*self.class_counts)
        return known

    def trivial_without(self, k: int) -> bool:
        """Whether the removal of k leaves a trivial state."""
        negative, positive = self.class_counts
        is_positive = bool(self.problem.y[k] > 0.0)
        return self._is_trivial(negative - (not is_positive), positive - is_positive)

    def _is_trivial(self, negative: int, positive: int) -> bool:
        return negative + positive == 0 or (self.problem.offset and min(negative, positive) == 0)

    @property
    def class_counts(self) -> tuple[int, int]:
        """How many negative and positive samples are kept."""
        return self._tally.negative, self._tally.positive

    @property
    def _tally(self) -> Tally:
        known: Tally | None = self._derived.get("tally")  # as for `mu`
        if known is None:
            known = Tally(*tally(self.kept, self.problem.y, self.problem.weight))
            self._derived["tally"] = known
        return known

    @property
    def measures(self) -> Measures:
        """Sums over the kept samples."""
        known: Measures | None = self._derived.get("measures")
        if known is None:
            known = Measures(
                *measure(self.problem.samples, self.point, self.kept, self.beta, self.mu)
            )
            self._derived["measures"] = known
        return known

    @property
    def point(self) -> Point:
        """The dual variables with what belongs to each of them."""
        return Point(self.a, self.a_lo, self.G, self.status)

    @property
    def free(self) -> FreeSet:
        """The free samples and their inverse."""
        return FreeSet(self.members, self.R)

    @property
    def numbers(self) -> Numbers:
        """What sums the state up."""

        def collect() -> Numbers:
            total, quadratic, value = self.measures.total, self.measures.quadratic, self.value
            # The gradient's own terms count unless they were carried in two doubles.
            present = math.sqrt(quadratic) + (0.0 if self.precise else self.measures.length)
            lowest, highest = (b if math.isfinite(b) else self.beta for b in self.beta_interval())
            slack = SUM_ROUNDING * (total + value) + self.gap()
            return Numbers(
                beta=self.beta, mu=self.mu, total=total, quadratic=quadratic, present=present,
                value=value, lowest=lowest, highest=highest, slack=slack,
            )  # fmt: skip

        return self.once("numbers", collect)

    @property
    def snapshot(self) -> Snapshot:
        """What compiled code is given of a state."""
        return Snapshot(self.problem.samples, self.point, self.kept, self.free, self.numbers)

    @property
    def value(self) -> float:
        """F of the kept samples: the dual value, equal to the primal one up to `gap`."""
        known = self._derived.get("value")
        if known is None:
            known = 0.0
            if not self.trivial:
                known = self.measures.total - self.measures.quadratic / (2.0 * self.mu)
            self._derived["value"] = known
        return float(known)

    @property
    def unit(self) -> float:
        """What errors of F are relative to: one hinge, or F; a hard margin has no hinges."""
        return self.value if self.problem.hard else max(1.0, self.value)

    def drop_members(self) -> None:
        """Have no free set, and so no inverse."""
        self.members, self.R = np.empty(0, dtype=np.int64), np.empty((0, 0))

    def refresh(self, afresh: bool = False) -> None:
        """Clip the dual variables to their box and compute the gradient from them.

        It is computed afresh or, where that costs much, from what moved since: its rounding is known, and
        counts in all that is proved of the state. ``afresh`` allows the first only.
        """
        self.clip()
        self.changed()
        if self.precise or not self.problem.gram.costly:
            self.image = None
            Qa = self._fresh_image()
        else:
            known = None if afresh or self.image is None else self.image.moved_to(self)
            self.image = known or Image(self._fresh_image(), self.a.copy(), 0.0)
            Qa = self.image.Qa
        self.G = Qa + self.problem.y * self.beta - self.mu

    def _fresh_image(self) -> Array:
        """Qa from the dual variables alone, so that no rounding of the past is in it."""
        used = np.flatnonzero(self.a)
        gram = self.problem.gram
        if self.precise:
            return gram.image_pair(used, self.a[used], self.a_lo[used])
        return gram.image(used, self.a[used])

    def clip(self) -> None:
        """Put dual variables that rounding left outside of their box back on its border."""
        clip(self.a, self.a_lo, self.problem.upper)

    def violations(self) -> Array:
        """By how much each kept sample misses its optimality condition, relative to the terms of G."""
        G = np.where(self.status == LOW, np.minimum(self.G, 0.0), self.G)
        G = np.where(self.status == UP, np.maximum(self.G, 0.0), G)
        size = self.mu + abs(self.beta) + self.problem.root * np.sqrt(self.measures.quadratic)
        return np.where(self.kept, np.abs(G), 0.0) / np.maximum(size, np.finfo(float).tiny)

    def imbalance(self) -> float:
        """``y.a``, which must be zero with an offset; summed in two doubles."""
        return self.measures.imbalance if self.problem.offset else 0.0

    def rounding(self) -> float:
        """How far rounding alone can move the relative gradient, in the present arithmetic."""
        if self.precise:
            return _EPS
        longest = self.problem.longest
        size = self.mu + abs(self.beta) + float(np.sqrt(self.measures.quadratic)) * longest
        return longest * (_EPS * self.measures.length + self._carried) / max(size, 1e-300)

    @property
    def _carried(self) -> float:
        """What earlier images left in the gradient, relative to each sample's length."""
        return 0.0 if self.image is None else self.image.error

    def gap(self) -> float:
        """Primal minus dual value at this point, for balanced dual variables."""
        if self.trivial:
            return 0.0
        gap = self.measures.gap + self._carried * self.problem.reach
        return gap / self.mu + 2.0 * self.measures.short / self.mu * self.value

    def beta_interval(self) -> tuple[float, float]:
        """All optimal ``beta``; a single point as soon as a sample is strictly inside its box."""
        if self.measures.inside or not self.problem.offset:
            return self.beta, self.beta
        at_low = self.kept & (self.a <= INTERIOR * self.a.max(initial=0.0))
        at_up = self.kept & ~at_low
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

    def __init__(
        self, problem: Problem, index: Index, precise: bool, known: Array | None = None
    ) -> None:
        self.problem = problem
        self.index = index
        self.precise = precise
        self.whole = len(index) == problem.gram.n
        self.position = np.full(problem.gram.n, -1, dtype=np.int64)
        self.position[index] = np.arange(len(index))
        self.Q_lo: Array | None = None
        if precise:
            pair = problem.whole_pair if self.whole else problem.gram.block_pair(index, index)
            Q, self.Q_lo = pair
        else:
            if known is None and self.whole:
                known = problem.gram.whole
            Q = problem.gram.block(index, index) if known is None else known
        self.arrays = Working(
            Q, problem.y[index], problem.upper[index], problem.root[index], problem.offset
        )

    def covers(self, members: Index) -> bool:
        """Whether all members are in the working set."""
        return bool((self.position[members] >= 0).all())


def whole_set(problem: Problem, known: Array | None = None) -> WorkingSet:
    """The working set of all samples; ``known`` is their Gram matrix, if it is at hand."""
    return WorkingSet(problem, np.arange(len(problem.y)), precise=False, known=known)


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
