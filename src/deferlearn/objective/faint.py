"""Columns that are so small in their units that alpha leaves nothing of them.

The norm of w is measured in the units of X. A concentration of 5e-9 beside an age of 60 years would need a
coefficient of 1e9, which no alpha that suits the age allows: the column changes nothing, but its products
with itself are 20 digits smaller than those of the other, and exact paths must carry them.
"""

import numpy as np

from deferlearn._utils.types import Array, Bools

# How much leaving columns out may change F, in all; values are guaranteed to 1e-10.
MOST_CHANGE = 1e-12
# A column is faint only beside others: this share of the largest one, at most.
SMALL_SHARE = 1e-6


def faint_columns(X: Array, weight: Array, alpha: float, offset: bool) -> Bools:
    """Which columns can be left out of a linear kernel without changing F of any set of samples.

    A column x changes ``max sum(a) - a'Qa / (2 mu)`` over ``0 <= a <= u`` by at most
    ``(sum_i u_i |x_i|)^2 / (2 mu)`` with ``mu = 2 alpha sum_i u_i``, which is at most
    ``sum_i u_i x_i^2 / (4 alpha)`` for every set of samples. With an offset the column may be moved.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        The rows.
    weight : ndarray of shape (n_samples,)
        The weights of the samples.
    alpha : float
        Regularisation.
    offset : bool
        Whether there is an offset.

    Returns
    -------
    faint : ndarray of bool of shape (n_features,)
    """
    centred = X - X.mean(axis=0) if offset else X
    spread = np.abs(centred).max(axis=0, initial=0.0)
    small = spread <= SMALL_SHARE * spread.max(initial=0.0)
    faint = np.zeros(X.shape[1], dtype=bool)
    if not small.any():
        return faint
    # Squares of very small numbers are zero, and then they are faint for sure.
    change = weight @ np.square(centred[:, small]) / (4.0 * alpha)
    order = np.argsort(change)
    fits = np.cumsum(change[order]) <= MOST_CHANGE
    faint[np.flatnonzero(small)[order[fits]]] = True
    return faint
