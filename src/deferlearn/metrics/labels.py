"""Labels and answers that can be compared, and their classes or grades."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deferlearn.humans.answers import are_numbers, shown
from deferlearn.humans.positions import check_complete, class_list, positions


def check_pair(y_true: ArrayLike, y_pred: ArrayLike) -> tuple[NDArray[Any], NDArray[Any]]:
    """Labels and answers as two vectors of equal length that can be compared."""
    truth, answer = np.asarray(y_true), np.asarray(y_pred)
    if truth.ndim != 1 or truth.shape != answer.shape:
        raise ValueError(
            f"y_true and y_pred must be vectors of equal length, got the shapes {truth.shape} and "
            f"{answer.shape}"
        )
    if not len(truth):
        raise ValueError("y_true is empty: a metric needs at least one case")
    if (truth.dtype.kind == "U") != (answer.dtype.kind == "U"):
        truth, answer = truth.astype(object), answer.astype(object)
    return truth, answer


def find_classes(classes: ArrayLike | None, **labels: NDArray[Any]) -> list[Any]:
    """The classes as given, or all labels that occur in sorted order.

    The vectors in `labels` have the names that messages use. A label that is missing, or none of the
    classes given, is an error.
    """
    if classes is not None:
        known = class_list(classes)
        for name, values in labels.items():
            positions(values, known, name)
        return known
    for name, values in labels.items():
        check_complete(values, name)
    try:
        return sorted({label for values in labels.values() for label in values.tolist()})
    except TypeError:
        raise ValueError(f"{' and '.join(labels)} mix labels of different types") from None


def find_grades(grades: ArrayLike | None, **labels: NDArray[Any]) -> list[Any]:
    """The same for grades, whose order counts: numbers have one, words must be given in theirs."""
    known = find_classes(grades, **labels)
    if grades is None and not has_larger(known):
        raise ValueError(
            f"which of the grades {shown(known)} is the lowest? Words have no order: give "
            "grades=[...], all grades from the lowest to the highest"
        )
    return known


def has_larger(labels: ArrayLike) -> bool:
    """Whether the larger label can be taken as the positive one: true for numbers, not for words."""
    return are_numbers(np.asarray(labels))
