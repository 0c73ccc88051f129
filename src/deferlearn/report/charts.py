"""Charts as inline SVG, coloured by the page's style sheet, with descriptions in words."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from markupsafe import Markup, escape

from deferlearn.report.words import percent

# In units of the picture, which is shown at about that many pixels: letters stay legible on a phone.
WIDTH, HEIGHT = 420, 300
LEFT, RIGHT, TOP, BOTTOM = 52, 14, 12, 46
# Steps between the numbers of an axis, in units of a power of ten.
STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
MAX_TICKS = 6
# No axis is shorter: smaller shares are a line at 0, and a tenth of the smallest floats is 0.
SHORTEST = 1e-6


class Picture(NamedTuple):
    """What names a picture.

    Attributes
    ----------
    name : str
        Unique on the page.
    title, description : str
        What it shows, and what there is to see in it, for readers who cannot see it.
    """

    name: str
    title: str
    description: str


@dataclass(frozen=True)
class Line:
    """Numbers against budgets.

    Attributes
    ----------
    name : str
        Its entry in the legend.
    kind : {"team", "other", "machine", "human", "ideal"}
        Its class in the style sheet, which sets colour and dashes.
    x, y : sequence of float
        The points.
    lower, upper : sequence of float or None
        A band around the line.
    dots : bool
        Whether the points are marked.
    """

    name: str
    kind: str
    x: Sequence[float]
    y: Sequence[float]
    lower: Sequence[float | None] | None = None
    upper: Sequence[float | None] | None = None
    dots: bool = True


def ticks(most: float) -> list[float]:
    """Round numbers from 0 to the largest value or a little above it.

    Parameters
    ----------
    most : float
        The largest value; an axis has some length even if this is almost 0.

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


def line_chart(picture: Picture, lines: Sequence[Line], x_label: str, y_label: str) -> Markup:
    """Lines with bands, in percent on both axes.

    Parameters
    ----------
    picture : Picture
        Name, title and description.
    lines : sequence of Line
        The lines; the first is drawn on top.
    x_label, y_label : str
        The labels of the axes.

    Returns
    -------
    svg : Markup
        With a legend below.
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
    return _svg(picture, "".join(parts), HEIGHT) + _legend(lines)


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


def interval_chart(picture: Picture, shares: Mapping[str, Mapping[str, float]]) -> Markup:
    """Shares with their intervals, one below the other.

    Parameters
    ----------
    picture : Picture
        Name, title and description.
    shares : dict of str to dict
        Each with the keys share, lower and upper, by its name, which is also its kind (as in `Line`).

    Returns
    -------
    svg : Markup
    """
    left, height = 78, 46 * len(shares) + 34
    scale = ticks(max(0.01, *(share["upper"] for share in shares.values())))
    wide = WIDTH - left - RIGHT - 4
    bottom = height - 26

    def x(value: float) -> float:
        return left + wide * value / scale[-1]

    parts = [
        f'<line class="grid" x1="{x(tick):.1f}" x2="{x(tick):.1f}" y1="4" y2="{bottom}"/>'
        f'<text x="{x(tick):.1f}" y="{height - 8}" text-anchor="middle">{percent(tick)}</text>'
        for tick in scale
    ]
    for place, (who, share) in enumerate(shares.items()):
        y = 26 + 46 * place
        parts.append(
            f'<text x="{left - 8}" y="{y + 4}" text-anchor="end">{escape(who)}</text>'
            f'<line class="line {who}" x1="{x(share["lower"]):.1f}" x2="{x(share["upper"]):.1f}" '
            f'y1="{y}" y2="{y}"/>'
            f'<circle class="dot {who}" cx="{x(share["share"]):.1f}" cy="{y}" r="5"/>'
        )
    return _svg(picture, "".join(parts), height)


def _svg(picture: Picture, content: str, height: int) -> Markup:
    name, title, description = map(escape, picture)
    return Markup(
        f'<svg role="img" viewBox="0 0 {WIDTH} {height}" aria-labelledby="{name}-t {name}-d">'
        f'<title id="{name}-t">{title}</title><desc id="{name}-d">{description}</desc>'
        f"{content}</svg>"
    )


def _legend(lines: Sequence[Line]) -> Markup:
    entries = "".join(
        f'<li><svg aria-hidden="true" viewBox="0 0 28 10" class="key">'
        f'<line class="line {line.kind}" x1="1" x2="27" y1="5" y2="5"/></svg>{escape(line.name)}</li>'
        for line in lines
    )
    return Markup(f'<ul class="legend">{entries}</ul>')
