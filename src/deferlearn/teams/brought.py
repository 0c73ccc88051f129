"""Machines that users bring: any scikit-learn classifier, or the scores of one that cannot be retrained.

Their scores are *calibrated* on held-out samples: the decision value of a case is an estimate of the
log-odds of the second class, in which the classes have the weights of their errors. So decision values of
different machines mean the same, and the machine gives the answer with the smaller expected cost. With more
than two classes they are logarithms of probabilities; see `probabilities`.
"""

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone, is_classifier
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from deferlearn._utils.checks import check_unmasked
from deferlearn._utils.threads import one_openmp_thread
from deferlearn._utils.types import Array, Index
from deferlearn.humans.answers import shown
from deferlearn.humans.coding import codes_among, names_in_order
from deferlearn.teams.calibration import Calibration, calibrate, calibrated_in
from deferlearn.teams.held_out import held_out
from deferlearn.teams.machine_arrays import (
    SURE,
    MachineError,
    as_class_scores,
    as_score,
    log_odds,
)
from deferlearn.teams.odds import AnyCalibration
from deferlearn.teams.policy import seed_all
from deferlearn.teams.probabilities import calibrate_classes, margins_in

if TYPE_CHECKING:
    from deferlearn.teams.context import FoldContext
    from deferlearn.teams.samples import Samples

# Up to so many values a classifier is fitted by one OpenMP thread.
FEW_VALUES = 1_000_000


def _threads_for(X: Any) -> AbstractContextManager[None]:
    """One OpenMP thread for few values."""
    return one_openmp_thread() if X.shape[0] * X.shape[1] <= FEW_VALUES else nullcontext()


def scores_from(estimator: Any, X: Any, classes: NDArray[Any] | None = None) -> Array:
    """What a fitted classifier says of cases, as one number each that grows with the second class.

    With ``classes``, of which there are more than two, a column for each of them.
    """
    try:
        with _threads_for(X):
            if classes is not None:
                scores = _class_scores(estimator, X, classes)
            elif hasattr(estimator, "decision_function"):
                said = np.asarray(estimator.decision_function(X), dtype=np.float64)
                scores = said.reshape(X.shape[0])
            else:
                scores = log_odds(np.asarray(estimator.predict_proba(X), dtype=np.float64)[:, 1])
    except MachineError:
        raise
    except Exception as error:  # whatever it is, the machine is at fault
        raise MachineError(f"{estimator!r} cannot score cases: {error}") from error
    bad = scores[~np.isfinite(scores)]
    if len(bad):
        raise MachineError(
            f"machine={estimator!r} gives {bad[0]} as the score of {len(bad)} of {len(scores)} cases; a "
            "case without a score cannot be decided."
        )
    return scores


def _class_scores(estimator: Any, X: Any, classes: NDArray[Any]) -> Array:
    """A score for each of several classes; a class that the classifier has not seen has the lowest."""
    if isinstance(estimator, ScoreColumn):  # its columns are in the order of the classes already
        return estimator.decision_function(X)
    known = codes_among(np.asarray(estimator.classes_), classes, "classes_ of the machine")
    # Probabilities first where classes are missing: then decision values may be of another shape.
    by_decision = hasattr(estimator, "decision_function") and len(known) == len(classes)
    if by_decision or not hasattr(estimator, "predict_proba"):
        said = np.asarray(estimator.decision_function(X), dtype=np.float64)
        if said.ndim == 1:
            said = np.column_stack([-said, said])
        if said.shape[1] != len(known):
            raise MachineError(
                f"machine={estimator!r} gives {said.shape[1]} decision values per case for "
                f"{len(known)} classes: set decision_function_shape='ovr', or an option for probabilities."
            )
        scores = np.repeat(said.min(axis=1, keepdims=True), len(classes), axis=1)
    else:
        said = np.asarray(estimator.predict_proba(X), dtype=np.float64)
        said = np.log(np.maximum(said, SURE / len(classes)))
        scores = np.full((len(said), len(classes)), np.log(SURE / len(classes)))
    scores[:, known] = said
    return scores


@dataclass(eq=False)
class BroughtMachine:
    """A fitted classifier with the calibration of its scores.

    Attributes
    ----------
    estimator : classifier
        Fitted on all samples.
    calibration : Calibration, SoftmaxCalibration or StepCalibration
        Learned from held-out samples.
    classes : ndarray or None
        The labels, if there are more than two.
    """

    estimator: Any
    calibration: Calibration | AnyCalibration
    classes: NDArray[Any] | None = None

    def decision_function(self, X: Any) -> Array:
        """Calibrated log-odds of the second class; of several, the logarithms of probabilities."""
        return self.calibration(scores_from(self.estimator, X, self.classes))


