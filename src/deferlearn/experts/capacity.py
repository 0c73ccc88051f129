"""How many cases experts can take: shares of the cases, or numbers of them."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from deferlearn._utils.checks import is_number, is_whole, plain
from deferlearn._utils.types import Array


def check_capacity(capacity: Any, *, idle: bool = False) -> dict[str, float | int]:
    """Refuse capacities that are not one share or number per expert; names become texts.

    Parameters
    ----------
    capacity : mapping
        For each expert a share of the cases, or a whole number of them.
    idle : bool, default=False
        Whether all of them may be 0.

    Returns
    -------
    capacity : dict
        The same in types of Python.
    """
    if not isinstance(capacity, Mapping) or not capacity:
        raise ValueError(
            f"capacity={capacity!r} must be a dict with a share of the cases, such as 0.1, or a number of "
            'them for each expert: {"reader_1": 0.05, "reader_2": 0.1}.'
        )
    checked: dict[str, float | int] = {}
    for name, value in capacity.items():
        value = plain(value)
        if is_whole(value) and value >= 0:
            checked[name_text(name)] = int(value)
        elif is_number(value) and not is_whole(value) and 0.0 <= value <= 1.0:
            checked[name_text(name)] = float(value)
        else:
            raise ValueError(
                f"capacity[{name!r}]={value!r} must be a share from 0.0 to 1.0, or a whole number of "
                "cases, 0 or larger."
            )
    if len(checked) < len(capacity):
        raise ValueError(f"capacity has two experts of the same name: {list(capacity)}.")
    if not idle and not any(checked.values()):
        raise ValueError(
            f"capacity={dict(capacity)!r} leaves no time to any expert; a machine alone is "
            "deferlearn.FullAutomation."
        )
    return checked


def name_text(name: Any) -> str:
    """The name of an expert: a text, or a whole number, which stands for its text."""
    if isinstance(name, str):
        return str(name)
    if not is_whole(name):
        raise ValueError(
            f"{plain(name)!r} cannot be the name of an expert: use a text or a whole number."
        )
    return str(plain(name))


def as_counts(capacity: Mapping[str, float | int], n_cases: int) -> Array:
    """Capacities as numbers of cases: shares are rounded down, and none exceeds the number of cases."""
    counts = [
        value if is_whole(value) else np.floor(value * n_cases + 1e-9)
        for value in capacity.values()
    ]
    return np.minimum(np.asarray(counts, dtype=np.float64), n_cases)


def as_shares(capacity: Mapping[str, float | int], n_cases: int) -> Array:
    """Capacities as shares: whole numbers are divided by the number of cases."""
    shares = [value / n_cases if is_whole(value) else value for value in capacity.values()]
    return np.minimum(np.asarray(shares, dtype=np.float64), 1.0)
