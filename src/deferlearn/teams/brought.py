"""Machines that users bring: any scikit-learn classifier, or the scores of one that cannot be retrained.

Their scores are *calibrated* on held-out samples: the decision value of a case is an estimate of the
log-odds of the second class, in which the classes have the weights of their errors. So decision values of
different machines mean the same, and the machine gives the answer with the smaller expected cost.
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

from deferlearn._utils.threads import one_openmp_thread
from deferlearn._utils.types import Array, Index
from deferlearn.teams.held_out import held_out
from deferlearn.teams.machine_arrays import MachineError, as_score, log_odds
from deferlearn.teams.policy import seed_all

if TYPE_CHECKING:
    from deferlearn.teams.context import FoldContext
    from deferlearn.teams.samples import Samples

# Of the logistic regression that calibrates: as good as none, and finite where scores separate the classes.
WEAK_PENALTY = 100.0
MOST_NEWTON_STEPS, NEWTON_TOL = 100, 1e-10
# Scores that differ by no more than so much of their size are equal.
ROUNDING = 1e-12
# Up to so many values a classifier is fitted by one OpenMP thread.
FEW_VALUES = 1_000_000


@dataclass(frozen=True)
class Calibration:
    """From the score of a machine to log-odds: ``slope * score + offset``."""

    slope: float
    offset: float

    def __call__(self, scores: Array) -> Array:
        """Log-odds of the second class."""
        return self.slope * scores + self.offset


def calibrate(scores: Array, y: Array, weights: Array, rising: bool = True) -> Calibration:
    """Fit a logistic curve to the classes (-1, +1) of samples that the machine had not seen.

    A machine that knows nothing may seem to be wrong more often than right. With ``rising`` its curve is
    flat then, so that no team answers against its machine.

    It is scikit-learn's `LogisticRegression` with one feature, the standardised score, by Newton's method;
    a search fits a thousand of them, and scikit-learn spends milliseconds around each.
    """
    if len(np.unique(y)) < 2:
        return Calibration(0.0, float(y[0]))
    # In units of the largest, since squares of huge scores are not finite.
    size = float(np.abs(scores).max()) or 1.0
    centre, spread = size * float((scores / size).mean()), size * float((scores / size).std())
    if spread <= ROUNDING * size:  # equal scores: their mean may differ from them in the last digit
        spread = size
    z = (scores - centre) / spread
    design = np.column_stack([z, np.ones(len(z))])
    penalty = np.array([1.0 / WEAK_PENALTY, 0.0])

    def loss(beta: Array) -> float:
        return float(weights @ np.logaddexp(0.0, -y * (design @ beta)) + penalty @ beta**2 / 2)

    beta = np.zeros(2)
    value = loss(beta)
    for _ in range(MOST_NEWTON_STEPS):
        wrong = 1.0 / (1.0 + np.exp(np.clip(y * (design @ beta), -500.0, 500.0)))
        gradient = design.T @ (-weights * y * wrong) + penalty * beta
        curvature = (design.T * (weights * wrong * (1.0 - wrong))) @ design + np.diag(penalty)
        step = np.linalg.lstsq(curvature, gradient, rcond=None)[0]
        # Halved until the loss falls: far from the minimum, a whole step may pass it.
        while (after := loss(beta - step)) > value and np.abs(step).max() > NEWTON_TOL:
            step = step / 2
        if after > value or np.abs(step).max() <= NEWTON_TOL:
            break
        beta, value = beta - step, after
    if rising and beta[0] < 0.0:
        mean = float(weights @ (y > 0) / weights.sum())
        return Calibration(0.0, float(np.log(mean / (1.0 - mean))))
    slope = float(beta[0]) / spread
    return Calibration(slope, float(beta[1]) - slope * centre)


def calibrated_in(
    context: "FoldContext", raw: Array, rising: bool = True
) -> tuple[Array, list[Array]]:
    """Held-out scores as log-odds, by curves that have not seen the fold; and those of each curve's own."""
    y, weights = context.samples.y, context.samples.weights
    curves = [calibrate(raw[rest], y[rest], weights[rest], rising) for rest, _ in context.splits]
    parts = list(zip(curves, context.splits, strict=True))
    margin = context.join([curve(raw[fold]) for curve, (_, fold) in parts])
    return margin, [curve(raw[rest]) for curve, (rest, _) in parts]


