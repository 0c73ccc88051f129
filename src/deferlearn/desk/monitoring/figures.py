"""A number of the running desk: with its interval, and the sentence that says what it means."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

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
    usual : bool
        Whether chance explains that it is not what it should be, so that nobody need look at it.
    """

    name: str
    interval: Interval
    count: int
    sentence: str
    about: str = ""
    expected: float | None = None
    usual: bool = False

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
    >>> percent(0.123), percent(0.0312), percent(0.01), percent(0.00049), percent(0.0), percent(-0.2)
    ('12%', '3.1%', '1%', '0.049%', '0%', '−20%')
    """
    size = abs(share)
    text = f"{size:.0%}" if not size or size >= 0.0995 else f"{100 * size:.2g}%"
    return f"−{text}" if share < 0 else text


def number(value: float) -> str:
    """A number that is no share, such as grades off, with as many digits as are of use.

    Examples
    --------
    >>> from deferlearn.desk.monitoring.figures import number
    >>> number(0.2345), number(0.0), number(-1.5), number(2.0)
    ('0.23', '0', '−1.5', '2')
    """
    return f"{value:.2g}".replace("-", "−")


def in_unit(seconds: float) -> tuple[str, str]:
    """A time span in the unit that people would use, with as many digits as are of use.

    Examples
    --------
    >>> from deferlearn.desk.monitoring.figures import in_unit
    >>> [in_unit(seconds) for seconds in (0.994, 12.3, 160, 3600, 200_000)]
    [('0.99', 'seconds'), ('12', 'seconds'), ('2.7', 'minutes'), ('60', 'minutes'), ('2.3', 'days')]
    """
    for size, unit, until in ((1, "seconds", 90), (60, "minutes", 5400), (3600, "hours", 129_600)):
        if seconds < until:
            return _two_digits(seconds / size), unit
    return _two_digits(seconds / 86400), "days"


def _two_digits(number: float) -> str:
    return f"{number:.2g}" if number < 9.95 else f"{number:.0f}"


def between(interval: Interval) -> str:
    """The interval of a share in words."""
    return f"{percent(interval.low)} to {percent(interval.high)}"


def cases(count: int) -> str:
    """A number of cases in words."""
    return f"{count:,} {'case' if count == 1 else 'cases'}"
