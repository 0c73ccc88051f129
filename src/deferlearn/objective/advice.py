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
        f"The largest kernel value is {gram.diagonal.max() / alpha:.0e} times alpha. {gram.remedy}"
    )


def kernel_remedy(X: Array, kernel: Any, degree: float, gamma: float, coef0: float) -> str:
    """What to change where values of a kernel are too large.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        The rows.
    kernel, degree, gamma, coef0
        As in `SVMObjective`.

    Returns
    -------
    remedy : str
        A sentence that names the parameter or the column.
    """
    if isinstance(kernel, str) and kernel == "rbf":
        return "Raise alpha."
    if not (isinstance(kernel, str) and kernel == "poly"):
        return "Let the kernel give smaller values, or raise alpha."
    inner = gamma * np.einsum("ij,ij->i", X, X)
    if abs(coef0) > inner.max():
        return (
            f"coef0={coef0:g} makes it so large: take one that is closer to zero, or raise alpha."
        )
    if degree >= HIGH_DEGREE:
        return f"degree={degree:g} makes it so large: take a lower one, or raise alpha."
    largest = int(np.square(X).sum(axis=0).argmax())
    return (
        f"Rescale the columns of X, for example with StandardScaler (column {largest} is the largest, up "
        f"to {np.abs(X[:, largest]).max():.2g}), or raise alpha."
    )


def warn_of_large_values(gram: Any, alpha: float, kernel: Any) -> None:
    """Say that values of a kernel are so far above alpha that digits are lost, and what to change.

    Parameters
    ----------
    gram : KernelGram
        Values of the kernel.
    alpha : float
        In the engine's units.
    kernel
        As in `SVMObjective`.
    """
    ratio = float(gram.diagonal.max(initial=0.0)) / alpha
    if ratio < LARGE_KERNEL:
        return
    warnings.warn(
        f"The largest value of kernel={kernel!r} is {ratio:.0e} times alpha. From {LARGE_KERNEL:.0e} on "
        f"the results lose digits, since kernel values are rounded. {gram.remedy}",
        UserWarning,
        stacklevel=4,
    )
