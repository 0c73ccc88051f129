"""From a kernel's name to blocks of the signed Gram matrix ``Q_ij = y_i y_j K_ij``.

The linear kernel never forms the whole matrix: blocks and products come from the rows of X, dense or
sparse. Other kernels keep the whole matrix while it is small and, beyond that, the columns that were
asked for, within a memory limit.

Everything is scaled by a power of two so that the largest ``K_ii`` is near one; the objective does not
change under ``K -> K / unit, alpha -> alpha / unit``, and powers of two round nothing.
"""

from collections.abc import Callable, Iterator
from copy import copy
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.spatial.distance import cdist

from deferlearn._utils.types import Array, Index
from deferlearn.kernels import doubledouble
from deferlearn.kernels.columns import ColumnCache
from deferlearn.kernels.definite import as_gram, check_part
from deferlearn.kernels.sparse import inner_products

# Up to this many samples the whole Gram matrix of a non-linear kernel is kept (128 MB)...
WHOLE_GRAM_LIMIT = 4096
# ... if the memory suffices for this many copies, which exist while it is checked and made.
WHOLE_COPIES = 4
# Rows of a larger one that are checked for symmetry and definiteness.
CHECKED_ROWS = 512
# The share of the memory that is for what bounds keep; the rest is for columns.
KEPT_SHARE = 0.5
# Entries of columns that a product with them takes at a time (16 MB).
IMAGE_ENTRIES = 2**21
# Rows whose products with each other give their diagonal entries.
DIAGONAL_ROWS = 64
# Degree of a polynomial kernel up to which products are quicker than a power.
LARGEST_PRODUCT = 16
# Numbers in each of four matrices that bounds may keep from one state to the next (256 MB).
KEPT_ENTRIES = 2**23
# Rows whose spread is below this share of their size are far from the origin.
FAR = 0.25


def _power_of_two(value: float) -> float:
    return float(2.0 ** np.floor(np.log2(value))) if value > 0 else 1.0


