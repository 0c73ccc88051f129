"""The team's metrics as scorers for scikit-learn's model selection."""

import inspect
from dataclasses import KW_ONLY, dataclass
from typing import Any

from numpy.typing import ArrayLike
from sklearn import get_config
from sklearn.base import BaseEstimator
from sklearn.utils.metadata_routing import UNUSED

from deferlearn._utils.checks import check_flag
from deferlearn.metrics.apply import Metric, evaluate_team, find_member, find_metric


@dataclass(eq=False, repr=False)
class TeamScorer(BaseEstimator):
    """Scorer of machine and human together; made by `make_team_scorer`, which explains it.

    Parameters
    ----------
    metric : str or callable
        As in `make_team_scorer`.
    batch : bool, default=False
        As in `make_team_scorer`.
    greater_is_better : bool or None, default=None
        As in `make_team_scorer`.
    options : dict or None, default=None
        Passed on to the metric.
    """

    # With it GridSearchCV and the like pass human_labels on without a request by the user.
    __metadata_request__score = {"human_labels": True, "estimator": UNUSED}  # noqa: RUF012

    metric: str | Metric = "error"
    _: KW_ONLY
    batch: bool = False
    greater_is_better: bool | None = None
    options: dict[str, Any] | None = None

    def __call__(self, estimator: Any, X: Any, y: ArrayLike, human_labels: Any = None) -> float:
        """Score a fitted estimator, as `score` does."""
        return self.score(estimator, X, y, human_labels=human_labels)

    def score(self, estimator: Any, X: Any, y: ArrayLike, human_labels: Any = None) -> float:
        """Score a fitted estimator together with its human.

        Parameters
        ----------
        estimator : estimator with `predict_assisted`, or a Pipeline or search around one
                The fitted estimator.
        X : array-like of shape (n_samples, n_features)
            Cases.
        y : array-like of shape (n_samples,)
            True labels.
        human_labels : array-like of shape (n_samples,) or (n_samples, n_readers)
            The humans' answers to these cases.

        Returns
        -------
        score : float
            Larger is better: error, cost and grade error have a minus sign.
        """
        if human_labels is None:
            raise ValueError(_why_missing())
        function, better = find_metric(self.metric)
        if self.greater_is_better is not None:
            better = self.greater_is_better
        member, X = find_member(estimator, X)
        y_pred = member.predict_assisted(X, human_labels, batch=self.batch)
        value = evaluate_team(
            function,
            y,
            y_pred,
            lambda: member.defer_top(X) if self.batch else member.defer(X),
            getattr(member, "classes_", None),
            ordered=_has_grades(member),
            **(self.options or {}),
        )
        return value if better else -value


def _has_grades(member: Any) -> bool:
    """Whether the estimator was told that its classes are grades, by its parameter `classes`."""
    classes = getattr(member, "classes", "auto")
    return not (isinstance(classes, str) and classes == "auto")


def _why_missing() -> str:
    """What to do if human_labels did not arrive.

    The text also ends up in a warning, if scikit-learn turns the error into a score of NaN.
    """
    if get_config()["enable_metadata_routing"]:
        return (
            "human_labels did not reach the team's scorer: give them to the search's fit, or in the "
            "params of cross_validate, or to the scorer itself: scorer(estimator, X, y, "
            "human_labels=...)"
        )
    return (
        "metadata routing is off, so scikit-learn does not pass human_labels on to the team's scorer, "
        "and the scores of GridSearchCV, cross_validate and the like mean nothing. Call "
        "sklearn.set_config(enable_metadata_routing=True) first, and give human_labels, without the "
        "name of a step, to the search's fit or in the params of cross_validate. A direct call needs "
        "no routing: scorer(estimator, X, y, human_labels=...)"
    )


def make_team_scorer(
    metric: str | Metric = "error",
    *,
    batch: bool = False,
    greater_is_better: bool | None = None,
    **options: Any,
) -> TeamScorer:
    """Make a scorer that judges machine and human together, for GridSearchCV and the like.

    The scorer calls the estimator's `predict_assisted` with the human's answers. They reach it by
    scikit-learn's metadata routing under the name `human_labels`, which the scorer requests itself.
    Routing must be on (``sklearn.set_config(enable_metadata_routing=True)``). Otherwise the scorer raises
    an error, which scikit-learn's searches turn into a warning and a score of NaN unless they were made
    with ``error_score="raise"``. A search whose scores are all NaN has chosen nothing.
    The scorer also works with a plain `~sklearn.pipeline.Pipeline` whose last step has
    `predict_assisted`.

    An estimator that is fitted on `human_scores` or `human_loss` needs `human_labels` for the score
    only: ``AssistedSVC().set_fit_request(human_labels=False, human_loss=True)``.

    Parameters
    ----------
    metric : str or callable, default="error"
        A name that `find_metric` knows, such as "error", "f1", "cost", "macro_f1" or "quadratic_kappa". A
        callable is called with (y_true, y_pred). If it has a parameter `deferred`, it gets the mask
        of the deferred cases; if it has a parameter `classes`, it gets the estimator's classes. If these
        are numbers, it also gets them as `grades`, and the second one of two as `pos_label`. For
        classes that are words, "f1", "sensitivity", "specificity" and a "cost" with unequal costs of
        errors need ``pos_label=...``, and "grade_error" and "quadratic_kappa" need ``grades=[...]``,
        unless the estimator knows their order from its parameter `classes`.
    batch : bool, default=False
        False: cases are deferred one at a time (`defer`). True: the batch rule, the top
        cases of the test set (`defer_top`).
    greater_is_better : bool, default=None
        With False the value gets a minus sign, as in scikit-learn's ``neg_*`` scorers. None chooses
        the sign for the metrics of this package, and leaves other callables as they are.
    **options
        Passed on to the metric, such as ``pos_label="sick"``, ``grades=["mild", "severe"]`` or, for
        "cost", ``false_negative=5``, ``deferral_cost=0.1``.

    Returns
    -------
    scorer : TeamScorer
        Callable with (estimator, X, y, human_labels=...).

    Examples
    --------
    >>> import numpy as np
    >>> from deferlearn.metrics import make_team_scorer
    >>> class Coin:
    ...     def predict_assisted(self, X, human_labels, batch=False):
    ...         return np.where(np.arange(len(X)) < 2, human_labels, -1)
    ...     def defer(self, X):
    ...         return np.arange(len(X)) < 2
    >>> X, y, human = np.zeros((4, 1)), [1, -1, 1, -1], [1, 1, 1, 1]
    >>> make_team_scorer("error")(Coin(), X, y, human_labels=human)
    -0.5
    >>> make_team_scorer("cost", deferral_cost=0.1)(Coin(), X, y, human_labels=human)
    -0.55
    """
    check_flag("batch", batch)
    function, _ = find_metric(metric)
    known = inspect.signature(function).parameters
    takes_any = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in known.values())
    unknown = [name for name in options if name not in known]
    if unknown and not takes_any:
        raise TypeError(f"the metric {metric!r} has no option {unknown[0]!r}")
    return TeamScorer(
        metric, batch=batch, greater_is_better=greater_is_better, options=options or None
    )
