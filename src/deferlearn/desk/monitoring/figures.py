"""A number of the running desk: with its interval, and the sentence that says what it means."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from deferlearn._utils.words import counted
from deferlearn.evaluation.intervals import Interval


@dataclass(frozen=True)
class Figure:
    """A number with its interval.

    Attributes
    ----------
    name : str
        What it is, in a few words.
    interval : Interval
        The number, and the 95% interval of what it estimates; NaN if nothing is known.
    count : int
        How many cases it rests on.
    sentence : str
        What it means, and what it rests on.
    about : str
        Whom or what it is about, such as an expert or a column; empty for the desk as a whole.
    expected : float or None
        What it should be, if that is known.
    """

    name: str
    interval: Interval
    count: int
    sentence: str
    about: str = ""
    expected: float | None = None

    @property
    def known(self) -> bool:
        """Whether there were any cases to find it out."""
        return bool(np.isfinite(self.interval.mean))

    def plain(self) -> dict[str, Any]:
        """Plain values, in which None stands for what is not known."""
        numbers = (self.interval.mean, self.interval.low, self.interval.high)
        value, low, high = (float(x) if np.isfinite(x) else None for x in numbers)
        return {
            "name": self.name,
            "about": self.about,
            "value": value,
            "low": low,
            "high": high,
            "count": self.count,
            "expected": self.expected,
            "sentence": self.sentence,
        }


def percent(share: float) -> str:
    """A share in words, with as many digits as are of use.

    Examples
    --------
    >>> from deferlearn.desk.monitoring.figures import percent
    >>> percent(0.123), percent(0.0312), percent(0.00049), percent(0.0)
    ('12%', '3.1%', '0.05%', '0%')
    """
    if not share or share >= 0.0995:
        return f"{share:.0%}"
    return f"{100 * share:.1f}%" if share >= 0.00095 else f"{100 * share:.1g}%"


def between(interval: Interval) -> str:
    """The interval of a share in words."""
    return f"{percent(interval.low)} to {percent(interval.high)}"


def cases(count: int) -> str:
    """A number of cases in words."""
    return counted(count, "case")
