"""Pictures as inline SVG: colours from the page's style sheet, and words for those who do not see them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

# In units of the picture, which is shown at about that many pixels: letters stay readable on a phone.
WIDTH, HEIGHT = 420, 300
LEFT, RIGHT, TOP, BOTTOM = 52, 14, 12, 46
# Steps between the numbers of an axis, in units of a power of ten.
STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
MAX_TICKS = 6
# No axis ends below: smaller shares are a line at 0, and the smallest numbers have no tenth.
SHORTEST = 1e-6


@dataclass(frozen=True)
class Line:
    """Numbers against budgets.

    Attributes
    ----------
    name : str
        For the legend.
    kind : {"team", "other", "machine", "human", "ideal"}
        Its class in the style sheet; colour and dashes.
    x, y : sequence of float
        Points.
    lower, upper : sequence of float or None
        A band around it.
    dots : bool
        Whether points are marked.
    """

    name: str
    kind: str
    x: Sequence[float]
    y: Sequence[float]
    lower: Sequence[float | None] | None = None
    upper: Sequence[float | None] | None = None
    dots: bool = True


def ticks(most: float) -> list[float]:
    """Round numbers from 0 to a little above the largest.

    Parameters
    ----------
    most : float
        The largest; an axis has some length even where that is next to nothing.

    Returns
    -------
    numbers : list of float

    Examples
    --------
    >>> from deferlearn.report.charts import ticks
    >>> [round(tick, 3) for tick in ticks(0.17)]
    [0.0, 0.05, 0.1, 0.15, 0.2]
    """
    most = max(most, SHORTEST)
    unit = 0.1
    while 10 * unit > most:
        unit /= 10
    while True:
        for step in STEPS:
            count = int(-(-most // (unit * step)))
            if count < MAX_TICKS:
                return [unit * step * i for i in range(count + 1)]
        unit *= 10


def line_chart(
    name: str, title: str, description: str, lines: Sequence[Line], x_label: str, y_label: str
) -> str:
    """A picture of lines with bands, in percent on both axes.

    Parameters
    ----------
    name : str
        Unique on the page.
    title, description : str
        What it shows, and what there is to see: for those who cannot.
    lines : sequence of Line
        What is drawn, the first on top.
    x_label, y_label : str
        Of the axes.

    Returns
    -------
    svg : str
    """
    largest_x = max((x for line in lines for x in line.x), default=1.0) or 1.0
    tops = [v for line in lines for v in (*line.y, *(line.upper or ())) if v is not None]
    x_ticks, y_ticks = ticks(largest_x), ticks(min(1.0, max(tops, default=1.0)) or 0.01)
    largest_y = y_ticks[-1]
    wide, high = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM

    def place(x: float, y: float) -> str:
        down = 1 - min(max(y / largest_y, 0.0), 1.0)
        return f"{LEFT + wide * x / largest_x:.1f},{TOP + high * down:.1f}"

    parts = [_axes(x_ticks, y_ticks, largest_x, x_label, y_label)]
    for line in reversed(lines):
        if line.lower is not None and line.upper is not None:
            ends = [
                (x, low, up)
                for x, low, up in zip(line.x, line.lower, line.upper, strict=True)
                if low is not None and up is not None
            ]
            if len(ends) > 1:
                there = [place(x, up) for x, _, up in ends]
                back = [place(x, low) for x, low, _ in reversed(ends)]
                points = " ".join(there + back)
                parts.append(f'<polygon class="band {line.kind}" points="{points}"/>')
    for line in reversed(lines):
        points = " ".join(place(x, y) for x, y in zip(line.x, line.y, strict=True))
        parts.append(f'<polyline class="line {line.kind}" points="{points}"/>')
        if line.dots:
            for x, y in zip(line.x, line.y, strict=True):
                cx, cy = place(x, y).split(",")
                parts.append(f'<circle class="dot {line.kind}" cx="{cx}" cy="{cy}" r="3.5"/>')
    return _figure(name, title, description, "".join(parts), HEIGHT) + _legend(lines)


def _axes(
    x_ticks: list[float], y_ticks: list[float], largest_x: float, x_label: str, y_label: str
) -> str:
    wide, high = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM
    parts = []
    for tick in y_ticks:
        y = TOP + high * (1 - tick / y_ticks[-1])
        parts.append(
            f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
            f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{percent(tick)}</text>'
        )
    for tick in x_ticks:
        if tick <= largest_x * (1 + 1e-9):
            x = LEFT + wide * tick / largest_x
            parts.append(
                f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">'
                f"{percent(tick)}</text>"
            )
    bottom = HEIGHT - BOTTOM
    parts.append(
        f'<line class="axis" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{bottom}" y2="{bottom}"/>'
        f'<text x="{LEFT + wide / 2:.0f}" y="{HEIGHT - 8}" text-anchor="middle">{escape(x_label)}</text>'
        f'<text x="12" y="{TOP + high / 2:.0f}" text-anchor="middle" '
        f'transform="rotate(-90 12 {TOP + high / 2:.0f})">{escape(y_label)}</text>'
    )
    return "".join(parts)


def interval_chart(
    name: str, title: str, description: str, rows: Sequence[tuple[str, str, dict[str, Any]]]
) -> str:
    """Shares with their intervals, one below the other.

    Parameters
    ----------
    name, title, description : str
        As in `line_chart`.
    rows : sequence of (name, kind, share)
        A share is a dict with the keys share, lower and upper.

    Returns
    -------
    svg : str
    """
    left, height = 78, 46 * len(rows) + 34
    scale = ticks(max(max(share["upper"] for _, _, share in rows), 0.01))
    wide = WIDTH - left - RIGHT - 4
    bottom = height - 26

    def x(value: float) -> float:
        return left + wide * value / scale[-1]

    parts = [
        f'<line class="grid" x1="{x(tick):.1f}" x2="{x(tick):.1f}" y1="4" y2="{bottom}"/>'
        f'<text x="{x(tick):.1f}" y="{height - 8}" text-anchor="middle">{percent(tick)}</text>'
        for tick in scale
    ]
    for place, (who, kind, share) in enumerate(rows):
        y = 26 + 46 * place
        parts.append(
            f'<text x="{left - 8}" y="{y + 4}" text-anchor="end">{escape(who)}</text>'
            f'<line class="line {kind}" x1="{x(share["lower"]):.1f}" x2="{x(share["upper"]):.1f}" '
            f'y1="{y}" y2="{y}"/>'
            f'<circle class="dot {kind}" cx="{x(share["share"]):.1f}" cy="{y}" r="5"/>'
        )
    return _figure(name, title, description, "".join(parts), height)


def measured(share: float) -> str:
    """A share that was measured, always with a decimal.

    Parameters
    ----------
    share : float
        Between 0 and 1.

    Returns
    -------
    text : str

    Examples
    --------
    >>> from deferlearn.report.charts import measured
    >>> measured(0.2), measured(1 / 3)
    ('20.0%', '33.3%')
    """
    return f"{100 * share:.1f}%"


def percent(share: float) -> str:
    """A share that was chosen, with a decimal where it needs one.

    Parameters
    ----------
    share : float
        Between 0 and 1.

    Returns
    -------
    text : str

    Examples
    --------
    >>> from deferlearn.report.charts import percent
    >>> percent(0.2), percent(0.025)
    ('20%', '2.5%')
    """
    return f"{round(100 * share, 1):g}%"


def _figure(name: str, title: str, description: str, content: str, height: int) -> str:
    return (
        f'<svg role="img" viewBox="0 0 {WIDTH} {height}" aria-labelledby="{name}-t {name}-d">'
        f'<title id="{name}-t">{escape(title)}</title><desc id="{name}-d">{escape(description)}</desc>'
        f"{content}</svg>"
    )


def _legend(lines: Sequence[Line]) -> str:
    entries = "".join(
        f'<li><svg aria-hidden="true" viewBox="0 0 28 10" class="key">'
        f'<line class="line {line.kind}" x1="1" x2="27" y1="5" y2="5"/></svg>{escape(line.name)}</li>'
        for line in lines
    )
    return f'<ul class="legend">{entries}</ul>'
