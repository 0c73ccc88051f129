"""Find a metric by its name, find the estimator that defers, and apply the one to the other."""

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.pipeline import Pipeline

from deferlearn.humans.labels import check_truth
from deferlearn.metrics.classes import team_macro_f1, team_macro_sensitivity
from deferlearn.metrics.grades import team_grade_error, team_quadratic_kappa
from deferlearn.metrics.labels import has_larger
from deferlearn.metrics.team import (
    team_cost,
    team_error,
    team_f1,
    team_sensitivity,
    team_specificity,
)

Metric = Callable[..., float]

# Name -> function and whether larger is better.
METRICS: dict[str, tuple[Metric, bool]] = {
    "error": (team_error, False),
    "f1": (team_f1, True),
    "sensitivity": (team_sensitivity, True),
    "specificity": (team_specificity, True),
    "cost": (team_cost, False),
    "macro_f1": (team_macro_f1, True),
    "macro_sensitivity": (team_macro_sensitivity, True),
    "grade_error": (team_grade_error, False),
    "quadratic_kappa": (team_quadratic_kappa, True),
}


def find_metric(metric: str | Metric) -> tuple[Metric, bool]:
    """Look up a metric by its name; a function is returned as it is.

    Parameters
    ----------
    metric : str or callable
        "error", "f1", "sensitivity", "specificity", "cost", "macro_f1" or "macro_sensitivity"; for grades
        also "grade_error" and "quadratic_kappa". With more than two classes, "f1", "sensitivity" and
        "specificity" need `pos_label`, and a "cost" with unequal costs of errors needs `cost_matrix`. A
        callable has the arguments (y_true, y_pred) and, if it needs them, those of `evaluate_team`.

    Returns
    -------
    function : callable
        The metric.
    greater_is_better : bool
        False for "error", "cost" and "grade_error", by name or as functions of this package; True for all
        others.

    Examples
    --------
    >>> from deferlearn.metrics import find_metric
    >>> find_metric("error")[1]
    False
    """
    if callable(metric):
        bare = metric.func if isinstance(metric, partial) else metric
        return metric, all(better for known, better in METRICS.values() if known is bare)
    if not isinstance(metric, str) or metric not in METRICS:
        names = ", ".join(repr(name) for name in METRICS)
        raise ValueError(f"metric={metric!r} is not known; use {names} or a function")
    return METRICS[metric]


def evaluate_team(
    metric: Metric,
    y_true: ArrayLike,
    y_pred: ArrayLike,
    deferred: Callable[[], ArrayLike],
    classes: ArrayLike | None = None,
    *,
    ordered: bool = False,
    **options: Any,
) -> float:
    """Apply a metric to a team's answers, with the options that the metric takes.

    Parameters
    ----------
    metric : callable
        Called with y_true, y_pred and, where its signature has them, `deferred`, `classes`, `grades` and
        `pos_label`.
    y_true, y_pred : array-like of shape (n_samples,)
        True labels and the team's answers.
    deferred : callable
        Returns the mask of the deferred cases; called only if the metric takes `deferred`.
    classes : array-like of labels, default=None
        The estimator's classes: a small test set may lack one of them. If they are numbers, they are also
        the `grades`, sorted, and if there are two, the second one is positive. If they are words, none is
        positive, and they have no order. What `options` or the metric itself sets takes precedence.
    ordered : bool, default=False
        Whether the classes are grades, from the lowest to the highest.
    **options
        Passed on to the metric.

    Returns
    -------
    value : float
        The value of the metric.

    Examples
    --------
    >>> from deferlearn.metrics import evaluate_team, team_error
    >>> evaluate_team(team_error, [1, -1], [1, 1], deferred=lambda: [True, False])
    0.5
    """
    if classes is not None:
        check_truth(y_true, np.asarray(classes))
    parameters = inspect.signature(metric).parameters
    if "deferred" in parameters:
        options["deferred"] = deferred()
    if classes is not None:
        for name, value in _defaults(np.asarray(classes), ordered).items():
            # A functools.partial may have set it.
            unset = name in parameters and parameters[name].default is None
            if unset and options.get(name) is None:
                options[name] = value
    return float(metric(y_true, y_pred, **options))


def _defaults(classes: NDArray[Any], ordered: bool) -> dict[str, Any]:
    """What a metric may need to know of an estimator's classes."""
    known: dict[str, Any] = {"classes": classes}
    if ordered:
        known["grades"] = classes
    if has_larger(classes):
        known.setdefault("grades", np.sort(classes))
        if len(classes) == 2:
            known["pos_label"] = classes.tolist()[-1]
    return known


def find_member(estimator: Any, X: Any) -> tuple[Any, Any]:
    """Find the estimator that has `predict_assisted`, and its input.

    Parameters
    ----------
    estimator : fitted estimator
        Returned as it is if it has `predict_assisted`. Of a pipeline, the last step is returned, with
        X transformed by the steps before; of a search, its `best_estimator_`, with X as it is.
    X : array-like
        Input of `estimator`.

    Returns
    -------
    member : estimator
        The one that has `predict_assisted`.
    X : array-like
        Its input.

    Examples
    --------
    >>> from deferlearn.metrics import find_member
    >>> find_member("no estimator", [[0.0]])
    Traceback (most recent call last):
    TypeError: a team needs an estimator with predict_assisted, such as AssistedSVC; str has none...
    """
    member = estimator
    while not hasattr(member, "predict_assisted"):
        if isinstance(member, Pipeline) and len(member.steps):
            if len(member.steps) > 1:
                X = member[:-1].transform(X)
            member = member[-1]
        elif hasattr(member, "best_estimator_"):
            member = member.best_estimator_
        else:
            raise TypeError(
                "a team needs an estimator with predict_assisted, such as AssistedSVC; "
                f"{type(member).__name__} has none"
            )
    return member, X
