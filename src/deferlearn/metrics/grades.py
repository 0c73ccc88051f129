"""Metrics of grades: classes with an order, in which an error can be small or large."""

import numpy as np
from numpy.typing import ArrayLike

from deferlearn.humans.positions import positions
from deferlearn.metrics.classes import confusion_counts
from deferlearn.metrics.counts import ratio
from deferlearn.metrics.labels import check_pair, find_grades


def team_grade_error(
    y_true: ArrayLike, y_pred: ArrayLike, *, grades: ArrayLike | None = None
) -> float:
    """Mean number of grades by which the answers are off.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True grades.
    y_pred : array-like of shape (n_samples,)
        The team's answers.
    grades : array-like of labels, default=None
        All grades from the lowest to the highest; neighbours are one grade apart, whatever their labels.
        None means the numbers that occur, sorted: give `grades` if some may not occur, or if they are
        words.

    Returns
    -------
    error : float
        Between 0 and the number of grades minus one; smaller is better. With two grades it is the error.

    Examples
    --------
    >>> from deferlearn.metrics import team_grade_error
    >>> team_grade_error([0, 1, 2, 3], [0, 2, 2, 1])
    0.75
    >>> team_grade_error(["mild", "severe"], ["severe", "severe"], grades=["mild", "medium", "severe"])
    1.0
    """
    truth, answer = check_pair(y_true, y_pred)
    known = find_grades(grades, y_true=truth, y_pred=answer)
    return float(np.mean(np.abs(positions(truth, known) - positions(answer, known))))


def team_quadratic_kappa(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    grades: ArrayLike | None = None,
    zero_division: str | float = "warn",
) -> float:
    """Cohen's kappa with quadratic weights: agreement beyond chance, large errors counting most.

    It is ``1 - a / b``, where a is the mean squared number of grades by which the answers are off, and b
    is what a would be if the same answers were given to the cases at random.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True grades.
    y_pred : array-like of shape (n_samples,)
        The team's answers.
    grades : array-like of labels, default=None
        All grades from the lowest to the highest, as in `team_grade_error`.
    zero_division : "warn" or float, default="warn"
        Value if all labels and answers are the same grade; "warn" gives 0 and a warning.

    Returns
    -------
    kappa : float
        1 if all answers are right, about 0 if they are random, negative if they are worse.

    Examples
    --------
    >>> from deferlearn.metrics import team_quadratic_kappa
    >>> team_quadratic_kappa([0, 1, 2, 3], [0, 2, 2, 3])
    0.9
    """
    truth, answer = check_pair(y_true, y_pred)
    known = find_grades(grades, y_true=truth, y_pred=answer)
    counts = confusion_counts(truth, answer, classes=known)
    place = np.arange(len(known))
    weights = (place[:, None] - place) ** 2
    by_chance = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / len(truth)
    away, expected = float((weights * counts).sum()), float((weights * by_chance).sum())
    what = "two different grades among labels and answers"
    return ratio(expected - away, expected, "kappa", what, zero_division)
