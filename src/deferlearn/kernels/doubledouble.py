"""Sums and products carried in two doubles, for problems where one is not enough.

When the regularisation is tiny against the scale of the features, ``sum_i a_i y_i phi_i`` is a sum of
terms of order one whose value is of order ``mu``: a double keeps none of its digits. A pair
``hi + lo`` keeps 32, from ordinary floating-point operations only (Dekker 1971, Knuth 1969).
"""

import numpy as np

from deferlearn._utils.compiling import compiled, internal
from deferlearn._utils.types import Array, Index

_SPLITTER = 134217729.0  # 2**27 + 1 halves the 53 bits of a double


@internal
def two_sum(a, b):
    """``a + b`` as a rounded sum and its exact error."""
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


@internal
def two_product(a, b):
    """``a * b`` as a rounded product and its exact error."""
    p = a * b
    c = _SPLITTER * a
    a_hi = c - (c - a)
    a_lo = a - a_hi
    c = _SPLITTER * b
    b_hi = c - (c - b)
    b_lo = b - b_hi
    return p, ((a_hi * b_hi - p) + a_hi * b_lo + a_lo * b_hi) + a_lo * b_lo


@internal
def add(a_hi, a_lo, b_hi, b_lo):
    """Sum of two pairs."""
    s, e = two_sum(a_hi, b_hi)
    f, g = two_sum(a_lo, b_lo)
    s, e = two_sum(s, e + f)
    return two_sum(s, e + g)


@internal
def multiply(a_hi, a_lo, b_hi, b_lo):
    """Product of two pairs."""
    p, e = two_product(a_hi, b_hi)
    return two_sum(p, e + (a_hi * b_lo + a_lo * b_hi))


@internal
def divide(a_hi, a_lo, b_hi, b_lo):
    """Quotient of two pairs, digit by digit."""
    first = a_hi / b_hi
    p, e = multiply(b_hi, b_lo, -first, 0.0)
    r_hi, r_lo = add(a_hi, a_lo, p, e)
    second = r_hi / b_hi
    p, e = multiply(b_hi, b_lo, -second, 0.0)
    r_hi, r_lo = add(r_hi, r_lo, p, e)
    q, e = two_sum(first, second)
    return two_sum(q, e + r_hi / b_hi)


def weighted_row_sum(rows: Array, hi: Array, lo: Array) -> tuple[Array, Array]:
    """``rows.T @ (hi + lo)``, as a pair of arrays."""
    out_hi, out_lo = np.zeros(rows.shape[1]), np.zeros(rows.shape[1])
    add_weighted_rows(rows, hi, lo, out_hi, out_lo)
    return out_hi, out_lo


@compiled
def add_weighted_rows(rows, hi, lo, out_hi, out_lo):
    """The same, added to a pair of arrays."""
    n_rows, n_columns = rows.shape
    for i in range(n_rows):
        if hi[i] == 0.0:
            continue
        for j in range(n_columns):
            p, e = multiply(rows[i, j], 0.0, hi[i], lo[i])
            out_hi[j], out_lo[j] = add(out_hi[j], out_lo[j], p, e)


def weighted_sparse_row_sum(
    data: Array, indices: Index, starts: Index, rows: Index, hi: Array, lo: Array, n_columns: int
) -> tuple[Array, Array]:
    """``X[rows].T @ (hi + lo)`` of the entries of sparse X, as a pair of arrays."""
    out_hi, out_lo = np.zeros(n_columns), np.zeros(n_columns)
    _add_weighted_sparse_rows(data, indices, starts, rows, hi, lo, out_hi, out_lo)
    return out_hi, out_lo


@compiled
def _add_weighted_sparse_rows(data, indices, starts, rows, hi, lo, out_hi, out_lo):
    for i in range(len(rows)):
        for t in range(starts[rows[i]], starts[rows[i] + 1]):
            j = indices[t]
            p, e = multiply(data[t], 0.0, hi[i], lo[i])
            out_hi[j], out_lo[j] = add(out_hi[j], out_lo[j], p, e)


def sparse_row_products(
    data: Array, indices: Index, starts: Index, left: Index, right: Index
) -> tuple[Array, Array]:
    """``X[left] @ X[right].T`` of the entries of sparse X with sorted indices, as a pair of arrays."""
    out_hi, out_lo = np.empty((2, len(left), len(right)))
    _fill_sparse_row_products(data, indices, starts, left, right, out_hi, out_lo)
    return out_hi, out_lo


@compiled
def _fill_sparse_row_products(data, indices, starts, left, right, out_hi, out_lo):
    for i in range(len(left)):
        for j in range(len(right)):
            s, t = starts[left[i]], starts[right[j]]
            last_s, last_t = starts[left[i] + 1], starts[right[j] + 1]
            hi, lo = 0.0, 0.0
            while s < last_s and t < last_t:
                if indices[s] < indices[t]:
                    s += 1
                elif indices[s] > indices[t]:
                    t += 1
                else:
                    p, e = two_product(data[s], data[t])
                    hi, lo = add(hi, lo, p, e)
                    s += 1
                    t += 1
            out_hi[i, j], out_lo[i, j] = hi, lo


def row_products(left: Array, right: Array) -> tuple[Array, Array]:
    """``left @ right.T``, as a pair of arrays."""
    out_hi, out_lo = np.empty((2, len(left), len(right)))
    _fill_row_products(left, right, out_hi, out_lo)
    return out_hi, out_lo


@compiled
def _fill_row_products(left, right, out_hi, out_lo):
    for i in range(left.shape[0]):
        for j in range(right.shape[0]):
            hi, lo = 0.0, 0.0
            for c in range(left.shape[1]):
                p, e = two_product(left[i, c], right[j, c])
                hi, lo = add(hi, lo, p, e)
            out_hi[i, j] = hi
            out_lo[i, j] = lo
