r"""The exact solution, followed while its data change: one piecewise linear path for everything.

The dual of the SVM on a working set ``E`` is

.. math:: \max_a \sum_i a_i - \frac{1}{2\mu} a^T Q a, \qquad 0 \le a_i \le u_i, \qquad y^T a = 0,

and with ``beta = mu * b`` the optimality conditions speak of one vector,
``G_i = (Qa)_i + y_i beta - mu = mu * (y_i f(x_i) - 1)``:

====== ============= ===========
status dual          condition
====== ============= ===========
LOW    ``a_i = 0``   ``G_i >= 0``
FREE   in between    ``G_i = 0``
UP     ``a_i = u_i`` ``G_i <= 0``
OUT    (not there)   none
====== ============= ===========

Let the data move linearly in ``t`` from 0 to 1: ``G_i`` drifts by ``drift_i`` and ``y.a`` by ``dq``
per unit of ``t`` when nothing responds. On the free set everything responds linearly:

    [ 0    y_M' ] [ dbeta ]   [ dq       ]
    [ y_M  Q_MM ] [ da_M  ] = [ -drift_M ]        slope_i = Q_iM da_M + y_i dbeta + drift_i

until a free ``a_i`` reaches a bound or a bound sample's ``G_i`` reaches zero; then the set changes
and the path goes on. Removing sample k is ``drift = -Q_k a_k - (mu' - mu)``, ``dq = y_k a_k``; solving
a problem from any starting point is a drift that takes back the starting point's error. Without
offset the border, ``beta`` and ``dq`` are absent. ``R`` is the inverse of the (bordered) matrix,
kept by rank-one changes and checked at every step, since ``slope_M`` must vanish.

Arrays are plain and in working-set order. Where ``Q_lo`` is given, every sum that can cancel is carried
in two doubles (module `doubledouble`), and ``*_lo`` arrays hold the second halves; where it is None,
the compiler never sees that code, which halves the first call's latency.
"""

from typing import NamedTuple

import numpy as np

from deferlearn._utils.compiling import Kernel, compiled, internal
from deferlearn._utils.types import Array
from deferlearn.kernels.doubledouble import add, multiply, two_product, two_sum
from deferlearn.objective.arrays import FreeSet, Pair, Point, Working
from deferlearn.objective.free_set import border, drop, insert, inverse_times, rebuild, solve

LOW, FREE, UP, OUT = 0, 1, 2, 3

DONE = 0
STUCK = 1  # too many steps, or a system too ill-conditioned: solve in another way
UNBOUNDED = 2  # the dual has no maximum: hard margin, and the data are not separable
INFEASIBLE = 3  # y.a cannot follow: the working set lacks the samples that could move

# Of one sum of a step, relative to its terms.
STEP_ROUNDING = 4e-16
# Relative noise below which a slope counts as zero, and steps as no progress.
NOISE = 1e-13
NOISE_PRECISE = 1e-27
# A sample whose image is this close to the span of the free ones (squared, relative) is dependent.
IN_SPAN = 1e-13
IN_SPAN_PRECISE = 1e-21


class Drift(NamedTuple):
    """What moves per unit of t when nothing responds: G (a pair), and what ``y.a`` must make up for."""

    G: Array
    G_lo: Array
    balance: float
    balance_lo: float


class Followed(NamedTuple):
    """How a path ended; ``blur`` is how far rounding may have taken G from what a says."""

    outcome: int
    beta: float
    p: int
    steps: int
    blur: float


class Scratch(NamedTuple):
    """Arrays that the steps of a path write to: systems, their solutions, the slopes of G."""

    right: Pair
    x: Pair
    z: Pair
    work: Array
    slope: Array
    slope_lo: Array


@internal
def _scratch(size, e):
    right = Pair(np.zeros(size), np.zeros(size))
    x, z = Pair(np.zeros(size), np.zeros(size)), Pair(np.zeros(size), np.zeros(size))
    return Scratch(right, x, z, np.empty(size), np.empty(e), np.empty(e))