class LinearGram:
    """Inner products of the rows of X, dense or sparse; needs memory for one copy of X.

    With an offset the problem does not change when all rows move together, but far from the origin
    inner products lose the digits that tell the rows apart: then dense rows are centred.
    """

    def __init__(self, X: Any, y: Array, offset: bool) -> None:
        self.n, self.n_features = X.shape
        self.kept_entries = KEPT_ENTRIES  # of each of four matrices that bounds keep between states
        self.costly = False  # whether an image costs much more than what moves between states
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
            rows.sort_indices()
            norms = np.asarray(rows.multiply(rows).sum(axis=1)).ravel()
        else:
            rows = np.ascontiguousarray(np.asarray(X, dtype=np.float64) * (y / scale)[:, None])
            norms = np.einsum("ij,ij->i", rows, rows)
        second = _power_of_two(float(np.sqrt(norms.max(initial=0.0))))
        self.rows = rows / second
        # Several machines have the same rows but for signs. For products with all of them they share those
        # of the first, which so stay in the processor's cache; signs round nothing.
        self._shared: Any = self.rows
        self._flip: Array | None = None
        self.scale = scale * second
        self.unit = self.scale**2
        self.diagonal = norms / second**2

    whole: Array | None = None  # the matrix itself is not kept

    def relabelled(self, flip: Array) -> "LinearGram":
        """The same rows where the labels of some have the other sign: ``flip`` is -1 there, else 1."""
        other = copy(self)
        other._flip = flip if self._flip is None else self._flip * flip
        if self.sparse:
            other.rows = sp.csr_array(sp.diags_array(flip) @ self.rows)
            other.rows.sort_indices()
        else:
            other.rows = self.rows * flip[:, None]
        return other

    def keep_columns(self, index: Index) -> None:
        """Nothing to prepare: products come from the rows."""

    @property
    def _entries(self) -> tuple[Any, Any, Any]:
        """What compiled code is given of sparse rows."""
        return self.rows.data, self.rows.indices, self.rows.indptr

    def block(self, rows: Index, columns: Index) -> Array:
        """Q[rows][:, columns]."""
        if self.sparse:
            return inner_products(self.rows, rows, columns)
        return self.rows[rows] @ self.rows[columns].T

    def block_pair(self, rows: Index, columns: Index) -> tuple[Array, Array]:
        """The same, as a sum of two doubles."""
        if self.sparse:
            return doubledouble.sparse_row_products(*self._entries, rows, columns)
        return doubledouble.row_products(self.rows[rows], self.rows[columns])

    def combine(self, index: Index, coef: Array) -> Array:
        """``sum_i coef_i y_i x_i`` over index, in scaled units."""
        return self._combine(self.rows, index, coef)

    def _combine(self, rows: Any, index: Index, coef: Array) -> Array:
        if not self.sparse and coef.ndim == 1 and 4 * len(index) > self.n:
            # Gathering so many rows would cost more than the products with the others' zeros.
            full = np.zeros(self.n)
            full[index] = coef
            return np.asarray(full @ rows)
        return np.asarray(rows[index].T @ coef)

    def combine_pair(self, index: Index, hi: Array, lo: Array) -> tuple[Array, Array]:
        """The same, carried in two doubles."""
        if self.sparse:
            return doubledouble.weighted_sparse_row_sum(
                *self._entries, index, hi, lo, self.n_features
            )
        return doubledouble.weighted_row_sum(self.rows[index], hi, lo)

    def image(self, index: Index, coef: Array) -> Array:
        """Q[:, index] @ coef, for one vector or a matrix of them."""
        flip = self._flip
        if flip is None or coef.ndim > 1:
            return np.asarray(self.rows @ self.combine(index, coef))
        w = self._combine(self._shared, index, coef * flip[index])
        return np.asarray(self._shared @ w) * flip

    def image_at(self, rows: Index, index: Index, coef: Array) -> Array:
        """Q[rows][:, index] @ coef, for one vector."""
        w = self.combine(index, coef)
        if 4 * len(rows) > self.n:  # gathering them would cost more than the others' products
            return np.asarray(self.rows @ w)[rows]
        return np.asarray(self.rows[rows] @ w)

    def image_pair(self, index: Index, hi: Array, lo: Array) -> Array:
        """Q[:, index] @ (hi + lo), carried in two doubles until it is rounded."""
        w_hi, w_lo = self.combine_pair(index, hi, lo)
        return np.asarray(self.rows @ w_hi + self.rows @ w_lo)


