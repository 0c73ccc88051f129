"""What the baselines share: how they are fitted, and the machine on all samples."""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import validate_data

from deferlearn.humans.human import binary_labels, losses_of, warn_if_reordered
from deferlearn.teams.crossfit import Samples
from deferlearn.teams.machine import Machine, machine_of, settings_of
from deferlearn.teams.parameters import prices_of
from deferlearn.teams.team import MachineMixin, TeamMixin

Array = NDArray[np.float64]

# Names by which `fit` is told of the human.
Human = dict[str, Any]


class Baseline(TeamMixin, ClassifierMixin, BaseEstimator):
    """A team that is fitted by `fit(X, y, human_...=...)`; a class says the rest in `_fit`."""

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
        self.__dict__.pop("_threshold", None)  # a fit that fails leaves no half of an older one
        self._check_parameters()
        warn_if_reordered(
            X, human_loss=human_loss, human_scores=human_scores, human_labels=human_labels
        )
        X, y = validate_data(
            self, X, y, dtype=np.float64, accept_sparse="csr" if self._fits_sparse() else False
        )
        self.classes_, signs = binary_labels(y)
        human: Human = {
            "human_loss": human_loss,
            "human_scores": human_scores,
            "human_labels": human_labels,
        }
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

    class_weight: Any

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._is_kernel("precomputed")
        return tags

    def _fits_sparse(self) -> bool:
        return self._is_kernel("linear")

    def _fit(self, X: Any, y: NDArray[Any], signs: Array, human: Human) -> None:
        prices = prices_of(self.class_weight, y, signs, self.classes_)
        settings = settings_of(self, X, signs)
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
