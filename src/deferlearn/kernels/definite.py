"""Whether a matrix is a Gram matrix, and what makes it one that the engine can take."""

import numpy as np
from scipy.linalg import LinAlgError, cholesky, eigh

from deferlearn._utils.types import Array

# An eigenvalue below -INDEFINITE times the largest entry is no rounding error, nor is such a difference
# between an entry and its mirror image: half of the digits that a float has, one with double or with
# single precision. A kernel computed in single precision was seen to miss zero by 1e-7 to 3e-5.
INDEFINITE = {"double": 1e-8, "single": 3e-4}
# Constants to try, as multiples of the largest entry; each costs an eigenvalue.
LIFTS = (1.0, 4.0, 16.0)
# Beyond rounding of the eigenvalue itself.
RAISE = 1.01
# From here on a factorisation is tried first: it takes a tenth of the time of an eigenvalue.
LARGE = 1000


def as_gram(K: Array, source: str, offset: bool) -> Array:
    """A positive semi-definite matrix that stands for K, or an error if K is no Gram matrix.

    It is K itself, but for two cases. In single precision rounding leaves eigenvalues a little below zero:
    then the diagonal is raised by as much, since all that is proved about an SVM needs them not to be.
    And an SVM with an offset does not notice a constant that is added to its kernel, because its dual
    variables add up to zero over the two classes: where K lacks nothing but a constant, as after its
    mean was taken away, the constant is put back.
    """
    if K.ndim != 2 or K.shape[0] != K.shape[1]:
        raise ValueError(f"{source} must be a square matrix, got shape {K.shape}.")
    if not np.isfinite(K).all():
        i, j = np.argwhere(~np.isfinite(K))[0]
        raise ValueError(f"{source} has {K[i, j]} at row {i}, column {j}; it must be finite.")
    size = float(np.abs(K).max(initial=0.0))
    precision = "single" if _is_single(K) else "double"
    limit = INDEFINITE[precision] * size
    difference = np.abs(K - K.T)
    if difference.max(initial=0.0) > limit:
        i, j = np.unravel_index(np.argmax(difference), K.shape)
        raise ValueError(
            f"{source} is not symmetric: entry ({i}, {j}) is {K[i, j]:g}, ({j}, {i}) is {K[j, i]:g}."
        )
    if size == 0:
        return K
    if precision == "single":
        K = (K + K.T) / 2
    gram, smallest = K, _smallest_eigenvalue(K, limit)
    for lift in LIFTS if offset and smallest < -limit else ():
        lifted = K + lift * size
        least = _smallest_eigenvalue(lifted, limit)
        if least >= -limit:
            gram, smallest = lifted, least
            break
    if smallest < -limit:
        raise ValueError(
            f"{source} is indefinite (smallest eigenvalue {smallest:g}, largest entry {size:g}); "
            "an SVM needs a positive semi-definite kernel."
        )
    if smallest < -INDEFINITE["double"] * size:
        gram = gram.copy()
        gram[np.diag_indices_from(gram)] -= RAISE * smallest
    return gram


def check_part(part: Array, source: str) -> None:
    """Refuse a kernel by some rows of a matrix that is too large to be kept, and so to be mended.

    What `as_gram` puts right on the whole cannot be seen from a part: how far rounding in single
    precision takes eigenvalues below zero, or which constant is missing.
    """
    if _is_single(part):
        raise ValueError(
            f"{source} has values of single precision. That is enough only while the whole matrix is "
            "kept (up to 4096 samples, with a cache_size that holds it); have the kernel return float64."
        )
    as_gram(part, source, offset=False)


def _is_single(K: Array) -> bool:
    """Whether the entries have the digits of single precision; whole numbers have no rounding at all."""
    with np.errstate(over="ignore"):
        return bool((K.astype(np.float32) == K).all() and (np.rint(K) != K).any())


def _smallest_eigenvalue(K: Array, limit: float) -> float:
    """The smallest eigenvalue; of a large matrix 0 if it is known to be above minus a tiny limit."""
    if len(K) > LARGE and limit <= INDEFINITE["double"] * float(np.abs(K).max()):
        raised = K.copy()
        raised[np.diag_indices_from(raised)] += limit
        try:
            cholesky(raised, lower=True, overwrite_a=True, check_finite=False)
        except LinAlgError:
            pass
        else:
            return 0.0
    return float(eigh(K, eigvals_only=True, subset_by_index=(0, 0), check_finite=False)[0])
