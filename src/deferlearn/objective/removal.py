"""The removal of one sample, for many candidates from one state: what the drift of `path` is then.

Removing sample k means ``a_k -> (1 - t) a_k`` and ``mu -> mu'``, hence a drift of
``-Q_ik a_k - (mu' - mu)`` in ``G_i`` and of ``y_k a_k`` in what the others owe to ``y.a = 0``.
"""

import numpy as np
from numba import njit

from deferlearn.objective.doubledouble import add, multiply
from deferlearn.objective.free_set import drop
from deferlearn.objective.path import FREE, OUT, follow

_ROUNDING = 2e-16


@njit(cache=True)
def removal_paths(
    Q, Q_lo, y, upper, root, offset,
    a, a_lo, G, beta, status, members, p, R, mu, quadratic,
    local, columns, columns_lo, diagonal, diagonal_lo, a_k, a_k_lo, y_k, G_k, mu_new, max_steps,
):  # fmt: skip
    """Follow the removal of each of several candidates, all from the same state.

    Candidate c stands at position ``local[c]`` of the working set, or outside of it (-1); then
    ``columns[c]`` holds its Gram column, ``diagonal[c]`` its own entry (``_lo``: second halves).
    ``quadratic`` is a'Qa.

    Returns, for each: outcome, exact change of the dual value (the gain, if the rest agrees), steps,
    beta, the working set's a, G and status at the end, its part of mu times the duality gap, and by
    how much G falls short of zero where a has no upper bound; and members, p, R of the last one.
    """
    e = y.size
    n = local.size
    outcomes = np.zeros(n, dtype=np.int64)
    gains = np.zeros(n)
    steps = np.zeros(n, dtype=np.int64)
    betas = np.zeros(n)
    a_end, a_end_lo = np.empty((n, e)), np.zeros((n, e))
    G_end = np.empty((n, e))
    status_end = np.empty((n, e), dtype=np.int8)
    gaps, shorts = np.zeros(n), np.zeros(n)
    members_c = members.copy()
    q = p + (1 if offset else 0)
    R_c = np.empty_like(R)
    p_c = p
    drift, drift_lo = np.empty(e), np.zeros(e)
    for c in range(n):
        a_c, lo_c, G_c, status_c = a_end[c], a_end_lo[c], G_end[c], status_end[c]
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
            if status_c[k] == FREE:
                for r in range(p):
                    if members_c[r] == k:
                        p_c = drop(R_c, members_c, p_c, offset, r)
                        break
            status_c[k] = OUT
            a_c[k] = 0.0
            lo_c[k] = 0.0
        for i in range(e):
            if Q_lo is not None:
                if k >= 0:
                    hi, lo = multiply(Q[k, i], Q_lo[k, i], -a_k[c], -a_k_lo[c])
                else:
                    hi, lo = multiply(columns[c, i], columns_lo[c, i], -a_k[c], -a_k_lo[c])
                drift[i], drift_lo[i] = add(hi, lo, -dmu, 0.0)
            elif k >= 0:
                drift[i] = -Q[k, i] * a_k[c] - dmu
            else:
                drift[i] = -columns[c, i] * a_k[c] - dmu
        outcomes[c], betas[c], p_c, steps[c], blur = follow(
            Q, Q_lo, y, upper, root, offset,
            a_c, lo_c, G_c, beta, status_c, members_c, p_c, R_c,
            drift, drift_lo, y_k[c] * a_k[c], y_k[c] * a_k_lo[c], max_steps,
        )  # fmt: skip

        # Of G itself at the start, which matters where mu falls by much.
        blur += _ROUNDING * (mu + abs(beta))
        for i in range(e):
            if status_c[i] != OUT:
                if G_c[i] > 0.0:
                    gaps[c] += a_c[i] * G_c[i]
                elif upper[i] == np.inf:
                    shorts[c] = max(shorts[c], -G_c[i])
                else:
                    gaps[c] -= (upper[i] - a_c[i]) * G_c[i]
                # What rounding of G could hide, on either side.
                if upper[i] == np.inf:
                    gaps[c] += blur * a_c[i]
                    shorts[c] = max(shorts[c], blur)
                else:
                    gaps[c] += blur * max(a_c[i], upper[i] - a_c[i])

        linear, first_order, second_order = 0.0, 0.0, 0.0
        own, own_lo = 0.0, 0.0  # (Q change)_k, if k is outside of the working set
        owed = -y_k[c] * a_k[c] if k < 0 else 0.0  # what the change leaves of y.a
        for i in range(e):
            d = a_c[i] - a[i]
            if Q_lo is not None:
                d += lo_c[i] - a_lo[i]
            if d != 0.0:
                image = G[i] - y[i] * beta + mu
                linear += d
                owed += y[i] * d
                first_order += d * image
                second_order += d * ((G_c[i] - y[i] * betas[c] + mu_new[c]) - image)
                if k < 0 and Q_lo is None:
                    own += d * columns[c, i]
                elif k < 0:
                    d_hi, d_lo = add(a_c[i], lo_c[i], -a[i], -a_lo[i])
                    v_hi, v_lo = multiply(columns[c, i], columns_lo[c, i], d_hi, d_lo)
                    own, own_lo = add(own, own_lo, v_hi, v_lo)
        if k < 0:
            linear -= a_k[c]
            first_order -= a_k[c] * (G_k[c] - y_k[c] * beta + mu)
            v_hi, v_lo = multiply(diagonal[c], diagonal_lo[c], -a_k[c], -a_k_lo[c])
            own, own_lo = add(own, own_lo, v_hi, v_lo)
            second_order -= a_k[c] * (own + own_lo)
        if offset:  # an imbalance moves the dual value by b times itself
            gaps[c] += abs(owed) * abs(betas[c])
        gains[c] = (
            -linear
            + (2.0 * first_order + second_order) / (2.0 * mu_new[c])
            - quadratic * dmu / (2.0 * mu * mu_new[c])
        )
    return (
        outcomes, gains, steps, betas, a_end, a_end_lo, G_end, status_end, gaps, shorts,
        members_c, p_c, R_c,
    )  # fmt: skip
