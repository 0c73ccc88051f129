"""Whether expected errors can be taken at their word."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from deferlearn.desk.monitoring.figures import Figure, cases, percent
from deferlearn.evaluation.intervals import (
    CONFIDENCE,
    NOTHING,
    Interval,
    mean_interval,
    share_interval,
    single_critical,
)

# So many groups of about equally many cases are compared, if there are enough cases.
MOST_GROUPS, LEAST_CASES = 5, 20


@dataclass(frozen=True)
class Group:
    """Cases with much the same expected error.

    Attributes
    ----------
    expected : float
        The mean of the expected errors.
    found : Interval
        The share of the cases that were wrong.
    count : int
        The number of cases.
    """

    expected: float
    found: Interval
    count: int


def calibration(who: str, errors: ArrayLike, expected: ArrayLike) -> tuple[Figure, list[Group]]:
    """Compare the errors that were expected with those that were found.

    Which cases are known does not matter, as long as it does not depend on whether the answer was wrong:
    each case is compared with its own expectation.

    Parameters
    ----------
    who : str
        Whose errors they are, such as "the machine".
    errors : array-like of shape (n_cases,)
        1 wrong, 0 right, NaN not known.
    expected : array-like of shape (n_cases,)
        The expected error, NaN where there is none.

    Returns
    -------
    figure : Figure
        By how much the share of errors exceeds the expected one.
    groups : list of Group
        The same for cases with low, middle and high expected errors.
    """
    found, foreseen = np.asarray(errors, dtype=np.float64), np.asarray(expected, dtype=np.float64)
    known = ~np.isnan(found) & ~np.isnan(foreseen)
    found, foreseen = found[known], foreseen[known]
    n, name = len(found), "errors above those expected"
    if not n:
        sentence = f"Nothing is known yet of errors of {who} that were expected."
        return Figure(name, NOTHING, 0, sentence, who, 0.0), []
    rows = np.arange(n)
    interval = mean_interval(found - foreseen, rows, (-1.0, 1.0), single_critical(rows, CONFIDENCE))
    sentence = (
        f"Of {cases(n)}, {who} had {percent(float(found.mean()))} wrong; "
        f"{percent(float(foreseen.mean()))} was expected: "
    )
    if interval.low > 0:
        sentence += "errors are more frequent than expected."
    elif interval.high < 0:
        sentence += "errors are rarer than expected."
    else:
        sentence += "the difference may be chance."
    return Figure(name, interval, n, sentence, who, 0.0), _groups(found, foreseen)


def _groups(found: np.ndarray, foreseen: np.ndarray) -> list[Group]:
    n_groups = min(MOST_GROUPS, max(len(found) // LEAST_CASES, 1))
    order = np.argsort(foreseen, kind="stable")
    groups = []
    for rows in np.array_split(order, n_groups):
        hits, n = int(found[rows].sum()), len(rows)
        low, high = share_interval(hits, n, method="wilson")
        groups.append(Group(float(foreseen[rows].mean()), Interval(hits / n, low, high), n))
    return groups
