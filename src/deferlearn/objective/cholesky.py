"""Inverses of positive definite matrices, by their Cholesky factors."""

from typing import Any

import numpy as np
import scipy.linalg

from deferlearn._utils.types import Array


def inverse_of_factor(factor: Any) -> Array:
    """The inverse of the matrix with this lower Cholesky factor; in place, if it is in Fortran's order."""
    inverse, _ = scipy.linalg.lapack.dpotri(factor, lower=1, overwrite_c=1)
    rows: Array = inverse.T  # so that it is in C's order; the upper half is filled
    for i in range(1, len(rows)):
        rows[i, :i] = rows[:i, i]
    return np.ascontiguousarray(rows)
