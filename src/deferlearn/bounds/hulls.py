r"""Distances between reduced convex hulls, which measure how much two classes overlap.

The dual of the SVM with offset at a given ``mu`` is ``max 2 T - q(T) / (2 mu)``, where ``2 T = sum(a)``
and ``q(T)`` is the least ``a'Qa`` among feasible ``a`` with that sum. Dividing by T turns ``a`` into two
sets of convex weights of at most ``1 / T``, so ``q(s) = (s \Delta_{1/s})^2``: every SVM solution *is* a
pair of nearest points of reduced hulls, and the engine's solutions for a falling ``mu`` pass through
all of them. As ``mu`` falls to zero, T falls to the largest s whose hulls still touch.
"""

from dataclasses import dataclass, replace

import numpy as np

from deferlearn._utils.types import Array, Index
from deferlearn.bounds._view import View
from deferlearn.objective import NumericalError, SVMObjective
from deferlearn.objective.solver import solve_boxed
from deferlearn.objective.state import State

# Relative to the largest |phi_i|: distances below ZERO are zero, others are certified to ACCURACY.
# Squares of kernel values carry rounding of 1e-16, hence distances of 1e-8 that are not there.
ZERO = 1e-7
ACCURACY = 1e-10
# Factor between the values of mu that look for a bracket, and steps inside the bracket.
FALL = 1 / 32
MOST_BRACKET_STEPS = 80


@dataclass(frozen=True)
class HullDistance:
    """Distance between two reduced convex hulls, with a proof.

    Attributes
    ----------
    s : float
        No sample has more than ``weight / s`` of its class's hull.
    distance : float
        Distance between the nearest points that were found; 0 if it is no larger than rounding.
    lower : float
        No two points of the hulls are closer than this (a separating hyperplane shows it).
    weights : ndarray of shape (n_samples,)
        Convex weights of the nearest points, which sum to 1 in each class.
    """

    s: float
    distance: float
    lower: float
    weights: Array


@dataclass(frozen=True)
class _Point:
    mu: float
    T: float
    a: Array
    state: State


class HullPath:
    """Nearest points for every s, from SVM solutions that are kept for the next question."""

    def __init__(self, view: View) -> None:
        # The hulls are those of the SVM with offset, whatever the objective at hand.
        self.view = View(
            replace(view.problem, offset=True, hard=False, upper=view.problem.weight), view.value
        )
        weight, y = view.problem.weight, view.y
        self.largest = min(float(weight[y > 0].sum()), float(weight[y < 0].sum()))
        self._points: list[_Point] = []  # by falling mu
        self._bottom = False
        self._distances: dict[float, HullDistance] = {}  # several bounds ask for the same s

    @property
    def scale(self) -> float:
        """Length of the longest sample, to which tolerances are relative."""
        return self.view.radius

    def distance(self, s: float) -> HullDistance:
        """Distance of the hulls whose weights are at most ``weight / s``."""
        if not 0 < s <= self.largest * (1 + 1e-12):
            raise ValueError(
                f"s={s:g} must be positive and at most {self.largest:g}, the weight of the smaller "
                "class: beyond that a reduced hull is empty."
            )
        if self.scale == 0:
            return HullDistance(s, 0.0, 0.0, _uniform(self.view))
        if s not in self._distances:
            self._distances[s] = self._nearest(s)
        return self._distances[s]

    def _nearest(self, s: float) -> HullDistance:
        """The nearest points of the hulls, from solutions on either side of s."""
        high, low = self._bracket(s)
        for step in range(MOST_BRACKET_STEPS):
            share = 1.0 if low is None else (s - low.T) / max(high.T - low.T, 1e-300)
            share = min(max(share, 0.0), 1.0)
            a = high.a if low is None else low.a + share * (high.a - low.a)
            found = self._certify(a, s)
            # Squared distances of kernels carry the rounding of the Gram matrix.
            noise = 0.0 if self.view.linear else 1e-15 * self.scale**2 / max(found.distance, 1e-300)
            if low is None or found.distance - found.lower <= ACCURACY * self.scale + noise:
                break
            # Piecewise linear in mu: a secant lands on the spot once the bracket is one piece.
            mu = low.mu + share * (high.mu - low.mu)
            if step % 3 == 2 or not low.mu < mu < high.mu:
                mu = np.sqrt(low.mu * high.mu)
            if not low.mu < mu < high.mu:
                break
            middle = self._solve(mu, high.state)
            if middle is None:
                break
            high, low = (middle, low) if s <= middle.T else (high, middle)
        if found.distance <= ZERO * self.scale:
            return HullDistance(s, 0.0, 0.0, found.weights)
        return found

    def separating(self, unit: float = 1.0) -> tuple[int, HullDistance | None]:
        """The paper's ``s*``, for samples of weight `unit`, by bisection; 0 and None if all meet."""
        top = int(np.floor(self.largest / unit * (1 + 1e-12)))
        if top < 1:
            return 0, None
        best = self.distance(top * unit)
        if best.lower <= 0:
            return 0, None
        below, above = 0, top
        while above - below > 1:
            middle = (below + above) // 2
            found = self.distance(middle * unit)
            if found.lower > 0:
                above, best = middle, found
            else:
                below = middle
        return above, best

    def _bracket(self, s: float) -> tuple[_Point, _Point | None]:
        """Solutions with T on either side of s; no lower one if the hulls meet."""
        if not self._points:
            # |w| <= T diameter / mu < 2 / diameter: the smaller class lies inside the margin, T is full.
            first = self._solve(16.0 * self.largest * self.scale**2, None)
            if first is None:
                raise NumericalError("The distance of the hulls could not be solved.")
        while True:
            edge = s * (1 - 1e-13)  # T of a full class may miss it by rounding
            above = [p for p in self._points if edge <= p.T]
            below = [p for p in self._points if edge > p.T]
            high = above[-1] if above else self._points[0]  # s is the whole class, up to rounding
            if below:
                return high, below[0]
            if self._bottom or self.view.length(high.a) <= 0.1 * ZERO * self.scale * high.T:
                return high, None
            if self._solve(high.mu * FALL, high.state) is None:
                self._bottom = True

    def _solve(self, mu: float, start: State | None) -> _Point | None:
        try:
            state = solve_boxed(self.view.problem, self.view.problem.weight, mu, start)
        except NumericalError:  # mu too small for the data: the distance is at rounding level
            return None
        a = np.clip(state.a, 0.0, self.view.problem.weight)
        point = _Point(mu, float(a.sum()) / 2.0, a, state)
        self._points = sorted([*self._points, point], key=lambda p: -p.mu)
        return point

    def _certify(self, a: Array, s: float) -> HullDistance:
        """Exact convex weights from dual variables, and the separation along their difference."""
        view = self.view
        weights = np.zeros(view.n_samples)
        for label in (-1.0, 1.0):
            index = np.flatnonzero(view.y == label)
            weights[index] = _rescaled(a[index], view.problem.weight[index] / s)
        distance = view.length(weights)
        if distance == 0.0:
            return HullDistance(s, 0.0, 0.0, weights)
        along = view.image(weights) / distance
        lower = sum(
            _least_mean(along[view.y == label], view.problem.weight[view.y == label] / s)
            for label in (-1.0, 1.0)
        )
        return HullDistance(s, distance, min(max(lower, 0.0), distance), weights)


