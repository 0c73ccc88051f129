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


def crude_bounds(point: FeasiblePoint, ks: Index) -> tuple[Array, Array]:
    """Lower and upper bounds of the gains of ks, in closed form."""
    m, weight, alpha = point.measures, point.problem.weight[ks], point.problem.alpha
    if point.trivial:
        return np.zeros(len(ks)), np.zeros(len(ks))
    lower = weight * (alpha * m.square + np.maximum(m.gradient[ks], 0.0)) - m.gap - m.rounding
    upper = m.primal - np.maximum(_dual_without(point, ks), 0.0)
    last = leaves_nothing(point, ks)
    lower[last], upper[last] = m.dual, m.primal
    lower = np.clip(lower, 0.0, upper)
    return lower, upper


def _mu_without(point: FeasiblePoint, ks: Index) -> Array:
    return mu_from_alpha(point.problem.alpha, point.total_weight - point.problem.weight[ks])


def _dual_without(point: FeasiblePoint, ks: Index) -> Array:
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
        square = (
            m.square * mu**2 - 2.0 * start * (m.image[k] - projection) + start**2 * curvature
        )
        mu_new = np.maximum(_mu_without(point, k), 1e-300)
        fall = start * (sign - ballast.mean_label)
        change = 0.5 * (m.square * mu - square / mu_new) - fall
        values[at] = np.where(np.isnan(start), -np.inf, m.dual + change - m.rounding)
    return values


def tighter_upper_bounds(
    point: FeasiblePoint, ks: Index, enough: Array, n_passes: int
) -> Array:
    """Upper bounds of the gains of ks by passes over the samples near the margin.

    A bound that is as small as ``enough`` need not be smaller.
    """
    m, y = point.measures, point.problem.y
    values = _dual_without(point, ks)
    order = point.near()
    for sign in (-1.0, 1.0):
        at = np.flatnonzero((y[ks] == sign) & np.isfinite(values))
        ballast = point.ballast(sign)
        if ballast is None or not len(at):
            continue
        k = ks[at]
        rises = ascend_without(
            point.problem.rows, ballast, order, point.upper, _mu_without(point, k), point.a,
            point.v, float(ballast.centre @ point.v), k, point.leaving(ballast, k),
            m.primal - values[at] - enough[at], n_passes,
        )  # fmt: skip
        values[at] += rises
    upper = m.primal - np.maximum(values, 0.0)
    upper[leaves_nothing(point, ks)] = m.primal
    return upper
