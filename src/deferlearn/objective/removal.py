"""The removal of one sample, for many candidates from one state: what the drift of `path` is then.

Removing sample k means ``a_k -> (1 - t) a_k`` and ``mu -> mu'``, hence a drift of
``-Q_ik a_k - (mu' - mu)`` in ``G_i`` and of ``y_k a_k`` in what the others owe to ``y.a = 0``.
"""

from typing import NamedTuple

import numpy as np

from deferlearn._utils.compiling import Kernel, compiled, internal
from deferlearn.kernels.doubledouble import add, multiply
from deferlearn.objective.arrays import (
    Candidates,
    FreeSet,
    Outsiders,
    Point,
    Start,
    Working,
)
from deferlearn.objective.free_set import drop
from deferlearn.objective.path import FOLLOW, FREE, OUT, Drift, follow

# Of one entry of G, relative to its terms.
START_ROUNDING = 2e-16


class End(NamedTuple):
    """Where the path of one candidate ends, in numbers; see `Ends`."""

    outcome: int
    steps: int
    p: int
    beta: float
    gain: float
    gap: float
    short: float
    moved: float
    added: float  # the change of the sum of a
    squared: float  # the change of a'Qa
    blur: float  # how far rounding may have taken G from what a says


@internal
def copy_start(start, point, free):
    """Where the paths of a state begin, for one of them to change."""
    a, a_lo, G, status = start.point
    for i in range(a.size):
        point.a[i], point.a_lo[i], point.G[i] = a[i], a_lo[i], G[i]
        point.status[i] = status[i]
    p = start.p
    q = p + (1 if start.working.offset else 0)
    for i in range(p):
        free.members[i] = start.free.members[i]
    for i in range(q):
        for j in range(q):
            free.R[i, j] = start.free.R[i, j]


@internal
def removal_end(start, Q_lo, candidates, c, most_steps, by, point, free, drift):
    """Follow the removal of candidate c; ``point`` and ``free`` become its end, ``drift`` is scratch."""
    working, p = start.working, start.p
    Q, y, upper, offset = working.Q, working.y, working.upper, working.offset
    a, a_lo, G, _ = start.point
    beta, mu = start.beta, start.mu
    outside, mu_new = candidates.outside, candidates.mu[c]
    a_c, lo_c, G_c, status_c = point
    e = y.size
    copy_start(start, point, free)
    k = candidates.local[c]
    dmu = mu_new - mu
    if k >= 0:
        a_k, a_k_lo, y_k = a[k], a_lo[k], y[k]
        column, column_lo = Q[k], outside.columns_lo[0]
        if Q_lo is not None:
            column_lo = Q_lo[k]
        if status_c[k] == FREE:
            for r in range(p):
                if free.members[r] == k:
                    p = drop(free, p, offset, r)
                    break
        status_c[k] = OUT
        a_c[k] = 0.0
        lo_c[k] = 0.0
    else:
        a_k, a_k_lo, y_k = outside.a[c], outside.a_lo[c], outside.y[c]
        column, column_lo = outside.columns[c], outside.columns_lo[c]
    for i in range(e):
        if Q_lo is not None:
            hi, lo = multiply(column[i], column_lo[i], -a_k, -a_k_lo)
            drift.G[i], drift.G_lo[i] = add(hi, lo, -dmu, 0.0)
        elif a_k != 0.0:
            drift.G[i] = -column[i] * a_k - dmu
        else:
            drift.G[i] = -dmu
    moving = Drift(drift.G, drift.G_lo, y_k * a_k, y_k * a_k_lo)
    if Q_lo is None:
        followed = by(working, point, beta, free, p, moving, most_steps)
    else:
        followed = follow(working, Q_lo, point, beta, free, p, moving, most_steps)
    beta_c = followed.beta

    # Of G itself at the start, which matters where mu falls by much.
    blur = followed.blur + START_ROUNDING * (mu + abs(beta)) + start.blur
    gap, short = 0.0, 0.0
    for i in range(e):
        if status_c[i] != OUT:
            if G_c[i] > 0.0:
                gap += a_c[i] * G_c[i]
            elif upper[i] == np.inf:
                short = max(short, -G_c[i])
            else:
                gap -= (upper[i] - a_c[i]) * G_c[i]
            # What rounding of G could hide, on either side.
            if upper[i] == np.inf:
                gap += blur * a_c[i]
                short = max(short, blur)
            else:
                gap += blur * max(a_c[i], upper[i] - a_c[i])

    linear, first_order, second_order = 0.0, 0.0, 0.0
    size = 0.0  # of the change, by its entries
    own, own_lo = 0.0, 0.0  # (Q change)_k, if k is outside of the working set
    owed = -y_k * a_k if k < 0 else 0.0  # what the change leaves of y.a
    for i in range(e):
        d = a_c[i] - a[i]
        if Q_lo is not None:
            d += lo_c[i] - a_lo[i]
        if d != 0.0:
            image = G[i] - y[i] * beta + mu
            linear += d
            size += abs(d)
            owed += y[i] * d
            first_order += d * image
            second_order += d * ((G_c[i] - y[i] * beta_c + mu_new) - image)
            if k < 0 and a_k != 0.0:
                if Q_lo is None:
                    own += d * column[i]
                else:
                    d_hi, d_lo = add(a_c[i], lo_c[i], -a[i], -a_lo[i])
                    v_hi, v_lo = multiply(column[i], column_lo[i], d_hi, d_lo)
                    own, own_lo = add(own, own_lo, v_hi, v_lo)
    if k < 0:
        linear -= a_k
        size += a_k
        first_order -= a_k * (outside.G[c] - y_k * beta + mu)
        v_hi, v_lo = multiply(outside.diagonal[c], outside.diagonal_lo[c], -a_k, -a_k_lo)
        own, own_lo = add(own, own_lo, v_hi, v_lo)
        second_order -= a_k * (own + own_lo)
    if offset:  # an imbalance moves the dual value by b times itself
        gap += abs(owed) * abs(beta_c)
    squared = 2.0 * first_order + second_order
    gain = -linear + squared / (2.0 * mu_new) - start.quadratic * dmu / (2.0 * mu * mu_new)
    # Each image in the sum is off by at most the blur at the start and at the end.
    moved = np.sqrt(max(second_order, 0.0) + 4.0 * blur * size)
    return End(
        followed.outcome, followed.steps, followed.p, beta_c, gain, gap, short, moved, linear, squared,
        blur,
    )  # fmt: skip


