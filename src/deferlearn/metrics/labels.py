"""Labels and answers as positions among the classes, for any number of classes."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deferlearn._utils.checks import plain
from deferlearn._utils.types import Index
from deferlearn.humans.answers import are_numbers, find_missing, shown


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
    for name, values in labels.items():
        gaps = find_missing(values)
        if gaps.any():
            raise ValueError(
                f"{name} has no label at row {np.flatnonzero(gaps)[0]}: leave such cases out"
            )
    found = {label for values in labels.values() for label in values.tolist()}
    if classes is None:
        try:
            return sorted(found)
        except TypeError:
            names = " and ".join(labels)
            raise ValueError(f"{names} mix labels of different types") from None
    given = np.asarray(classes)
    if given.ndim != 1 or len(set(given.tolist())) < max(given.size, 1):
        raise ValueError(f"classes must be a list of different labels, got {classes!r}")
    known = [plain(label) for label in given.tolist()]
    for name, values in labels.items():
        stray = set(values.tolist()).difference(known)
        if stray:
            raise ValueError(
                f"{name} holds {min(stray, key=repr)!r}, which is none of the classes {shown(known)}"
            )
    return known


def find_grades(grades: ArrayLike | None, **labels: NDArray[Any]) -> list[Any]:
    """The same for grades, whose order counts: numbers have one, words must be given in theirs."""
    known = find_classes(grades, **labels)
    if grades is None and not has_larger(known):
        raise ValueError(
            f"which of the grades {shown(known)} is the lowest? Words have no order: give "
            "grades=[...], all grades from the lowest to the highest"
        )
    return known


def positions(labels: NDArray[Any], classes: list[Any]) -> Index:
    """The position of each label among the classes."""
    place = {label: k for k, label in enumerate(classes)}
    return np.array([place[label] for label in labels.tolist()], dtype=np.intp)


def has_larger(labels: ArrayLike) -> bool:
    """Whether the larger label can be taken as the positive one: true for numbers, not for words."""
    return are_numbers(np.asarray(labels))
