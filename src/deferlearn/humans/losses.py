"""Losses from scores and labels, with one reader or several, gaps allowed."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deferlearn._utils.checks import plain
from deferlearn._utils.types import Array, Labels
from deferlearn.humans.answers import (
    as_array,
    as_objects,
    check_answers,
    encode_labels,
    find_missing,
    match,
    numbers_with_gaps,
)
from deferlearn.humans.averages import average_answers

# The hinge loss of an answer at full confidence (h = +1 or -1). So `LOSS_WRONG` is the factor between the
# two scales in use: one error is 1 where errors are counted (`deferral_cost`, the metrics), and
# `LOSS_WRONG` on the scale of hinge losses, on which machine and human are compared in training.
LOSS_RIGHT, LOSS_WRONG = 0.0, 2.0


def loss_from_scores(
    scores: ArrayLike,
    y: ArrayLike,
    human_bound: float | None = None,
    *,
    classes: ArrayLike | None = None,
    shrinkage: float | str = 0.0,
) -> Array:
    """Hinge loss of a human's scores: 0 when right and 2 when wrong, both at full confidence.

    The loss of a sample is ``[1 - y h]_+``; with several readers it is the mean of their losses.

    Parameters
    ----------
    scores : array-like of shape (n_samples,) or (n_samples, n_readers)
        The scores h; positive speaks for the class +1. NaN, None and pandas' NA mark a missing
        answer; a sample without an answer gets the average loss of its class, with a warning.
    y : array-like of shape (n_samples,)
        True labels: -1 and +1, or any two labels, of which the larger one is taken as +1.
    human_bound : float, default=None
        The paper's H. When given, a score outside [-human_bound, human_bound] is an error.
    classes : pair of labels, default=None
        The (negative, positive) class; needed only if y holds one of them.
    shrinkage : float or "auto", default=0
        The strength k with which a mean is drawn towards the average of its class, as if k further
        answers had that average loss; see `loss_from_table`.

    Returns
    -------
    loss : ndarray of shape (n_samples,)
        One non-negative number per sample.

    Examples
    --------
    >>> from deferlearn.humans import loss_from_scores
    >>> loss_from_scores([0.8, -0.5, -1.0], [+1, +1, -1])
    array([0.2, 1.5, 0. ])
    >>> loss_from_scores([[1.0, 0.0], [1.0, None]], ["sick", "healthy"])
    array([0.5, 2. ])
    """
    signs, pair = encode_labels(y, classes)
    table = _check_scores(scores, len(signs))
    given = ~np.isnan(table)
    if human_bound is not None:
        check_bound(table[given], human_bound)
    losses = np.maximum(0.0, 1.0 - signs[:, None] * table)
    return average_answers(losses, given, (signs + 1) // 2, pair, shrinkage)


def loss_from_labels(
    answers: ArrayLike,
    y: ArrayLike,
    *,
    classes: ArrayLike | None = None,
    shrinkage: float | str = 0.0,
) -> Array:
    """Loss of a human's answers: right costs 0, wrong costs 2, the hinge loss at h = -1 or +1.

    With several readers it is the mean of their losses.

    Parameters
    ----------
    answers : array-like of shape (n_samples,) or (n_samples, n_readers)
        Answers in the labels of y. NaN, None and pandas' NA mark a missing one; a sample without an
        answer gets the average loss of its class, with a warning.
    y : array-like of shape (n_samples,)
        True labels, of any two classes.
    classes : pair of labels, default=None
        Both classes; needed only if y holds one of them.
    shrinkage : float or "auto", default=0
        The strength k with which a mean is drawn towards the average of its class, as if k further
        answers had that average loss; see `loss_from_table`.

    Returns
    -------
    loss : ndarray of shape (n_samples,)
        Between 0 and 2.

    Examples
    --------
    >>> from deferlearn.humans import loss_from_labels
    >>> loss_from_labels(["sick", "sick", "well"], ["sick", "well", "well"])
    array([0., 2., 0.])
    >>> loss_from_labels([[1, 0, None], [1, 1, 0]], [1, 0])
    array([1.        , 1.33333333])
    """
    table = check_answers(answers, "answers")
    given = ~find_missing(table)
    signs, pair = encode_labels(y, classes, others=table[given])
    check_answers(table, "answers", len(signs))
    if not given.all():
        table = np.array(table, dtype=object)
        table[~given] = pair[0]  # any class: what is not given is not counted
    said = np.where(match(table, pair, "answers"), 1, -1)
    losses = np.where(said == signs[:, None], LOSS_RIGHT, LOSS_WRONG)
    return average_answers(losses, given, (signs + 1) // 2, pair, shrinkage)


def labels_from_scores(scores: ArrayLike) -> NDArray[np.int64]:
    """Answer that a score stands for: its sign, where 0 counts as +1.

    Parameters
    ----------
    scores : array-like of shape (n_samples,) or (n_samples, n_readers)
        The scores h. All must be finite: a missing score has no sign.

    Returns
    -------
    labels : ndarray of the same shape
        -1 or +1.

    Examples
    --------
    >>> from deferlearn.humans import labels_from_scores
    >>> labels_from_scores([0.3, -0.2, 0.0])
    array([ 1, -1,  1])
    """
    table = _check_scores(scores)
    missing = np.isnan(table)
    if missing.any():
        raise ValueError(
            f"row {np.argwhere(missing)[0, 0]} of scores has a missing answer, which has no sign"
        )
    return np.where(table >= 0, 1, -1).reshape(np.shape(scores))


def majority_labels(answers: ArrayLike, *, default: ArrayLike | None = None) -> Labels:
    """Combine the answers of several readers into one: what most of them say.

    In a tie, the answer that stands furthest left among those given most often is taken. Missing
    answers do not count.

    Parameters
    ----------
    answers : array-like of shape (n_samples,) or (n_samples, n_readers)
        Labels of any kind and number; NaN, None and pandas' NA mark a missing answer.
    default : array-like of shape (n_samples,), default=None
        Labels for the rows without an answer, such as the machine's. With None such a row is an
        error.

    Returns
    -------
    labels : ndarray of shape (n_samples,)
        In the labels of `answers`.

    Examples
    --------
    >>> from deferlearn.humans import majority_labels
    >>> majority_labels([[1, -1, -1], [1, -1, None], [None, -1, None]])
    array([-1,  1, -1])
    >>> majority_labels([["sick", "well", "sick"], [None, None, None]], default=["well", "well"])
    array(['sick', 'well'], dtype='<U4')
    """
    table = check_answers(answers, "answers")
    given = ~find_missing(table)
    unanswered = ~given.any(axis=1)
    n_samples = len(table)
    fallback = None if default is None else as_array(default)
    if fallback is not None and fallback.shape != (n_samples,):
        raise ValueError(
            f"default has the shape {fallback.shape}, give one label for each of the {n_samples} rows"
        )
    if unanswered.any() and fallback is None:
        raise ValueError(
            f"no answer was given for {unanswered.sum()} of {n_samples} rows, the first of them row "
            f"{np.flatnonzero(unanswered)[0]}: ask a human, or give default="
        )
    # Votes for the answer in each place; argmax takes the first of the largest.
    entries = np.full(table.shape, -1)
    codes: dict[Any, int] = {}
    entries[given] = [codes.setdefault(entry, len(codes)) for entry in as_objects(table[given])]
    same = [(entries == entries[:, [column]]).sum(axis=1) for column in range(table.shape[1])]
    votes = np.where(given, np.stack(same, axis=1), 0)
    chosen = np.asarray(table[np.arange(n_samples), votes.argmax(axis=1)])
    if fallback is not None and unanswered.any():
        chosen = as_objects(chosen)
        chosen[unanswered] = as_objects(fallback)[unanswered]
    return np.array(chosen.tolist()) if chosen.dtype.kind == "O" else chosen


def _check_scores(scores: Any, n_samples: int | None = None) -> Array:
    """Scores with two axes, NaN where an answer is missing."""
    table = check_answers(scores, "scores", n_samples)
    numbers = numbers_with_gaps(table, "scores")
    infinite = np.isinf(numbers)
    if infinite.any():
        raise ValueError(f"scores must be finite, row {np.argwhere(infinite)[0, 0]} is not")
    return numbers


def check_bound(scores: Array, human_bound: float) -> None:
    """Refuse scores outside of [-human_bound, human_bound]."""
    if not human_bound > 0:
        raise ValueError(
            f"human_bound must be a positive number or None, got {plain(human_bound)!r}"
        )
    largest = np.abs(scores).max(initial=0.0)
    if largest > human_bound:
        raise ValueError(
            f"a score of absolute value {largest:g} lies outside [-{human_bound:g}, "
            f"{human_bound:g}]: rescale the scores or raise human_bound"
        )
