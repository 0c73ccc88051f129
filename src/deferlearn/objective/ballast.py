r"""Coordinate ascent on the dual of a linear SVM with offset: every step stays feasible.

The dual is :math:`D(a) = \sum_i a_i - |v|^2 / (2 \mu)` with :math:`v = \sum_i a_i y_i x_i`,
:math:`0 \le a_i \le u_i`, and with an offset :math:`\sum_i y_i a_i = 0`. A step on one variable costs one
row of X, and no matrix of samples by samples is formed (Hsieh et al. 2008). But it breaks the
equation. So what a step adds to one side is made up for by all samples of the *ballast* together, a little
by each: samples inside their boxes, with shares c that sum to one. A step on j then moves v along
:math:`x_j - x_c`, with :math:`x_c = \sum_i c_i x_i`: the ballast acts like a centring of the rows, which
is also why few passes are needed.

How far the ballast has moved is one number, and its part of v is that number times x_c. Both are added to
a and v after a pass, so that a step costs no more than one without an offset.
"""

from typing import Any, NamedTuple

import numpy as np

from deferlearn._utils.compiling import compiled
from deferlearn._utils.types import Array

# Samples with less room than this share of the largest are no ballast: they may go to their bounds.
LEAST_ROOM = 0.1
# Share of its room that each sample of a large ballast gives at most; the rest is for its own steps.
SHARE = 0.1
# The room that a ballast should have, in units of the largest dual variable: one sample leaves, the
# others respond, and half of the room stays for steps of the ballast's own samples.
ENOUGH_ROOM = 4.0
# Relative size below which a difference of squares is rounding.
FLAT = 1e-14
# Without an offset nothing limits the imbalance; finite, since zero times it must be zero.
UNLIMITED = 1e300


class Rows(NamedTuple):
    """The rows of X, one after the other, with labels, and squares of lengths."""

    entries: Any
    columns: Any
    starts: Any
    y: Any
    square: Any


class Ballast(NamedTuple):
    """What makes up for an imbalance: shares, centre, and what steps need to know of them.

    When it moves by s, each of its samples moves by ``s * y_i * c_i``.
    """

    share: Any  # c, one per sample
    centre: Any  # x_c
    along: Any  # x_i . x_c of each sample
    square: float  # |x_c|^2
    mean_label: float  # sum_i c_i y_i
    lowest: float  # how far it may move
    highest: float


class Progress(NamedTuple):
    """Where a pass stands."""

    moved: float  # by how much the ballast has moved
    projection: float  # x_c . v
    rise: float  # of the dual value
    worst: float  # largest gradient of a variable that could move


def no_ballast(X: Any) -> Ballast:
    """For problems without an offset: an imbalance costs nothing."""
    n, d = X.shape
    return Ballast(np.zeros(n), np.zeros(d), np.zeros(n), 0.0, 0.0, -UNLIMITED, UNLIMITED)


def ballast_of(
    X: Any, y: Array, a: Array, upper: Array, gradient: Array, direction: float
) -> Ballast | None:
    """The samples with the most room in both directions, each with a share in proportion to its room.

    If they are too few, those next to the margin that have room in this direction, +1 or -1: the ballast
    then moves that way only. None if there is none at all.
    """
    enough = ENOUGH_ROOM * float(a.max())
    room = np.minimum(a, upper - a)
    room[room < LEAST_ROOM * room.max()] = 0.0
    total = float(room.sum())
    if total >= enough > 0.0:
        limit = max(SHARE * total, 0.5 * enough)
        return _ballast(X, y, room / total, -limit, limit)
    room = np.where(y * direction > 0.0, upper - a, a)
    room[room < LEAST_ROOM * upper] = 0.0
    nearest = np.argsort(np.abs(gradient), kind="stable")
    needed = np.cumsum(room[nearest]) < enough
    room[nearest[np.count_nonzero(needed) + 1 :]] = 0.0
    total = float(room.sum())
    if total <= 0.0:
        return None
    ends = sorted((0.0, 0.5 * total * direction))
    return _ballast(X, y, room / total, ends[0], ends[1])


def _ballast(X: Any, y: Array, share: Array, lowest: float, highest: float) -> Ballast:
    centre = X.T @ share
    square, mean_label = float(centre @ centre), float(share @ y)
    return Ballast(share, centre, X @ centre, square, mean_label, lowest, highest)


