"""How the training cases are spread over each column, in a few numbers that a model file holds."""

from typing import Any

import numpy as np

from deferlearn._utils.types import Array, Index
from deferlearn.tables.encoding import Encoding

# Columns of numbers are counted between these quantiles.
TENTHS = np.arange(1, 10) / 10


def column_summary(encoding: Encoding, codes: Array) -> dict[str, dict[str, Any]]:
    """Count the cases in each tenth of a column of numbers, and of each category of other columns.

    Parameters
    ----------
    encoding : Encoding
        It knows the columns.
    codes : ndarray of shape (n_cases, n_columns)
        The cells, as `Encoding.codes` reads them.

    Returns
    -------
    summary : dict
        For each column a dict of plain values. A column of numbers has edges (between the tenths), least
        and most (None if all cells are empty). Every column has counts, those of its bins or categories;
        unknown, the number of cells with a category that is none of them; and missing, that of gaps.
    """
    found = {}
    for place, name in enumerate(encoding.columns):
        values = codes[:, place]
        there = values[~np.isnan(values)]
        column: dict[str, Any] = {}
        if name not in encoding.categories:
            edges = np.unique(np.quantile(there, TENTHS)).tolist() if len(there) else []
            column = {
                "edges": edges,
                "least": float(there.min()) if len(there) else None,
                "most": float(there.max()) if len(there) else None,
            }
        counted = bin_counts(values, column.get("edges"), len(encoding.categories.get(name, ())))
        found[name] = column | {
            "counts": counted[:-2].tolist(),
            "unknown": int(counted[-2]),
            "missing": int(counted[-1]),
        }
    return found


def bin_counts(values: Array, edges: list[float] | None, n_categories: int = 0) -> Index:
    """The number of cells in each bin or category, of unknown categories, and of gaps.

    Parameters
    ----------
    values : ndarray of shape (n,)
        Numbers, or positions of categories; NaN for a gap, -1 for an unknown category.
    edges : list of float or None
        The ends of the bins, each of which belongs to the bin below it; None for categories.
    n_categories : int, default=0
        Number of categories.

    Returns
    -------
    counts : ndarray of int

    Examples
    --------
    >>> import numpy as np
    >>> from deferlearn.tables.summary import bin_counts
    >>> bin_counts(np.array([0.5, 2.0, 3.0, np.nan]), [1.0, 2.0])
    array([1, 1, 1, 0, 1])
    >>> bin_counts(np.array([0.0, 0.0, -1.0]), None, 2)
    array([2, 0, 1, 0])
    """
    n_bins = n_categories if edges is None else len(edges) + 1
    return np.bincount(bins(values, edges, n_categories), minlength=n_bins + 2)


def bins(values: Array, edges: list[float] | None, n_categories: int = 0) -> Index:
    """The bin or category of each cell; see `bin_counts`."""
    n_bins = n_categories if edges is None else len(edges) + 1
    places = values if edges is None else np.searchsorted(edges, values, side="left")
    unknown = (values < 0) if edges is None else np.zeros(len(values), dtype=bool)
    places = np.where(unknown, n_bins, places)
    return np.where(np.isnan(values), n_bins + 1, places).astype(np.intp)