@dataclass(frozen=True, eq=False)
class BroughtSettings:
    """A classifier that is fitted by itself, as the machine of a team.

    Attributes
    ----------
    estimator : classifier
        Not fitted.
    family : str
        Its name in the results of a search.
    """

    estimator: Any
    family: str = ""

    # As `MachineSettings` says of an SVM.
    linear = precomputed = False
    needs_folds = True

    @property
    def can_be_refitted(self) -> bool:
        """Whether it learns from samples."""
        return not isinstance(self.estimator, ScoreColumn)

    def team_parameters(self) -> dict[str, Any]:
        """The parameters of a team with this machine."""
        return {"machine": self.estimator}

    def parameters(self) -> dict[str, Any]:
        """What sets it apart from other machines of its family."""
        return {}

    def margins_in(self, context: "FoldContext") -> tuple[Array, list[Array]]:
        """Calibrated decision values of held-out samples; see `FoldContext.margins`.

        A classifier may know its own samples by heart. So its "own" decision values, too, are those of
        samples that it had not seen, calibrated in the same way: equal scores stay equal.
        """
        if context.samples.coding.several:
            return margins_in(context, self._raw(context))
        # Given scores may well grow with the first class.
        return calibrated_in(context, self._raw(context), rising=self.can_be_refitted)

    def final_in(self, context: "FoldContext") -> tuple[BroughtMachine, Array]:
        """The machine fitted on all samples, and decision values as `margins_in` explains them."""
        samples, raw = context.samples, self._raw(context)
        estimator = fitted_on(samples.training_part(), self.estimator, context.seed)
        if samples.coding.several:
            calibration = calibrate_classes(raw, samples.codes, samples.coding)
            return BroughtMachine(estimator, calibration, samples.classes), calibration(raw)
        curve = calibrate(raw, samples.y, samples.weights, rising=self.can_be_refitted)
        return BroughtMachine(estimator, curve), curve(raw)

    def _raw(self, context: "FoldContext") -> Array:
        """Scores of held-out samples, not calibrated."""
        samples = context.samples
        if not self.can_be_refitted:  # then no sample has to be held out
            estimator = clone(self.estimator).fit(samples.X, samples.labels)
            return scores_from(estimator, samples.X, _several(samples))
        return context.once(
            ("raw", context.machine),
            lambda: context.join(
                held_out(
                    _scores_without,
                    context.splits,
                    samples,
                    self.estimator,
                    context.seed,
                    n_jobs=context.n_jobs,
                )
            ),
        )


class GivenScores(BroughtSettings):
    """Scores that are given, as the machine of a team: they are the last column of the features."""

    def __init__(self) -> None:
        super().__init__(ScoreColumn(), "given scores")

    def team_parameters(self) -> dict[str, Any]:
        """The parameters of a team with this machine: none, since its `fit` is given the scores."""
        return {"machine": None}


def _several(samples: "Samples") -> NDArray[Any] | None:
    """The classes, if there are more than two."""
    return samples.classes if samples.coding.several else None


def fitted_on(samples: "Samples", estimator: Any, seed: int) -> Any:
    """A clone fitted on samples, with their weights if they differ and it can take them."""
    model = clone(estimator)
    seed_all(model, seed)
    weighted = len(np.unique(samples.weights)) > 1 and has_fit_parameter(model, "sample_weight")
    more = {"sample_weight": samples.weights} if weighted else {}
    try:
        with _threads_for(samples.X):
            return model.fit(samples.X, samples.labels, **more)
    except Exception as error:  # whatever it is, the machine is at fault
        raise MachineError(f"{estimator!r} cannot be fitted: {error}") from error


def _scores_without(
    train: Index, test: Index, samples: "Samples", estimator: Any, seed: int
) -> Array:
    part = samples.part(train).training_part()
    if len(np.unique(part.codes)) < 2:  # a machine that knows one class answers with it
        shape = (len(test), len(samples.classes)) if samples.coding.several else len(test)
        scores = np.zeros(shape)
        if len(part):
            scores[..., part.codes[:1]] = 1.0
            scores = scores if samples.coding.several else np.full(shape, part.y[0])
        return scores
    return scores_from(fitted_on(part, estimator, seed), samples.X[test], _several(samples))