def _remove_in_doubles(start, candidates, c, most_steps, by, point, free, drift):
    return removal_end(start, None, candidates, c, most_steps, by, point, free, drift)


def _example():
    numbers, matrix = np.zeros(1), np.zeros((1, 1))
    index = np.zeros(1, dtype=np.int64)
    point = Point(numbers, numbers, numbers, np.zeros(1, dtype=np.int8))
    free = FreeSet(index, matrix)
    working = Working(matrix, numbers, numbers, numbers, True)
    start = Start(working, point, free, 0, 0.0, 0.0, 0.0, 0.0)
    outside = Outsiders(numbers, numbers, numbers, numbers, numbers, numbers, matrix, matrix)
    candidates = Candidates(index, index, numbers, outside)
    drift = Drift(numbers, numbers, 0.0, 0.0)
    end = End(0, 0, 0, *[0.0] * 8)
    return (start, candidates, 0, 0, FOLLOW.stand_in, point, free, drift), end


# `removal_end` without second halves.
REMOVE = Kernel(_remove_in_doubles, _example)


@compiled
def removal_paths(start, Q_lo, candidates, most_steps, by, remove, ends):
    """Follow the removal of each of several candidates, all from the same state; fills ``ends``.

    ``by`` and ``remove`` are the addresses of `path.FOLLOW` and `REMOVE`. Returns the size of the last free
    set.
    """
    e, p = start.working.y.size, start.p
    G_end = np.empty(e)
    drift = Drift(np.empty(e), np.zeros(e), 0.0, 0.0)
    for c in range(candidates.local.size):
        point = Point(ends.a[c], ends.a_lo[c], G_end, ends.status[c])
        if Q_lo is None:
            end = remove(start, candidates, c, most_steps, by, point, ends.free, drift)
        else:
            end = removal_end(start, Q_lo, candidates, c, most_steps, by, point, ends.free, drift)
        ends.outcome[c], ends.steps[c], p = end.outcome, end.steps, end.p
        ends.gain[c], ends.beta[c], ends.moved[c] = end.gain, end.beta, end.moved
        ends.gap[c], ends.short[c] = end.gap, end.short
    return p
