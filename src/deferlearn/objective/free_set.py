"""The free samples and the inverse of their bordered Gram matrix, kept by rank-one changes.

With an offset the matrix of the members M is ``[[0, y_M'], [y_M, Q_MM]]``, without one ``Q_MM``; R is its
inverse, ``members[:p]`` are the samples in the order of its rows. An explicit inverse costs ``p^2`` per
change and per solution. It is less accurate than a factorisation, so its user checks the
result (`path.follow` does, at every step) and calls `rebuild` where that is not good enough.
"""

import numpy as np

from deferlearn._utils.compiling import compiled, internal
from deferlearn.kernels.doubledouble import add, divide, multiply
from deferlearn.objective.arrays import Pair

# Systems up to this size are solved in pairs sooner than an answer of R is refined.
SMALL_SYSTEM = 12


@internal
def inverse_times(R, q, rhs, out):
    """``R @ rhs``, column by column: additions to a vector need no re-ordering to run in parallel."""
    for i in range(q):
        out[i] = 0.0
    for j in range(q):
        w = rhs[j]
        for i in range(q):
            out[i] += w * R[j, i]


@internal
def border(working, Q_lo, members, p, j, right):
    """The column that sample j adds to the bordered matrix."""
    Q, rhs = working.Q, right.hi
    first = 1 if working.offset else 0
    if working.offset:
        rhs[0] = working.y[j]
        if Q_lo is not None:
            right.lo[0] = 0.0
    for i in range(p):
        rhs[first + i] = Q[j, members[i]]
        if Q_lo is not None:
            right.lo[first + i] = Q_lo[members[i], j]


@internal
def insert(working, free, p, j, z, s):
    """Add sample j to the free set; z = R @ border and s the Schur complement (unused if first)."""
    R = free.R
    if working.offset and p == 0:
        R[0, 0] = -working.Q[j, j]
        R[0, 1] = working.y[j]
        R[1, 0] = working.y[j]
        R[1, 1] = 0.0
    else:
        q = p + (1 if working.offset else 0)
        for i in range(q):
            w = z[i] / s
            for k in range(q):
                R[i, k] += w * z[k]
            R[i, q] = -w
            R[q, i] = -w
        R[q, q] = 1.0 / s
    free.members[p] = j
    return p + 1


@internal
def drop(free, p, offset, r):
    """Take the r-th member out of the free set."""
    members, R = free.members, free.R
    first = 1 if offset else 0
    q = p + first
    last = q - 1
    at = first + r
    if at != last:  # bring it to the end, so that the rest stays packed
        for i in range(q):
            R[i, at], R[i, last] = R[i, last], R[i, at]
        for i in range(q):
            R[at, i], R[last, i] = R[last, i], R[at, i]
        members[r], members[p - 1] = members[p - 1], members[r]
    if p > 1 or not offset:
        pivot = R[last, last]
        if pivot == 0.0:
            return p - 1  # R is spoilt; the check of the next slopes finds it and rebuilds it
        for i in range(last):
            w = R[i, last] / pivot
            for k in range(last):
                R[i, k] -= w * R[last, k]
    if offset and p == 2:  # one member left: it can move only if the balance asks for it, exactly
        R[0, 1] = 1.0 if R[0, 1] > 0.0 else -1.0
        R[1, 0] = R[0, 1]
        R[1, 1] = 0.0
    return p - 1


@internal
def rebuild(working, free, p):
    """Compute R from the Gram matrix again, so that rounding of many rank-one changes does not stay.

    Gauss-Jordan with pivots: inserting the members one by one would lose what ill-conditioned
    problems need. False if the matrix is singular; R is then of no use.
    """
    Q, y, offset = working.Q, working.y, working.offset
    members, R = free.members, free.R
    first = 1 if offset else 0
    q = p + first
    W = np.zeros((q, 2 * q))  # the matrix and, next to it, what becomes its inverse
    for i in range(q):
        W[i, q + i] = 1.0
    for i in range(p):
        if offset:
            W[0, 1 + i] = y[members[i]]
            W[1 + i, 0] = y[members[i]]
        for j in range(p):
            W[first + i, first + j] = Q[members[i], members[j]]
    for c in range(q):
        pivot = c
        for i in range(c + 1, q):
            if abs(W[i, c]) > abs(W[pivot, c]):
                pivot = i
        if W[pivot, c] == 0.0:
            return False
        for j in range(2 * q):
            W[c, j], W[pivot, j] = W[pivot, j], W[c, j]
        for i in range(q):
            if i != c:
                w = W[i, c] / W[c, c]
                for j in range(2 * q):
                    W[i, j] -= w * W[c, j]
    for i in range(q):
        for j in range(q):
            R[i, j] = W[i, q + j] / W[i, i]
    return True


