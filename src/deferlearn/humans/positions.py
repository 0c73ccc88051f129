"""Labels of any kind as positions among any number of classes."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from deferlearn._utils.checks import plain
from deferlearn._utils.types import Index, Labels
from deferlearn.humans.answers import as_array, find_missing, is_missing, shown


def class_list(classes: ArrayLike) -> list[Any]:
    """Classes as the user gave them, as a list of different labels."""
    given = as_array(classes)
    known = [plain(label) for label in given.tolist()] if given.ndim == 1 else []
    if not known or len(set(known)) < len(known) or any(map(is_missing, known)):
        raise ValueError(f"classes must be a list of different labels, got {classes!r}")
    return known


def positions(labels: Labels, classes: list[Any], name: str = "y") -> Index:
    """The position of each label among the classes; any other label is an error."""
    check_complete(labels, name)
    place = {label: k for k, label in enumerate(classes)}
    found = [place.get(label, -1) for label in labels.tolist()]
    if -1 in found:
        row = found.index(-1)
        raise ValueError(
            f"{name} holds {plain(labels[row])!r} at row {row}, which is none of the classes "
            f"{shown(classes)}"
        )
    return np.array(found, dtype=np.intp)


def at_positions(places: Index, classes: list[Any]) -> Labels:
    """The labels at these positions; those of several kinds stay objects, where numpy makes words."""
    array = np.array(classes)
    if array.tolist() != classes:
        array = np.array(classes, dtype=object)
    return array[places]


def check_complete(labels: Labels, name: str = "y") -> None:
    """Refuse labels that are no vector, or have gaps."""
    if labels.ndim != 1:
        raise ValueError(f"{name} must have one dimension, got the shape {labels.shape}")
    missing = find_missing(labels)
    if missing.any():
        raise ValueError(f"{name} has no label at row {np.flatnonzero(missing)[0]}")
