r"""Linear outputs, and the regularised mean loss that they minimise.

With :math:`z` the standardised features of a sample (mean 0 and variance 1 over the samples of the fit),
the outputs are :math:`f(x) = W z + b`, one per class and possibly one for deferral, and

.. math:: \min_{W, b} \; \sum_i v_i \, \ell(f(x_i), i) + \alpha \|W\|_F^2

where the weights :math:`v_i` sum to 1. Since features are standardised, alpha means the same whatever their
units. The offsets b are not regularised. A logistic loss of one output has the minimiser of scikit-learn's
`LogisticRegression` with ``C = 1 / (2 * alpha * n_samples)`` on standardised features, and so has a softmax
over three or more outputs. A softmax over two outputs has the one with twice that C, since each of the two
holds half of the difference.

Arrays: outputs F and their gradient G have the shape (n_samples, n_outputs), W (n_outputs, n_features).
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning

from deferlearn._utils.threads import one_blas_thread
from deferlearn._utils.types import Array

# The value of a loss at outputs F, and its gradient.
Loss = Callable[[Array], tuple[float, Array]]

# A column that varies by less than this, relative to its size, varies by rounding only.
ROUNDING = 1e-10
# Of the gradient's largest entry, where losses are of order 1.
GRADIENT = 1e-6
STEPS = 2000
# Pairs of steps that L-BFGS remembers: more than usual, since a loss of some hundred samples costs little.
MEMORY = 20


@dataclass(frozen=True)
class LinearModel:
    """Linear outputs on standardised features.

    Attributes
    ----------
    mean, scale : ndarray of shape (n_features,)
        What is subtracted from the features, and by what they are divided then.
    coef : ndarray of shape (n_outputs, n_features)
        The weights W of standardised features.
    intercept : ndarray of shape (n_outputs,)
        The offsets b.
    """

    mean: Array
    scale: Array
    coef: Array
    intercept: Array

    def outputs(self, X: Array) -> Array:
        """The outputs of every row."""
        return ((X - self.mean) / self.scale) @ self.coef.T + self.intercept

    def own_units(self) -> tuple[Array, Array]:
        """Weights and offsets for features that are not standardised."""
        coef = self.coef / self.scale
        return coef, self.intercept - coef @ self.mean


def fit_linear(
    X: Array,
    n_outputs: int,
    alpha: float,
    loss: Loss,
    start: LinearModel | None = None,
    precision: float = GRADIENT,
) -> tuple[LinearModel, float]:
    """The outputs that minimise a loss, and the value of the objective.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        The samples.
    n_outputs : int
        The number of outputs.
    alpha : float
        Regularisation.
    loss : callable
        From outputs to the mean loss and its gradient.
    start : LinearModel or None, default=None
        Weights to start from; None is zero.
    precision : float, default=1e-6
        The largest entry of the gradient at which to stop.

    Returns
    -------
    model : LinearModel
        The minimiser.
    value : float
        The loss with its regularisation.
    """
    mean, scale = standardisation(X)
    Z = (X - mean) / scale
    objective = regularised(Z, n_outputs, alpha, loss)
    first = np.zeros((n_outputs, Z.shape[1] + 1))
    if start is not None:
        first = np.column_stack([start.coef, start.intercept])
    options: dict[str, float] = {"maxiter": STEPS, "maxfun": 2 * STEPS, "maxcor": MEMORY}
    options |= {"gtol": precision, "ftol": 1e-15}
    with one_blas_thread():
        found = minimize(objective, first.ravel(), jac=True, method="L-BFGS-B", options=options)
    if found.status == 1:
        warnings.warn(
            f"L-BFGS has not converged in {STEPS} steps: alpha={alpha:g} is small for these samples.",
            ConvergenceWarning,
            stacklevel=2,
        )
    weights = found.x.reshape(first.shape)
    return LinearModel(mean, scale, weights[:, :-1], weights[:, -1]), float(found.fun)


def regularised(
    Z: Array, n_outputs: int, alpha: float, loss: Loss
) -> Callable[[Array], tuple[float, Array]]:
    """The objective as a function of a flat array, with its gradient; b is the last column."""
    shape = (n_outputs, Z.shape[1] + 1)

    def objective(flat: Array) -> tuple[float, Array]:
        weights = flat.reshape(shape)
        coef = weights[:, :-1]
        value, slope = loss(Z @ coef.T + weights[:, -1])
        gradient = np.empty(shape)
        gradient[:, :-1] = slope.T @ Z + (2.0 * alpha) * coef
        gradient[:, -1] = slope.sum(axis=0)
        return value + alpha * float(np.vdot(coef, coef)), gradient.ravel()

    return objective


def standardisation(X: Array) -> tuple[Array, Array]:
    """Mean and standard deviation of the columns, 1 in place of the deviation of a constant column."""
    mean = X.mean(axis=0)
    scale = X.std(axis=0)
    return mean, np.where(scale > ROUNDING * np.abs(X).max(axis=0), scale, 1.0)