@compiled
def independent(working, candidates, free):
    """Make members of the candidates, in order, passing over those that depend on earlier ones."""
    Q, offset, members, R = working.Q, working.offset, free.members, free.R
    rhs, z = np.empty(R.shape[0]), np.empty(R.shape[0])
    first = 1 if offset else 0
    p = np.int64(0)  # not 0, for which `border` and `insert` would be compiled again
    for j in candidates:
        if p == members.size:
            break
        s = Q[j, j]
        if p > 0:
            border(working, None, members, p, j, Pair(rhs, rhs))
            inverse_times(R, p + first, rhs, z)
            for i in range(p + first):
                s -= rhs[i] * z[i]
        if s > 1e-9 * Q[j, j] or (offset and p == 0):
            p = insert(working, free, p, j, z, s)
    return p


@internal
def eliminate(working, Q_lo, free, p, right, answer):
    """Solve the bordered system by elimination, all in pairs. False if it is singular.

    It does not need R, of which no digit is right where columns have very unequal units: their squares are
    as far apart as the digits of one double reach.
    """
    Q, y, members = working.Q, working.y, free.members
    first = 1 if working.offset else 0
    q = p + first
    W, W_lo = np.zeros((q, q + 1)), np.zeros((q, q + 1))
    for i in range(q):
        W[i, q], W_lo[i, q] = right.hi[i], right.lo[i]
    for i in range(p):
        if working.offset:
            W[0, 1 + i] = y[members[i]]
            W[1 + i, 0] = y[members[i]]
        for j in range(p):
            W[first + i, first + j] = Q[members[i], members[j]]
            W_lo[first + i, first + j] = Q_lo[members[i], members[j]]
    for c in range(q):
        pivot = c
        for i in range(c + 1, q):
            if abs(W[i, c]) > abs(W[pivot, c]):
                pivot = i
        if W[pivot, c] == 0.0:
            return False
        for j in range(c, q + 1):
            W[c, j], W[pivot, j] = W[pivot, j], W[c, j]
            W_lo[c, j], W_lo[pivot, j] = W_lo[pivot, j], W_lo[c, j]
        for i in range(c + 1, q):
            w, w_lo = divide(W[i, c], W_lo[i, c], W[c, c], W_lo[c, c])
            for j in range(c + 1, q + 1):
                v, v_lo = multiply(w, w_lo, W[c, j], W_lo[c, j])
                W[i, j], W_lo[i, j] = add(W[i, j], W_lo[i, j], -v, -v_lo)
    x, x_lo = answer.hi, answer.lo
    for i in range(q - 1, -1, -1):
        hi, lo = W[i, q], W_lo[i, q]
        for j in range(i + 1, q):
            v, v_lo = multiply(W[i, j], W_lo[i, j], x[j], x_lo[j])
            hi, lo = add(hi, lo, -v, -v_lo)
        x[i], x_lo[i] = divide(hi, lo, W[i, i], W_lo[i, i])
    return True


@internal
def solve(working, Q_lo, free, p, right, answer, work):
    """Solve the bordered system; in precise mode to the last digits of a pair. False if it fails."""
    members, R = free.members, free.R
    rhs, x, x_lo = right.hi, answer.hi, answer.lo
    first = 1 if working.offset else 0
    q = p + first
    if Q_lo is None:
        inverse_times(R, q, rhs, x)
        for i in range(q):
            x_lo[i] = 0.0
        return True
    if q <= SMALL_SYSTEM:
        return eliminate(working, Q_lo, free, p, right, answer)
    inverse_times(R, q, rhs, x)
    for i in range(q):
        x_lo[i] = 0.0
    Q, y, rhs_lo = working.Q, working.y, right.lo
    residual = np.empty(q)
    rebuilt = False
    previous = np.inf
    for _ in range(12):
        scale = 0.0
        worst = 0.0
        for i in range(q):
            hi, lo = rhs[i], rhs_lo[i]
            size = abs(hi)
            for j in range(q):
                if i < first and j < first:
                    continue
                if i < first:
                    k_hi, k_lo = y[members[j - first]], 0.0
                elif j < first:
                    k_hi, k_lo = y[members[i - first]], 0.0
                else:
                    k_hi = Q[members[i - first], members[j - first]]
                    k_lo = Q_lo[members[i - first], members[j - first]]
                v_hi, v_lo = multiply(k_hi, k_lo, x[j], x_lo[j])
                size += abs(v_hi)
                hi, lo = add(hi, lo, -v_hi, -v_lo)
            residual[i] = hi + lo
            scale = max(scale, size)
            worst = max(worst, abs(residual[i]))
        if worst <= 1e-29 * scale:
            return True
        if not worst <= 0.5 * previous:  # also if it is not a number
            if worst <= 1e-25 * scale:
                return True
            if rebuilt or not rebuild(working, free, p):
                return eliminate(working, Q_lo, free, p, right, answer)
            rebuilt = True
        previous = worst
        inverse_times(R, q, residual, work)
        for i in range(q):
            x[i], x_lo[i] = add(x[i], x_lo[i], work[i], 0.0)
    return previous <= 1e-22 * scale or eliminate(working, Q_lo, free, p, right, answer)
