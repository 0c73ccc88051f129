"""The cases of a whole table that go to humans, known from a first pass over it."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from deferlearn._utils.types import Array, Bools
from deferlearn.tables.errors import TableError
from deferlearn.teams.budget import count_of


class TopCases:
    """The cases that go to humans, chunk by chunk: unusual cases first, then the highest scores.

    Parameters
    ----------
    scores : ndarray
        Scores of all cases.
    first : ndarray of bool
        Which cases come before all others. Among them the scores decide, too.
    count : int
        How many of the cases go to humans.

    Examples
    --------
    >>> import numpy as np
    >>> from deferlearn.tables.top import TopCases
    >>> top = TopCases(np.array([0.5, 2.0, 0.1]), np.array([False, False, True]), 2)
    >>> top.take(np.array([0.5, 2.0]), np.array([False, False]))
    (array([False,  True]), array([3, 2]))
    >>> top.take(np.array([0.1]), np.array([True]))
    (array([ True]), array([1]))
    """

    def __init__(self, scores: Array, first: Bools, count: int) -> None:
        self.count, self.total = count, len(scores)
        self._n_first = int(first.sum())
        taken = min(count, self._n_first)
        self._first = _Highest(scores[first], taken)
        self._others = _Highest(scores[~first], count - taken)

    def take(self, scores: Array, first: Bools) -> tuple[Bools, NDArray[np.int64]]:
        """Which cases of the next chunk are among the top, and the rank of each case."""
        top, ranks = np.zeros(len(scores), dtype=bool), np.zeros(len(scores), dtype=np.int64)
        top[first], ranks[first] = self._first.take(scores[first])
        top[~first], others = self._others.take(scores[~first])
        ranks[~first] = self._n_first + others
        return top, ranks


class _Highest:
    """The cases with the highest scores; of equal scores the first ones."""

    def __init__(self, scores: Array, count: int) -> None:
        scores.sort()
        self._sorted = scores
        self._cut = float(scores[len(scores) - count]) if count else np.inf
        above = len(scores) - int(np.searchsorted(scores, self._cut, side="right"))
        self._ties_left = count - above

    def take(self, scores: Array) -> tuple[Bools, NDArray[np.int64]]:
        """Which cases of the next chunk are among the highest, and the rank of each case."""
        ranks = 1 + len(self._sorted) - np.searchsorted(self._sorted, scores, side="right")
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
