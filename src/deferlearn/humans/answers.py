"""Answers in any form (lists, frames, with gaps, of any two labels) made into plain arrays."""

from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deferlearn._utils.checks import plain
from deferlearn._utils.types import Array, Bools, Labels

Signs = NDArray[np.int64]

# Unless the user names the classes, these two stand for themselves, even where only one occurs.
SIGNS = (-1, 1)
NUMERIC = "biuf"
# What numpy makes of a missing answer among words.
WORDS_FOR_MISSING = ("nan", "None", "<NA>")
WORD_HINT = ": if the answer is missing, give a list or an array of objects with None in its place"


def as_array(values: Any) -> Labels:
    """An array that keeps every entry as it is: numpy would turn ["a", nan] into two strings."""
    if isinstance(values, np.ndarray):
        return values
    if hasattr(values, "__array__"):
        return np.asarray(values)
    objects = np.asarray(values, dtype=object)
    if any(isinstance(entry, list | tuple | np.ndarray) for entry in objects.flat):
        raise ValueError(
            "rows must be of one length: mark an answer that is missing by None or NaN"
        )
    return np.asarray(values) if are_numbers(objects) else objects


def are_numbers(values: Labels) -> bool:
    """Whether all entries are real numbers; None and words that look like numbers are not."""
    return all(isinstance(entry, Real | np.bool_) for entry in values.flat)


def fill_gaps(values: Labels) -> Array:
    """Numbers with gaps as floats, NaN in the gaps."""
    filled = np.full(values.shape, np.nan)
    present = ~find_missing(values)
    filled[present] = values[present].astype(np.float64)
    return filled


def numbers_with_gaps(values: Labels, name: str) -> Array:
    """The same for values as the user gave them; words that look like numbers are refused."""
    given = values[~find_missing(values)]
    kind = values.dtype.kind
    if kind not in NUMERIC and (kind != "O" or not are_numbers(given)):
        raise ValueError(f"{name} must be numbers, got {shown(as_objects(given).tolist())}")
    return fill_gaps(values)


def find_missing(values: Labels) -> Bools:
    """Where there is no answer: NaN, None, pandas' NA or NaT, or a masked entry."""
    plain = np.asarray(values)
    if plain.dtype.kind == "f":
        missing = np.isnan(plain)
    elif plain.dtype.kind == "O":
        missing = np.array([is_missing(value) for value in plain.flat], dtype=bool)
        missing = missing.reshape(plain.shape)
    else:
        missing = np.zeros(plain.shape, dtype=bool)
    return missing | np.ma.getmaskarray(values)


def is_missing(value: Any) -> bool:
    """Whether a single value stands for no answer."""
    if value is None:
        return True
    try:
        return bool(value != value)  # NaN and NaT
    except (TypeError, ValueError):
        return type(value).__name__ == "NAType"  # pandas' NA refuses to be true or false


def check_answers(answers: Any, name: str, n_samples: int | None = None) -> Labels:
    """Answers of shape (n_samples,) or (n_samples, n_readers), always returned with two axes."""
    array = as_array(answers)
    if array.ndim not in (1, 2) or (array.ndim == 2 and array.shape[1] == 0):
        raise ValueError(
            f"{name} must have the shape (n_samples,) or (n_samples, n_readers), got {array.shape}"
        )
    if n_samples is not None and len(array) != n_samples:
        raise ValueError(
            f"{name} has {len(array)} rows and y has {n_samples}: give one row per sample"
        )
    return array[:, None] if array.ndim == 1 else array


def check_classes(classes: Any) -> tuple[Any, Any]:
    """Two different labels, the negative one first."""
    if isinstance(classes, np.ndarray):
        classes = classes.tolist()
    pair = [classes] if isinstance(classes, str) else [plain(label) for label in classes]
    if len(pair) != 2 or is_missing(pair[0]) or is_missing(pair[1]) or pair[0] == pair[1]:
        raise ValueError(f"classes must be two different labels (negative, positive), got {pair!r}")
    return pair[0], pair[1]


def distinct(values: Labels) -> list[Any]:
    """Distinct labels in their order, which must exist."""
    found = list(dict.fromkeys(values.tolist()))
    try:
        return sorted(found)
    except TypeError:
        raise ValueError(
            f"the labels {shown(found)} are of different kinds and have no order: "
            "use labels of one type"
        ) from None


def shown(labels: Sequence[Any]) -> str:
    """A few labels for an error message."""
    few = ", ".join(repr(plain(label)) for label in labels[:4])
    return few + (", ..." if len(labels) > 4 else "")


def encode_labels(
    y: ArrayLike, classes: Any = None, others: Labels | None = None
) -> tuple[Signs, tuple[Any, Any]]:
    """True labels as -1 and +1, and the two classes they stand for.

    Without `classes` they are -1 and +1, or else the two labels that y holds in sorted order; if y
    holds one only, the second one may come from `others` (the humans' answers).
    """
    array = as_array(y)
    if array.ndim != 1:
        raise ValueError(f"y must have one dimension, got the shape {array.shape}")
    missing = find_missing(array)
    if missing.any():
        raise ValueError(f"y must be complete, row {np.flatnonzero(missing)[0]} has no label")
    pair = check_classes(classes) if classes is not None else _find_classes(array, others)
    positive = match(array, pair, "y")
    return np.where(positive, 1, -1), pair


def match(array: Labels, classes: tuple[Any, Any], name: str) -> Bools:
    """Whether each entry is the positive class; an entry that is neither is an error."""
    negative, positive = classes
    if array.dtype.kind in NUMERIC and all(np.asarray(c).dtype.kind in NUMERIC for c in classes):
        is_negative, is_positive = array == negative, array == positive
    else:
        # One by one: numpy compares numbers and strings of different kinds in surprising ways.
        entries = array.ravel().tolist()
        is_negative, is_positive = (
            np.array([entry == c for entry in entries], dtype=bool).reshape(array.shape)
            for c in classes
        )
    stray = ~(is_negative | is_positive)
    if stray.any():
        where = np.argwhere(stray)[0]
        entry = plain(array[tuple(where)])
        hint = WORD_HINT if entry in WORDS_FOR_MISSING else ""
        raise ValueError(
            f"{name} holds {entry!r} at row {where[0]}, which is neither of the two classes "
            f"{shown(classes)}{hint}"
        )
    return is_positive


def _find_classes(y: Labels, others: Labels | None) -> tuple[Any, Any]:
    labels = distinct(y)
    if all(label in SIGNS for label in labels):
        return SIGNS
    if len(labels) == 1 and others is not None:
        labels = distinct(np.concatenate([as_objects(y), as_objects(others)]))
    if len(labels) != 2:
        found = f"{len(labels)} ({shown(labels)})" if labels else "none"
        raise ValueError(
            f"two classes are needed, found {found}: name both by classes=(negative, positive)"
        )
    return labels[0], labels[1]


def as_objects(values: Labels) -> Labels:
    """The same entries as Python objects, in one axis."""
    objects = np.empty(values.size, dtype=object)
    objects[:] = values.ravel().tolist()
    return objects
