"""From a kernel's name to blocks of the signed Gram matrix ``Q_ij = y_i y_j K_ij``.

The linear kernel never forms the whole matrix: blocks and products come from the rows of X, dense or
sparse. Other kernels keep the whole matrix while it is small and, beyond that, the columns that were
asked for, within a memory limit.

Everything is scaled by a power of two so that the largest ``K_ii`` is near one; the objective does not
change under ``K -> K / unit, alpha -> alpha / unit``, and powers of two round nothing.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.spatial.distance import cdist
from sklearn.metrics.pairwise import polynomial_kernel

from deferlearn._definite import as_gram

Array = NDArray[np.float64]
Index = NDArray[np.int64]

# Up to this many samples the whole Gram matrix of a non-linear kernel is kept (128 MB).
WHOLE_GRAM_LIMIT = 4096
# Rows of a larger one that are checked for symmetry and definiteness.
CHECKED_ROWS = 512
# Memory for cached columns beyond that.
COLUMN_CACHE_BYTES = 512 * 2**20
# Rows whose spread is below this share of their size are far from the origin.
FAR = 0.25


class Gram(Protocol):
    """What the objective asks of a kernel."""

    n: int
    unit: float
    diagonal: Array

    def block(self, rows: Index, columns: Index) -> Array:
        """Q[rows][:, columns]."""

    def block_pair(self, rows: Index, columns: Index) -> tuple[Array, Array]:
        """The same, as a sum of two doubles."""

    def image(self, index: Index, coef: Array) -> Array:
        """Q[:, index] @ coef, for one vector or a matrix of them."""

    def image_pair(self, index: Index, hi: Array, lo: Array) -> Array:
        """Q[:, index] @ (hi + lo), with the sum carried in two doubles before it is rounded."""


def _power_of_two(value: float) -> float:
    return float(2.0 ** np.floor(np.log2(value))) if value > 0 else 1.0


class LinearGram:
    """Inner products of the rows of X, dense or sparse; needs memory for one copy of X.

    With an offset the problem does not change when all rows move together, but far from the origin
    inner products lose the digits that tell the rows apart: then dense rows are centred.
    """

    def __init__(self, X: Any, y: Array, offset: bool) -> None:
        self.n, self.n_features = X.shape
        self.centre = np.zeros(self.n_features)
        largest = abs(X).max() if X.shape[1] and X.shape[0] else 0.0
        if offset and largest > 0 and not sp.issparse(X):
            centre = X.mean(axis=0)
            spread = float(np.abs(X - centre).max())
            if 0 < spread < FAR * largest:
                self.centre, X, largest = centre, X - centre, spread
        # Two scalings, since squares of very large or small features would leave the range of floats.
        scale = _power_of_two(float(largest))
        self.sparse = sp.issparse(X)
        if self.sparse:
            rows = sp.csr_array(X, dtype=np.float64)
            rows = sp.csr_array(sp.diags_array(y / scale) @ rows)
            norms = np.asarray(rows.multiply(rows).sum(axis=1)).ravel()
        else:
            rows = np.ascontiguousarray(np.asarray(X, dtype=np.float64) * (y / scale)[:, None])
            norms = np.einsum("ij,ij->i", rows, rows)
        second = _power_of_two(float(np.sqrt(norms.max(initial=0.0))))
        self.rows = rows / second
        self.scale = scale * second
        self.unit = self.scale**2
        self.diagonal = norms / second**2

    def _dense(self, index: Index) -> Array:
        return self.rows[index].toarray() if self.sparse else self.rows[index]

    def block(self, rows: Index, columns: Index) -> Array:
        """Q[rows][:, columns]."""
        if self.sparse:
            return np.ascontiguousarray((self.rows[rows] @ self.rows[columns].T).toarray())
        return self.rows[rows] @ self.rows[columns].T

    def block_pair(self, rows: Index, columns: Index) -> tuple[Array, Array]:
        """The same, as a sum of two doubles."""
        from deferlearn.objective.doubledouble import row_products

        left, right = self.rows[rows], self.rows[columns]
        if self.sparse:  # only columns that both sides use can contribute
            used = np.intersect1d(np.unique(left.indices), np.unique(right.indices))
            left, right = left[:, used].toarray(), right[:, used].toarray()
        return row_products(np.ascontiguousarray(left), np.ascontiguousarray(right))

    def combine(self, index: Index, coef: Array) -> Array:
        """``sum_i coef_i y_i x_i`` over index, in scaled units."""
        if not self.sparse and coef.ndim == 1 and 4 * len(index) > self.n:
            # Gathering so many rows would cost more than the products with the others' zeros.
            everybody = np.zeros(self.n)
            everybody[index] = coef
            return np.asarray(everybody @ self.rows)
        return np.asarray(self.rows[index].T @ coef)

    def combine_pair(self, index: Index, hi: Array, lo: Array) -> tuple[Array, Array]:
        """The same, carried in two doubles."""
        from deferlearn.objective.doubledouble import weighted_row_sum

        return weighted_row_sum(np.ascontiguousarray(self._dense(index)), hi, lo)

    def image(self, index: Index, coef: Array) -> Array:
        """Q[:, index] @ coef, for one vector or a matrix of them."""
        return np.asarray(self.rows @ self.combine(index, coef))

    def image_pair(self, index: Index, hi: Array, lo: Array) -> Array:
        """Q[:, index] @ (hi + lo), carried in two doubles until it is rounded."""
        w_hi, w_lo = self.combine_pair(index, hi, lo)
        return np.asarray(self.rows @ w_hi + self.rows @ w_lo)


class KernelGram:
    """A kernel given by a function of two sets of rows, or by its matrix."""

    def __init__(
        self, function: Callable[[Index], Array], diagonal: Array, y: Array, memory: int
    ) -> None:
        # index -> unsigned, unscaled columns K[:, index]
        self._function: Callable[[Index], Array] | None = function
        self.n = len(y)
        self._y = y
        self.unit = _power_of_two(float(diagonal.max(initial=0.0)))
        self.diagonal = diagonal / self.unit
        self._whole: Array | None = None
        self._columns: OrderedDict[int, Array] = OrderedDict()
        self._most_columns = max(64, memory // (8 * max(self.n, 1)))

    def _signed(self, index: Index) -> Array:
        assert self._function is not None
        columns = np.asarray(self._function(index), dtype=np.float64)
        columns = columns * (self._y[:, None] / self.unit) * self._y[index]
        columns[index, np.arange(len(index))] = self.diagonal[index]
        return columns

    def columns(self, index: Index) -> Array:
        """Rows ``Q[index]`` (Q is symmetric), from the cache where possible."""
        if self.n <= WHOLE_GRAM_LIMIT:
            if self._whole is None:
                whole = self._signed(np.arange(self.n))
                self._whole = (whole + whole.T) / 2
                self._function = None  # the unsigned matrix is not needed any more
            return self._whole[index]
        missing = np.array([i for i in index if int(i) not in self._columns], dtype=np.int64)
        out = np.empty((len(index), self.n))
        fresh = (
            dict(zip(missing.tolist(), self._signed(missing).T, strict=True))
            if len(missing)
            else {}
        )
        for position, i in enumerate(index.tolist()):
            if i in fresh:
                out[position] = fresh[i]
            else:
                out[position] = self._columns[i]
                self._columns.move_to_end(i)
        for i, column in fresh.items():
            self._columns[i] = np.ascontiguousarray(column)
        while len(self._columns) > self._most_columns:
            self._columns.popitem(last=False)
        return out

    def block(self, rows: Index, columns: Index) -> Array:
        """Q[rows][:, columns]."""
        return np.ascontiguousarray(self.columns(rows)[:, columns])

    def block_pair(self, rows: Index, columns: Index) -> tuple[Array, Array]:
        """The same, as a sum of two doubles."""
        block = self.block(rows, columns)
        return block, np.zeros_like(block)

    def _in_chunks(self, index: Index) -> list[Index]:
        size = max(1, min(self._most_columns, 2**24 // max(self.n, 1)))
        return [index[i : i + size] for i in range(0, len(index), size)]

    def image(self, index: Index, coef: Array) -> Array:
        """Q[:, index] @ coef, for one vector or a matrix of them."""
        out = np.zeros((self.n, *coef.shape[1:]))
        done = 0
        for part in self._in_chunks(index):
            out += self.columns(part).T @ coef[done : done + len(part)]
            done += len(part)
        return out

    def image_pair(self, index: Index, hi: Array, lo: Array) -> Array:
        """Q[:, index] @ (hi + lo), carried in two doubles until it is rounded."""
        from deferlearn.objective.doubledouble import weighted_row_sum

        out_hi, out_lo = weighted_row_sum(self.columns(index), hi, lo)
        return np.asarray(out_hi + out_lo)


def _rbf(A: Any, B: Any, gamma: float) -> Array:
    # Differences, not |a|^2 + |b|^2 - 2ab: that loses half the digits where rows are close.
    return np.asarray(np.exp(-gamma * cdist(A, B, "sqeuclidean")))


def _poly(A: Any, B: Any, degree: float, gamma: float, coef0: float) -> Array:
    if degree != int(degree):
        inner = polynomial_kernel(A, B, degree=1, gamma=gamma, coef0=coef0)
        if inner.min(initial=0.0) < 0:
            raise ValueError(
                f"kernel='poly' with degree={degree:g} has no value where gamma <x, x'> + coef0 is "
                f"negative, here {inner.min():g}: take a whole degree."
            )
    return np.asarray(polynomial_kernel(A, B, degree=degree, gamma=gamma, coef0=coef0))


def _evaluate(kernel: Callable[[Any, Any], Any], A: Any, B: Any) -> Array:
    K = np.asarray(kernel(A, B), dtype=np.float64)
    if K.shape != (A.shape[0], B.shape[0]):
        raise ValueError(
            f"kernel={kernel!r} returned shape {K.shape} for {A.shape[0]} and {B.shape[0]} rows; it "
            f"must return ({A.shape[0]}, {B.shape[0]})."
        )
    return K


def _columns_of_matrix(K: Array, index: Index) -> Array:
    return K[:, index]


def _columns_of_rows(function: Callable[[Any, Any], Array], X: Array, index: Index) -> Array:
    columns = function(X, X[index])
    if not np.isfinite(columns).all():
        i, j = np.argwhere(~np.isfinite(columns))[0]
        raise ValueError(f"The kernel gives {columns[i, j]} for rows {i} and {index[j]}.")
    return columns


def kernel_function(
    kernel: Any, degree: float, gamma: float, coef0: float
) -> Callable[[Any, Any], Array]:
    """``(A, B) -> K(A, B)`` for a name or a callable."""
    if callable(kernel):
        return partial(_evaluate, kernel)
    if kernel == "poly":
        return partial(_poly, degree=degree, gamma=gamma, coef0=coef0)
    if kernel == "rbf":
        return partial(_rbf, gamma=gamma)
    raise ValueError(
        f"kernel={kernel!r} is not known; use 'linear', 'poly', 'rbf', 'precomputed' or a callable."
    )


def _whole_gram(K: Array, y: Array) -> KernelGram:
    return KernelGram(partial(_columns_of_matrix, K), K.diagonal().copy(), y, COLUMN_CACHE_BYTES)


def make_gram(
    X: Any, y: Array, kernel: Any, degree: float, gamma: float, coef0: float, offset: bool
) -> LinearGram | KernelGram:
    """Build the Gram matrix's supplier for validated X and y in {-1, +1}."""
    if isinstance(kernel, str) and kernel == "linear":
        return LinearGram(X, y, offset)
    if isinstance(kernel, str) and kernel == "precomputed":
        return _whole_gram(as_gram(X, "The precomputed kernel", offset), y)
    function = kernel_function(kernel, degree, gamma, coef0)
    n = X.shape[0]
    known_kernel = isinstance(kernel, str) and kernel == "rbf"
    if n <= WHOLE_GRAM_LIMIT:
        K = function(X, X)
        if not known_kernel:  # a callable, or poly with a negative coef0, may be no kernel at all
            K = as_gram(K, f"The matrix of kernel={kernel!r}", offset)
        return _whole_gram(K, y)
    if not known_kernel:  # too large to check as a whole: a random part of it
        some = np.random.default_rng(0).choice(n, min(n, CHECKED_ROWS), replace=False)
        part = function(X[some], X[some])
        as_gram(part, f"A part of the matrix of kernel={kernel!r}", offset=False)
    diagonal = np.array([function(X[i : i + 1], X[i : i + 1])[0, 0] for i in range(n)])
    return KernelGram(partial(_columns_of_rows, function, X), diagonal, y, COLUMN_CACHE_BYTES)