def balanced(a: Array, y: Array, ballast: Ballast, moved: float) -> Array:
    """The dual variables with what the ballast moved."""
    return a + moved * y * ballast.share


@compiled
def ascend(  # type: ignore[no-untyped-def]
    rows: Rows, ballast: Ballast, order, upper, mu, a, v, start: Progress, skip, enough
):
    """One step on each variable in this order; changes a and v, except for the ballast's part.

    Returns the fields of `Progress`.

    ``skip`` is a sample that stays where it is. The pass ends early once the rise is ``enough``.
    """
    entries, columns, starts, y, square = rows
    share, along, lowest, highest = ballast.share, ballast.along, ballast.lowest, ballast.highest
    moved, projection, rise, worst = start.moved, start.projection, start.rise, 0.0
    for j in order:
        if j == skip:
            continue
        first, last = starts[j], starts[j + 1]
        image = moved * along[j]
        for t in range(first, last):
            image += entries[t] * v[columns[t]]
        gradient = 1.0 - y[j] * (ballast.mean_label + (image - projection) / mu)
        curvature = square[j] - 2.0 * along[j] + ballast.square
        # The ballast may move to either end, and the sample with it as far as it is part of it.
        if y[j] > 0.0:
            low, high = -lowest * share[j] - a[j], upper[j] - highest * share[j] - a[j]
            low, high = max(low, moved - highest), min(high, moved - lowest)
        else:
            low, high = highest * share[j] - a[j], upper[j] + lowest * share[j] - a[j]
            low, high = max(low, lowest - moved), min(high, highest - moved)
        if curvature > FLAT * (square[j] + ballast.square):
            step = gradient * mu / curvature
        else:
            step = UNLIMITED * gradient
        # Where rounding has put a sample a little outside of its limits, it stays.
        step = min(max(step, min(low, 0.0)), max(high, 0.0))
        if step == 0.0:
            continue
        worst = max(worst, abs(gradient))
        rise += step * (gradient - 0.5 * step * max(curvature, 0.0) / mu)
        a[j] += step
        moved -= y[j] * step
        projection += y[j] * step * (along[j] - ballast.square)
        for t in range(first, last):
            v[columns[t]] += y[j] * step * entries[t]
        if rise >= enough:
            break
    return moved, projection, rise, worst


@compiled
def ascend_without(  # type: ignore[no-untyped-def]
    rows: Rows,
    ballast: Ballast,
    order,
    upper,
    mu,
    a,
    v,
    projection,
    ks,
    start,
    enough,
    n_passes,
    rises,
):
    """Fill in how much the dual value rises in a few passes after each of ks has left, one at a time.

    ``start`` is by how much the ballast moves when the sample leaves; ``mu`` is that of the others.
    Passes end once the rise is ``enough``. a and v stay as they are.
    """
    entries, columns, starts, y, square = rows
    for i in range(len(ks)):
        k = ks[i]
        others, image = a.copy(), v.copy()
        for t in range(starts[k], starts[k + 1]):
            image[columns[t]] -= start[i] * entries[t]
        shifted = projection - start[i] * (ballast.along[k] - ballast.square)
        progress = Progress(start[i], shifted, 0.0, 0.0)
        for _ in range(n_passes):
            moved, shifted, rise, worst = ascend(
                rows, ballast, order, upper, mu[i], others, image, progress, k, enough[i]
            )
            progress = Progress(moved, shifted, rise, worst)
            if progress.rise >= enough[i]:
                break
        rise = progress.rise
        if ballast.share[k] > 0.0:  # the ballast has moved it: it goes back to zero
            step = y[k] * (start[i] - progress.moved) * ballast.share[k] / (1.0 - ballast.share[k])
            along = progress.moved * ballast.along[k]
            for t in range(starts[k], starts[k + 1]):
                along += entries[t] * image[columns[t]]
            gradient = 1.0 - y[k] * (ballast.mean_label + (along - progress.projection) / mu[i])
            curvature = square[k] - 2.0 * ballast.along[k] + ballast.square
            rise += step * (gradient - 0.5 * step * curvature / mu[i])
            if not ballast.lowest <= progress.moved - y[k] * step <= ballast.highest:
                rise = 0.0
        rises[i] = max(rise, 0.0)  # the point before the passes is feasible, too