@internal
def _slopes(working, Q_lo, members, p, answer, drift, slope, slope_lo):
    """Rates of change of G, given the response of beta and of the free samples."""
    Q, y, offset = working.Q, working.y, working.offset
    x, given = answer.hi, drift.G
    first = 1 if offset else 0
    e = y.size
    dbeta = x[0] if offset else 0.0
    if Q_lo is not None:
        x_lo = answer.lo
        dbeta_lo = x_lo[0] if offset else 0.0
        for i in range(e):
            slope[i], slope_lo[i] = add(given[i], drift.G_lo[i], y[i] * dbeta, y[i] * dbeta_lo)
        # One member at a time: sums of different samples do not wait for each other. What rounding takes
        # from them is summed aside, which is as good as sums of pairs (Ogita, Rump and Oishi 2005).
        for j in range(p):
            c, c_lo, row, row_lo = x[first + j], x_lo[first + j], Q[members[j]], Q_lo[members[j]]
            for i in range(e):
                v, v_lo = two_product(row[i], c)
                slope[i], rest = two_sum(slope[i], v)
                slope_lo[i] += rest + (v_lo + (row[i] * c_lo + row_lo[i] * c))
        for i in range(e):
            slope[i] += slope_lo[i]
        return
    for i in range(e):
        slope[i] = given[i] + y[i] * dbeta
    for j in range(p):
        c, row = x[first + j], Q[members[j]]
        for i in range(e):
            slope[i] += c * row[i]


@internal
def _respond(working, Q_lo, free, p, drift, scratch):
    """How beta and the free samples (x) and every G (slope) answer to the drift, per unit of t.

    Returns whether the answer is accurate, the length of the members' movement (by their images) and
    the largest change of a member.
    """
    y, root, offset, members = working.y, working.root, working.offset, free.members
    given, dq = drift.G, drift.balance
    rhs, x, slope, work = scratch.right.hi, scratch.x.hi, scratch.slope, scratch.work
    first = 1 if offset else 0
    if offset and p == 0:
        x[0], scratch.x.lo[0] = 0.0, 0.0
    else:
        if offset:
            rhs[0], scratch.right.lo[0] = dq, drift.balance_lo
        for i in range(p):
            rhs[first + i] = -given[members[i]]
            scratch.right.lo[first + i] = -drift.G_lo[members[i]]
        if not solve(working, Q_lo, free, p, scratch.right, scratch.x, work):
            return False, 0.0, 0.0
    moved, fastest = 0.0, 0.0
    for attempt in range(4):
        _slopes(working, Q_lo, members, p, scratch.x, drift, slope, scratch.slope_lo)
        moved, fastest = 0.0, 0.0
        for i in range(p):
            moved += root[members[i]] * abs(x[first + i])
            fastest = max(fastest, abs(x[first + i]))
        if Q_lo is not None or p == 0:
            break
        # The members' slopes vanish, or R needs help: once more with what is left, then rebuilt.
        worst, scale, balance = 0.0, 0.0, dq
        for i in range(p):
            m = members[i]
            worst = max(worst, abs(slope[m]))
            scale = max(scale, root[m] * moved + abs(given[m]))
            balance -= y[m] * x[first + i]
        if offset:
            scale += abs(x[0])
        if worst <= NOISE * scale and (not offset or abs(balance) <= NOISE * (1 + abs(dq))):
            break
        if attempt == 3:
            return worst <= 1e-9 * scale, moved, fastest
        if attempt == 1 and not rebuild(working, free, p):
            return False, moved, fastest
        if offset:
            rhs[0] = balance
        for i in range(p):
            rhs[first + i] = -slope[members[i]]
        inverse_times(free.R, p + first, rhs, work)
        for i in range(p + first):
            x[i] += work[i]
    return True, moved, fastest


