"""Inner products of sparse rows, straight into a dense block: scipy makes a sparse one on the way."""

from typing import Any

import numpy as np

from deferlearn._utils.compiling import compiled
from deferlearn._utils.types import Array, Index


def inner_products(X: Any, left: Index, right: Index) -> Array:
    """``X[left] @ X[right].T`` as an array; X is a csr_array with sorted indices."""
    if len(left) < len(right):  # the fewer rows are gathered and transposed
        return np.ascontiguousarray(inner_products(X, right, left).T)
    few = X[right].T.tocsr()
    out = np.zeros((len(left), len(right)))
    _add_products(X.data, X.indices, X.indptr, left, few.data, few.indices, few.indptr, out)
    return out


@compiled
def _add_products(  # type: ignore[no-untyped-def]
    data, indices, starts, left, few_data, few_indices, few_starts, out
):
    for i in range(len(left)):
        row = out[i]
        for t in range(starts[left[i]], starts[left[i] + 1]):
            entry, column = data[t], indices[t]
            for s in range(few_starts[column], few_starts[column + 1]):
                row[few_indices[s]] += entry * few_data[s]