def _rescaled(a: Array, caps: Array) -> Array:
    """Weights near a multiple of ``a``, within their caps, that sum to one."""
    total = float(a.sum())
    weights = np.minimum(a / total, caps) if total > 0 else np.zeros_like(a)
    missing = 1.0 - float(weights.sum())
    room = caps - weights if missing > 0 else weights
    space = float(room.sum())
    return weights + room * (missing / space) if space > 0 else weights


def _least_mean(values: Array, caps: Array) -> float:
    """Smallest mean of values under weights within caps."""
    order: Index = np.argsort(values)
    filled = np.minimum(np.cumsum(caps[order]), 1.0)
    return float(values[order] @ np.diff(filled, prepend=0.0))


def _uniform(view: View) -> Array:
    weight = view.problem.weight
    sums = np.where(view.y > 0, weight[view.y > 0].sum(), weight[view.y < 0].sum())
    return weight / sums


def reduced_hull_distance(objective: SVMObjective, s: float) -> HullDistance:
    r"""How far apart the classes are when no sample may stand for more than 1/s of its class.

    The paper's :math:`\Delta_{1/s}`, the distance between the reduced convex hulls

    .. math::

        C^\pm_{1/s} = \Big\{ \sum_{i \in V^\pm} \mu_i \phi_i : \sum \mu_i = 1,
        0 \le \mu_i \le u_i / s \Big\}

    in the kernel's feature space, with the objective's weights :math:`u_i` (one by default). It does
    not decrease with s; for s = 1 and unit weights it is the distance of the convex hulls.

    Parameters
    ----------
    objective : SVMObjective
        In its initial state. Its kernel, labels and weights are used, its alpha is not.
    s : float
        Positive, at most the weight of the smaller class; need not be whole.

    Returns
    -------
    HullDistance
        ``distance`` and the certified ``lower`` bound, equal within 1e-10 of the data's scale.

    Examples
    --------
    >>> from deferlearn.bounds import reduced_hull_distance
    >>> from deferlearn.objective import SVMObjective
    >>> objective = SVMObjective([[0.0], [4.0], [3.0], [9.0]], [-1, -1, 1, 1])
    >>> reduced_hull_distance(objective, 1).distance  # the classes overlap between 3 and 4
    0.0
    >>> round(reduced_hull_distance(objective, 2).distance, 6)  # the distance of the means
    4.0
    """
    view = View.of(objective)
    _need_both_classes(view)
    return _in_data_units(HullPath(view).distance(float(s)), view)


def separating_hulls(objective: SVMObjective) -> HullDistance:
    r"""The first reduced hulls that do not meet: the paper's ``s*`` and :math:`\Delta^*`.

    Parameters
    ----------
    objective : SVMObjective
        In its initial state.

    Returns
    -------
    HullDistance
        ``s`` is ``s*``, a whole number; ``s`` and ``distance`` are 0 if all hulls meet.

    Examples
    --------
    >>> from deferlearn.bounds import separating_hulls
    >>> from deferlearn.objective import SVMObjective
    >>> objective = SVMObjective([[0.0], [4.0], [3.0], [9.0]], [-1, -1, 1, 1])
    >>> separating_hulls(objective).s
    2
    """
    view = View.of(objective)
    _need_both_classes(view)
    # s counts samples; weights that are all alike are a matter of the objective, not of the hulls.
    weight = view.problem.weight
    unit = float(weight[0]) if (weight == weight[0]).all() else 1.0
    s, found = HullPath(view).separating(unit)
    if found is None:
        return HullDistance(0, 0.0, 0.0, np.zeros(view.n_samples))
    found = _in_data_units(found, view)
    return HullDistance(s, found.distance, found.lower, found.weights)


def _need_both_classes(view: View) -> None:
    if min(view.class_counts) == 0:
        raise ValueError("There is one class only, so there are no two hulls to compare.")


def _in_data_units(found: HullDistance, view: View) -> HullDistance:
    scale = float(np.sqrt(view.gram.unit))
    return HullDistance(found.s, found.distance * scale, found.lower * scale, found.weights)
