r"""A feasible point of the dual of a linear SVM, and what it certifies: ``D <= F <= P``.

Nothing here is exact. The point is improved until the gap between the primal value P of its (w, b) and its
dual value D is small enough; F lies between the two, whatever the point.
"""

from typing import Any, NamedTuple, Self

import numpy as np

from deferlearn._utils.types import Array, Bools, Index
from deferlearn.objective.ballast import (
    Ballast,
    Progress,
    Rows,
    ascend,
    balanced,
    ballast_of,
    no_ballast,
)
from deferlearn.objective.face import ascend_on_face
from deferlearn.objective.pairs import pair_steps
from deferlearn.objective.scaling import mu_from_alpha

# Passes between two looks at the gap, each of which costs about three passes over all rows.
PASSES = 8
# Steps on pairs instead of passes, where there is no ballast.
PAIRS = 20
# A gap that is not below this share of the last one falls too slowly.
SLOW = 0.5
# The best offset is nearly always this close to that of the point before.
AROUND = 0.05
# Samples at a bound are left out of the passes if their margin is further from one than this.
NEAR = 0.05
# What sums of many terms lose, relative to their terms.
ROUNDING = 1e-13
# Gap at which more passes only move rounding, relative to F.
SMALLEST_GAP = 1e-12
# Looks at the gap after which a point is taken as it is, since its gap says how good it is: in all, and
# without having become smaller by this factor.
MOST_LOOKS, PATIENCE, BETTER = 4000, 30, 0.9
# The share of a ballast that must be left without the samples that leave.
LEAST_REST = 0.5
# Largest violation of an optimality condition in the last machine, where a margin is one.
RESIDUAL = 1e-9


class LinearProblem(NamedTuple):
    """Data that all states share."""

    X: Any
    rows: Rows
    weight: Array
    alpha: float
    offset: bool

    @property
    def y(self) -> Array:
        """Labels -1 and +1."""
        labels: Array = self.rows.y
        return labels


def linear_problem(X: Any, y: Array, weight: Array, alpha: float, offset: bool) -> LinearProblem:
    """X in CSR format."""
    square = np.asarray(X.multiply(X).sum(axis=1)).ravel()
    rows = Rows(X.data, X.indices, X.indptr, y, square)
    return LinearProblem(X, rows, weight, alpha, offset)


class Measures(NamedTuple):
    """What a point certifies, and where samples stand."""

    primal: float
    dual: float
    rounding: float  # by how much sums of this size may be wrong
    square: float  # |w|^2
    b: float
    image: Array  # x_i . v of each sample
    gradient: Array  # 1 - y_i (w.x_i + b): the hinge loss where positive

    @property
    def gap(self) -> float:
        """By how much F may be below the primal value."""
        return max(0.0, self.primal - self.dual)


