"""Error, cost, and the metrics of a positive class; for the cost, the deferred cases count too."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from deferlearn.humans.coding import check_cost_matrix
from deferlearn.metrics.classes import confusion_counts
from deferlearn.metrics.counts import check_costs, check_deferred, count, ratio
from deferlearn.metrics.labels import check_pair, find_classes


def team_error(y_true: ArrayLike, y_pred: ArrayLike) -> float:
    """Share of wrong answers, for two or more classes.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels.
    y_pred : array-like of shape (n_samples,)
        The team's answers, as `predict_assisted` gives them.

    Returns
    -------
    error : float
        Between 0 and 1; smaller is better.

    Examples
    --------
    >>> from deferlearn.metrics import team_error
    >>> team_error([1, 1, -1, -1], [1, -1, -1, -1])
    0.25
    """
    truth, answer = check_pair(y_true, y_pred)
    return float(np.mean(truth != answer))


def team_f1(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    pos_label: Any = None,
    classes: ArrayLike | None = None,
    zero_division: str | float = "warn",
) -> float:
    """F1 score on the positive class, ``2 TP / (2 TP + FP + FN)``.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels.
    y_pred : array-like of shape (n_samples,)
        The team's answers.
    pos_label : label, default=None
        The positive class. None means the larger of two numbers. It must be given if labels are words,
        or if there are more than two classes; all other classes are then negative.
    classes : array-like of labels, default=None
        All classes, if some may be absent here; None means the labels that occur.
    zero_division : "warn" or float, default="warn"
        Value if neither a label nor an answer is positive; "warn" gives 0 and a warning.

    Returns
    -------
    f1 : float
        Between 0 and 1; larger is better.

    Examples
    --------
    >>> from deferlearn.metrics import team_f1
    >>> team_f1(["sick", "sick", "well"], ["sick", "well", "well"], pos_label="sick")
    0.6666666666666666
    """
    _, fp, fn, tp = count(y_true, y_pred, pos_label, classes)
    return ratio(2 * tp, 2 * tp + fp + fn, "F1", "positive labels or answers", zero_division)


def team_sensitivity(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    pos_label: Any = None,
    classes: ArrayLike | None = None,
    zero_division: str | float = "warn",
) -> float:
    """Share of the positive cases that are found (recall).

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels.
    y_pred : array-like of shape (n_samples,)
        The team's answers.
    pos_label : label, default=None
        The positive class. None means the larger of two numbers. It must be given if labels are words,
        or if there are more than two classes; all other classes are then negative.
    classes : array-like of labels, default=None
        All classes, if some may be absent here; None means the labels that occur.
    zero_division : "warn" or float, default="warn"
        Value if no case is positive; "warn" gives 0 and a warning.

    Returns
    -------
    sensitivity : float
        Between 0 and 1; larger is better.

    Examples
    --------
    >>> from deferlearn.metrics import team_sensitivity
    >>> team_sensitivity([1, 1, -1, -1], [1, -1, -1, -1])
    0.5
    """
    _, _, fn, tp = count(y_true, y_pred, pos_label, classes)
    return ratio(tp, tp + fn, "sensitivity", "positive cases", zero_division)


def team_specificity(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    pos_label: Any = None,
    classes: ArrayLike | None = None,
    zero_division: str | float = "warn",
) -> float:
    """Share of the negative cases that are recognised as negative.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels.
    y_pred : array-like of shape (n_samples,)
        The team's answers.
    pos_label : label, default=None
        The positive class. None means the larger of two numbers. It must be given if labels are words,
        or if there are more than two classes; all other classes are then negative.
    classes : array-like of labels, default=None
        All classes, if some may be absent here; None means the labels that occur.
    zero_division : "warn" or float, default="warn"
        Value if no case is negative; "warn" gives 0 and a warning.

    Returns
    -------
    specificity : float
        Between 0 and 1; larger is better.

    Examples
    --------
    >>> from deferlearn.metrics import team_specificity
    >>> team_specificity([1, 1, -1, -1], [1, -1, -1, -1])
    1.0
    """
    tn, fp, _, _ = count(y_true, y_pred, pos_label, classes)
    return ratio(tn, tn + fp, "specificity", "negative cases", zero_division)


def team_cost(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    deferred: ArrayLike | None = None,
    *,
    false_positive: float = 1.0,
    false_negative: float = 1.0,
    deferral_cost: float = 0.0,
    cost_matrix: ArrayLike | None = None,
    pos_label: Any = None,
    classes: ArrayLike | None = None,
) -> float:
    """Average cost per case: of errors, whose costs may differ, and of the human's time.

    ``(false_positive FP + false_negative FN + deferral_cost * deferred cases) / n_samples``. With
    `cost_matrix`, the first two terms are the sum of its entries over the cases.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels.
    y_pred : array-like of shape (n_samples,)
        The team's answers.
    deferred : array-like of bool of shape (n_samples,), default=None
        Which cases the human took; needed if `deferral_cost` is not 0.
    false_positive, false_negative : float, default=1
        Cost of an error of either kind. If the two are equal, there may be more than two classes.
    deferral_cost : float, default=0
        Cost of a case that the human takes, in the same unit.
    cost_matrix : array-like of shape (n_classes, n_classes), default=None
        Costs of answers for any number of classes, instead of `false_positive` and `false_negative`: a
        row per true class, a column per answer.
    pos_label : label, default=None
        The positive class. None means the larger of two numbers; labels that are words need it, unless
        both kinds of errors cost the same.
    classes : array-like of labels, default=None
        All classes, in the order of `cost_matrix`; None means the labels that occur, sorted.

    Returns
    -------
    cost : float
        Smaller is better. With the default costs it is the error.

    Examples
    --------
    >>> from deferlearn.metrics import team_cost
    >>> y_true, y_pred, deferred = [1, 1, -1, -1], [1, -1, 1, -1], [True, False, False, False]
    >>> team_cost(y_true, y_pred, deferred, false_negative=5, deferral_cost=0.4)
    1.6
    >>> team_cost([0, 1, 2, 2], [0, 1, 1, 0], cost_matrix=[[0, 1, 1], [2, 0, 1], [8, 4, 0]])
    3.0
    """
    check_costs(
        false_positive=false_positive, false_negative=false_negative, deferral_cost=deferral_cost
    )
    truth, answer = check_pair(y_true, y_pred)
    known = find_classes(classes, y_true=truth, y_pred=answer)
    if cost_matrix is not None:
        if (false_positive, false_negative) != (1, 1):
            raise ValueError("give either cost_matrix, or false_positive and false_negative")
        costs = check_cost_matrix(cost_matrix, known)
        cost = float((costs * confusion_counts(truth, answer, classes=known)).sum())
    elif false_positive == false_negative:
        cost = false_positive * float(np.sum(truth != answer))
    elif len(known) > 2:
        raise ValueError(
            f"false_positive and false_negative are for two classes, but there are {len(known)}: give "
            "cost_matrix"
        )
    else:
        _, fp, fn, _ = count(truth, answer, pos_label, classes)
        cost = false_positive * fp + false_negative * fn
    if deferral_cost:
        cost += deferral_cost * check_deferred(deferred, len(truth)).sum()
    return float(cost / len(truth))
