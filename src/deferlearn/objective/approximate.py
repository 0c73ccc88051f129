"""The SVM's optimal value as a set function, known to within a certified gap: for text."""

from collections import OrderedDict
from collections.abc import Iterable
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from deferlearn._utils.checks import check_flag
from deferlearn._utils.digest import digest
from deferlearn._utils.types import Array, Bools, Index
from deferlearn.objective.arrays import Score
from deferlearn.objective.feasible_point import SMALLEST_GAP, FeasiblePoint, linear_problem
from deferlearn.objective.leave_one_out import (
    better_dual_without,
    dual_without,
    lower_bounds,
    upper_bounds,
)
from deferlearn.objective.protocol import Objective
from deferlearn.objective.screening import check_score
from deferlearn.objective.validation import check_indices, check_new, check_problem

# Gap of a state relative to F(V), unless a decision needs a smaller one.
GAP = 1e-7
# A decision may need a gap of this share of what the tolerance allows.
GAP_SHARE = 0.05
# The factor by which the gap becomes smaller when a decision needs that.
TIGHTER = 0.1
# Passes for upper bounds: few for all candidates that could be best, more for those that still could be.
PASSES, MORE_PASSES = 2, 8
# The best candidate is nearly always among this many with the largest crude bounds.
FIRST = 6
# Points without a candidate that are kept, so that committing one of them costs nothing.
POINTS_KEPT = 4
# So often the solver may give up and begin again, before its gap is what it is.
ATTEMPTS = 4


