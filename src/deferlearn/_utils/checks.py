"""Small things that checks of input share."""

from numbers import Integral, Real
from typing import Any

import numpy as np


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
