"""What every fitted team of machine and human can be asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics import accuracy_score
from sklearn.utils.validation import check_is_fitted, validate_data

from deferlearn._utils.checks import check_flag
from deferlearn.humans.human import Answers, check_truth, team_labels, warn_if_reordered
from deferlearn.teams.parameters import count_of
from deferlearn.teams.threshold import first_of

if TYPE_CHECKING:
    from deferlearn.teams.machine import Machine
    from deferlearn.teams.threshold import Threshold

Array = NDArray[np.float64]
Bools = NDArray[np.bool_]


class TeamMixin:
    """The methods of a team.

    The estimator has, once fitted, `classes_` and `_threshold`, and says by `_decide` what the
    machine thinks of checked cases, by `_rank` how much they belong with a human, and by
    `_own_budget` which fraction may be deferred.
    """

    classes_: NDArray[Any]
    _threshold: Threshold

    # With metadata routing, `fit` asks for the human by itself.
    __metadata_request__fit: ClassVar[dict[str, bool]] = {
        "human_loss": True,
        "human_scores": True,
        "human_labels": True,
    }

    def _takes_sparse(self) -> bool:
        """Whether new cases may be sparse."""
        raise NotImplementedError

    def _decide(self, X: Any) -> Array:
        """The machine's decision values of checked cases."""
        raise NotImplementedError

    def _rank(self, X: Any) -> Array:
        """Deferral scores of checked cases."""
        raise NotImplementedError

    def _own_budget(self) -> float:
        """The budget as a fraction."""
        raise NotImplementedError

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_threshold")

    def _check_new(self, X: Any) -> Any:
        check_is_fitted(self)
        sparse = "csr" if self._takes_sparse() else False
        return validate_data(self, X, reset=False, dtype=np.float64, accept_sparse=sparse)

    def decision_function(self, X: Any) -> Array:
        """The machine's decision value for every row, positive for the second of the classes.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Cases; rows of kernel values with the training samples if the kernel is precomputed.

        Returns
        -------
        decision : ndarray of shape (n_samples,)
        """
        X = self._check_new(X)
        return self._decide(X)

    def predict(self, X: Any) -> NDArray[Any]:
        """The machine's answer for every row, deferred or not.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Cases.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
        """
        decision = self.decision_function(X)  # says first if nothing has been fitted
        return self.classes_[(decision > 0).astype(np.int64)]

    def deferral_score(self, X: Any) -> Array:
        """How much each case belongs with a human: larger is more.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Cases.

        Returns
        -------
        score : ndarray of shape (n_samples,)
        """
        X = self._check_new(X)
        return self._rank(X)

    def defer(self, X: Any) -> Bools:
        """Whether a human should take each case, one at a time.

        A case is deferred if its score is above `deferral_threshold_`, which keeps the expected rate on
        data like those of `fit` at `deferral_rate_`. Among cases that score exactly the threshold, a
        coin decides that depends on the case's features alone: the same case always gets the same
        answer. Of several equal rows in one X the right share is deferred.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Cases.

        Returns
        -------
        deferred : ndarray of bool of shape (n_samples,)
        """
        X = self._check_new(X)
        return self._threshold.apply(self._rank(X), X)

    def defer_top(self, X: Any, budget: float | int | None = None) -> Bools:
        """The cases of this batch that belong most with a human, as many as the budget says.

        This is the paper's rule: it needs all cases at once, and what happens to one depends on the
        others. Of cases with equal scores the first are taken. If training has deferred nobody, nobody
        is deferred here either.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The batch.
        budget : float, int or None, default=None
            A fraction of the batch or a number of cases. None is the estimator's own budget, as the
            fraction that it was of the training samples.

        Returns
        -------
        deferred : ndarray of bool of shape (n_samples,)
        """
        X = self._check_new(X)
        own = self._own_budget() if budget is None else budget
        count = count_of(own, X.shape[0], "cases")
        # Where nobody is to be deferred, one at a time, scores say nothing of who would be first.
        return first_of(self._rank(X), 0 if self._threshold.value == np.inf else count)

    def predict_assisted(self, X: Any, human_labels: Answers, batch: bool = False) -> NDArray[Any]:
        """The team's answer: the human's where a case is deferred, else the machine's.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Cases.
        human_labels : array-like of shape (n_samples,) or (n_samples, n_readers), or callable
            Answers in the labels of y. A function is asked only for the deferred rows: it gets their
            positions in X, an array of integers, and returns an answer for each. With several readers
            the majority counts, and among equally many votes the first reader's side. A deferred case
            without any answer is an error: the machine does not silently stand in.
        batch : bool, default=False
            Whether to defer by `defer_top` instead of `defer`.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
        """
        warn_if_reordered(X, human_labels=human_labels)
        deferred = self.defer_top(X) if check_flag("batch", batch) else self.defer(X)
        return team_labels(self.predict(X), deferred, human_labels, self.classes_)

    def score_assisted(
        self, X: Any, y: ArrayLike, human_labels: Answers, batch: bool = False
    ) -> float:
        """Accuracy of the team.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Cases.
        y : array-like of shape (n_samples,)
            True labels.
        human_labels, batch
            As in `predict_assisted`.

        Returns
        -------
        accuracy : float
        """
        answers = self.predict_assisted(X, human_labels, batch)
        return float(accuracy_score(check_truth(y, self.classes_), answers))


class MachineMixin:
    """The SVM inside an estimator, by the names that `sklearn.svm.SVC` gives to its parts."""

    kernel: Any
    _machine: Machine

    def _is_kernel(self, name: str) -> bool:
        return isinstance(self.kernel, str) and self.kernel == name

    def _takes_sparse(self) -> bool:
        return self._machine.settings.linear

    def _decide(self, X: Any) -> Array:
        return self._machine.decision_function(X)

    def _fitted_machine(self) -> Machine:
        check_is_fitted(self)
        return self._machine

    @property
    def coef_(self) -> Array:
        """The weight vector w, for a linear kernel."""
        machine = self._fitted_machine()
        if machine.coef is None:
            kernel = machine.settings.kernel
            raise AttributeError(f"coef_ exists for kernel='linear' only, not {kernel!r}.")
        return machine.coef[None, :]

    @property
    def intercept_(self) -> Array:
        """The offset b."""
        return np.array([self._fitted_machine().intercept])

    @property
    def dual_coef_(self) -> Array:
        """Coefficients of the support vectors in w."""
        return self._fitted_machine().dual_coef[None, :]

    @property
    def support_(self) -> NDArray[np.int64]:
        """Rows of the support vectors."""
        return self._fitted_machine().support

    @property
    def support_vectors_(self) -> Any:
        """The support vectors; empty for a precomputed kernel."""
        vectors = self._fitted_machine().vectors
        return np.empty((0, 0)) if vectors is None else vectors