class ApproximateSVMObjective(Objective):
    r"""How much a linear SVM loses on the samples it keeps, with certified bounds of the gains.

    The set function is that of `SVMObjective`, for kept samples A with weights u that sum to m:

    .. math::

        F(A) = \min_{w, b} \; \alpha m \|w\|^2 + \sum_{i \in A} u_i [1 - y_i (w^T x_i + b)]_+ .

    `SVMObjective` follows the exact solution, which needs a matrix of free x free numbers. This is too slow
    for text, where thousands of samples are on the margin. Here a state is a feasible point of the dual,
    and F lies between its dual value and the primal value of its w and b. Numbers are not exact, but each
    of them has a certificate:

    - ``F`` is at most `value` and at least ``value - gap``. The gap is 1e-7 of F(V), or smaller where a
      decision needs that.
    - `gain_bounds` and `gain_interval` always contain the gain. `gain` is a lower bound.
    - `coef`, `intercept` and `dual` are those of a point whose optimality conditions hold to 1e-9.

    A selection is fast only with ``tol > 0``: a pick is then accepted as soon as its score is certified to
    be at least ``1 - tol`` times the best possible. Memory grows with the entries of X.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features)
        Dense rows are stored as sparse ones.
    y : array-like of shape (n_samples,)
        Labels -1 and +1; one of them alone is allowed.
    alpha : float, default=1.0
        Regularisation, the paper's lambda; positive.
    fit_intercept : bool, default=True
        Whether there is an offset b.
    weights : array-like of shape (n_samples,), default=None
        Positive weight of the error on each sample.

    Examples
    --------
    >>> from deferlearn.objective import ApproximateSVMObjective, SVMObjective
    >>> X, y = [[-2.0], [-1.0], [1.0], [2.0], [-3.0]], [-1, -1, 1, 1, 1]
    >>> objective = ApproximateSVMObjective(X, y, alpha=0.1)
    >>> exact = SVMObjective(X, y, alpha=0.1)
    >>> objective.value - objective.gap <= exact.value <= objective.value
    True
    >>> lower, upper = objective.gain_interval(4)
    >>> lower <= exact.gain(4) <= upper
    True
    """

    def __init__(
        self,
        X: Any,
        y: ArrayLike,
        alpha: float = 1.0,
        *,
        fit_intercept: bool = True,
        weights: ArrayLike | None = None,
    ) -> None:
        X, labels, weight = check_problem(X, y, alpha, "linear", "soft", weights)
        offset = check_flag("fit_intercept", fit_intercept)
        self._problem = linear_problem(sp.csr_array(X), labels, weight, float(alpha), offset)
        self._state = FeasiblePoint(self._problem)
        self._removed: list[int] = []
        self._moved()
        self._state.solve(GAP * self._state.measures.primal)
        self._target = GAP * self._state.measures.primal

    def _moved(self) -> None:
        """Drop what belonged to the last state."""
        self._solved_to = np.inf
        self._pending: list[int] = []
        self._points: OrderedDict[int, FeasiblePoint] = OrderedDict()
        self._intervals: dict[int, tuple[float, float]] = {}
        self._machine: FeasiblePoint | None = None

    @property
    def _point(self) -> FeasiblePoint:
        """The present state, solved as far as it has to be."""
        if self._pending:
            self._state.remove(np.array(self._pending))
            self._pending = []
        # A solver that gave up is not asked again: `value` and `gap` must belong to one point.
        if self._target < self._solved_to:
            for _ in range(ATTEMPTS):
                self._state.solve(self._target)
                if self._state.measures.gap <= self._target:
                    break
            self._solved_to = self._target
        return self._state

    # -- the set function ---------------------------------------------------------------------

    @property
    def value(self) -> float:
        """An upper bound of F of the kept samples: the loss of the present machine."""
        return self._point.measures.primal

    @property
    def gap(self) -> float:
        """F is at most `value`, and at least ``value - gap``."""
        return self._point.measures.gap

    def gain(self, k: int) -> float:
        """A certified lower bound of the gain of sample k, at most two gaps below it."""
        return self.gain_interval(k)[0]

    def gain_interval(self, k: int) -> tuple[float, float]:
        """Certified bounds of the gain of sample k, at most two gaps apart."""
        k = int(check_indices([k], self.kept)[0])
        if k not in self._intervals:
            point = self._point
            without = point.copy()
            without.remove(np.array([k]))
            without.solve(self._target)
            self._points[k] = without
            while len(self._points) > POINTS_KEPT:
                self._points.popitem(last=False)
            here, there = point.measures, without.measures
            upper = max(0.0, here.primal - there.dual)
            self._intervals[k] = min(max(0.0, here.dual - there.primal), upper), upper
        return self._intervals[k]

    def gain_bounds(self, ks: Iterable[int]) -> tuple[Array, Array]:
        """Certified lower and upper bounds of the gains of several samples, cheaply."""
        index = check_indices(ks, self.kept)
        point = self._point
        if point.trivial:
            return np.zeros(len(index)), np.zeros(len(index))
        dual = dual_without(point, index)
        dual = better_dual_without(point, index, dual, np.full(len(index), np.inf), PASSES)
        upper = upper_bounds(point, index, dual)
        return np.minimum(lower_bounds(point, index), upper), upper

    def score_bounds(
        self, ks: Iterable[int], scale: float, cost: ArrayLike, tol: float = 0.0
    ) -> tuple[Array, Array]:
        """Bounds of gains that are only as tight as needed to find the largest ``scale * gain - cost``.

        See `SVMObjective.score_bounds`. Here bounds never meet: those of the best sample are as close as
        `gain_interval` makes them.
        """
        index = check_indices(ks, self.kept)
        score = check_score(scale, cost, tol, len(index))
        if not len(index) or self._point.trivial:
            return np.zeros(len(index)), np.zeros(len(index))
        while True:
            lower, upper, decided = self._decide(index, score)
            smallest = SMALLEST_GAP * self._state.measures.primal
            if decided or self._target <= smallest:
                return lower, upper
            self._tighten(max(TIGHTER * self._target, smallest))

    def _tighten(self, gap: float) -> None:
        self._target = gap
        self._intervals.clear()
        self._points.clear()

    def _decide(self, ks: Index, score: Score) -> tuple[Array, Array, bool]:
        """Bounds of the gains of ks, and whether they decide which score is best, up to the tolerance."""
        point = self._point
        dual = dual_without(point, ks)
        lower, upper = lower_bounds(point, ks), upper_bounds(point, ks, dual)

        def work_on(at: Index, largest: Array, n_passes: int) -> None:
            """Make these upper bounds tighter, as long as they are larger than that."""
            if len(at):
                enough = point.measures.primal - largest[at]
                better = better_dual_without(point, ks[at], dual[at], enough, n_passes)
                upper[at] = np.minimum(upper[at], upper_bounds(point, ks[at], better))

        # How far each upper bound has been worked on: not at all, by passes, by more passes, solved.
        effort = np.zeros(len(ks), dtype=np.int64)
        first = np.argsort(-(score.scale * upper - score.cost), kind="stable")[:FIRST]
        work_on(first, np.full(len(ks), -np.inf), 1)
        ahead = first[np.argmax(score.scale * upper[first] - score.cost[first])]
        while True:
            lower[ahead], upper[ahead] = self.gain_interval(int(ks[ahead]))
            effort[ahead] = 3
            best = max(0.0, float((score.scale * lower - score.cost).max()))
            floor = (best / (1.0 - score.tol) + score.cost) / score.scale
            if best > 0.0 and self._needs_tighter(best, score):
                return lower, upper, False
            for level, n_passes in enumerate((PASSES, MORE_PASSES)):
                open_ = np.flatnonzero((upper > floor) & (effort == level))
                work_on(open_, floor, n_passes)
                effort[open_] = level + 1
            open_ = np.flatnonzero((upper > floor) & (effort < 3))
            if not len(open_):
                return np.minimum(lower, upper), upper, not (upper > floor).any()
            ahead = open_[np.argmax(score.scale * upper[open_] - score.cost[open_])]

    def _needs_tighter(self, best: float, score: Score) -> bool:
        """Whether the gap of the state is too large for a decision between scores of this size."""
        allowed = GAP_SHARE * score.tol * best / score.scale
        smallest = SMALLEST_GAP * self._state.measures.primal
        return self._target > max(allowed, smallest) and self._state.measures.gap > allowed

    def remove(self, k: int) -> None:
        """Defer sample k: the state moves on to the kept samples without it."""
        k = int(check_indices([k], self.kept)[0])
        known, pending = self._points.get(k), [*self._pending, k]
        self._moved()  # first, so that an interrupt leaves nothing of the old state
        self._removed.append(k)
        if known is not None:
            self._state = known
        else:  # several at once cost no more than one
            self._pending = pending

    def copy(self) -> "ApproximateSVMObjective":
        """An independent objective in the same state; the data are shared."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        other._state, other._removed = self._state.copy(), list(self._removed)
        pending = list(self._pending)
        other._moved()
        other._pending, other._solved_to = pending, self._solved_to
        return other

    @property
    def nbytes(self) -> int:
        """Bytes that a copy takes on top of what all copies share."""
        return self._state.nbytes

    # -- the machine --------------------------------------------------------------------------

    @property
    def n_samples(self) -> int:
        """Number of samples in V."""
        return len(self._problem.y)

    @property
    def kept(self) -> Bools:
        """Mask of the samples that the machine keeps."""
        kept = self._state.kept
        kept[self._pending] = False
        return kept

    @property
    def labels(self) -> Array:
        """The labels -1 and +1 of all samples."""
        return self._problem.y.copy()

    @property
    def removed(self) -> Index:
        """The deferred samples in the order of their removal."""
        return np.array(self._removed, dtype=np.int64)

    @property
    def _polished(self) -> FeasiblePoint:
        """The point of the machine; the state stays as it is, and so do its value and gap."""
        if self._machine is None:
            self._machine = self._point.copy()
            self._machine.polish()
        return self._machine

    @property
    def dual(self) -> Array:
        """Dual variables: ``w = sum_i dual_i y_i x_i / (2 alpha m)``, between 0 and the weight."""
        return self._polished.a.copy()

    @property
    def coef(self) -> Array:
        """The weight vector w."""
        point = self._polished
        return np.zeros(len(point.v)) if point.trivial else point.v / point.mu

    @property
    def intercept(self) -> float:
        """The offset b; the midpoint where an interval of offsets is optimal."""
        point = self._polished
        left = self._problem.y[point.kept]
        if point.trivial and self._problem.offset and len(left):
            return float(left[0])  # one class: the machine answers with it
        return point.measures.b

    def decision_function(self, X: Any) -> Array:
        """``w.x + b`` of new rows."""
        return np.asarray(check_new(X, self._problem.X, "linear") @ self.coef) + self.intercept

    def fingerprint(self) -> dict[str, Any]:
        """Numbers, words and digests that tell these data and settings from others, under their names."""
        problem = self._problem
        X = problem.X
        return {
            "labels": digest(problem.y),
            "X": digest(X.shape, X.indptr.astype(np.int64), X.indices.astype(np.int64), X.data),
            "weights": digest(problem.weight),
            "alpha": problem.alpha,
            "fit_intercept": problem.offset,
            "objective": "approximate",
        }
