"""Regularised logistic regression on standardised features: the machine where none is given."""

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from deferlearn._utils.types import Array
from deferlearn.teams.odds import log_softmax
from deferlearn.teams.surrogates.linear import LinearModel, Loss, fit_linear


def softmax_loss(codes: NDArray[np.int64], weights: Array) -> Loss:
    """The loss ``-sum_i weights_i log p(codes_i)``, where p is the softmax of the outputs."""
    rows = np.arange(len(codes))

    def loss(F: Array) -> tuple[float, Array]:
        log_p = log_softmax(F)
        slope = np.exp(log_p)
        slope[rows, codes] -= 1.0
        return -float(weights @ log_p[rows, codes]), slope * weights[:, None]

    return loss


@dataclass(eq=False, repr=False)
class LogisticModel(ClassifierMixin, BaseEstimator):
    r"""Softmax regression with one output per class, see `deferlearn.teams.surrogates.linear`.

    It minimises the weighted mean of :math:`-\log p_y(x)`, plus :math:`\alpha \|W\|_F^2` on standardised
    features. With two classes, `sklearn.linear_model.LogisticRegression` with ``C = 1 / (alpha * n)`` on
    standardised features is the same model.

    Parameters
    ----------
    alpha : float, default=0.01
        Regularisation.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.
    model_ : LinearModel
        The outputs.

    Examples
    --------
    >>> import numpy as np
    >>> from deferlearn.teams.surrogates.logistic import LogisticModel
    >>> model = LogisticModel().fit(np.array([[0.0], [1.0], [2.0], [3.0]]), [0, 1, 0, 1])
    >>> model.predict_proba(np.array([[1.5]])).round(3)
    array([[0.5, 0.5]])
    """

    _: KW_ONLY
    alpha: float = 0.01

    def fit(self, X: Array, y: Any, sample_weight: Array | None = None) -> Self:
        """Fit on arrays that have been checked already.

        Parameters
        ----------
        X : ndarray of shape (n_samples, n_features)
            The samples.
        y : array-like of shape (n_samples,)
            Labels.
        sample_weight : ndarray of shape (n_samples,) or None, default=None
            What an error on each sample costs.

        Returns
        -------
        self
        """
        self.classes_, codes = np.unique(y, return_inverse=True)
        weights = np.ones(len(codes)) if sample_weight is None else sample_weight
        loss = softmax_loss(codes, weights / weights.sum())
        self.model_: LinearModel
        self.model_, _ = fit_linear(X, len(self.classes_), self.alpha, loss)
        return self

    def predict_proba(self, X: Array) -> Array:
        """Probabilities of the classes, in the order of `classes_`.

        Parameters
        ----------
        X : ndarray of shape (n_samples, n_features)
            Cases.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
        """
        check_is_fitted(self)
        return np.exp(log_softmax(self.model_.outputs(X)))

    def predict(self, X: Array) -> NDArray[Any]:
        """The most probable class.

        Parameters
        ----------
        X : ndarray of shape (n_samples, n_features)
            Cases.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
        """
        return np.asarray(self.classes_[self.predict_proba(X).argmax(axis=1)])
