"""Small things that checks of input share."""

from numbers import Integral, Real
from typing import Any

import numpy as np

# Whole numbers up to here are floats.
LARGEST_WHOLE = 2**53


def plain(value: Any) -> Any:
    """The value as Python has it, for a message: 1 and 'sick' instead of np.int64(1), np.str_('sick')."""
    return value.item() if isinstance(value, np.generic) else value


def check_flag(name: str, value: Any) -> bool:
    """Yes or no; words and numbers are refused, since "no" counts as true in Python."""
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{name}={plain(value)!r} must be True or False.")
    return bool(value)


def is_number(value: Any) -> bool:
    """Whether it is a real number that a float can hold."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return False
    try:
        return bool(np.isfinite(float(value)))
    except OverflowError:
        return False


def is_whole(value: Any) -> bool:
    """Whether it is a whole number; True and False are none."""
    return isinstance(value, Integral) and not isinstance(value, bool | np.bool_)


def check_unmasked(values: Any, name: str) -> None:
    """Refuse masked entries, which would be read as if they were not masked."""
    if np.ma.isMaskedArray(values) and np.ma.getmaskarray(values).any():
        raise ValueError(f"{name} has masked entries; fill or drop them first.")


def check_unread(values: Any, name: str) -> None:
    """Refuse what would be lost when values are read as floats: a mask, and digits of whole numbers."""
    check_unmasked(values, name)
    if not isinstance(values, np.ndarray) or values.dtype.kind not in "iu" or values.size == 0:
        return
    largest = max(int(values.max()), -int(values.min()))
    if largest > LARGEST_WHOLE:
        raise ValueError(
            f"{name} has whole numbers up to {largest}; beyond {LARGEST_WHOLE} floats cannot tell "
            "neighbours apart. Subtract the smallest value of the column first, or leave the column out if "
            "it is an identifier."
        )