@internal
def _rest_of_step(a, a_lo, d, d_lo, step, bound):
    """What a step lacks, in its second double, for ``a + step * d`` to meet the bound exactly.

    Without it the sample would be set to its bound with a jump of one rounding, which is more than
    the whole gradient where two doubles are needed.
    """
    v_hi, v_lo = multiply(d, d_lo, step, 0.0)
    hi, lo = add(a, a_lo, v_hi, v_lo)
    hi, lo = add(hi, lo, -bound, 0.0)
    rest = -(hi + lo) / d
    return rest if abs(rest) < 1e-12 else 0.0  # more than rounding: d itself is none


@internal
def _to_bound(working, point, i, at_upper):
    point.a[i] = working.upper[i] if at_upper else 0.0
    point.a_lo[i] = 0.0
    point.status[i] = UP if at_upper else LOW


@internal
def _enter(working, Q_lo, point, beta, free, p, j, scratch):
    """Let sample j become free, or trade it against a member if it depends on them.

    Returns the outcome, beta and the new number of members.
    """
    Q, y, upper, offset = working.Q, working.y, working.upper, working.offset
    a, a_lo, G, status = point.a, point.a_lo, point.G, point.status
    members, rhs, z, z_lo = free.members, scratch.right.hi, scratch.z.hi, scratch.z.lo
    first = 1 if offset else 0
    if offset and p == 0:
        status[j] = FREE
        return DONE, beta, insert(working, free, p, j, z, 1.0)
    border(working, Q_lo, members, p, j, scratch.right)
    if not solve(working, Q_lo, free, p, scratch.right, scratch.z, scratch.work):
        return STUCK, beta, p
    s, size = Q[j, j], Q[j, j]
    if offset:  # even a zero row of Q is compared with what the members' rows left in R
        for i in range(p):
            size = max(size, Q[members[i], members[i]])
    if Q_lo is None:
        for i in range(p + first):
            s -= rhs[i] * z[i]
            size += abs(rhs[i] * z[i])
    else:
        lo = Q_lo[j, j]
        for i in range(p + first):
            v_hi, v_lo = multiply(rhs[i], scratch.right.lo[i], z[i], z_lo[i])
            s, lo = add(s, lo, -v_hi, -v_lo)
            size += abs(v_hi)
    # With no room left the rank of the feature space is reached: j depends, whatever rounding says.
    in_span = IN_SPAN if Q_lo is None else IN_SPAN_PRECISE
    if s > in_span * size and p < members.size:
        status[j] = FREE
        return DONE, beta, insert(working, free, p, j, z, s)

    # j's image lies in the span of the members': moving a_j and, against it, theirs changes neither
    # w nor G, but for rounding. Go that way until a sample meets a bound.
    sign = 1.0 if status[j] == LOW else -1.0
    largest = 0.0
    for i in range(p):
        largest = max(largest, abs(z[first + i]))
    best, reach = p, upper[j]
    for i in range(p):
        d = -sign * z[first + i]
        m = members[i]
        if d < -1e-9 * largest:
            room = (a[m] + a_lo[m]) / -d
        elif d > 1e-9 * largest:
            room = ((upper[m] - a[m]) - a_lo[m]) / d
        else:
            continue
        if room < reach:
            best, reach = i, room
    if reach == np.inf:
        return UNBOUNDED, beta, p
    reach_lo = 0.0
    if Q_lo is not None and best < p:
        m = members[best]
        bound = upper[m] if -sign * z[first + best] > 0 else 0.0
        reach_lo = _rest_of_step(
            a[m], a_lo[m], -sign * z[first + best], -sign * z_lo[first + best], reach, bound
        )
    for i in range(p):
        m = members[i]
        v_hi, v_lo = multiply(z[first + i], z_lo[first + i], -sign * reach, -sign * reach_lo)
        a[m], a_lo[m] = add(a[m], a_lo[m], v_hi, v_lo)
    # Dependent to rounding only: the little that G moves belongs to it.
    if offset:
        beta -= sign * reach * z[0]
    for i in range(y.size):
        moved, lo = Q[j, i], 0.0
        if Q_lo is None:
            if offset:
                moved -= y[i] * z[0]
            for r in range(p):
                moved -= Q[members[r], i] * z[first + r]
        else:
            lo = Q_lo[j, i]
            if offset:
                moved, lo = add(moved, lo, -y[i] * z[0], -y[i] * z_lo[0])
            for r in range(p):
                m = members[r]
                v_hi, v_lo = multiply(Q[m, i], Q_lo[m, i], z[first + r], z_lo[first + r])
                moved, lo = add(moved, lo, -v_hi, -v_lo)
        G[i] += sign * reach * (moved + lo)
    if best == p:
        _to_bound(working, point, j, status[j] == LOW)
        return DONE, beta, p
    a[j], a_lo[j] = add(a[j], a_lo[j], sign * reach, sign * reach_lo)
    leaving = members[best]
    _to_bound(working, point, leaving, -sign * z[first + best] > 0)
    p = drop(free, p, offset, best)
    status[j] = FREE
    if offset and p == 0:
        return DONE, beta, insert(working, free, p, j, z, 1.0)
    members[p] = j
    p += 1
    # The trade's pivot can be small: start from scratch. Pairs can do without R.
    good = rebuild(working, free, p) or Q_lo is not None
    return (DONE if good else STUCK), beta, p


