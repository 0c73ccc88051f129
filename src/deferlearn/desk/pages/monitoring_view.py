"""The numbers of the desk in the order in which a supervisor reads them, each on a scale with its like."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Any

from markupsafe import Markup

from deferlearn.desk.monitoring.calibration import IN_GRADES
from deferlearn.desk.monitoring.figures import Figure
from deferlearn.desk.monitoring.overview import Overview
from deferlearn.desk.pages.words import amount, distance, duration, percent
from deferlearn.report.charts import Axes, Line, Picture, Point, chart

# Headings, and what the names of their figures begin with.
_SECTIONS = (
    ("work", "Work", ("share ", "time ", "load")),
    ("errors", "Errors", ("machine", "team", "expert", "both")),
    ("calibration", "Do expected errors come true?", ("calibration", "errors above")),
    ("shift", "Are cases still like those of training?", ("shift",)),
)
_UNITS: tuple[tuple[str, Callable[[float | None], str]], ...] = (
    ("time ", duration),
    ("load", amount),
    ("shift", distance),
)


@dataclass(frozen=True)
class Shown:
    """A number as the page shows it.

    Attributes
    ----------
    name, about, sentence : str
        As of the `Figure`.
    text, span : str
        The number, and its interval, in words.
    bar : dict
        What `charts.interval_bar` draws.
    least, most : float
        The ends of its scale, which it shares with numbers of its kind.
    """

    name: str
    about: str
    sentence: str
    text: str
    span: str
    bar: dict[str, Any]
    least: float
    most: float


@dataclass(frozen=True)
class Section:
    """Numbers under one heading.

    Attributes
    ----------
    name, heading : str
        Of the section.
    figures : list of Shown
        The numbers.
    quiet : list of Shown
        Numbers that differ from what they should be by no more than chance, if there are many like them.
    pictures : list of Markup
        Charts.
    """

    name: str
    heading: str
    figures: list[Shown]
    quiet: list[Shown] = field(default_factory=list)
    pictures: list[Markup] = field(default_factory=list)


def sections_of(found: Overview) -> list[Section]:
    """The numbers under their headings; those that fit under none come last.

    Parameters
    ----------
    found : Overview
        All numbers.

    Returns
    -------
    sections : list of Section
    """
    left = list(found.figures)
    sections = []
    for name, heading, begins in _SECTIONS:
        own = [figure for figure in left if figure.name.startswith(begins)]
        left = [figure for figure in left if figure not in own]
        pictures = _calibration(found) if name == "calibration" else []
        if own or pictures:
            shown = list(zip(own, _shown(own), strict=True))
            loud = [one for figure, one in shown if not figure.usual]
            quiet = [one for figure, one in shown if figure.usual]
            sections.append(Section(name, heading, loud, quiet, pictures))
    if left:
        sections.append(Section("more", "More", _shown(left)))
    return sections


def _unit(figure: Figure) -> Callable[[float | None], str]:
    if figure.name.endswith(IN_GRADES):
        return amount
    return next((unit for start, unit in _UNITS if figure.name.startswith(start)), percent)


def _shown(figures: Sequence[Figure]) -> list[Shown]:
    scales: dict[Any, tuple[float, float]] = {}
    for figure in figures:
        found = figure.interval
        values = (found.mean, found.low, found.high, figure.expected)
        ends = [end for end in values if end is not None and isfinite(end)]
        least, most = scales.get(_unit(figure), (0.0, 0.0))
        scales[_unit(figure)] = min(ends + [least]), max(ends + [most])
    shown = []
    for figure in figures:
        unit, plain = _unit(figure), figure.plain()
        least, most = scales[unit]
        span = ""
        if plain["value"] is not None:
            open_end = plain["high"] is None
            high = "no known end" if open_end else unit(plain["high"])
            span = f"95% interval: {unit(plain['low'])} to {high}"
        shown.append(
            Shown(
                name=figure.name[:1].upper() + figure.name[1:],
                about=figure.about,
                sentence=figure.sentence,
                text=unit(plain["value"]) if plain["value"] is not None else "not known yet",
                span=span,
                bar=plain,
                least=least,
                most=most,
            )
        )
    return shown


def _calibration(overview: Overview) -> list[Markup]:
    """Errors that came true against expected ones, with the line on which they would be equal."""
    pictures = []
    unit, errors = (amount, "grades off") if overview.in_grades else (percent, "errors")
    for place, (who, found) in enumerate(overview.calibration.items()):
        if not found:
            continue
        most = max(max(group.expected, group.found.high) for group in found)
        kind = "machine" if who == "the machine" else "human"
        points = [
            Point(
                who if not number else "",
                kind,
                group.expected,
                group.found.mean,
                y_ends=(group.found.low, group.found.high),
            )
            for number, group in enumerate(found)
        ]
        ideal = Line("as expected", "ideal", [0.0, most], [0.0, most], dots=False)
        described = "; ".join(
            f"expected {unit(group.expected)}, found {unit(group.found.mean)}" for group in found
        )
        pictures.append(
            chart(
                Picture(f"calibration-{place}", f"Expected and found {errors} of {who}", described),
                Axes(f"expected {errors} per 1,000 cases", "found per 1,000 cases"),
                [ideal],
                points,
            )
        )
    return pictures
