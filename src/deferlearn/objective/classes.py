"""From classes and grades to sums of two-class objectives."""

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from deferlearn._utils.checks import is_whole, plain
from deferlearn._utils.threads import side_by_side
from deferlearn._utils.types import Array
from deferlearn._utils.votes import right_votes
from deferlearn.objective.sum import SumObjective
from deferlearn.objective.svm import SVMObjective
from deferlearn.objective.validation import check_cache_size, count_jobs

# Bytes that the Gram matrices of all samples may take, one per part, for quicker paths.
MATRIX_BYTES = 2**29

Kind = Literal["classes", "grades"]


def class_labels(codes: ArrayLike, n_classes: int, kind: Kind) -> Array:
    """The labels -1 and +1 of each two-class machine, one row per machine.

    Parameters
    ----------
    codes : array-like of int
        The class of each sample, 0 to ``n_classes - 1``.
    n_classes : int
        At least 2.
    kind : {"classes", "grades"}
        "classes": one machine per class, against the rest. "grades": the classes are ordered, and
        machine k tells whether the grade is above k, for k from 0 to ``n_classes - 2``.

    Examples
    --------
    >>> from deferlearn.objective import class_labels
    >>> class_labels([0, 1, 2], 3, "classes")
    array([[ 1., -1., -1.],
           [-1.,  1., -1.],
           [-1., -1.,  1.]])
    >>> class_labels([0, 1, 2], 3, "grades")
    array([[-1.,  1.,  1.],
           [-1., -1.,  1.]])
    """
    if not is_whole(n_classes) or n_classes < 2:
        raise ValueError(f"n_classes={plain(n_classes)!r} must be a whole number, 2 or larger.")
    given = np.asarray(codes)
    if given.ndim != 1 or given.dtype.kind not in "iu":
        raise ValueError(
            f"codes must hold one whole number per sample, got shape {given.shape} of type "
            f"{given.dtype}."
        )
    bad = np.flatnonzero((given < 0) | (given >= n_classes))
    if len(bad):
        raise ValueError(
            f"codes must be between 0 and {n_classes - 1}, got {given[bad[0]]} at index {bad[0]}."
        )
    if kind not in ("classes", "grades"):
        raise ValueError(f"kind={kind!r} is not known; use 'classes' or 'grades'.")
    return right_votes(given, n_classes, kind == "grades")


def class_objective(
    X: Any,
    codes: ArrayLike,
    n_classes: int,
    kind: Kind = "classes",
    *,
    alpha: float = 1.0,
    kernel: Any = "linear",
    degree: float = 3,
    gamma: float | str = "scale",
    coef0: float = 0.0,
    fit_intercept: bool = True,
    margin: str = "soft",
    weights: ArrayLike | None = None,
    cache_size: float = 512,
    n_jobs: int | None = None,
) -> SumObjective:
    """The objective of several classes or grades: one two-class machine each, on the same rows.

    A class without samples is allowed: its machine has F = 0 if there is an offset. Kernel values are
    computed once for all machines.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features)
        As in `SVMObjective`.
    codes, n_classes, kind
        As in `class_labels`.
    alpha, kernel, degree, gamma, coef0, fit_intercept, margin, weights
        As in `SVMObjective`; the same for every machine.
    cache_size : float, default=512
        As in `SVMObjective`, for all machines together.
    n_jobs : int or None, default=None
        Number of threads in which the machines are first solved, and which each of them uses for the
        bounds and gains of many candidates.

    Returns
    -------
    SumObjective
        Its `labels` are the codes. With two grades it is the `SVMObjective` of the paper.

    Examples
    --------
    >>> from deferlearn.objective import class_objective
    >>> from deferlearn.selection import distorted_greedy
    >>> X, codes = [[0.0], [0.2], [1.0], [1.2], [2.0], [2.2], [0.1]], [0, 0, 1, 1, 2, 2, 2]
    >>> objective = class_objective(X, codes, 3, "grades", alpha=0.01)
    >>> len(objective.parts), distorted_greedy(objective, [0.5] * 7, n=1).order
    (2, array([6]))
    """
    labels = class_labels(codes, n_classes, kind)
    jobs, count = count_jobs(n_jobs), len(labels)
    memory = cache_size
    n = labels.shape[1]
    # One whole matrix per machine, and three more while the first is made, or columns that all share.
    if (count + 3) * 8 * n * n > check_cache_size(cache_size):
        memory = cache_size / count
    first = SVMObjective(
        X, labels[0], alpha, kernel=kernel, degree=degree, gamma=gamma, coef0=coef0,
        fit_intercept=fit_intercept, margin=margin, weights=weights, cache_size=memory, n_jobs=n_jobs,
    )  # fmt: skip
    parts = [first, *side_by_side(first.with_labels, list(labels[1:]), jobs)]
    if count > 1 and count * 8 * n * n <= MATRIX_BYTES:
        for part in parts:
            part.hold_everything(like=first)
    return SumObjective(parts, np.asarray(codes))