class FeasiblePoint:
    """Dual variables of the kept samples that meet all constraints, and their ``v = sum a_i y_i x_i``."""

    def __init__(self, problem: LinearProblem) -> None:
        y, weight = problem.y, problem.weight
        self.problem = problem
        self.upper = weight.copy()
        sums = {sign: float(weight[y == sign].sum()) for sign in (-1.0, 1.0)}
        # In the middle of the boxes, or below it on the side with more weight.
        smaller = min(sums.values())
        self.a = 0.5 * weight
        if problem.offset:
            for sign, total in sums.items():
                self.a[y == sign] *= smaller / total if total > 0.0 else 0.0
        self.rng = np.random.default_rng(0)
        self._b = 0.0
        self._moved()

    def _moved(self) -> None:
        self._measures: Measures | None = None
        self._ballasts: dict[float, Ballast | None] = {}
        self.v = np.asarray(self.problem.X.T @ (self.a * self.problem.y))

    def copy(self) -> Self:
        """An independent point; the data are shared."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        other.a, other.upper, other.v = self.a.copy(), self.upper.copy(), self.v.copy()
        other._ballasts = dict(self._ballasts)
        other.rng = np.random.default_rng(0)  # copies go the same way, whatever the original did
        return other

    @property
    def nbytes(self) -> int:
        """Bytes of its own arrays."""
        return self.a.nbytes + self.upper.nbytes + self.v.nbytes

    @property
    def kept(self) -> Bools:
        """Mask of the samples that were not removed."""
        return self.upper > 0.0

    @property
    def total_weight(self) -> float:
        """Sum of the weights of the kept samples."""
        return float(self.upper.sum())

    @property
    def mu(self) -> float:
        """The weight of ``|w|^2 / 2`` against the sum of hinge losses."""
        return mu_from_alpha(self.problem.alpha, self.total_weight)

    @property
    def trivial(self) -> bool:
        """Whether F is zero, since nothing is left, or with an offset a single class."""
        kept = self.problem.y[self.kept]
        return len(kept) == 0 or (self.problem.offset and abs(float(kept.sum())) == len(kept))

    # -- what it certifies ----------------------------------------------------------------------

    @property
    def measures(self) -> Measures:
        """Primal and dual value, and where samples stand."""
        if self._measures is None:
            self._measures = self._measure()
        return self._measures

    def _measure(self) -> Measures:
        problem, y, upper, mu = self.problem, self.problem.y, self.upper, self.mu
        if self.trivial:
            zeros = np.zeros(len(y))
            return Measures(0.0, 0.0, 0.0, 0.0, 0.0, zeros, zeros)
        image = np.asarray(problem.X @ self.v)
        b = best_offset(y - image / mu, upper, y, self._b) if problem.offset else 0.0
        self._b = b  # where to look for the next one
        gradient = 1.0 - y * (image / mu + b)
        square = float(self.v @ self.v) / mu**2
        primal = 0.5 * mu * square + float(upper @ np.maximum(gradient, 0.0))
        dual = float(self.a.sum()) - 0.5 * mu * square
        if problem.offset:
            # Rounding leaves an imbalance, which a large b could make use of. Some best b is where a
            # sample meets its margin, so it is not larger than this; nor without one of the samples.
            longest = float(np.sqrt(problem.rows.square[self.kept].max()))
            rest = mu_from_alpha(problem.alpha, self.total_weight - float(upper.max()))
            largest = 1.0 + longest * np.sqrt(2.0 * primal / rest)
            dual -= abs(float(y @ self.a)) * float(largest)
        rounding = ROUNDING * (primal + float(self.a.sum()) + mu * square)
        dual = max(dual, 0.0)
        return Measures(primal + rounding, dual - rounding, rounding, square, b, image, gradient)

    def ballast(self, direction: float = 1.0) -> Ballast | None:
        """What makes up for an imbalance in this direction, if anything can."""
        if direction not in self._ballasts:
            X, y, a, upper = self.problem.X, self.problem.y, self.a, self.upper
            if self.problem.offset:
                found = ballast_of(X, y, a, upper, self.measures.gradient, direction)
            else:
                found = no_ballast(X)
            self._ballasts[direction] = found
            if found is not None and found.lowest < 0.0 < found.highest:
                self._ballasts[-direction] = found
        return self._ballasts[direction]

    def near(self, width: float = NEAR) -> Index:
        """Kept samples that may move: inside their boxes, next to the margin, or on the wrong side."""
        a, upper, gradient = self.a, self.upper, self.measures.gradient
        stay = ((a <= 0.0) & (gradient < -width)) | ((a >= upper) & (gradient > width))
        return np.flatnonzero(self.kept & ~stay)

    # -- improving it ---------------------------------------------------------------------------

    def solve(self, gap: float) -> None:
        """Improve the point until it certifies F up to this gap, or up to rounding."""
        before = best = np.inf
        patience = PATIENCE
        for _ in range(MOST_LOOKS):
            measures = self.measures
            if measures.gap <= max(gap, SMALLEST_GAP * measures.primal):
                return
            if measures.gap < BETTER * best:
                best, patience = measures.gap, PATIENCE
            patience -= 1
            if patience == 0:
                return
            slow, before = measures.gap > SLOW * before, measures.gap
            # Far from the solution, little is known about which samples will be near the margin.
            far = measures.gap > 0.01 * measures.primal
            self._improve(np.flatnonzero(self.kept) if far else self.near(), slow)

    def polish(self) -> None:
        """Improve the point until all optimality conditions hold to many digits, or nothing moves."""
        if self.trivial:
            return
        self.solve(0.0)
        before = np.inf
        for _ in range(MOST_LOOKS):
            worst = self._improve(self.near(), slow=True)
            if worst <= RESIDUAL or worst >= before:
                return
            before = worst

    def _improve(self, order: Index, slow: bool) -> float:
        """A few passes; returns the worst violation in the last one."""
        problem, y, mu = self.problem, self.problem.y, self.mu
        ballast = self.ballast()
        a, v, worst = self.a.copy(), self.v.copy(), np.inf
        if ballast is not None and ballast.lowest < 0.0:
            # What rounding has left of an imbalance goes with the first step.
            owed = -float(y @ a) if problem.offset else 0.0
            progress = Progress(owed, float(ballast.centre @ v) + owed * ballast.square, 0.0, 0.0)
            for _ in range(PASSES):
                progress = Progress(*ascend(
                    problem.rows, ballast, self.rng.permutation(order), self.upper, mu, a, v,
                    progress, -1, np.inf,
                ))  # fmt: skip
            a, worst = (
                balanced(a, y, ballast, progress.moved) if problem.offset else a,
                progress.worst,
            )
        else:
            kept = np.flatnonzero(self.kept)
            worst = pair_steps(problem.rows, kept, self.upper, mu, a, v, PAIRS, 0.1 * RESIDUAL)
        a = np.clip(a, 0.0, self.upper)
        if slow:
            a = ascend_on_face(problem.X, y, a, self.upper, mu, problem.offset)
        self._move_to(a)
        return float(worst)

    def _move_to(self, a: Array) -> None:
        self.a = np.clip(a, 0.0, self.upper)
        self._moved()

    def remove(self, ks: Index) -> None:
        """Take samples out; the others make up for them so that the point stays feasible."""
        y, a = self.problem.y, self.a.copy()
        left = float(y[ks] @ a[ks])
        if self.problem.offset and left != 0.0:
            ballast = self.ballast(1.0 if left > 0.0 else -1.0)
            rest = 1.0 - float(ballast.share[ks].sum()) if ballast is not None else 0.0
            if ballast is not None and rest >= LEAST_REST and _within(left / rest, ballast):
                a = balanced(a, y, ballast, left / rest)
                a[ks] = 0.0
            else:  # the side that has more now is reduced in proportion
                a[ks] = 0.0
                side = y == (-1.0 if left > 0.0 else 1.0)
                total = float(a[side].sum())  # zero where what is left is rounding
                a[side] *= max(0.0, 1.0 - abs(left) / total) if total > 0.0 else 0.0
        a[ks] = 0.0
        self.upper[ks] = 0.0
        self._move_to(np.zeros_like(a) if self.trivial else a)

    def leaving(self, ballast: Ballast, ks: Index) -> Array:
        """How far the ballast moves when one of ks leaves, one number for each; NaN if it cannot."""
        share = ballast.share[ks]
        start = self.problem.y[ks] * self.a[ks] / (1.0 - np.minimum(share, 1.0 - LEAST_REST))
        return np.where((share <= 1.0 - LEAST_REST) & _within(start, ballast), start, np.nan)


def _within(moved: Any, ballast: Ballast) -> Any:
    return (ballast.lowest <= moved) & (moved <= ballast.highest)


def best_offset(at: Array, weight: Array, y: Array, guess: float) -> float:
    """The b that minimises ``sum_i weight_i max(0, y_i (at_i - b))``; of several, the middle.

    The slope at b is the weight of all samples below b, less that of the positive ones. So only the
    samples around b must be in order: those around a good guess are few.
    """
    target, slack = float(weight[y > 0.0].sum()), ROUNDING * float(weight.sum())
    for width in (AROUND, np.inf):
        around = np.flatnonzero((np.abs(at - guess) <= width) & (weight > 0.0))
        order = around[np.argsort(at[around], kind="stable")]
        below = float(weight[at < guess - width].sum()) + np.cumsum(weight[order])
        first = int(np.searchsorted(below, target - slack))
        last = int(np.searchsorted(below, target + slack, side="right"))
        if first > 0 and last < len(order):
            break
    ends = order[np.minimum([first, last], len(order) - 1)]
    return float(at[ends].mean())
