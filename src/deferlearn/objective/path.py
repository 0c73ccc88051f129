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

import numpy as np

from deferlearn._utils.compiling import compiled, internal
from deferlearn.kernels.doubledouble import add, multiply
from deferlearn.objective.free_set import border, drop, insert, inverse_times, rebuild, solve

LOW, FREE, UP, OUT = 0, 1, 2, 3

DONE = 0
STUCK = 1  # too many steps, or a system too ill-conditioned: solve in another way
UNBOUNDED = 2  # the dual has no maximum: hard margin, and the data are not separable
INFEASIBLE = 3  # y.a cannot follow: the working set lacks the samples that could move

# Of one sum of a step, relative to its terms.
_ROUNDING = 4e-16
# Relative noise below which a slope counts as zero, and steps as no progress.
_NOISE = 1e-13
_NOISE_PRECISE = 1e-27
# A sample whose image is this close to the span of the free ones (squared, relative) is dependent.
_DEPENDENT = 1e-13


@internal
def _slopes(Q, Q_lo, members, p, y, offset, x, x_lo, drift, drift_lo, slope):
    """Rates of change of G, given the response of beta and of the free samples."""
    first = 1 if offset else 0
    e = y.size
    dbeta = x[0] if offset else 0.0
    dbeta_lo = x_lo[0] if offset else 0.0
    if Q_lo is not None:
        for i in range(e):
            hi, lo = add(drift[i], drift_lo[i], y[i] * dbeta, y[i] * dbeta_lo)
            for j in range(p):
                m = members[j]
                v_hi, v_lo = multiply(Q[m, i], Q_lo[m, i], x[first + j], x_lo[first + j])
                hi, lo = add(hi, lo, v_hi, v_lo)
            slope[i] = hi + lo
        return
    for i in range(e):
        slope[i] = drift[i] + y[i] * dbeta
    for j in range(p):
        c, row = x[first + j], Q[members[j]]
        for i in range(e):
            slope[i] += c * row[i]


@internal
def _respond(
    Q, Q_lo, y, root, offset, members, p, R, drift, drift_lo, dq, dq_lo,
    x, x_lo, slope, rhs, rhs_lo, work,
):  # fmt: skip
    """How beta and the free samples (x) and every G (slope) answer to the drift, per unit of t.

    Returns whether the answer is accurate, the length of the members' movement (by their images) and
    the largest change of a member.
    """
    first = 1 if offset else 0
    if offset and p == 0:
        x[0], x_lo[0] = 0.0, 0.0
    else:
        if offset:
            rhs[0], rhs_lo[0] = dq, dq_lo
        for i in range(p):
            rhs[first + i] = -drift[members[i]]
            rhs_lo[first + i] = -drift_lo[members[i]]
        if not solve(Q, Q_lo, members, p, y, offset, R, rhs, rhs_lo, x, x_lo, work):
            return False, 0.0, 0.0
    moved, fastest = 0.0, 0.0
    for attempt in range(4):
        _slopes(Q, Q_lo, members, p, y, offset, x, x_lo, drift, drift_lo, slope)
        moved, fastest = 0.0, 0.0
        for i in range(p):
            moved += root[members[i]] * abs(x[first + i])
            fastest = max(fastest, abs(x[first + i]))
        if Q_lo is not None or p == 0:
            break
        # The members' slopes vanish, or R needs help: once more with what is left, then anew.
        worst, scale, balance = 0.0, 0.0, dq
        for i in range(p):
            m = members[i]
            worst = max(worst, abs(slope[m]))
            scale = max(scale, root[m] * moved + abs(drift[m]))
            balance -= y[m] * x[first + i]
        if offset:
            scale += abs(x[0])
        if worst <= _NOISE * scale and (not offset or abs(balance) <= _NOISE * (1 + abs(dq))):
            break
        if attempt == 3:
            return worst <= 1e-9 * scale, moved, fastest
        if attempt == 1 and not rebuild(Q, members, p, y, offset, R):
            return False, moved, fastest
        if offset:
            rhs[0] = balance
        for i in range(p):
            rhs[first + i] = -slope[members[i]]
        inverse_times(R, p + first, rhs, work)
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
def _to_bound(a, a_lo, upper, status, i, at_upper):
    a[i] = upper[i] if at_upper else 0.0
    a_lo[i] = 0.0
    status[i] = UP if at_upper else LOW


