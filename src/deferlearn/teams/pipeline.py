"""Pipelines that end in an assisted estimator, with its methods."""

from typing import Any, Self

from numpy.typing import ArrayLike, NDArray
from sklearn import get_config
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from deferlearn._utils.types import Array, Bools
from deferlearn.humans.human import warn_if_reordered
from deferlearn.teams.team_answers import Answers


def _final_has(name: str) -> Any:
    """Whether the last step has a method; its own error says why if it has not."""

    def check(self: Any) -> bool:
        getattr(self._final_estimator, name)
        return True

    return check


def _given(machine_scores: Any) -> dict[str, Any]:
    """The scores by their name, if there are any: not every team takes them."""
    return {} if machine_scores is None else {"machine_scores": machine_scores}


def _routing_is_on() -> bool:
    return bool(get_config()["enable_metadata_routing"])


class AssistedPipeline(Pipeline):
    """A scikit-learn pipeline that can also be asked who should take a case.

    `sklearn.pipeline.Pipeline` passes on `predict` and its like, but not the methods that an assisted
    estimator has beyond them. This one does: cases go through the transformers first. All else is
    scikit-learn's, parameters included.

    Without metadata routing the human is given to `fit` under the name of the last step, as in
    ``fit(X, y, svc__human_labels=...)``; with it, as ``fit(X, y, human_labels=...)``.

    Examples
    --------
    >>> from sklearn.preprocessing import StandardScaler
    >>> from deferlearn import AssistedSVC
    >>> from deferlearn.datasets import make_linear
    >>> from deferlearn.teams.pipeline import AssistedPipeline
    >>> X, y = make_linear(100, random_state=0)
    >>> steps = [("scale", StandardScaler()), ("svc", AssistedSVC(budget=0.3, random_state=0))]
    >>> team = AssistedPipeline(steps).fit(X, y)
    >>> int(team.defer_top(X).sum())
    30
    >>> team.predict_assisted(X[:3], y[:3]).shape
    (3,)
    """

    def fit(self, X: Any, y: Any = None, **params: Any) -> Self:
        """Fit the transformers, then the assisted estimator on what they make of X.

        Parameters
        ----------
        X : array-like
            Samples, as the first step takes them.
        y : array-like of shape (n_samples,)
            True labels.
        **params
            For the steps, the human among them: ``step__name=...`` without metadata routing, and with
            it ``name=...`` for whoever requests it.

        Returns
        -------
        self
            The fitted pipeline.
        """
        if not _routing_is_on():
            self._check_names(params)
        # Here, since the transformers may leave X without its index.
        warn_if_reordered(X, **{name.rpartition("__")[2]: value for name, value in params.items()})
        super().fit(X, y, **params)
        return self

    def _check_names(self, params: dict[str, Any]) -> None:
        """Refuse a parameter that belongs to no step, and name it as the last step would take it."""
        steps = [name for name, _ in self.steps]
        for name in params:
            step, separator, parameter = name.partition("__")
            if not separator:
                raise ValueError(
                    f"{name} belongs to no step. Without metadata routing a parameter of fit names its "
                    f"step: {steps[-1]}__{name}=... for the last one."
                )
            if step not in steps:
                raise ValueError(
                    f"{name} is for a step {step!r}, but the steps are {', '.join(map(repr, steps))}: "
                    f"did you mean {steps[-1]}__{parameter}=...?"
                )

    @available_if(_final_has("score"))
    def score(self, X: Any, y: Any = None, sample_weight: Any = None, **params: Any) -> float:
        """Accuracy of the machine alone; that of the team is `score_assisted`.

        Parameters
        ----------
        X : array-like
            Cases, as the first step takes them.
        y : array-like of shape (n_samples,)
            True labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the cases.
        **params
            For the steps that request them, with metadata routing on. Without routing no step can take
            them, which is an error.

        Returns
        -------
        accuracy : float
        """
        if params and not _routing_is_on():  # scikit-learn's own would ignore them
            raise TypeError(
                f"score takes no {next(iter(params))}: it is the accuracy of the machine alone. That of "
                "machine and human together is score_assisted(X, y, human_labels)."
            )
        return super().score(X, y, sample_weight, **params)

    def _transformed(self, X: Any) -> Any:
        check_is_fitted(self)
        for _, _, transform in self._iter(with_final=False):
            X = transform.transform(X)
        return X

    @available_if(_final_has("deferral_score"))
    def deferral_score(self, X: Any, *, machine_scores: Any = None) -> Array:
        """How much each case belongs with a human: larger is more.

        Parameters
        ----------
        X : array-like
            Cases, as the first step takes them.
        machine_scores : array-like, default=None
            The machine's scores of these cases, for a team that was fitted with such scores.

        Returns
        -------
        score : ndarray of shape (n_samples,)
        """
        X = self._transformed(X)
        return self._final_estimator.deferral_score(X, **_given(machine_scores))

    @available_if(_final_has("defer"))
    def defer(self, X: Any, *, machine_scores: Any = None) -> Bools:
        """Whether a human should take each case, one at a time.

        Parameters
        ----------
        X : array-like
            Cases, as the first step takes them.
        machine_scores : array-like, default=None
            The machine's scores of these cases, for a team that was fitted with such scores.

        Returns
        -------
        deferred : ndarray of bool of shape (n_samples,)
        """
        return self._final_estimator.defer(self._transformed(X), **_given(machine_scores))

    @available_if(_final_has("defer_top"))
    def defer_top(
        self, X: Any, budget: float | int | None = None, *, machine_scores: Any = None
    ) -> Bools:
        """The cases of this batch that belong most with a human, as many as the budget says.

        Parameters
        ----------
        X : array-like
            The batch, as the first step takes it.
        budget : float, int or None, default=None
            A fraction of the batch or a number of cases; None is the estimator's own budget.
        machine_scores : array-like, default=None
            The machine's scores of these cases, for a team that was fitted with such scores.

        Returns
        -------
        deferred : ndarray of bool of shape (n_samples,)
        """
        X = self._transformed(X)
        return self._final_estimator.defer_top(X, budget, **_given(machine_scores))

    @available_if(_final_has("predict_assisted"))
    def predict_assisted(
        self, X: Any, human_labels: Answers, batch: bool = False, *, machine_scores: Any = None
    ) -> NDArray[Any]:
        """The team's answer: the human's where a case is deferred, else the machine's.

        Parameters
        ----------
        X : array-like
            Cases, as the first step takes them.
        human_labels : array-like or callable
            Answers, or a function that is asked for the positions of the deferred rows.
        batch : bool, default=False
            Whether to defer by `defer_top` instead of `defer`.
        machine_scores : array-like, default=None
            The machine's scores of these cases, for a team that was fitted with such scores.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
        """
        warn_if_reordered(X, human_labels=human_labels)
        return self._final_estimator.predict_assisted(
            self._transformed(X), human_labels, batch=batch, **_given(machine_scores)
        )

    @available_if(_final_has("score_assisted"))
    def score_assisted(
        self,
        X: Any,
        y: ArrayLike,
        human_labels: Answers,
        batch: bool = False,
        *,
        machine_scores: Any = None,
    ) -> float:
        """Accuracy of the team.

        Parameters
        ----------
        X : array-like
            Cases, as the first step takes them.
        y : array-like of shape (n_samples,)
            True labels.
        human_labels, batch, machine_scores
            As in `predict_assisted`.

        Returns
        -------
        accuracy : float
        """
        warn_if_reordered(X, human_labels=human_labels)
        return self._final_estimator.score_assisted(
            self._transformed(X), y, human_labels, batch=batch, **_given(machine_scores)
        )


def make_assisted_pipeline(
    *steps: Any, memory: Any = None, verbose: bool = False
) -> AssistedPipeline:
    """An `AssistedPipeline` whose steps get their names from their types.

    Parameters
    ----------
    *steps : estimators
        Transformers, and an assisted estimator as the last one.
    memory : str, joblib.Memory or None, default=None
        Where to cache fitted transformers.
    verbose : bool, default=False
        Whether to print the time of each step.

    Returns
    -------
    AssistedPipeline

    Examples
    --------
    >>> from sklearn.preprocessing import StandardScaler
    >>> from deferlearn import AssistedSVC
    >>> from deferlearn.teams.pipeline import make_assisted_pipeline
    >>> [name for name, _ in make_assisted_pipeline(StandardScaler(), AssistedSVC()).steps]
    ['standardscaler', 'assistedsvc']
    """
    named = make_pipeline(*steps).steps
    return AssistedPipeline(named, memory=memory, verbose=verbose)
