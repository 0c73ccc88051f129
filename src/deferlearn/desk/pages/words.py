"""Numbers and times in the words of the pages."""

from __future__ import annotations

import math
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from deferlearn._utils.words import counted
from deferlearn.desk.database import SECOND
from deferlearn.report.words import shade

__all__ = [
    "ago",
    "amount",
    "clock_time",
    "counted",
    "duration",
    "instant",
    "percent",
    "shade",
    "shown_value",
    "span",
    "thousands",
]


def duration(seconds: float | None) -> str:
    """A time span, in the unit that people would use.

    Examples
    --------
    >>> from deferlearn.desk.pages.words import duration
    >>> [duration(seconds) for seconds in (12.3, 160, 3600, 200_000)]
    ['12 s', '3 min', '60 min', '2 days']
    """
    if seconds is None or not math.isfinite(seconds):
        return "–"
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 90 * 60:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.0f} h" if seconds < 36 * 3600 else f"{seconds / 86400:.0f} days"


def span(seconds: float) -> str:
    """A time to wait; an infinite one never ends."""
    return duration(seconds) if math.isfinite(seconds) else "not at all"


def ago(time: int | None, now: int) -> str:
    """How long ago something was."""
    return "never" if time is None else f"{duration(max(now - time, 0) / SECOND)} ago"


def clock_time(time: int, zone: str) -> str:
    """The time of day."""
    return f"{_local(time, zone):%H:%M}"


def instant(time: int | None, zone: str) -> str:
    """Date and time of day."""
    return "–" if time is None else f"{_local(time, zone):%Y-%m-%d %H:%M}"


def _local(time: int, zone: str) -> datetime:
    return datetime.fromtimestamp(time / SECOND, ZoneInfo(zone))


def percent(share: float | None) -> str:
    """A share, with as many digits as are of use.

    Examples
    --------
    >>> from deferlearn.desk.pages.words import percent
    >>> percent(0.123), percent(0.0312), percent(0.0), percent(None)
    ('12%', '3.1%', '0%', '–')
    """
    if share is None or not math.isfinite(share):
        return "–"
    return f"{share:.0%}" if not share or share >= 0.0995 else f"{100 * share:.2g}%"


def amount(value: float | None) -> str:
    """A number with three digits; a dash if it is not known."""
    return "–" if value is None or not math.isfinite(value) else f"{value:,.3g}"


def thousands(value: int) -> str:
    """A count, with commas between thousands."""
    return f"{value:,}"


def shown_value(value: Any) -> str:
    """A cell of a case as experts read it.

    Examples
    --------
    >>> from deferlearn.desk.pages.words import shown_value
    >>> [shown_value(value) for value in (None, True, 3.0, 0.1, "ill")]
    ['–', 'yes', '3', '0.1', 'ill']
    """
    if value is None or value == "":
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.12g}" if isinstance(value, float) else str(value)
