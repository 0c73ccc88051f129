"""What the baselines share: how they are fitted, and the machine on all samples."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import validate_data

from deferlearn._answers import losses_of
from deferlearn._crossfit import Samples
from deferlearn._machine import Machine, MachineSettings, machine_of
from deferlearn._parameters import prices_of
from deferlearn._team import MachineMixin, TeamMixin
from deferlearn.objective.validation import check_polynomial, check_problem, kernel_width

Array = NDArray[np.float64]

# Names by which `fit` is told of the human.
Human = dict[str, Any]


class Baseline(TeamMixin, ClassifierMixin, BaseEstimator):
    """A team that is fitted by `fit(X, y, human_...=...)`; a class says the rest in `_fit`."""

    # With metadata routing, `fit` asks for the human by itself.
    __metadata_request__fit: ClassVar[dict[str, bool]] = {
        "human_loss": True,
        "human_scores": True,
        "human_labels": True,
    }

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.sparse = self._fits_sparse()
        return tags

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        human_loss: ArrayLike | None = None,
        human_scores: ArrayLike | None = None,
        human_labels: ArrayLike | None = None,
    ) -> Self:
        """Fit the baseline; the human is described as for `AssistedSVC`.

        At most one of the three describes the human. With none, the human is taken to be always right.
        What is not right is refused as `AssistedSVC` does, also where the baseline makes no use of it.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The samples; the Gram matrix if ``kernel="precomputed"``.
        y : array-like of shape (n_samples,)
            Two classes, of any type.
        human_loss : array-like of shape (n_samples,), default=None
            What the human's answer to each sample costs, 0 or more.
        human_scores : array-like of shape (n_samples,) or (n_samples, n_readers), default=None
            Scores h, positive for the second of the classes.
        human_labels : array-like of shape (n_samples,) or (n_samples, n_readers), default=None
            Answers in the labels of y.

        Returns
        -------
        self
            The fitted estimator.
        """
        self._check_parameters()
        X, y = validate_data(
            self, X, y, dtype=np.float64, accept_sparse="csr" if self._fits_sparse() else False
        )
        check_classification_targets(y)
        kind = type_of_target(y, input_name="y", raise_unknown=True)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) > 2 or kind != "binary":
            raise ValueError(
                "Only binary classification is supported. The type of the target is "
                f"{kind}: y has the {len(self.classes_)} classes {self.classes_.tolist()[:5]}."
            )
        if len(self.classes_) < 2:
            raise ValueError(
                f"y has 1 class, {self.classes_.tolist()[0]!r}; two classes are needed to tell apart."
            )
        human: Human = {
            "human_loss": human_loss,
            "human_scores": human_scores,
            "human_labels": human_labels,
        }
        signs = np.where(codes == 1, 1.0, -1.0)
        self._check_human(signs, human)
        self._fit(X, y, signs, human)
        return self

    def _fits_sparse(self) -> bool:
        """Whether the X of `fit` may be sparse."""
        raise NotImplementedError

    def _check_parameters(self) -> None:
        """Refuse parameters of the wrong type or range."""

    def _check_human(self, signs: Array, human: Human) -> None:
        """Refuse what describes no human. Nothing is made of the losses, so gaps are no news."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            losses_of(signs, self.classes_, **human)

    def _fit(self, X: Any, y: NDArray[Any], signs: Array, human: Human) -> None:
        raise NotImplementedError


class MachineBaseline(MachineMixin, Baseline):
    """A baseline whose machine is an SVM on all samples; a class says by `_fit_team` who is deferred."""

    alpha: float
    kernel: Any
    degree: float
    gamma: float | str
    coef0: float
    fit_intercept: bool
    margin: str
    class_weight: Any

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._is_kernel("precomputed")
        return tags

    def _is_kernel(self, name: str) -> bool:
        return isinstance(self.kernel, str) and self.kernel == name

    def _fits_sparse(self) -> bool:
        return self._is_kernel("linear")

    def _takes_sparse(self) -> bool:
        return self._machine.settings.linear

    def _decide(self, X: Any) -> Array:
        return self._machine.decision_function(X)

    def _check_parameters(self) -> None:
        if not isinstance(self.fit_intercept, bool | np.bool_):
            raise ValueError(f"fit_intercept={self.fit_intercept!r} must be True or False.")

    def _fit(self, X: Any, y: NDArray[Any], signs: Array, human: Human) -> None:
        codes = (signs > 0).astype(np.int64)
        prices = prices_of(self.class_weight, y, codes, self.classes_)
        check_problem(X[:1], signs[:1], self.alpha, self.kernel, self.margin, None)
        check_polynomial(self.degree, self.coef0)
        settings = MachineSettings(
            alpha=float(self.alpha),
            kernel=self.kernel,
            degree=self.degree,
            gamma=kernel_width(self.gamma, X, self.kernel),
            coef0=self.coef0,
            fit_intercept=bool(self.fit_intercept),
            margin=self.margin,
        )
        samples = Samples(X, signs, prices, np.zeros(len(signs)), settings)
        machine = solve(samples)
        self._fit_team(samples, machine, human)
        self._machine = machine

    def _fit_team(self, samples: Samples, machine: Machine, human: Human) -> None:
        raise NotImplementedError


def solve(samples: Samples) -> Machine:
    """The machine on all of these samples."""
    objective = samples.settings.objective(samples.X, samples.y, samples.weights)
    return machine_of(objective, samples.X, samples.y, samples.weights, samples.settings)
