"""Products of matrices in which a row does not depend on the rows around it."""

from typing import Any

import numpy as np

from deferlearn._utils.types import Array


def row_products(rows: Array, matrix: Any) -> Array:
    """``rows @ matrix`` for a matrix with few rows.

    BLAS rounds a row differently alone than among others. Here a case gets the same numbers, to the last
    bit, alone and in a batch.

    Parameters
    ----------
    rows : ndarray of shape (n_rows, k)
        The left factor.
    matrix : array-like of shape (k, m)
        The right factor.

    Returns
    -------
    product : ndarray of shape (n_rows, m)

    Examples
    --------
    >>> import numpy as np
    >>> from deferlearn._utils.products import row_products
    >>> row_products(np.array([[1.0, 2.0]]), [[0.5, 0.0], [1.0, 3.0]])
    array([[2.5, 6. ]])
    """
    matrix = np.asarray(matrix, dtype=np.float64)
    product = np.zeros((len(rows), matrix.shape[1]))
    for column, own in zip(rows.T, matrix, strict=True):
        product += column[:, None] * own
    return product
