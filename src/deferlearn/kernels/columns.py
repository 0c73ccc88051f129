"""Columns of a matrix that is too large to keep: those asked for last, within a memory limit."""

import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from deferlearn._utils.compiling import compiled
from deferlearn._utils.types import Array, Index

# Entries that are evaluated at once: few enough for a processor's cache, and for little memory.
BLOCK_ENTRIES = 2**19
# Columns that are kept however small the limit is.
LEAST_COLUMNS = 16


class ColumnCache:
    """A symmetric matrix by a function for its blocks; columns that were used last are kept.

    What is returned depends on the function alone, not on the limit. Several threads may share one.

    Parameters
    ----------
    n : int
        Rows of the matrix.
    evaluate : callable
        Two arrays of indices -> that block of the matrix, as an array of its own.
    memory : int
        Bytes for the columns.

    Attributes
    ----------
    hits, misses : int
        Columns that were found, and that had to be evaluated.

    Examples
    --------
    >>> import numpy as np
    >>> from deferlearn.kernels.columns import ColumnCache
    >>> matrix = np.arange(9.0).reshape(3, 3)
    >>> cache = ColumnCache(3, lambda rows, columns: (matrix + matrix.T)[np.ix_(rows, columns)], 10**6)
    >>> cache.columns(np.array([1]))
    array([[ 4.,  8., 12.]])
    >>> cache.block(np.array([0, 2]), np.array([1])), cache.hits, cache.misses
    (array([[ 4.],
           [12.]]), 1, 1)
    """

    def __init__(self, n: int, evaluate: Callable[[Index, Index], Array], memory: int) -> None:
        self.n = n
        self.capacity = min(n, max(LEAST_COLUMNS, memory // (8 * max(n, 1))))
        self._evaluate = evaluate
        self._clear()

    def _clear(self) -> None:
        self.hits = self.misses = 0
        # Column j is row _slot[j] of the store. Memory that is never written to costs nothing.
        self._store = np.empty((self.capacity, self.n))
        self._slot = np.full(self.n, -1)
        self._owner = np.full(self.capacity, -1)
        self._used = np.zeros(self.capacity, dtype=np.int64)
        self._clock = 0
        self._lock = threading.RLock()

    def __getstate__(self) -> dict[str, Any]:
        return {"n": self.n, "capacity": self.capacity, "_evaluate": self._evaluate}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._clear()

    def evaluate(self, rows: Index, columns: Index) -> Array:
        """The block, part by part: the function's own memory stays small."""
        size = max(1, BLOCK_ENTRIES // max(len(columns), 1))
        if len(rows) <= size:
            return self._evaluate(rows, columns)
        out = np.empty((len(rows), len(columns)))
        for start in range(0, len(rows), size):
            part = rows[start : start + size]
            out[start : start + len(part)] = self._evaluate(part, columns)
        return out

    def _find(self, index: Index) -> Index:
        """Where the columns are, -1 for those that are not there."""
        slots = self._slot[index]
        self._clock += 1
        self._used[slots[slots >= 0]] = self._clock
        return slots

    def load(self, index: Index) -> None:
        """Have these columns at hand, as many as there is room for."""
        with self._lock:
            index = index[: self.capacity]
            missing = index[self._find(index) < 0]
            self.hits += len(index) - len(missing)
            self.misses += len(missing)
            if len(missing) == 0:
                return
            # Free places have the oldest time of use, zero. What was just found is the newest.
            slots = np.argsort(self._used, kind="stable")[: len(missing)]
            before = self._owner[slots]
            self._slot[before[before >= 0]] = -1
            self._owner[slots] = -1
            rows = np.arange(self.n)
            size = max(1, BLOCK_ENTRIES // self.n)
            for start in range(0, len(missing), size):
                part, at = missing[start : start + size], slots[start : start + size]
                self._store[at] = self._evaluate(part, rows)
                self._slot[part], self._owner[at], self._used[at] = at, part, self._clock

    def columns(self, index: Index, keep: bool = True) -> Array:
        """The columns, one per row; with ``keep`` they are kept, unless there are too many."""
        with self._lock:
            if keep and len(index) <= self.capacity:
                self.load(np.unique(index))
                return np.asarray(self._store[self._slot[index]])
            return self.block(index, np.arange(self.n))

    def block(self, rows: Index, columns: Index) -> Array:
        """A block, from columns that are at hand as far as possible; the rest is evaluated."""
        with self._lock:
            mine = self._find(rows)
            found = mine >= 0
            self.hits += int(found.sum())
            out = np.empty((len(rows), len(columns)))
            _gather(self._store, mine, columns, out)
            left = np.flatnonzero(~found)
            if len(left) == 0:
                return out
            theirs = self._find(columns)
            unknown = np.flatnonzero(theirs < 0)
            self.hits += len(columns) - len(unknown)
            _gather_mirrored(self._store, theirs, rows, left, out)
            if len(unknown):
                self.misses += len(left)
                block = self.evaluate(rows[left], columns[unknown])
                if len(unknown) == len(columns):
                    out[left] = block
                else:
                    out[left[:, None], unknown] = block
            return out


@compiled
def _gather(store, slots, columns, out):  # type: ignore[no-untyped-def]
    """Rows of a block that are in the store; several times quicker than by an index of two arrays."""
    for i in range(len(slots)):
        if slots[i] >= 0:
            row = store[slots[i]]
            for j in range(len(columns)):
                out[i, j] = row[columns[j]]


@compiled
def _gather_mirrored(store, slots, rows, left, out):  # type: ignore[no-untyped-def]
    """Columns of a block that are in the store, for the rows that are left."""
    for j in range(len(slots)):
        if slots[j] >= 0:
            column = store[slots[j]]
            for i in left:
                out[i, j] = column[rows[i]]