class KernelGram:
    """A kernel given by a function of two sets of rows, or by its matrix.

    Parameters
    ----------
    function : callable
        Two arrays of indices -> the unsigned, unscaled block of K.
    diagonal, y : ndarrays
        Of K, and the labels.
    memory : int
        Bytes that may be used: the whole matrix if it takes less, with what it takes to make it,
        or else columns of it.
    """

    remedy = ""  # what to change where the values are too large, in words

    def __init__(
        self, function: Callable[[Index, Index], Array], diagonal: Array, y: Array, memory: int
    ) -> None:
        self.n = len(y)
        self._y = y
        self.unit = _power_of_two(float(diagonal.max(initial=0.0)))
        self.diagonal = diagonal / self.unit
        self._function: Callable[[Index, Index], Array] | None = function
        self._whole: Array | None = None
        self.kept_entries = KEPT_ENTRIES
        self._cache: ColumnCache | None = None
        self._flip: Array | None = None  # the labels here, times those of the columns that are kept
        self.costly = not keeps_whole(self.n, memory)  # columns may have to be evaluated
        if not self.costly:
            every = np.arange(self.n)
            whole = self._signed(every, every)
            self._whole = (whole + whole.T) / 2
            self._function = None  # the unsigned matrix is not needed any more
        else:
            self.kept_entries = min(KEPT_ENTRIES, int(KEPT_SHARE * memory) // 32)
            self._cache = ColumnCache(self.n, self._signed, memory - 32 * self.kept_entries)

    def _signed(self, rows: Index, columns: Index) -> Array:
        assert self._function is not None
        block = np.multiply(self._function(rows, columns), self._y[columns], dtype=np.float64)
        block *= (self._y[rows] / self.unit)[:, None]
        place = np.full(self.n, -1)
        place[columns] = np.arange(len(columns))
        own = np.flatnonzero(place[rows] >= 0)
        block[own, place[rows[own]]] = self.diagonal[rows[own]]
        return block

    @property
    def whole(self) -> Array | None:
        """The matrix itself, not to be changed, if it is kept."""
        return self._whole

    def relabelled(self, flip: Array) -> "KernelGram":
        """The same kernel where the labels of some have the other sign: ``flip`` is -1 there, else 1.

        No value of it is evaluated again: columns that are kept serve both.
        """
        other = copy(self)
        other._y = self._y * flip
        if self._whole is not None:
            other._whole = self._whole * flip
            other._whole *= flip[:, None]
        else:
            other._flip = flip if self._flip is None else self._flip * flip
        return other

    def keep_columns(self, index: Index) -> None:
        """Have these columns at hand, for their products with many samples."""
        if self._cache is not None:
            # The same column is asked for from state to state: half of the room stays for others.
            self._cache.load(index[: self._cache.capacity // 2])

    def columns(self, index: Index) -> Array:
        """Rows ``Q[index]`` (Q is symmetric), kept for the next time."""
        if self._whole is not None:
            return self._whole[index]
        return self._kept_columns(index)

    def _kept_columns(self, index: Index, keep: bool = True) -> Array:
        assert self._cache is not None
        return self._flipped(self._cache.columns(index, keep=keep), index, None)

    def _flipped(self, block: Array, rows: Index, columns: Index | None) -> Array:
        """A block of the columns that are kept, with the signs of these labels."""
        if self._flip is not None:
            block *= self._flip if columns is None else self._flip[columns]
            block *= self._flip[rows, None]
        return block

    def block(self, rows: Index, columns: Index) -> Array:
        """Q[rows][:, columns]."""
        if self._whole is not None:
            return self._whole[rows[:, None], columns]
        assert self._cache is not None
        return self._flipped(self._cache.block(rows, columns), rows, columns)

    def block_pair(self, rows: Index, columns: Index) -> tuple[Array, Array]:
        """The same, as a sum of two doubles."""
        block = self.block(rows, columns)
        return block, np.zeros_like(block)

    def _parts(self, index: Index, coef: Array) -> Iterator[tuple[Array, Array]]:
        """Columns, a few at a time, with their coefficients; the parts do not depend on the memory."""
        size = max(1, IMAGE_ENTRIES // max(self.n, 1))
        # Columns of a few samples are worth keeping: they are those that move from state to state.
        few = self._cache is None or 4 * len(index) <= self._cache.capacity
        for start in range(0, len(index), size):
            part = index[start : start + size]
            whole = self._whole
            columns = self._kept_columns(part, keep=few) if whole is None else whole[part]
            yield columns, coef[start : start + len(part)]

    def image(self, index: Index, coef: Array) -> Array:
        """Q[:, index] @ coef, for one vector or a matrix of them."""
        out = np.zeros((self.n, *coef.shape[1:]))
        for columns, part in self._parts(index, coef):
            out += columns.T @ part
        return out

    def image_at(self, rows: Index, index: Index, coef: Array) -> Array:
        """Q[rows][:, index] @ coef, for one vector."""
        size = max(1, IMAGE_ENTRIES // max(len(index), 1))
        parts = [rows[start : start + size] for start in range(0, len(rows), size)]
        return np.concatenate([np.empty(0), *(self.block(part, index) @ coef for part in parts)])

    def image_pair(self, index: Index, hi: Array, lo: Array) -> Array:
        """Q[:, index] @ (hi + lo), carried in two doubles until it is rounded."""
        out_hi, out_lo = np.zeros(self.n), np.zeros(self.n)
        for columns, part in self._parts(index, np.column_stack([hi, lo])):
            halves = np.ascontiguousarray(part.T)
            doubledouble.add_weighted_rows(columns, halves[0], halves[1], out_hi, out_lo)
        return np.asarray(out_hi + out_lo)


# What the objective asks of a kernel.
Gram = LinearGram | KernelGram


def keeps_whole(n: int, memory: int) -> bool:
    """Whether a Gram matrix of n rows is kept as a whole, within ``memory`` bytes."""
    return n <= WHOLE_GRAM_LIMIT and WHOLE_COPIES * 8 * n * n <= memory


def _rbf(A: Any, B: Any, gamma: float) -> Array:
    # Differences, not |a|^2 + |b|^2 - 2ab: that loses half the digits where rows are close.
    squares = cdist(A, B, "sqeuclidean")
    squares *= -gamma
    return np.asarray(np.exp(squares, out=squares))


def _poly(A: Any, B: Any, degree: float, gamma: float, coef0: float) -> Array:
    inner = np.asarray(A @ B.T)
    inner *= gamma
    inner += coef0
    if degree == int(degree) and degree <= LARGEST_PRODUCT:
        out = inner.copy()
        for _ in range(int(degree) - 1):  # far quicker than a power
            out *= inner
        return out
    if degree != int(degree) and inner.min(initial=0.0) < 0:
        raise ValueError(
            f"kernel='poly' with degree={degree:g} has no value where gamma <x, x'> + coef0 is "
            f"negative, here {inner.min():g}: take a whole degree."
        )
    return np.asarray(inner**degree)


def _evaluate(kernel: Callable[[Any, Any], Any], A: Any, B: Any) -> Array:
    K = np.asarray(kernel(A, B), dtype=np.float64)
    if K.shape != (A.shape[0], B.shape[0]):
        raise ValueError(
            f"kernel={kernel!r} returned shape {K.shape} for {A.shape[0]} and {B.shape[0]} rows; it "
            f"must return ({A.shape[0]}, {B.shape[0]})."
        )
    return K


def _block_of_matrix(K: Array, rows: Index, columns: Index) -> Array:
    return np.asarray(K[rows[:, None], columns])


def _block_of_rows(
    function: Callable[[Any, Any], Array], X: Array, rows: Index, columns: Index
) -> Array:
    block = function(X[rows], X if len(columns) == len(X) else X[columns])
    if not np.isfinite(block).all():
        i, j = np.argwhere(~np.isfinite(block))[0]
        raise ValueError(f"The kernel gives {block[i, j]} for rows {rows[i]} and {columns[j]}.")
    return block


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


def make_gram(
    X: Any,
    y: Array,
    *,
    kernel: Any,
    degree: float,
    gamma: float,
    coef0: float,
    offset: bool,
    memory: int,
) -> Gram:
    """Build the Gram matrix's supplier for validated X and y in {-1, +1}; memory in bytes."""
    if isinstance(kernel, str) and kernel == "linear":
        return LinearGram(X, y, offset)
    if isinstance(kernel, str) and kernel == "precomputed":
        K = as_gram(X, "The precomputed kernel", offset)
        return KernelGram(partial(_block_of_matrix, K), K.diagonal().copy(), y, memory)
    function = kernel_function(kernel, degree, gamma, coef0)
    n = X.shape[0]
    known_kernel = isinstance(kernel, str) and kernel == "rbf"
    if keeps_whole(n, memory):
        K = function(X, X)
        if not known_kernel:  # a callable, or poly with a negative coef0, may be no kernel at all
            K = as_gram(K, f"The matrix of kernel={kernel!r}", offset)
        return KernelGram(partial(_block_of_matrix, K), K.diagonal().copy(), y, memory)
    if not known_kernel:  # too large to check as a whole: a random part of it
        some = np.random.default_rng(0).choice(n, min(n, CHECKED_ROWS), replace=False)
        part = function(X[some], X[some])
        check_part(part, f"A part of the matrix of kernel={kernel!r}")
    starts = range(0, n, DIAGONAL_ROWS)
    parts = [X[start : start + DIAGONAL_ROWS] for start in starts]
    diagonal = np.concatenate([function(part, part).diagonal() for part in parts])
    return KernelGram(partial(_block_of_rows, function, X), diagonal, y, memory)
