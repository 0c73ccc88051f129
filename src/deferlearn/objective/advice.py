"""What to change where numbers are too unequal for floats: a column, or a parameter of the kernel."""

import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp

from deferlearn._utils.types import Array
from deferlearn.kernels import LinearGram

# Kernel values are floats: where the largest is this many times alpha, F and gains lose digits that count.
LARGE_KERNEL = 1e10
# Spreads of columns with this ratio are worth a word when something went wrong.
UNEQUAL = 1e3
# A degree from which on it is the first thing to lower.
HIGH_DEGREE = 10


def column_spreads(gram: LinearGram) -> Array:
    """The largest distance of each column from where the engine has put the origin, in units of X."""
    if gram.sparse:
        return np.asarray(abs(sp.csc_array(gram.rows)).max(axis=0).toarray()).ravel() * gram.scale
    return np.asarray(np.abs(gram.rows).max(axis=0, initial=0.0)) * gram.scale


def unequal_columns(gram: Any) -> tuple[float, str]:
    """How unequal the columns of a linear kernel are, and which of them to rescale.

    Parameters
    ----------
    gram : Gram
        Of the linear kernel or of another one.

    Returns
    -------
    ratio : float
        The largest spread over the smallest one that is not zero; 1 for other kernels.
    words : str
        What they are, as a sentence; empty if they are of similar size.
    """
    if not isinstance(gram, LinearGram):
        return 1.0, ""
    spread = column_spreads(gram)
    varying = np.flatnonzero(spread > 0)
    if len(varying) < 2:
        return 1.0, ""
    least, most = varying[spread[varying].argmin()], varying[spread[varying].argmax()]
    ratio = float(spread[most] / spread[least])
    if ratio < UNEQUAL:
        return ratio, ""
    return ratio, (
        f"Column {most} of X spreads over {spread[most]:.2g}, and column {least} over {spread[least]:.2g}: "
        f"rescale them, for example with StandardScaler (column {most} counts in larger units, or column "
        f"{least} in smaller ones)."
    )


def advice_for(gram: Any, alpha: float) -> str:
    """What to do where no optimum could be verified; alpha in the engine's units."""
    words = unequal_columns(gram)[1]
    if words:
        return words
    if isinstance(gram, LinearGram):
        return "A very small alpha does this: rescale X, or raise alpha."
    return (
        f"The largest kernel value is {gram.diagonal.max() / alpha:.0e} times alpha: rescale the columns "
        "of X or change the parameters of the kernel so that its values are smaller, or raise alpha."
    )


def warn_of_large_values(
    X: Array, gram: Any, alpha: float, kernel: Any, degree: float, gamma: float, coef0: float
) -> None:
    """Say that values of a kernel are so far above alpha that digits are lost, and which to change.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        The rows.
    gram : KernelGram
        Their kernel values.
    alpha : float
        In the engine's units.
    kernel, degree, gamma, coef0
        As in `SVMObjective`.
    """
    ratio = float(gram.diagonal.max(initial=0.0)) / alpha
    if ratio < LARGE_KERNEL:
        return
    change = "Let the kernel give smaller values, or raise alpha."
    if kernel == "rbf":
        change = "Raise alpha."
    elif kernel == "poly":
        inner = gamma * np.einsum("ij,ij->i", X, X)
        largest = int(np.square(X).sum(axis=0).argmax())
        if abs(coef0) > inner.max():
            change = f"coef0={coef0:g} makes them so: take one that is closer to zero."
        elif degree >= HIGH_DEGREE:
            change = f"degree={degree:g} makes them so: take a lower one."
        else:
            change = (
                f"Rescale the columns of X, for example with StandardScaler (column {largest} is the "
                f"largest, up to {np.abs(X[:, largest]).max():.2g}), or raise alpha."
            )
    warnings.warn(
        f"The largest value of kernel={kernel!r} is {ratio:.0e} times alpha. From {LARGE_KERNEL:.0e} on "
        f"the results lose digits, since kernel values are rounded. {change}",
        UserWarning,
        stacklevel=4,
    )
