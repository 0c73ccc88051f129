"""What answers cost, in the unit in which models expect it: wrong answers, or grades off.

A model of grades (`card["graded"]`) is fitted to be off by as few grades as possible, so the errors that it
expects are counted in grades: two grades off cost twice as much as one. What is compared with them has to
be in grades, too. Shares of wrong answers that are not compared with expectations stay shares.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deferlearn._utils.types import Array
from deferlearn.desk.monitoring.errors import wrong

Grades = tuple[str, ...]


def grades_of(card: Mapping[str, Any]) -> Grades:
    """The grades of a model from the lowest to the highest; none if its classes have no order.

    Parameters
    ----------
    card : mapping
        The model's card.

    Returns
    -------
    grades : tuple of str
    """
    return tuple(card["classes"]) if card.get("graded") else ()


def most_lost(grades: Grades) -> float:
    """What the worst answer costs: 1, or the number of steps between the grades."""
    return float(max(len(grades) - 1, 1))


def losses(answers: NDArray[Any], truths: NDArray[Any], grades: Grades = ()) -> Array:
    """What each answer costs.

    Parameters
    ----------
    answers, truths : ndarray of object of shape (n_cases,)
        None where there is no answer, or the truth is not known.
    grades : tuple of str, default=()
        The grades from the lowest to the highest; none if classes have no order.

    Returns
    -------
    losses : ndarray of shape (n_cases,)
        Grades off; without grades 1 for wrong and 0 for right. NaN where it is not known. A wrong
        label that is no grade costs as much as the worst answer.

    Examples
    --------
    >>> import numpy as np
    >>> from deferlearn.desk.monitoring.losses import losses
    >>> answers = np.array(["low", "high", "low", None], dtype=object)
    >>> truths = np.array(["high", "high", "middle", "low"], dtype=object)
    >>> losses(answers, truths, ("low", "middle", "high"))
    array([ 2.,  0.,  1., nan])
    >>> losses(answers, truths)
    array([ 1.,  0.,  1., nan])
    """
    found = wrong(answers, truths)
    if not grades:
        return found
    place = {grade: number for number, grade in enumerate(grades)}
    for row in np.flatnonzero(found == 1):
        ends = place.get(answers[row]), place.get(truths[row])
        found[row] = most_lost(grades) if None in ends else abs(ends[0] - ends[1])  # type: ignore[operator]
    return found