@internal
def follow(working, Q_lo, point, beta, free, p, drift, most_steps):
    """Follow the path from t = 0 to t = 1, changing the point and the free set in place.

    Parameters
    ----------
    working, Q_lo : the working set; the second half of its Gram matrix, or None
    point, beta, free, p : where the path starts; ``free.members[:p]`` are the free samples
    drift : what moves
    """
    y, upper, root, offset = working.y, working.upper, working.root, working.offset
    a, a_lo, G, status = point.a, point.a_lo, point.G, point.status
    members, given, dq = free.members, drift.G, drift.balance
    e = y.size
    first = 1 if offset else 0
    scratch = _scratch(free.R.shape[0], e)
    x, x_lo, slope = scratch.x.hi, scratch.x.lo, scratch.slope
    crossed = np.empty(e)
    barred = np.zeros(e, dtype=np.bool_)  # came and left without progress: may not come again
    noise = NOISE if Q_lo is None else NOISE_PRECISE
    left, left_lo = 1.0, 0.0
    blur = 0.0
    idle = 0
    for step in range(most_steps):
        if offset and p == 0 and dq != 0.0:
            # No sample can respond: let beta run until the first sample that could comes free.
            way = -1.0 if dq > 0.0 else 1.0
            chosen, distance = e, np.inf
            for i in range(e):
                could = (status[i] == LOW and y[i] * dq > 0) or (status[i] == UP and y[i] * dq < 0)
                if could and abs(G[i]) < distance:
                    chosen, distance = i, abs(G[i])
            if chosen == e:
                return Followed(INFEASIBLE, beta, p, step, blur)
            beta += way * distance
            for i in range(e):
                G[i] += y[i] * way * distance
            status[chosen] = FREE
            p = insert(working, free, p, chosen, scratch.z.hi, 1.0)

        good, moved, fastest = _respond(working, Q_lo, free, p, drift, scratch)
        if not good:
            return Followed(STUCK, beta, p, step, blur)
        dbeta = abs(x[0]) if offset else 0.0

        # The first event.
        dt, weight, event, leaves = max(left, 0.0), 0.0, e, False  # e: none
        for i in range(p):
            m = members[i]
            d = x[first + i]
            if d < 0.0:
                room = max(a[m] + a_lo[m], 0.0) / -d
            elif d > 0.0:
                room = max((upper[m] - a[m]) - a_lo[m], 0.0) / d
            else:
                continue
            pivot = abs(d) * root[m]
            if abs(d) <= noise * fastest:
                continue
            if room < dt or (room == dt and pivot > weight):
                dt, weight, event, leaves = room, pivot, i, True
        # Which samples would cross zero within dt? Few do, so that the branch below is predicted well;
        # testing signs sample by sample cost more than all the sums.
        for i in range(e):
            side = 1.0 * (status[i] == LOW) - 1.0 * (status[i] == UP)
            crossed[i] = side * (G[i] + dt * slope[i])
        for i in range(e):
            if crossed[i] >= 0.0 or barred[i]:
                continue
            room, d = G[i], -slope[i]
            if status[i] == UP:
                room, d = -room, -d
            if d <= noise * (root[i] * moved + dbeta + abs(given[i])):
                continue
            room = max(room, 0.0) / d
            if room < dt or (room == dt and d > weight):
                dt, weight, event, leaves = room, d, i, False

        # Advance to it.
        dt_lo = left_lo if event == e and left > 0.0 else 0.0
        if Q_lo is not None and leaves:
            m = members[event]
            bound = upper[m] if x[first + event] > 0.0 else 0.0
            dt_lo = _rest_of_step(a[m], a_lo[m], x[first + event], x_lo[first + event], dt, bound)
        if offset:
            beta += dt * x[0]
        for i in range(e):
            G[i] += dt * slope[i]
        for i in range(p):
            m = members[i]
            if Q_lo is not None:
                v_hi, v_lo = multiply(x[first + i], x_lo[first + i], dt, dt_lo)
                a[m], a_lo[m] = add(a[m], a_lo[m], v_hi, v_lo)
            else:
                a[m] += dt * x[first + i]
        left, left_lo = add(left, left_lo, -dt, -dt_lo)
        if Q_lo is None:
            blur += STEP_ROUNDING * dt * moved
        if event == e:
            return Followed(DONE, beta, p, step + 1, blur)

        progress = dt > noise
        if progress:
            idle = 0
            for i in range(e):
                barred[i] = False
        else:
            idle += 1
            if idle > 3 * e + 100:
                return Followed(STUCK, beta, p, step + 1, blur)
        if leaves:
            m = members[event]
            _to_bound(working, point, m, x[first + event] > 0.0)
            p = drop(free, p, offset, event)
            if not progress:
                barred[m] = True
        else:
            outcome, beta, p = _enter(working, Q_lo, point, beta, free, p, event, scratch)
            if outcome != DONE:
                return Followed(outcome, beta, p, step + 1, blur)
    return Followed(STUCK, beta, p, most_steps, blur)


def _follow_in_doubles(working, point, beta, free, p, drift, most_steps):
    return follow(working, None, point, beta, free, p, drift, most_steps)


def _example():
    numbers, matrix = np.zeros(1), np.zeros((1, 1))
    point = Point(numbers, numbers, numbers, np.zeros(1, dtype=np.int8))
    free = FreeSet(np.zeros(1, dtype=np.int64), matrix)
    working = Working(matrix, numbers, numbers, numbers, True)
    drift = Drift(numbers, numbers, 0.0, 0.0)
    return (working, point, 0.0, free, 0, drift, 0), Followed(0, 0.0, 0, 0, 0.0)


# `follow` in plain doubles, which are enough for nearly every path.
FOLLOW = Kernel(_follow_in_doubles, _example)


@compiled
def follow_path(by, working, Q_lo, point, beta, free, p, drift, most_steps):
    """`follow` for callers in Python: the fields of `Followed`; ``by`` is the address of `FOLLOW`."""
    if Q_lo is None:
        end = by(working, point, beta, free, p, drift, most_steps)
    else:
        end = follow(working, Q_lo, point, beta, free, p, drift, most_steps)
    return end.outcome, end.beta, end.p, end.steps, end.blur
