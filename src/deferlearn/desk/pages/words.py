"""Numbers and times in the words of the pages."""

from __future__ import annotations

import math
import re
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from deferlearn.desk.database import SECOND
from deferlearn.desk.monitoring import figures
from deferlearn.report.words import shade

__all__ = [
    "ago",
    "amount",
    "clock_time",
    "counted",
    "distance",
    "duration",
    "instant",
    "percent",
    "price",
    "shade",
    "short_digests",
    "shown_value",
    "span",
    "thousands",
    "when",
]

SHORT_UNITS = {"seconds": "s", "minutes": "min", "hours": "h"}


def duration(seconds: float | None) -> str:
    """A time span, in the unit that people would use.

    Examples
    --------
    >>> from deferlearn.desk.pages.words import duration
    >>> [duration(seconds) for seconds in (0.85, 12.3, 160, 3600, 200_000)]
    ['0.85 s', '12 s', '2.7 min', '60 min', '2.3 days']
    """
    if seconds is None or not math.isfinite(seconds):
        return "–"
    number, unit = figures.in_unit(seconds)
    return f"{number} {SHORT_UNITS.get(unit, unit)}"


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


def when(time: int, now: int, zone: str) -> str:
    """The time of day if it was today, and else with the date.

    Examples
    --------
    >>> from deferlearn.desk.pages.words import when
    >>> hour = 3_600_000_000
    >>> when(1 * hour, 2 * hour, "UTC"), when(1 * hour, 30 * hour, "UTC")
    ('01:00', '1970-01-01 01:00')
    """
    is_today = _local(time, zone).date() == _local(now, zone).date()
    return clock_time(time, zone) if is_today else instant(time, zone)


def short_digests(text: str) -> str:
    """Text in which the digests (sha256) are cut: the beginning tells them apart.

    Examples
    --------
    >>> from deferlearn.desk.pages.words import short_digests
    >>> short_digests('{"digest":"' + "01ab" * 16 + '"}')
    '{"digest":"01ab01ab01ab…"}'
    """
    return re.sub(r"\b([0-9a-f]{12})[0-9a-f]{52}\b", r"\1…", text)


def _local(time: int, zone: str) -> datetime:
    return datetime.fromtimestamp(time / SECOND, ZoneInfo(zone))


def percent(share: float | None) -> str:
    """A share, with as many digits as are of use.

    Examples
    --------
    >>> from deferlearn.desk.pages.words import percent
    >>> percent(0.123), percent(None)
    ('12%', '–')
    """
    if share is None or not math.isfinite(share):
        return "–"
    return figures.percent(share)


def amount(value: float | None) -> str:
    """A number with three digits; a dash if it is not known."""
    return "–" if value is None or not math.isfinite(value) else f"{value:,.3g}"


def distance(value: float | None) -> str:
    """A number from 0 to 1 that is no share."""
    return "–" if value is None or not math.isfinite(value) else f"{value:.2f}"


def price(value: float | None) -> str:
    """A price of an expert's time, so that prices below each other have their points below each other."""
    return "–" if value is None or not math.isfinite(value) else f"{value:.3f}"


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """A number with its noun, with commas between thousands.

    Examples
    --------
    >>> from deferlearn.desk.pages.words import counted
    >>> counted(1, "case"), counted(4250, "reading waits", "readings wait")
    ('1 case', '4,250 readings wait')
    """
    return f"{thousands(number)} {noun if number == 1 else plural or noun + 's'}"


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
