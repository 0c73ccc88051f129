"""Metrics that treat all classes alike: confusions, sensitivity by class, and means over the classes."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deferlearn._utils.types import Array
from deferlearn.humans.positions import positions
from deferlearn.metrics.counts import shares
from deferlearn.metrics.labels import check_pair, find_classes


def confusion_counts(
    y_true: ArrayLike, y_pred: ArrayLike, *, classes: ArrayLike | None = None
) -> NDArray[np.int64]:
    """How often each answer is given for each true class: a row per true class, a column per answer.

    Call it once each for the answers of the machine, the human and the team.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels.
    y_pred : array-like of shape (n_samples,)
        The answers of a machine, a human or a team.
    classes : array-like of labels, default=None
        All classes, in the order of rows and columns; None means the labels that occur, sorted.

    Returns
    -------
    counts : ndarray of int of shape (n_classes, n_classes)
        Right answers are on the diagonal.

    See Also
    --------
    deferlearn.plot.ConfusionDisplay : The picture for machine, human and team.

    Examples
    --------
    >>> from deferlearn.metrics import confusion_counts
    >>> truth, answers = ["low", "low", "mid", "high"], ["low", "mid", "mid", "mid"]
    >>> confusion_counts(truth, answers, classes=["low", "mid", "high"])
    array([[1, 1, 0],
           [0, 1, 0],
           [0, 1, 0]])
    """
    truth, answer = check_pair(y_true, y_pred)
    known = find_classes(classes, y_true=truth, y_pred=answer)
    k = len(known)
    cells = k * positions(truth, known) + positions(answer, known)
    return np.bincount(cells, minlength=k * k).reshape(k, k).astype(np.int64)


def sensitivity_by_class(
    y_true: ArrayLike, y_pred: ArrayLike, *, classes: ArrayLike | None = None
) -> Array:
    """Share of the cases of each class that are found (recall).

    Call it once each for the answers of the machine, the human and the team.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels.
    y_pred : array-like of shape (n_samples,)
        The answers of a machine, a human or a team.
    classes : array-like of labels, default=None
        All classes, in the order of the result; None means the labels that occur, sorted.

    Returns
    -------
    sensitivity : ndarray of shape (n_classes,)
        Between 0 and 1; NaN for a class without cases.

    Examples
    --------
    >>> from deferlearn.metrics import sensitivity_by_class
    >>> sensitivity_by_class([0, 0, 1, 2], [0, 1, 1, 1], classes=[0, 1, 2, 3])
    array([0.5, 1. , 0. , nan])
    """
    counts = confusion_counts(y_true, y_pred, classes=classes)
    return shares(np.diag(counts), counts.sum(axis=1))


def team_macro_sensitivity(
    y_true: ArrayLike, y_pred: ArrayLike, *, classes: ArrayLike | None = None
) -> float:
    """Mean of the classes' sensitivities, in which rare classes count as much as others.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels.
    y_pred : array-like of shape (n_samples,)
        The team's answers.
    classes : array-like of labels, default=None
        All classes; None means the labels that occur. Classes without cases are left out of the mean.

    Returns
    -------
    sensitivity : float
        Between 0 and 1; larger is better. For two classes it is the mean of sensitivity and specificity.

    Examples
    --------
    >>> from deferlearn.metrics import team_macro_sensitivity
    >>> team_macro_sensitivity([0, 0, 1, 2], [0, 1, 1, 1])
    0.5
    """
    return float(np.nanmean(sensitivity_by_class(y_true, y_pred, classes=classes)))


def team_macro_f1(
    y_true: ArrayLike, y_pred: ArrayLike, *, classes: ArrayLike | None = None
) -> float:
    """Mean of the F1 scores of the classes, each against all others.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels.
    y_pred : array-like of shape (n_samples,)
        The team's answers.
    classes : array-like of labels, default=None
        All classes; None means the labels that occur. A class that is neither a label nor an answer here
        is left out of the mean, as in scikit-learn.

    Returns
    -------
    f1 : float
        Between 0 and 1; larger is better.

    See Also
    --------
    team_f1 : F1 of one class, or the usual F1 of two classes.

    Examples
    --------
    >>> from deferlearn.metrics import team_macro_f1
    >>> team_macro_f1(["a", "a", "b", "c"], ["a", "b", "b", "c"])
    0.777...
    """
    counts = confusion_counts(y_true, y_pred, classes=classes)
    both = counts.sum(axis=0) + counts.sum(axis=1)
    return float(np.nanmean(shares(2 * np.diag(counts), both)))