class ScoreColumn(ClassifierMixin, BaseEstimator):
    """The machine of a team that is given its scores: they are the last column of X.

    With more than two classes there is a column for each. Scores that are all between 0 and 1 when it is
    fitted are probabilities, and become log-odds, or logarithms of the probabilities of several classes.
    """

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def fit(self, X: Any, y: Any) -> Self:
        """Look at the scores; there is nothing else to learn.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Features, and the scores as the last column.
        y : array-like of shape (n_samples,)
            Labels.
        """
        self.classes_ = np.unique(y)
        scores = self._columns(X)
        self.probabilities_ = bool(scores.min() >= 0.0 and scores.max() <= 1.0)
        return self

    def decision_function(self, X: Any) -> Array:
        """The scores, or log-odds of probabilities.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            As in `fit`.
        """
        check_is_fitted(self)
        scores = self._columns(X)
        if len(self.classes_) == 2:
            return as_score(scores[:, 0], self.probabilities_)
        return as_class_scores(scores, self.probabilities_)

    def _columns(self, X: Any) -> Array:
        return _last_columns(X, score_columns(len(self.classes_)))

    def predict(self, X: Any) -> NDArray[Any]:
        """The second class where the score is positive, or the probability larger than 1/2.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            As in `fit`.
        """
        decision = self.decision_function(X)  # which says first if nothing has been fitted
        if decision.ndim == 2:
            return np.asarray(self.classes_[decision.argmax(axis=1)])
        return np.asarray(self.classes_[(decision > 0).astype(np.int64)])


def score_columns(n_classes: int) -> int:
    """How many columns of X hold the machine's scores, where they are given."""
    return 1 if n_classes == 2 else n_classes


def _last_columns(X: Any, count: int) -> Array:
    columns = X[:, -count:]
    return np.asarray(columns.todense() if sp.issparse(columns) else columns, dtype=np.float64)


def with_scores(X: Any, scores: Array) -> Any:
    """Features with the machine's scores as the last columns."""
    if sp.issparse(X):
        return sp.csr_array(sp.hstack([X, sp.csr_array(scores)]))
    return np.hstack([X, scores])


def read_scores(machine_scores: Any, n: int, classes: NDArray[Any]) -> Array:
    """The scores of n cases as numbers, checked: one column for two classes, else one per class.

    Of two columns for two classes, the second is taken.
    """
    _check_names(machine_scores, classes)
    check_unmasked(machine_scores, "machine_scores")
    try:
        scores = np.asarray(machine_scores, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"machine_scores must hold numbers: {error}") from None
    if len(classes) > 2:
        if scores.ndim != 2 or scores.shape[1] != len(classes):
            raise ValueError(
                f"machine_scores has the shape {scores.shape}: give a column for each of the "
                f"{len(classes)} classes, in the order {shown(classes.tolist())}."
            )
    elif scores.ndim == 2 and scores.shape[1] == 2:
        scores = scores[:, 1]
    if len(classes) == 2:
        if scores.ndim != 1:
            raise ValueError(
                f"machine_scores has the shape {scores.shape}: give one score per case, or two columns of "
                "probabilities, one per class."
            )
        scores = scores[:, None]
    if len(scores) != n:
        raise ValueError(
            f"machine_scores has {len(scores)} rows, but X has {n}: give one per case."
        )
    bad = np.flatnonzero(~np.isfinite(scores).all(axis=1))
    if len(bad):
        row = scores[bad[0]]
        raise ValueError(
            f"machine_scores has {row[~np.isfinite(row)][0]} at row {bad[0]} (and {len(bad) - 1} more "
            "such rows): a case without a score cannot be decided; leave it out, or send it to a human."
        )
    return scores


def _check_names(machine_scores: Any, classes: NDArray[Any]) -> None:
    """Refuse a frame whose columns are named by the classes in another order."""
    names = list(getattr(machine_scores, "columns", ()))
    labels = classes.tolist()
    ordered = names_in_order(names, labels)
    if ordered is not None and ordered != names:
        raise ValueError(
            f"machine_scores has the columns {shown(names)}, but the order of the classes is "
            f"{shown(labels)}: give machine_scores[{ordered!r}]."
        )


def check_machine(machine: Any, name: str = "machine", *, optional: bool = True) -> None:
    """Refuse what is no classifier, or one that gives no score."""
    if machine is None and optional:
        return
    if isinstance(machine, type):
        raise ValueError(f"{name}={machine!r} is a class; give an instance, with parentheses.")
    if isinstance(machine, str) or not hasattr(machine, "fit") or not is_classifier(machine):
        or_none = " or None" if optional else ""
        raise ValueError(f"{name}={machine!r} must be a scikit-learn classifier{or_none}.")
    if hasattr(machine, "predict_assisted") and getattr(machine, "is_assisted", True):
        raise ValueError(
            f"{name}={machine!r} is a team itself; give the classifier that is to be its machine."
        )
    if not any(hasattr(machine, method) for method in ("decision_function", "predict_proba")):
        raise ValueError(
            f"{name}={machine!r} has neither decision_function nor predict_proba, so there is no score to "
            "tell how sure it is; set its option for probabilities, or take another classifier."
        )


def takes_sparse(machine: Any) -> bool:
    """Whether a classifier says that it takes sparse features."""
    return bool(get_tags(machine).input_tags.sparse)
