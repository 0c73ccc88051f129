"""Labels of any kind as positions among any number of classes."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from deferlearn._utils.checks import plain
from deferlearn._utils.types import Labels
from deferlearn.humans.answers import as_array, find_missing, is_missing
from deferlearn.humans.coding import Codes, codes_among


def class_list(classes: ArrayLike) -> list[Any]:
    """Classes as the user gave them, as a list of different labels."""
    given = as_array(classes)
    known = [plain(label) for label in given.tolist()] if given.ndim == 1 else []
    if not known or len(set(known)) < len(known) or any(map(is_missing, known)):
        raise ValueError(f"classes must be a list of different labels, got {classes!r}")
    return known


def positions(labels: Labels, classes: list[Any], name: str = "y") -> Codes:
    """The position of each label among the classes; any other label is an error."""
    check_complete(labels, name)
    return codes_among(labels, label_array(classes), name)


def label_array(classes: list[Any]) -> Labels:
    """Classes as an array; those of several kinds stay objects, where numpy makes words of them."""
    array = np.array(classes)
    return array if array.tolist() == classes else np.array(classes, dtype=object)


def check_complete(labels: Labels, name: str = "y") -> None:
    """Refuse labels that are no vector, or have gaps."""
    if labels.ndim != 1:
        raise ValueError(f"{name} must have one dimension, got the shape {labels.shape}")
    missing = find_missing(labels)
    if missing.any():
        raise ValueError(f"{name} has no label at row {np.flatnonzero(missing)[0]}")
