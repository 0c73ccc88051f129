r"""Certified bounds of gains from a feasible point that need not be optimal.

With A the kept samples and a point with primal value P and dual value D, ``D <= F(A) <= P``. Lower bounds
of the gain of k evaluate the same (w, b) without k, upper bounds a feasible dual point without k:

    D(A) - P_{A \ k}(w, b)  <=  gain(k)  <=  P(A) - D_{A \ k}(a').

The first a' is the present point, with the ballast in place of k: a closed form. A few passes of
coordinate ascent over the samples next to the margin then make it nearly the best one.
"""

import numpy as np

from deferlearn._utils.types import Array, Bools, Index
from deferlearn.objective.ballast import ascend_without
from deferlearn.objective.feasible_point import FeasiblePoint
from deferlearn.objective.scaling import mu_from_alpha


def leaves_nothing(point: FeasiblePoint, ks: Index) -> Bools:
    """Whether F is zero without the sample: no sample is left, or with an offset one class only."""
    y, kept = point.problem.y, point.kept
    if not point.problem.offset:
        return np.full(len(ks), int(kept.sum()) == 1)
    counts = np.where(y[ks] > 0.0, int((kept & (y > 0.0)).sum()), int((kept & (y < 0.0)).sum()))
    return np.asarray(counts == 1)


def lower_bounds(point: FeasiblePoint, ks: Index) -> Array:
    """Lower bounds of the gains of ks, in closed form."""
    m, weight, alpha = point.measures, point.problem.weight[ks], point.problem.alpha
    lower = weight * (alpha * m.square + np.maximum(m.gradient[ks], 0.0)) - m.gap - m.rounding
    lower[leaves_nothing(point, ks)] = m.dual
    return np.maximum(lower, 0.0)


def upper_bounds(point: FeasiblePoint, ks: Index, dual: Array) -> Array:
    """Upper bounds of the gains of ks from dual values without each of them."""
    upper = point.measures.primal - np.maximum(dual, 0.0)
    upper[leaves_nothing(point, ks)] = point.measures.primal
    return upper


def _mu_without(point: FeasiblePoint, ks: Index) -> Array:
    return mu_from_alpha(point.problem.alpha, point.total_weight - point.problem.weight[ks])


def dual_without(point: FeasiblePoint, ks: Index) -> Array:
    """Dual values without each of ks, the ballast in its place; -inf where it has no room."""
    m, mu, y = point.measures, point.mu, point.problem.y
    values = np.full(len(ks), -np.inf)
    for sign in (-1.0, 1.0):
        at = np.flatnonzero(y[ks] == sign)
        ballast = point.ballast(sign)
        if ballast is None or not len(at):
            continue
        k = ks[at]
        start = point.leaving(ballast, k)
        # v moves along x_k - x_c by this, and sum(a) falls accordingly.
        projection = float(ballast.centre @ point.v)
        curvature = point.problem.rows.square[k] - 2.0 * ballast.along[k] + ballast.square
        square = m.square * mu**2 - 2.0 * start * (m.image[k] - projection) + start**2 * curvature
        mu_new = np.maximum(_mu_without(point, k), 1e-300)  # zero: no sample is left
        fall = start * (sign - ballast.mean_label)
        change = 0.5 * (m.square * mu - square / mu_new) - fall
        values[at] = np.where(np.isnan(start), -np.inf, m.dual + change - m.rounding)
    return values


def better_dual_without(
    point: FeasiblePoint, ks: Index, dual: Array, enough: Array, n_passes: int
) -> Array:
    """Larger dual values than those of `dual_without`, by passes over the samples near the margin.

    A value that is ``enough`` need not be larger.
    """
    y, better, order = point.problem.y, dual.copy(), point.near()
    for sign in (-1.0, 1.0):
        at = np.flatnonzero((y[ks] == sign) & np.isfinite(dual))
        ballast = point.ballast(sign)
        if ballast is None or not len(at):
            continue
        k, rises = ks[at], np.empty(len(at))
        ascend_without(
            point.problem.rows, ballast, order, point.upper, _mu_without(point, k), point.a,
            point.v, float(ballast.centre @ point.v), k, point.leaving(ballast, k),
            enough[at] - dual[at], n_passes, rises,
        )  # fmt: skip
        better[at] += rises
    # By weak duality no dual value is above the primal one at the present w. Where mu nearly vanishes, what
    # the passes have added up can be: then it was rounding, and the closed form holds.
    m, weight = point.measures, point.problem.weight[ks]
    primal = m.primal - weight * (point.problem.alpha * m.square + np.maximum(m.gradient[ks], 0.0))
    possible = better <= primal + m.rounding
    return np.where(possible, better, dual)
