"""The removal of one sample, for many candidates from one state: what the drift of `path` is then.

Removing sample k means ``a_k -> (1 - t) a_k`` and ``mu -> mu'``, hence a drift of
``-Q_ik a_k - (mu' - mu)`` in ``G_i`` and of ``y_k a_k`` in what the others owe to ``y.a = 0``.
"""

import numpy as np

from deferlearn._utils.compiling import compiled
from deferlearn.kernels.doubledouble import add, multiply
from deferlearn.objective.arrays import Ends, FreeSet, Point
from deferlearn.objective.free_set import drop
from deferlearn.objective.path import FREE, OUT, Drift, follow

# Of one entry of G, relative to its terms.
START_ROUNDING = 2e-16


@compiled
def removal_paths(start, Q_lo, candidates, most_steps):
    """Follow the removal of each of several candidates, all from the same state."""
    working, point, free, p = start.working, start.point, start.free, start.p
    Q, y, upper, offset = working.Q, working.y, working.upper, working.offset
    a, a_lo, G, status = point.a, point.a_lo, point.G, point.status
    beta, mu = start.beta, start.mu
    local, mu_new, outside = candidates.local, candidates.mu, candidates.outside
    e, n = y.size, local.size
    outcome, n_steps = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
    gain, beta_end, moved = np.empty(n), np.empty(n), np.empty(n)
    gap_end, short_end = np.empty(n), np.empty(n)
    a_end, a_end_lo = np.empty((n, e)), np.zeros((n, e))
    status_end = np.empty((n, e), dtype=np.int8)
    q = p + (1 if offset else 0)
    members, R = free.members, free.R
    members_c, R_c = members.copy(), np.empty_like(R)
    free_c = FreeSet(members_c, R_c)
    p_c = p
    G_c, drift, drift_lo = np.empty(e), np.empty(e), np.zeros(e)
    for c in range(n):
        a_c, lo_c, status_c = a_end[c], a_end_lo[c], status_end[c]
        for i in range(e):
            a_c[i], lo_c[i], G_c[i], status_c[i] = a[i], a_lo[i], G[i], status[i]
        for i in range(p):
            members_c[i] = members[i]
        for i in range(q):
            for j in range(q):
                R_c[i, j] = R[i, j]
        p_c = p
        k = local[c]
        dmu = mu_new[c] - mu
        if k >= 0:
            a_k, a_k_lo, y_k = a[k], a_lo[k], y[k]
            column, column_lo = Q[k], outside.columns_lo[0]
            if Q_lo is not None:
                column_lo = Q_lo[k]
            if status_c[k] == FREE:
                for r in range(p):
                    if members_c[r] == k:
                        p_c = drop(free_c, p_c, offset, r)
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
                drift[i], drift_lo[i] = add(hi, lo, -dmu, 0.0)
            elif a_k != 0.0:
                drift[i] = -column[i] * a_k - dmu
            else:
                drift[i] = -dmu
        followed = follow(
            working, Q_lo, Point(a_c, lo_c, G_c, status_c), beta, free_c, p_c,
            Drift(drift, drift_lo, y_k * a_k, y_k * a_k_lo), most_steps,
        )  # fmt: skip
        beta_c, p_c = followed.beta, followed.p

        # Of G itself at the start, which matters where mu falls by much.
        blur = followed.blur + START_ROUNDING * (mu + abs(beta))
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
                second_order += d * ((G_c[i] - y[i] * beta_c + mu_new[c]) - image)
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
        gain[c] = (
            -linear
            + (2.0 * first_order + second_order) / (2.0 * mu_new[c])
            - start.quadratic * dmu / (2.0 * mu * mu_new[c])
        )
        outcome[c], n_steps[c] = followed.outcome, followed.steps
        beta_end[c], gap_end[c], short_end[c] = beta_c, gap, short
        # Each image in the sum is off by at most the blur at the start and at the end.
        moved[c] = np.sqrt(max(second_order, 0.0) + 4.0 * blur * size)
    return Ends(
        candidates.ks, mu_new, outcome, n_steps, gain, beta_end, gap_end, short_end, moved,
        a_end, a_end_lo, status_end, free_c, p_c,
    )  # fmt: skip