def _threads_for(X: Any) -> AbstractContextManager[None]:
    """One OpenMP thread for few values."""
    return one_openmp_thread() if X.shape[0] * X.shape[1] <= FEW_VALUES else nullcontext()


def scores_from(estimator: Any, X: Any) -> Array:
    """What a fitted classifier says of cases, as one number each that grows with the second class."""
    try:
        with _threads_for(X):
            if hasattr(estimator, "decision_function"):
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


@dataclass(eq=False)
class BroughtMachine:
    """A fitted classifier with the calibration of its scores.

    Attributes
    ----------
    estimator : classifier
        Fitted on all samples.
    calibration : Calibration
        Learned from held-out samples.
    """

    estimator: Any
    calibration: Calibration

    def decision_function(self, X: Any) -> Array:
        """Calibrated log-odds of the second class."""
        return self.calibration(scores_from(self.estimator, X))


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
        # Given scores may well grow with the first class.
        return calibrated_in(context, self._raw(context), rising=self.can_be_refitted)

    def final_in(self, context: "FoldContext") -> tuple[BroughtMachine, Array]:
        """The machine fitted on all samples, and decision values as `margins_in` explains them."""
        samples, raw = context.samples, self._raw(context)
        estimator = fitted_on(samples.training_part(), self.estimator, context.seed)
        curve = calibrate(raw, samples.y, samples.weights, rising=self.can_be_refitted)
        machine = BroughtMachine(estimator, curve)
        return machine, machine.calibration(raw)

    def _raw(self, context: "FoldContext") -> Array:
        """Scores of held-out samples, not calibrated."""
        samples = context.samples
        if not self.can_be_refitted:  # then no sample has to be held out
            return scores_from(clone(self.estimator).fit(samples.X, samples.labels), samples.X)
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
    if len(np.unique(part.y)) < 2:  # a machine that knows one class answers with it
        return np.full(len(test), part.y[0] if len(part) else 0.0)
    return scores_from(fitted_on(part, estimator, seed), samples.X[test])


class ScoreColumn(ClassifierMixin, BaseEstimator):
    """The machine of a team that is given its scores: they are the last column of X.

    Scores that are all between 0 and 1 when it is fitted are probabilities, and become log-odds.
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
            Two classes.
        """
        scores = _last_column(X)
        self.classes_ = np.unique(y)
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
        scores = _last_column(X)
        return as_score(scores, self.probabilities_)

    def predict(self, X: Any) -> NDArray[Any]:
        """The second class where the score is positive, or the probability larger than 1/2.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            As in `fit`.
        """
        decision = self.decision_function(X)  # which says first if nothing has been fitted
        return np.asarray(self.classes_[(decision > 0).astype(np.int64)])


def _last_column(X: Any) -> Array:
    column = X[:, [-1]]
    return np.asarray(column.todense() if sp.issparse(column) else column, dtype=np.float64)[:, 0]


def with_scores(X: Any, scores: Array) -> Any:
    """Features with the machine's scores as the last column."""
    if sp.issparse(X):
        return sp.csr_array(sp.hstack([X, sp.csr_array(scores[:, None])]))
    return np.hstack([X, scores[:, None]])


def read_scores(machine_scores: Any, n: int) -> Array:
    """The scores of n cases as numbers, checked; of two columns, one per class, the second is taken."""
    try:
        scores = np.asarray(machine_scores, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"machine_scores must hold numbers: {error}") from None
    if scores.ndim == 2 and scores.shape[1] == 2:
        scores = scores[:, 1]
    if scores.ndim != 1:
        raise ValueError(
            f"machine_scores has the shape {scores.shape}: give one score per case, or two columns of "
            "probabilities, one per class."
        )
    if len(scores) != n:
        raise ValueError(
            f"machine_scores has {len(scores)} rows, but X has {n}: give one per case."
        )
    bad = np.flatnonzero(~np.isfinite(scores))
    if len(bad):
        raise ValueError(
            f"machine_scores has {scores[bad[0]]} at row {bad[0]} (and {len(bad) - 1} more such rows): a "
            "case without a score cannot be decided; leave it out, or send it to a human."
        )
    return scores


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
