"""The removal of one sample, for many candidates from one state: what the drift of `path` is then.

Removing sample k means ``a_k -> (1 - t) a_k`` and ``mu -> mu'``, hence a drift of
``-Q_ik a_k - (mu' - mu)`` in ``G_i`` and of ``y_k a_k`` in what the others owe to ``y.a = 0``.
"""

import numpy as np

from deferlearn._utils.compiling import compiled
from deferlearn.kernels.doubledouble import add, multiply
from deferlearn.objective.free_set import drop
from deferlearn.objective.path import FREE, OUT, follow

_ROUNDING = 2e-16


@compiled
def removal_paths(
    Q, Q_lo, y, upper, root, offset,
    a, a_lo, G, beta, status, members, p, R, mu, quadratic,
    local, outside, columns, columns_lo, mu_new, max_steps,
):  # fmt: skip
    """Follow the removal of each of several candidates, all from the same state.

    Candidate c stands at position ``local[c]`` of the working set, or outside of it (-1); then
    ``columns[c]`` holds its Gram column and ``outside[c]`` the pair of its own entry, the pair of its
    dual variable, its label and its G. ``quadratic`` is a'Qa.

    Returns, for each: a row of numbers (outcome; exact change of the dual value, which is the gain if
    the rest agrees; steps; beta; the working set's part of mu times the duality gap; by how much G
    falls short of zero where a has no upper bound; at most how far mu w has moved), the working set's a
    (a pair) and status at the end; and members, p, R of the last one.
    """
    e = y.size
    n = local.size
    numbers = np.zeros((n, 7))
    a_end, a_end_lo = np.empty((n, e)), np.zeros((n, e))
    status_end = np.empty((n, e), dtype=np.int8)
    members_c = members.copy()
    q = p + (1 if offset else 0)
    R_c = np.empty_like(R)
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
            column, column_lo = Q[k], columns_lo[0]
            if Q_lo is not None:
                column_lo = Q_lo[k]
            if status_c[k] == FREE:
                for r in range(p):
                    if members_c[r] == k:
                        p_c = drop(R_c, members_c, p_c, offset, r)
                        break
            status_c[k] = OUT
            a_c[k] = 0.0
            lo_c[k] = 0.0
        else:
            a_k, a_k_lo, y_k = outside[c, 2], outside[c, 3], outside[c, 4]
            column, column_lo = columns[c], columns_lo[c]
        for i in range(e):
            if Q_lo is not None:
                hi, lo = multiply(column[i], column_lo[i], -a_k, -a_k_lo)
                drift[i], drift_lo[i] = add(hi, lo, -dmu, 0.0)
            elif a_k != 0.0:
                drift[i] = -column[i] * a_k - dmu
            else:
                drift[i] = -dmu
        outcome, beta_c, p_c, steps, blur = follow(
            Q, Q_lo, y, upper, root, offset,
            a_c, lo_c, G_c, beta, status_c, members_c, p_c, R_c,
            drift, drift_lo, y_k * a_k, y_k * a_k_lo, max_steps,
        )  # fmt: skip

        # Of G itself at the start, which matters where mu falls by much.
        blur += _ROUNDING * (mu + abs(beta))
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
            first_order -= a_k * (outside[c, 5] - y_k * beta + mu)
            v_hi, v_lo = multiply(outside[c, 0], outside[c, 1], -a_k, -a_k_lo)
            own, own_lo = add(own, own_lo, v_hi, v_lo)
            second_order -= a_k * (own + own_lo)
        if offset:  # an imbalance moves the dual value by b times itself
            gap += abs(owed) * abs(beta_c)
        gain = (
            -linear
            + (2.0 * first_order + second_order) / (2.0 * mu_new[c])
            - quadratic * dmu / (2.0 * mu * mu_new[c])
        )
        numbers[c, 0], numbers[c, 1], numbers[c, 2] = outcome, gain, steps
        numbers[c, 3], numbers[c, 4], numbers[c, 5] = beta_c, gap, short
        # Each image in the sum is off by at most the blur at the start and at the end.
        numbers[c, 6] = np.sqrt(max(second_order, 0.0) + 4.0 * blur * size)
    return numbers, a_end, a_end_lo, status_end, members_c, p_c, R_c
