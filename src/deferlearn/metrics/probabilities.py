"""How good probabilities of the classes are: the Brier score and the log loss."""

import numpy as np
from numpy.typing import ArrayLike

from deferlearn._utils.types import Array
from deferlearn.humans.answers import shown
from deferlearn.humans.coding import Codes
from deferlearn.humans.positions import positions
from deferlearn.metrics.labels import find_classes, has_larger

# Probabilities in single precision, and those of many classes, sum to one only approximately.
ROUNDING = 1e-5


def check_probabilities(
    y_true: ArrayLike, proba: ArrayLike, classes: ArrayLike | None = None
) -> tuple[Codes, Array, list[object]]:
    """Positions of the labels among the classes, one column of probabilities per class, the classes.

    A vector stands for the second of two classes.
    """
    truth, given = np.asarray(y_true), np.asarray(proba, dtype=np.float64)
    if truth.ndim != 1 or given.ndim not in (1, 2) or len(truth) != len(given):
        raise ValueError(
            "y_true must be a vector, and proba must have one row per label, got the shapes "
            f"{truth.shape} and {given.shape}"
        )
    if not len(truth):
        raise ValueError("y_true is empty: a metric needs at least one case")
    known = find_classes(classes, y_true=truth)
    n_columns = 2 if given.ndim == 1 else given.shape[1]
    if len(known) != n_columns or n_columns < 2:
        held = "is a vector, for two classes" if given.ndim == 1 else f"has {n_columns} columns"
        raise ValueError(
            f"proba {held}, but there are {len(known)} classes ({shown(known)}): name all classes in "
            "the order of the columns with classes=[...]"
        )
    if given.ndim == 1 and classes is None and not has_larger(known):
        raise ValueError(
            f"of which class are these the probabilities, {known[0]!r} or {known[1]!r}? Name it last in "
            "classes=[...]"
        )
    inside = (given >= -ROUNDING) & (given <= 1 + ROUNDING)  # false for NaN
    if not inside.all():
        row = np.argwhere(~inside)[0]
        raise ValueError(
            f"probabilities must lie between 0 and 1, but row {row[0]} holds {given[tuple(row)]:g}"
        )
    table = np.column_stack([1 - given, given]) if given.ndim == 1 else given
    sums = table.sum(axis=1)
    off = np.abs(sums - 1) > ROUNDING * n_columns
    if off.any():
        row = np.flatnonzero(off)[0]
        raise ValueError(
            f"the probabilities of a case must sum to one, but those of row {row} sum to "
            f"{sums[row]:g}"
        )
    return positions(truth, known), np.clip(table, 0.0, 1.0), known


def brier_score(y_true: ArrayLike, proba: ArrayLike, *, classes: ArrayLike | None = None) -> float:
    """Mean squared distance of the probabilities from the truth.

    For two classes it is the mean of ``(p - y)^2``, where p is the probability of the second class and y
    is 1 or 0. For more, it is the mean over the cases of the sum of ``(p_k - y_k)^2`` over the classes.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels.
    proba : array-like of shape (n_samples, n_classes) or (n_samples,)
        A column per class, as `predict_proba` gives them; a vector is for the second of two classes.
    classes : array-like of labels, default=None
        The classes in the order of the columns; None means the labels that occur, sorted.

    Returns
    -------
    score : float
        Smaller is better: 0 is perfect. The worst value is 1 for two classes, and 2 for more.

    Examples
    --------
    >>> from deferlearn.metrics import brier_score
    >>> brier_score([0, 1], [0.5, 1.0])
    0.125
    >>> brier_score(["a", "b", "c"], [[1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [0.0, 0.0, 1.0]])
    0.166...
    """
    truth, table, known = check_probabilities(y_true, proba, classes)
    hit = np.arange(len(known)) == truth[:, None]
    # Both columns of two classes say the same, and count once.
    n_columns = 1 if len(known) == 2 else len(known)
    return float(((table - hit) ** 2)[:, :n_columns].sum(axis=1).mean())


def log_loss(y_true: ArrayLike, proba: ArrayLike, *, classes: ArrayLike | None = None) -> float:
    """Mean of the negative logarithm of the true classes' probabilities.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels.
    proba : array-like of shape (n_samples, n_classes) or (n_samples,)
        A column per class, as `predict_proba` gives them; a vector is for the second of two classes.
    classes : array-like of labels, default=None
        The classes in the order of the columns; None means the labels that occur, sorted.

    Returns
    -------
    loss : float
        Smaller is better: 0 is perfect. A probability of 0 for a true class counts as 2e-16, as in
        scikit-learn, so that one case cannot make the mean infinite.

    Examples
    --------
    >>> from deferlearn.metrics import log_loss
    >>> log_loss([0, 1], [0.5, 1.0])
    0.346...
    """
    truth, table, _ = check_probabilities(y_true, proba, classes)
    of_truth = np.take_along_axis(table, truth[:, None], axis=1)
    return float(-np.log(np.maximum(of_truth, np.finfo(np.float64).eps)).mean())
