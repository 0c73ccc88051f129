"""The metrics of a team, as functions of labels, answers and, for the cost, the deferred cases."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from deferlearn.metrics.counts import check_costs, check_deferred, check_pair, count, ratio


def team_error(y_true: ArrayLike, y_pred: ArrayLike) -> float:
    """Share of wrong answers.

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
        The positive class. None means the larger of two numbers; labels that are words need it.
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
    _, fp, fn, tp = count(y_true, y_pred, pos_label)
    return ratio(2 * tp, 2 * tp + fp + fn, "F1", "positive labels or answers", zero_division)


def team_sensitivity(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    pos_label: Any = None,
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
        The positive class. None means the larger of two numbers; labels that are words need it.
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
    _, _, fn, tp = count(y_true, y_pred, pos_label)
    return ratio(tp, tp + fn, "sensitivity", "positive cases", zero_division)


def team_specificity(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    pos_label: Any = None,
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
        The positive class. None means the larger of two numbers; labels that are words need it.
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
    tn, fp, _, _ = count(y_true, y_pred, pos_label)
    return ratio(tn, tn + fp, "specificity", "negative cases", zero_division)


def team_cost(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    deferred: ArrayLike | None = None,
    *,
    false_positive: float = 1.0,
    false_negative: float = 1.0,
    deferral_cost: float = 0.0,
    pos_label: Any = None,
) -> float:
    """Average cost of a case: of false alarms, of missed cases, and of the human's time.

    ``(false_positive FP + false_negative FN + deferral_cost * deferred cases) / n_samples``.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels.
    y_pred : array-like of shape (n_samples,)
        The team's answers.
    deferred : array-like of bool of shape (n_samples,), default=None
        Which cases the human took; needed if `deferral_cost` is not 0.
    false_positive, false_negative : float, default=1
        Cost of an error of either kind.
    deferral_cost : float, default=0
        Cost of a case that the human takes, in the same unit.
    pos_label : label, default=None
        The positive class. None means the larger of two numbers; labels that are words need it, unless
        both kinds of errors cost the same.

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
    """
    check_costs(
        false_positive=false_positive, false_negative=false_negative, deferral_cost=deferral_cost
    )
    _, fp, fn, _ = count(y_true, y_pred, pos_label, either=false_positive == false_negative)
    n_samples = len(np.asarray(y_true))
    cost = false_positive * fp + false_negative * fn
    if deferral_cost:
        cost += deferral_cost * check_deferred(deferred, n_samples).sum()
    return float(cost / n_samples)
