"""Shares and differences with their 95% intervals, as plain numbers; cases of a group are alike."""

from typing import Any

import numpy as np

from deferlearn._utils.types import Array, Bools, Index
from deferlearn.evaluation.intervals import (
    CONFIDENCE,
    Ends,
    Interval,
    gap_interval,
    joint_critical,
    mean_interval,
    share_interval,
    single_critical,
)
from deferlearn.tables.cases import Cases

Row = dict[str, Any]
DIFFERENCE: Ends = (-1.0, 1.0)


def groups_of(cases: Cases) -> Index:
    """The number of each case's group; without groups, every case is a group of its own."""
    if cases.groups is None:
        return np.arange(len(cases))
    return np.unique(cases.groups, return_inverse=True)[1]


def share(hits: Bools, group: Index) -> Row:
    """The share of cases that count: exact if every case is a group of its own, else by groups.

    Parameters
    ----------
    hits : ndarray of bool of shape (n,)
        Whether a case counts; there is at least one case.
    group : ndarray of int of shape (n,)
        Cases with the same number belong together.

    Returns
    -------
    share : dict
        With the keys share, lower, upper, count and cases.

    Examples
    --------
    >>> import numpy as np
    >>> from deferlearn.report.estimates import share
    >>> wrong = np.array([True] + [False] * 9)
    >>> [round(share(wrong, np.arange(10))[end], 3) for end in ("lower", "upper")]
    [0.003, 0.445]
    >>> [round(share(wrong, np.arange(10) // 2)[end], 3) for end in ("lower", "upper")]
    [0.0, 0.465]
    """
    count, n = int(hits.sum()), len(hits)
    if len(np.unique(group)) == n:
        lower, upper = share_interval(count, n)
    else:
        critical = single_critical(group, CONFIDENCE)
        found = mean_interval(hits.astype(np.float64), group, (0.0, 1.0), critical)
        lower, upper = found.low, found.high
    return {"share": count / n, "lower": lower, "upper": upper, "count": count, "cases": n}


def paired(values: Array, group: Index, ends: Ends = DIFFERENCE) -> Row:
    """The mean of differences between two answers to the same cases, with an interval of its own.

    Without groups, it is the interval of Bonett and Price for paired proportions.
    """
    return as_row(mean_interval(values, group, ends, single_critical(group, CONFIDENCE)))


def as_row(found: Interval) -> Row:
    """A difference with its interval, and whether the interval lies on one side of 0."""
    return {
        "difference": found.mean,
        "lower": found.low,
        "upper": found.high,
        "supported": bool(found.low > 0 or found.high < 0),
    }


class Family:
    """Comparisons whose intervals hold together: with 95% confidence, none of them misses.

    Many comparisons find something by chance. The intervals of a family are so much longer that a
    difference called supported can be relied on in all rows at once.

    Parameters
    ----------
    group : ndarray of int of shape (n,)
        The groups of all cases.

    Examples
    --------
    >>> import numpy as np
    >>> from deferlearn.report.estimates import Family
    >>> family = Family(np.arange(60))
    >>> values = np.r_[np.ones(20), np.zeros(40)]
    >>> family.within(values, np.arange(60) < 30)
    >>> family.against_rest(values, np.arange(60) < 30)
    >>> [(round(row["difference"], 2), row["supported"]) for row in family.rows()]
    [(0.67, True), (0.67, True)]
    """

    def __init__(self, group: Index) -> None:
        self.group = group
        self._asked: list[tuple[Array, Bools, bool]] = []

    def within(self, values: Array, part: Bools) -> None:
        """Ask for the mean of the differences `values` in a part of the cases."""
        self._asked.append((values, part, False))

    def against_rest(self, values: Array, part: Bools) -> None:
        """Ask for the mean of `values`, between 0 and 1, in a part minus the mean of the other cases."""
        self._asked.append((values, part, True))

    def rows(self) -> list[Row]:
        """One row per comparison, in the order in which they were asked for."""
        if not self._asked:
            return []
        influence = np.array([_influence(*asked) for asked in self._asked])
        critical = joint_critical(influence, self.group, CONFIDENCE)
        return [as_row(self._interval(*asked, critical)) for asked in self._asked]

    def _interval(self, values: Array, part: Bools, rest: bool, critical: float) -> Interval:
        if not rest:
            return self._mean(values, part, DIFFERENCE, critical)
        one, other = (self._mean(values, own, (0.0, 1.0), critical) for own in (part, ~part))
        return gap_interval(one, other)

    def _mean(self, values: Array, part: Bools, ends: Ends, critical: float) -> Interval:
        own = self.group[part]
        # A part with few groups needs more than the whole does.
        return mean_interval(
            values[part], own, ends, max(critical, single_critical(own, CONFIDENCE))
        )


def _influence(values: Array, part: Bools, rest: bool) -> Array:
    """How much each case moves the number, by which the correlation of comparisons is known."""
    own = np.where(part, values - values[part].mean(), 0.0) / part.sum()
    if not rest:
        return own
    return own - np.where(part, 0.0, values - values[~part].mean()) / (~part).sum()
