"""Metrics of the team against the budget, over many splits: arrays only, no figures."""

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.model_selection import GroupShuffleSplit, StratifiedShuffleSplit
from sklearn.utils import _safe_indexing

from deferlearn._utils.types import Array
from deferlearn.evaluation.checks import check_budgets, check_confidence, split_data
from deferlearn.evaluation.intervals import CONFIDENCE, t_interval
from deferlearn.metrics import evaluate_team, find_metric
from deferlearn.teams.held_out import splitter_of
from deferlearn.teams.refits import TestPart, budget_name, refit

# The budgets of the paper's experiments on real data, and its share of test cases.
PAPER_BUDGETS = (0.0, 0.04, 0.08, 0.12, 0.16, 0.2)
TEST_SIZE = 0.4
DEFAULT_SPLITS = 20


@dataclass(frozen=True)
class AutomationCurve:
    """Metrics of one team at each budget, on each split.

    Attributes
    ----------
    budgets : ndarray of shape (n_budgets,)
        The budgets.
    values : dict of str to ndarray of shape (n_splits, n_budgets)
        Values of each metric, by its name.
    deferred : ndarray of shape (n_splits, n_budgets)
        Share of the test cases that the human took.
    confidence : float
        Level of the intervals.
    """

    budgets: NDArray[Any]
    values: dict[str, Array]
    deferred: Array
    confidence: float = CONFIDENCE

    @property
    def mean(self) -> dict[str, Array]:
        """Mean over the splits, by the metric's name."""
        return {name: values.mean(axis=0) for name, values in self.values.items()}

    @property
    def lower(self) -> dict[str, Array]:
        """Lower end of the t-interval for the mean; NaN with a single split."""
        return {name: t_interval(v, self.confidence)[1] for name, v in self.values.items()}

    @property
    def upper(self) -> dict[str, Array]:
        """Upper end of the t-interval for the mean; NaN with a single split."""
        return {name: t_interval(v, self.confidence)[2] for name, v in self.values.items()}

    def difference(self, other: "AutomationCurve") -> "AutomationCurve":
        """Paired difference from another team that was measured on the same splits.

        Parameters
        ----------
        other : AutomationCurve
            From the same call of `automation_curve`, or one with the same budgets and splits.

        Returns
        -------
        difference : AutomationCurve
            This curve minus the other, split by split, with the intervals of the difference.
        """
        if not np.array_equal(self.budgets, other.budgets) or (
            self.deferred.shape != other.deferred.shape
        ):
            raise ValueError("only curves of the same budgets and splits can be compared")
        both = {n: v - other.values[n] for n, v in self.values.items() if n in other.values}
        return AutomationCurve(self.budgets, both, self.deferred - other.deferred, self.confidence)


