"""Whether expected errors can be taken at their word."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from deferlearn._utils.types import Array
from deferlearn.desk.monitoring.figures import Figure, cases, number, percent
from deferlearn.desk.monitoring.losses import Grades, most_lost
from deferlearn.evaluation.intervals import (
    CONFIDENCE,
    NOTHING,
    Interval,
    mean_interval,
    share_interval,
    single_critical,
)

# What the name of a figure ends with if its unit is a grade.
IN_GRADES = ", in grades"
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
        The share of the cases that were wrong; with grades, how many grades off the answers were.
    count : int
        The number of cases.
    """

    expected: float
    found: Interval
    count: int


def calibration(
    who: str, errors: ArrayLike, expected: ArrayLike, grades: Grades = ()
) -> tuple[Figure, list[Group]]:
    """Compare the errors that were expected with those that were found.

    Which cases are known does not matter, as long as it does not depend on whether the answer was wrong:
    each case is compared with its own expectation.

    Parameters
    ----------
    who : str
        Whose errors they are, such as "the machine".
    errors : array-like of shape (n_cases,)
        1 wrong, 0 right, NaN not known; with grades, how many grades off.
    expected : array-like of shape (n_cases,)
        The expected error in the same unit, NaN where there is none.
    grades : tuple of str, default=()
        The grades, if classes have an order.

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
    n, name = len(found), "errors above those expected" + (IN_GRADES if grades else "")
    if not n:
        sentence = f"Nothing is known yet of errors of {who} that were expected."
        return Figure(name, NOTHING, 0, sentence, who, 0.0), []
    rows = np.arange(n)
    worst, critical = most_lost(grades), single_critical(rows, CONFIDENCE)
    interval = mean_interval(found - foreseen, rows, (-worst, worst), critical)
    means = float(found.mean()), float(foreseen.mean())
    if grades:
        sentence = f"In {cases(n)}, the answers of {who} were {number(means[0])} grades off on "
        sentence += f"average; {number(means[1])} was expected: "
    else:
        sentence = f"Of {cases(n)}, {who} erred on {percent(means[0])}; "
        sentence += f"{percent(means[1])} was expected: "
    if interval.low > 0:
        sentence += f"errors are {'larger' if grades else 'more frequent'} than expected."
    elif interval.high < 0:
        sentence += f"errors are {'smaller' if grades else 'rarer'} than expected."
    else:
        sentence += "the difference may be chance."
    return Figure(name, interval, n, sentence, who, 0.0), _groups(found, foreseen, grades)


def _groups(found: Array, foreseen: Array, grades: Grades) -> list[Group]:
    n_groups = min(MOST_GROUPS, max(len(found) // LEAST_CASES, 1))
    order = np.argsort(foreseen, kind="stable")
    groups = []
    for rows in np.array_split(order, n_groups):
        groups.append(Group(float(foreseen[rows].mean()), _mean(found[rows], grades), len(rows)))
    return groups


def _mean(found: Array, grades: Grades) -> Interval:
    """The mean error of some cases with its interval."""
    n = len(found)
    if grades:
        rows = np.arange(n)
        ends = 0.0, most_lost(grades)
        return mean_interval(found, rows, ends, single_critical(rows, CONFIDENCE))
    hits = int(found.sum())
    return Interval(hits / n, *share_interval(hits, n, method="wilson"))
