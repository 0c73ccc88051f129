"""The cases of a whole table that go to humans, known from a first pass over it."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from deferlearn._utils.types import Array, Bools
from deferlearn.tables.errors import TableError
from deferlearn.teams.budget import count_of


class TopCases:
    """The cases with the highest scores, chunk by chunk; of equal scores the first ones.

    Parameters
    ----------
    scores : ndarray
        Scores of all cases. It is sorted in place.
    count : int
        How many of the cases go to humans.

    Examples
    --------
    >>> import numpy as np
    >>> from deferlearn.tables.top import TopCases
    >>> top = TopCases(np.array([0.5, 2.0, 0.5, 1.0]), 3)
    >>> top.take(np.array([0.5, 2.0])), top.take(np.array([0.5, 1.0]))
    ((array([ True,  True]), array([3, 1])), (array([False,  True]), array([3, 2])))
    """

    def __init__(self, scores: Array, count: int) -> None:
        self._sorted, self.count, self.total = scores, count, len(scores)
        self._sorted.sort()
        self._cut = float(scores[len(scores) - count]) if count else np.inf
        above = len(scores) - int(np.searchsorted(scores, self._cut, side="right"))
        self._ties_left = count - above

    def take(self, scores: Array) -> tuple[Bools, NDArray[np.int64]]:
        """Which cases of the next chunk are among the top, and the rank of each case."""
        ranks = 1 + self.total - np.searchsorted(self._sorted, scores, side="right")
        tied = np.flatnonzero(scores == self._cut)[: self._ties_left]
        self._ties_left -= len(tied)
        top = scores > self._cut
        top[tied] = True
        return top, ranks


def places_for(budget: Any, rows: int) -> int:
    """The number of cases for humans; of a table with fewer cases than the budget they take all.

    Parameters
    ----------
    budget : float or int
        A share or a number.
    rows : int
        Number of all cases.

    Returns
    -------
    count : int

    Examples
    --------
    >>> from deferlearn.tables.top import places_for
    >>> places_for(0.2, 50), places_for(30, 20)
    (10, 20)
    """
    if isinstance(budget, int) and not isinstance(budget, bool) and budget >= 0:
        return min(budget, rows)
    try:
        return count_of(budget, rows, "cases")
    except ValueError as error:
        raise TableError(str(error)) from error


def rounded(scores: Array) -> Array:
    """Scores rounded to ten digits, as `defer_top` does: equal rows may differ in the last bits."""
    mantissa, exponent = np.frexp(scores)
    return np.ldexp(np.round(mantissa * 2.0**33), exponent - 33)