def automation_curve(
    estimator: Any,
    X: Any,
    y: ArrayLike,
    *,
    human_labels: ArrayLike,
    human_scores: ArrayLike | None = None,
    human_loss: ArrayLike | None = None,
    budgets: ArrayLike = PAPER_BUDGETS,
    cv: Any = None,
    metrics: Sequence[str] | Mapping[str, Any] | str | None = None,
    batch: bool = True,
    groups: ArrayLike | None = None,
    random_state: int | np.random.RandomState | None = None,
    n_jobs: int | None = None,
    confidence: float = CONFIDENCE,
    pos_label: Any = None,
) -> Any:
    """Measure a team at several budgets: metrics against the share of cases that humans may take.

    For each split and budget a clone of the estimator gets ``set_params(budget=...)``, is fitted on
    the training part and answers the test part together with the human (`predict_assisted`).

    Parameters
    ----------
    estimator : estimator with `predict_assisted`, or dict of name to estimator
        `AssistedSVC`, a baseline, or a pipeline around one. An estimator without a parameter `budget`
        is fitted once per split, and its curve is flat. Several estimators are measured on the same
        splits, so that they can be compared pairwise by `AutomationCurve.difference`.
    X : array-like of shape (n_samples, n_features)
        Cases.
    y : array-like of shape (n_samples,)
        True labels.
    human_labels : array-like of shape (n_samples,) or (n_samples, n_readers)
        The humans' answers, used on the test part, and in `fit` unless one of the next two is given.
    human_scores, human_loss : array-like, default=None
        Passed to `fit` instead of `human_labels`; at most one of them.
    budgets : array-like of shape (n_budgets,), default=(0, 0.04, 0.08, 0.12, 0.16, 0.2)
        Fractions, or numbers of training samples if all of them are integers.
    cv : int, splitter, iterable of (train, test) or None, default=None
        None means 20 random splits with 40% test cases, stratified, or by groups if they are given. An
        integer is the number of shuffled, stratified folds, which keep groups together.
    metrics : str, sequence of str, or dict of name to callable, default=None
        Names as in `make_team_scorer`, or callables with (y_true, y_pred) and, if they need them,
        `deferred`, `classes`, `grades` and `pos_label`. No sign is changed, unlike in a scorer. None
        means "error" and "f1" for two classes, and "error" and "macro_f1" for more.
    batch : bool, default=True
        True: cases are deferred by the batch rule (`defer_top`). False: one at a time (`defer`).
    groups : array-like of shape (n_samples,), default=None
        Groups, such as patients, that every split keeps together.
    random_state : int, RandomState or None, default=None
        Seed of the splits; estimators have their own.
    n_jobs : int, default=None
        Number of processes, as in scikit-learn.
    confidence : float, default=0.95
        Level of the intervals.
    pos_label : label or None, default=None
        The positive class, for metrics such as F1 that depend on it. None means the larger of two
        numbers; labels that are words need it.

    Returns
    -------
    curve : AutomationCurve, or dict of name to AutomationCurve
        With `budgets`, `values`, `deferred`, and `mean`, `lower`, `upper` by the metric's name.

    Notes
    -----
    The bands are t-intervals over the splits. Splits of one data set share cases, so the bands show
    how much the split matters, and are narrower than the bands of independent data sets would be.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.base import BaseEstimator
    >>> from deferlearn.evaluation.curves import automation_curve
    >>> class AlwaysRight(BaseEstimator):  # for the cases it defers, which come first
    ...     def __init__(self, budget=0.0):
    ...         self.budget = budget
    ...     def fit(self, X, y, human_labels=None):
    ...         return self
    ...     def defer_top(self, X):
    ...         return np.arange(len(X)) < self.budget * len(X)
    ...     def predict_assisted(self, X, human_labels, batch=False):
    ...         return np.where(self.defer_top(X), human_labels, -np.asarray(human_labels))
    >>> y = np.tile([-1, 1], 50)
    >>> curve = automation_curve(
    ...     AlwaysRight(), np.zeros((100, 1)), y, human_labels=y, budgets=[0.0, 0.5], random_state=0
    ... )
    >>> curve.mean["error"]
    array([1. , 0.5])
    >>> curve.values["error"].shape
    (20, 2)
    """
    teams = dict(estimator) if isinstance(estimator, Mapping) else {"": estimator}
    if not teams:
        raise ValueError("give at least one estimator")
    data = split_data(X, y, human_labels, human_scores, human_loss, groups)
    check_confidence(confidence)
    levels = check_budgets(budgets)
    functions = _check_metrics(_default_metrics(y) if metrics is None else metrics, pos_label)
    for function in functions.values():  # errors come before anything is fitted
        evaluate_team(
            function, y, y, lambda: np.zeros(len(np.asarray(y)), dtype=bool), np.unique(y)
        )
    splits = list(_splitter(cv, y, groups, random_state).split(X, y, groups))
    truths = [_safe_indexing(y, test) for _, test in splits]
    curves = {}
    for name, team in teams.items():
        # Without a budget there is one column, the same at every budget.
        own = levels if budget_name(team) else levels[:1]
        parts = refit(team, data, splits, own, batch, n_jobs)
        table = np.array(
            [
                [_measure(part, truth, functions) for part in row]
                for row, truth in zip(parts, truths, strict=True)
            ]
        )
        table = np.broadcast_to(table, (len(splits), len(levels), table.shape[2]))
        values = {key: table[:, :, i].copy() for i, key in enumerate(functions)}
        curves[name] = AutomationCurve(np.array(levels), values, table[:, :, -1].copy(), confidence)
    return curves if isinstance(estimator, Mapping) else curves[""]


def _measure(part: TestPart, truth: Any, functions: dict[str, Any]) -> list[float]:
    """Metrics of one team on one split at one budget, and the share deferred."""
    values = [
        evaluate_team(f, truth, part.answers, lambda: part.deferred, part.classes)
        for f in functions.values()
    ]
    return [*values, float(part.deferred.mean())]


def _default_metrics(y: ArrayLike) -> tuple[str, str]:
    return "error", "f1" if len(set(np.asarray(y).tolist())) <= 2 else "macro_f1"


def _check_metrics(metrics: Any, pos_label: Any) -> dict[str, Any]:
    if isinstance(metrics, Mapping):
        chosen = {name: find_metric(metric)[0] for name, metric in metrics.items()}
    else:
        names = [metrics] if isinstance(metrics, str) else list(metrics)
        strange = [name for name in names if not isinstance(name, str)]
        if strange:
            raise ValueError(f"give the metric {strange[0]!r} a name: metrics={{name: function}}")
        chosen = {name: find_metric(name)[0] for name in names}
    if not chosen:
        raise ValueError("give at least one metric")
    if pos_label is None:
        return chosen
    return {
        name: partial(metric, pos_label=pos_label)
        if "pos_label" in inspect.signature(metric).parameters
        else metric
        for name, metric in chosen.items()
    }


def _splitter(cv: Any, y: ArrayLike, groups: ArrayLike | None, random_state: Any) -> Any:
    if cv is None:
        kind = StratifiedShuffleSplit if groups is None else GroupShuffleSplit
        return kind(n_splits=DEFAULT_SPLITS, test_size=TEST_SIZE, random_state=random_state)
    return splitter_of(cv, y, groups, random_state)