@internal
def enter(
    Q, Q_lo, y, upper, offset, a, a_lo, G, beta, status, members, p, R, j,
    rhs, rhs_lo, z, z_lo, work,
):  # fmt: skip
    """Let sample j become free, or trade it against a member if it depends on them.

    Returns the outcome, beta and the new number of members.
    """
    first = 1 if offset else 0
    if offset and p == 0:
        status[j] = FREE
        return DONE, beta, insert(R, members, p, offset, z, 1.0, Q[j, j], y[j], j)
    border(Q, Q_lo, members, p, y, offset, j, rhs, rhs_lo)
    if not solve(Q, Q_lo, members, p, y, offset, R, rhs, rhs_lo, z, z_lo, work):
        return STUCK, beta, p
    s, size = Q[j, j], Q[j, j]
    if (
        offset
    ):  # with a border even a zero row of Q is compared with what the members' rows left in R
        for i in range(p):
            size = max(size, Q[members[i], members[i]])
    if Q_lo is None:
        for i in range(p + first):
            s -= rhs[i] * z[i]
            size += abs(rhs[i] * z[i])
    else:
        lo = Q_lo[j, j]
        for i in range(p + first):
            v_hi, v_lo = multiply(rhs[i], rhs_lo[i], z[i], z_lo[i])
            s, lo = add(s, lo, -v_hi, -v_lo)
            size += abs(v_hi)
    # A full house means the rank of the feature space is reached: j depends, whatever rounding says.
    if s > _DEPENDENT * size and p < members.size:
        status[j] = FREE
        return DONE, beta, insert(R, members, p, offset, z, s, Q[j, j], y[j], j)

    # j's image lies in the span of the members': moving a_j and, against it, theirs changes neither
    # w nor G, but for rounding. Go that way until someone meets a bound.
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
        _to_bound(a, a_lo, upper, status, j, status[j] == LOW)
        return DONE, beta, p
    a[j], a_lo[j] = add(a[j], a_lo[j], sign * reach, sign * reach_lo)
    leaving = members[best]
    _to_bound(a, a_lo, upper, status, leaving, -sign * z[first + best] > 0)
    p = drop(R, members, p, offset, best)
    status[j] = FREE
    if offset and p == 0:
        return DONE, beta, insert(R, members, p, offset, z, 1.0, Q[j, j], y[j], j)
    members[p] = j
    p += 1
    # The trade's pivot can be small: start from scratch.
    return (DONE if rebuild(Q, members, p, y, offset, R) else STUCK), beta, p


@compiled
def follow(
    Q, Q_lo, y, upper, root, offset,
    a, a_lo, G, beta, status, members, p, R,
    drift, drift_lo, dq, dq_lo, max_steps,
):  # fmt: skip
    """Follow the path from t = 0 to t = 1, changing the state in place.

    Parameters
    ----------
    Q, Q_lo : (e, e) the signed Gram matrix of the working set
    y, upper, root : labels, upper bounds, square roots of Q's diagonal
    a, a_lo, G, status, members, R : the state; ``members[:p]`` are the free samples
    drift, drift_lo, dq, dq_lo : what moves

    Returns
    -------
    outcome, beta, p, n_steps, and how far rounding may have taken G from what a says
    """
    e = y.size
    first = 1 if offset else 0
    size = R.shape[0]
    rhs, rhs_lo = np.zeros(size), np.zeros(size)
    x, x_lo = np.zeros(size), np.zeros(size)
    z, z_lo = np.zeros(size), np.zeros(size)
    work = np.empty(size)
    slope, crossed = np.empty(e), np.empty(e)
    barred = np.zeros(e, dtype=np.bool_)  # came and left without progress: may not come again
    noise = _NOISE if Q_lo is None else _NOISE_PRECISE
    left, left_lo = 1.0, 0.0
    blur = 0.0
    idle = 0
    for step in range(max_steps):
        if offset and p == 0 and dq != 0.0:
            # Nobody can respond: let beta run until the first sample that could comes free.
            way = -1.0 if dq > 0.0 else 1.0
            chosen, distance = e, np.inf
            for i in range(e):
                could = (status[i] == LOW and y[i] * dq > 0) or (status[i] == UP and y[i] * dq < 0)
                if could and abs(G[i]) < distance:
                    chosen, distance = i, abs(G[i])
            if chosen == e:
                return INFEASIBLE, beta, p, step, blur
            beta += way * distance
            for i in range(e):
                G[i] += y[i] * way * distance
            status[chosen] = FREE
            p = insert(R, members, p, offset, z, 1.0, Q[chosen, chosen], y[chosen], chosen)

        good, moved, fastest = _respond(
            Q, Q_lo, y, root, offset, members, p, R, drift, drift_lo, dq, dq_lo,
            x, x_lo, slope, rhs, rhs_lo, work,
        )  # fmt: skip
        if not good:
            return STUCK, beta, p, step, blur
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
        # Who would cross zero within dt? Few do, so that the branch below is predicted well; testing
        # signs sample by sample cost more than all the sums.
        for i in range(e):
            side = 1.0 * (status[i] == LOW) - 1.0 * (status[i] == UP)
            crossed[i] = side * (G[i] + dt * slope[i])
        for i in range(e):
            if crossed[i] >= 0.0 or barred[i]:
                continue
            room, d = G[i], -slope[i]
            if status[i] == UP:
                room, d = -room, -d
            if d <= noise * (root[i] * moved + dbeta + abs(drift[i])):
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
            blur += _ROUNDING * dt * moved
        if event == e:
            return DONE, beta, p, step + 1, blur

        progress = dt > noise
        if progress:
            idle = 0
            for i in range(e):
                barred[i] = False
        else:
            idle += 1
            if idle > 3 * e + 100:
                return STUCK, beta, p, step + 1, blur
        if leaves:
            m = members[event]
            _to_bound(a, a_lo, upper, status, m, x[first + event] > 0.0)
            p = drop(R, members, p, offset, event)
            if not progress:
                barred[m] = True
        else:
            outcome, beta, p = enter(
                Q, Q_lo, y, upper, offset, a, a_lo, G, beta, status, members, p, R, event,
                rhs, rhs_lo, z, z_lo, work,
            )  # fmt: skip
            if outcome != DONE:
                return outcome, beta, p, step + 1, blur
    return STUCK, beta, p, max_steps, blur
