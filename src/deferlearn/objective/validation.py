"""Input checks of the objective: each error says what was wrong, where, and what to do."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from deferlearn.kernels import Array, Index

KERNELS = ("linear", "poly", "rbf", "precomputed")


def check_problem(
    X: Any, y: ArrayLike, alpha: Any, kernel: Any, margin: str, weights: ArrayLike | None
) -> tuple[Any, Array, Array]:
    """X as floats (dense, or CSR), y as floats in {-1, +1}, weights as floats."""
    if not callable(kernel) and kernel not in KERNELS:
        raise ValueError(f"kernel={kernel!r} is not known; use one of {KERNELS} or a callable.")
    if margin not in ("soft", "hard"):
        raise ValueError(f"margin={margin!r} is not known; use 'soft' or 'hard'.")
    linear = isinstance(kernel, str) and kernel == "linear"
    if margin == "hard" and not linear:
        raise ValueError(f"margin='hard' is for kernel='linear' only, got kernel={kernel!r}.")
    if not isinstance(alpha, Real) or not 0 < float(alpha) < np.inf:
        raise ValueError(f"alpha={alpha!r} must be a positive, finite number.")
    X = check_matrix(X, "X", allow_sparse=linear, kernel=kernel)
    n = X.shape[0]
    if n == 0:
        raise ValueError("X has no rows; at least one sample is needed.")
    labels = check_labels(y, n)
    return X, labels, check_weights(weights, n)


def check_matrix(X: Any, name: str, *, allow_sparse: bool, kernel: Any) -> Any:
    """A finite two-dimensional matrix of floats."""
    if sp.issparse(X):
        if not allow_sparse:
            raise ValueError(
                f"{name} is sparse, which works with kernel='linear' only, got kernel={kernel!r}; "
                f"pass {name}.toarray()."
            )
        X = sp.csr_array(X, dtype=np.float64, copy=True)
        X.sum_duplicates()
        values = X.data
    else:
        try:
            X = np.array(X, dtype=np.float64, order="C")
        except (TypeError, ValueError) as error:
            raise ValueError(f"{name} must be a matrix of numbers: {error}") from None
        values = X
    if X.ndim != 2:
        raise ValueError(f"{name} must have two dimensions, got shape {X.shape}.")
    if not np.isfinite(values).all():
        if sp.issparse(X):
            entries = X.tocoo()
            at = int(np.flatnonzero(~np.isfinite(entries.data))[0])
            row, column, value = entries.row[at], entries.col[at], entries.data[at]
        else:
            row, column = np.argwhere(~np.isfinite(X))[0]
            value = X[row, column]
        raise ValueError(f"{name} has {value} at row {row}, column {column}; it must be finite.")
    return X


def check_labels(y: ArrayLike, n: int) -> Array:
    """Labels -1 and +1 as floats."""
    given = np.asarray(y)
    if given.ndim != 1:
        raise ValueError(f"y must have one dimension, got shape {given.shape}.")
    if len(given) != n:
        raise ValueError(f"X has {n} rows but y has {len(given)} entries; they must agree.")
    try:
        labels = given.astype(np.float64)
        bad = np.flatnonzero(~np.isin(labels, (-1.0, 1.0)))
    except (TypeError, ValueError):
        raise ValueError(f"y must hold -1 and +1, got values of type {given.dtype}.") from None
    if len(bad):
        raise ValueError(f"y must hold -1 and +1, got {given[bad[0]]} at index {bad[0]}.")
    return labels


def check_weights(weights: ArrayLike | None, n: int) -> Array:
    """Positive weights as floats; ones if there are none."""
    if weights is None:
        return np.ones(n)
    weight = np.array(weights, dtype=np.float64)
    if weight.shape != (n,):
        raise ValueError(f"weights must have shape ({n},) like y, got {weight.shape}.")
    bad = np.flatnonzero(~(np.isfinite(weight) & (weight > 0)))
    if len(bad):
        raise ValueError(
            f"weights must be positive and finite, got {weight[bad[0]]} at index {bad[0]}."
        )
    return weight


def check_indices(ks: Iterable[int], kept: NDArray[np.bool_]) -> Index:
    """Indices of kept samples."""
    given = ks if isinstance(ks, np.ndarray) else np.asarray(list(ks))
    if given.size == 0:
        return np.empty(0, dtype=np.int64)
    if given.ndim != 1 or given.dtype.kind not in "iu":
        raise ValueError(f"Samples are named by whole numbers, got {given.tolist()!r}.")
    index = given.astype(np.int64)
    if index.min() < 0 or index.max() >= len(kept):
        bad = (index < 0) | (index >= len(kept))
        raise ValueError(
            f"Sample {index[bad][0]} does not exist; indices run from 0 to {len(kept) - 1}."
        )
    if not kept[index].all():
        raise ValueError(f"Sample {index[~kept[index]][0]} has been removed already.")
    return index


def kernel_width(gamma: Any, X: Any, kernel: Any) -> float:
    """Resolve gamma; "scale" and "auto" as in scikit-learn's SVC."""
    if callable(kernel) or kernel in ("linear", "precomputed"):
        return 1.0
    if gamma == "scale":
        spread = X.shape[1] * X.var()
        return float(1.0 / spread) if spread > 0 else 1.0
    if gamma == "auto":
        return 1.0 / X.shape[1]
    if not isinstance(gamma, Real) or not 0 < float(gamma) < np.inf:
        raise ValueError(f"gamma={gamma!r} must be 'scale', 'auto' or a positive number.")
    return float(gamma)


def check_new(X: Any, fitted: Any, kernel: Any) -> Any:
    """New rows with as many columns as those of the fit."""
    linear = isinstance(kernel, str) and kernel == "linear"
    X = check_matrix(X, "X", allow_sparse=linear, kernel=kernel)
    if X.shape[1] != fitted.shape[1]:
        raise ValueError(f"X has {X.shape[1]} columns, but there were {fitted.shape[1]} before.")
    return X
