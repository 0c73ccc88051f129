"""Input checks of the objective: each error says what was wrong, where, and what to do."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import scipy.sparse as sp
from joblib import cpu_count
from numpy.typing import ArrayLike

from deferlearn._utils.checks import check_unread, is_number, is_whole, plain
from deferlearn._utils.types import Array, Bools, Index

# Entries of X whose squares and products stay well inside the range of floats.
SMALLEST, LARGEST = 1e-140, 1e140
# Largest ratio of two weights.
MOST_UNEQUAL = 1e12

KERNELS = ("linear", "poly", "rbf", "precomputed")


def as_reals(values: Any, name: str) -> Array:
    """A copy as floats; what is complex, a date or masked is refused instead of read as a number."""
    check_unread(values, name)
    try:
        given = np.asarray(values)
        if given.dtype.kind not in "biufO":
            raise ValueError(f"got values of type {given.dtype}")
        return np.array(given, dtype=np.float64, order="C")
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"{name} must hold real numbers: {error}") from None


def check_alpha(alpha: Any) -> None:
    """Refuse a regularisation that is not a positive number."""
    if not is_number(alpha) or not 0 < float(alpha) < np.inf:
        raise ValueError(f"alpha={plain(alpha)!r} must be a positive, finite number.")


def check_problem(
    X: Any, y: ArrayLike, alpha: Any, kernel: Any, margin: str, weights: ArrayLike | None
) -> tuple[Any, Array, Array]:
    """X as floats (dense, or CSR), y as floats in {-1, +1}, weights as floats."""
    if not callable(kernel) and not (isinstance(kernel, str) and kernel in KERNELS):
        raise ValueError(f"kernel={kernel!r} is not known; use one of {KERNELS} or a callable.")
    if not isinstance(margin, str) or margin not in ("soft", "hard"):
        raise ValueError(f"margin={margin!r} is not known; use 'soft' or 'hard'.")
    linear = isinstance(kernel, str) and kernel == "linear"
    if margin == "hard" and not linear:
        raise ValueError(f"margin='hard' is for kernel='linear' only, got kernel={kernel!r}.")
    check_alpha(alpha)
    X = check_matrix(X, "X", allow_sparse=linear, kernel=kernel)
    n = X.shape[0]
    if n == 0:
        raise ValueError("X has no rows; at least one sample is needed.")
    if X.shape[1] == 0:
        raise ValueError("X has no columns; at least one feature is needed.")
    check_range(X)
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
        if X.dtype.kind not in "biuf":
            raise ValueError(f"{name} must hold real numbers, got values of type {X.dtype}.")
        X = sp.csr_array(X, dtype=np.float64, copy=True)
        X.check_format(full_check=True)  # an index out of range would read foreign memory
        X.sum_duplicates()
        values = X.data
    else:
        values = X = as_reals(X, name)
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
    if not sp.issparse(X):
        X.setflags(write=False)  # a kernel function that changes its argument would spoil the model
    return X


def check_range(X: Any) -> None:
    """Refuse features whose squares and products leave the range of floats."""
    largest = float(abs(X).max()) if X.shape[0] and X.shape[1] else 0.0
    if largest and not SMALLEST < largest < LARGEST:
        raise ValueError(
            f"The largest entry of X is {largest:g}; squares of such numbers leave the range of "
            "floats. Rescale X (and alpha by the square of the factor)."
        )


def check_labels(y: ArrayLike, n: int) -> Array:
    """Labels -1 and +1 as floats."""
    given = np.asarray(y)
    if given.dtype.kind in "cmM" or np.ma.isMaskedArray(y):
        as_reals(y, "y")
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
    weight = as_reals(weights, "weights")
    if weight.shape != (n,):
        raise ValueError(f"weights must have shape ({n},) like y, got {weight.shape}.")
    bad = np.flatnonzero(~(np.isfinite(weight) & (weight > 0)))
    if len(bad):
        raise ValueError(
            f"weights must be positive and finite, got {weight[bad[0]]} at index {bad[0]}."
        )
    if weight.max() / MOST_UNEQUAL > weight.min():
        raise ValueError(
            f"weights run from {weight.min():g} to {weight.max():g}; a float cannot tell sums of them "
            f"apart beyond a ratio of {MOST_UNEQUAL:g}."
        )
    return weight


def check_indices(ks: Iterable[int], kept: Bools) -> Index:
    """Indices of kept samples."""
    given = ks if isinstance(ks, np.ndarray) else np.asarray(list(ks))
    if given.size == 0:
        return np.empty(0, dtype=np.int64)
    if given.ndim != 1 or given.dtype.kind not in "iu":
        raise ValueError(f"Samples are named by whole numbers, got {given.tolist()!r}.")
    index = given.astype(np.int64)
    if index.view(np.uint64).max() >= len(kept):  # a negative one is huge here
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
    if isinstance(gamma, str) and gamma == "scale":
        spread = X.shape[1] * X.var()
        return float(1.0 / spread) if spread > 0 else 1.0
    if isinstance(gamma, str) and gamma == "auto":
        return 1.0 / X.shape[1]
    if not is_number(gamma) or not float(gamma) > 0:
        raise ValueError(f"gamma={plain(gamma)!r} must be 'scale', 'auto' or a positive number.")
    return float(gamma)


def check_polynomial(degree: Any, coef0: Any) -> None:
    """Refuse parameters of a polynomial kernel that are no numbers."""
    if not is_number(degree) or not float(degree) > 0:
        raise ValueError(f"degree={plain(degree)!r} must be a positive number.")
    if not is_number(coef0):
        raise ValueError(f"coef0={plain(coef0)!r} must be a number.")


def check_cache_size(cache_size: Any) -> int:
    """Megabytes as bytes."""
    if not is_number(cache_size) or not float(cache_size) > 0:
        raise ValueError(
            f"cache_size={plain(cache_size)!r} must be a positive number of megabytes, such as 512."
        )
    return int(min(float(cache_size), 1e12) * 2**20)


def count_jobs(n_jobs: Any) -> int:
    """How many threads: None is one, -1 as many as processors."""
    if n_jobs is not None and (not is_whole(n_jobs) or n_jobs == 0):
        raise ValueError(
            f"n_jobs={plain(n_jobs)!r} must be a number of threads, -1 for all processors, or None for one."
        )
    if n_jobs is None:
        return 1
    # Threads are of this machine, whatever cluster joblib may use.
    return int(n_jobs) if n_jobs > 0 else max(1, cpu_count() + 1 + int(n_jobs))


def check_new(X: Any, fitted: Any, kernel: Any) -> Any:
    """New rows with as many columns as those of the fit."""
    linear = isinstance(kernel, str) and kernel == "linear"
    X = check_matrix(X, "X", allow_sparse=linear, kernel=kernel)
    if X.shape[1] != fitted.shape[1]:
        raise ValueError(f"X has {X.shape[1]} columns, but there were {fitted.shape[1]} before.")
    return X
