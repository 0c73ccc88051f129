"""Charts of lines and points as inline SVG, coloured by the style sheet, with descriptions in words."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from markupsafe import Markup, escape

# In units of the picture, which is shown at about that many pixels: letters stay legible on a phone.
WIDTH, HEIGHT = 420, 300
LEFT, RIGHT, TOP, BOTTOM = 56, 16, 12, 46
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


class Axes(NamedTuple):
    """The labels of both axes, and where they begin."""

    x_label: str
    y_label: str
    x_from: float = 0.0
    y_from: float = 0.0


@dataclass(frozen=True)
class Line:
    """Numbers against numbers.

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


class Point(NamedTuple):
    """A point with intervals in one or both directions.

    Attributes
    ----------
    name : str
        Its entry in the legend; points without a name have none.
    kind : str
        Its class in the style sheet, as of a `Line`; sets the shape, too.
    x, y : float
        Where it is.
    x_ends, y_ends : pair of float or None
        The intervals.
    """

    name: str
    kind: str
    x: float
    y: float
    x_ends: tuple[float, float] | None = None
    y_ends: tuple[float, float] | None = None


def ticks(most: float, least: float = 0.0) -> list[float]:
    """Round numbers from the least value, or a little below it, to the largest or a little above it.

    Parameters
    ----------
    most : float
        The largest value; an axis has some length even if this is almost `least`.
    least : float, default=0.0
        The smallest value, 0 or more.

    Returns
    -------
    numbers : list of float

    Examples
    --------
    >>> from deferlearn.report.charts import ticks
    >>> [round(tick, 3) for tick in ticks(0.17)]
    [0.0, 0.05, 0.1, 0.15, 0.2]
    >>> [round(tick, 3) for tick in ticks(0.99, 0.62)]
    [0.6, 0.7, 0.8, 0.9, 1.0]
    """
    length = max(most - least, SHORTEST)
    unit = 0.1
    while 10 * unit > length:
        unit /= 10
    while True:
        for step in STEPS:
            size = unit * step
            first, last = int(least // size), int(-(-max(most, least + SHORTEST) // size))
            if last - first < MAX_TICKS:
                return [size * i for i in range(first, last + 1)]
        unit *= 10


def chart(
    picture: Picture, axes: Axes, lines: Sequence[Line], points: Sequence[Point] = ()
) -> Markup:
    """Lines with bands and points with intervals, in counts per 1,000 on both axes.

    Parameters
    ----------
    picture : Picture
        Name, title and description.
    axes : Axes
        The labels of the axes, and where they begin.
    lines : sequence of Line
        The lines; the first is drawn on top.
    points : sequence of Point, default=()
        Points, drawn above the lines.

    Returns
    -------
    svg : Markup
        With a legend below.
    """
    across = [*(x for line in lines for x in line.x), *(point.x for point in points)]
    tops = [v for line in lines for v in (*line.y, *(line.upper or ())) if v is not None]
    tops += [v for point in points for v in (point.y, *(point.y_ends or ()))]
    across += [end for point in points for end in point.x_ends or ()]
    x_ticks = ticks(max(across, default=1.0) or 1.0, axes.x_from)
    y_ticks = ticks(min(1.0, max(tops, default=1.0)) or 0.01, axes.y_from)
    wide, high = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM

    def place(x: float, y: float) -> tuple[float, float]:
        right = (x - x_ticks[0]) / (x_ticks[-1] - x_ticks[0])
        up = (y - y_ticks[0]) / (y_ticks[-1] - y_ticks[0])
        right, up = (min(max(share, 0.0), 1.0) for share in (right, up))
        return round(LEFT + wide * right, 1), round(TOP + high * (1 - up), 1)

    def joined(pairs: Sequence[tuple[float, float]]) -> str:
        return " ".join("{},{}".format(*place(x, y)) for x, y in pairs)

    parts = [_axes(x_ticks, y_ticks, axes)]
    for line in reversed(lines):
        ends = [
            (x, low, up)
            for x, low, up in zip(line.x, line.lower or (), line.upper or (), strict=False)
            if low is not None and up is not None
        ]
        if len(ends) > 1:
            around = [(x, up) for x, _, up in ends] + [(x, low) for x, low, _ in reversed(ends)]
            parts.append(f'<polygon class="band {line.kind}" points="{joined(around)}"/>')
    for line in reversed(lines):
        pairs = list(zip(line.x, line.y, strict=True))
        parts.append(f'<polyline class="line {line.kind}" points="{joined(pairs)}"/>')
        if line.dots:
            parts += [mark(line.kind, *place(x, y)) for x, y in pairs]
    for point in points:
        for ends_of, fixed in ((point.x_ends, "y"), (point.y_ends, "x")):
            if ends_of is not None:
                corners = [
                    place(end, point.y) if fixed == "y" else place(point.x, end) for end in ends_of
                ]
                (x1, y1), (x2, y2) = corners
                parts.append(
                    f'<line class="whisker {point.kind}" x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}"/>'
                )
        parts.append(mark(point.kind, *place(point.x, point.y), 5.0))
    entries = [(line.name, line.kind, line.dots, True) for line in lines]
    entries += [(point.name, point.kind, True, False) for point in points if point.name]
    return svg(picture, "".join(parts), HEIGHT) + _legend(entries)


def mark(kind: str, x: float, y: float, size: float = 3.5) -> str:
    """A mark whose shape, like its colour, tells the kind: square for humans, diamond for the machine."""
    if kind == "human":
        side = 1.8 * size
        return (
            f'<rect class="dot {kind}" x="{x - side / 2:.1f}" y="{y - side / 2:.1f}" width="{side:.1f}" '
            f'height="{side:.1f}"/>'
        )
    if kind == "machine":
        s = 1.35 * size
        corners = f"{x},{y - s:.1f} {x + s:.1f},{y} {x},{y + s:.1f} {x - s:.1f},{y}"
        return f'<polygon class="dot {kind}" points="{corners}"/>'
    return f'<circle class="dot {kind}" cx="{x}" cy="{y}" r="{size}"/>'


def _axes(x_ticks: list[float], y_ticks: list[float], axes: Axes) -> str:
    wide, high = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM
    parts = []
    for tick in y_ticks:
        y = TOP + high * (1 - (tick - y_ticks[0]) / (y_ticks[-1] - y_ticks[0]))
        parts.append(
            f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
            f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{tick_text(tick)}</text>'
        )
    for tick in x_ticks:
        x = LEFT + wide * (tick - x_ticks[0]) / (x_ticks[-1] - x_ticks[0])
        parts.append(
            f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{tick_text(tick)}</text>'
        )
    bottom = HEIGHT - BOTTOM
    parts.append(
        f'<line class="axis" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{bottom}" y2="{bottom}"/>'
        f'<text x="{LEFT + wide / 2:.0f}" y="{HEIGHT - 8}" text-anchor="middle">'
        f"{escape(axes.x_label)}</text>"
        f'<text x="12" y="{TOP + high / 2:.0f}" text-anchor="middle" '
        f'transform="rotate(-90 12 {TOP + high / 2:.0f})">{escape(axes.y_label)}</text>'
    )
    return "".join(parts)


def tick_text(share: float) -> str:
    """A number of an axis, per 1,000."""
    return f"{round(1000 * share, 4):g}"


def svg(picture: Picture, content: str, height: int) -> Markup:
    """A picture that says what it shows."""
    name, title, description = map(escape, picture)
    return Markup(
        f'<svg role="img" viewBox="0 0 {WIDTH} {height}" aria-labelledby="{name}-t {name}-d">'
        f'<title id="{name}-t">{title}</title><desc id="{name}-d">{description}</desc>'
        f"{content}</svg>"
    )


def _legend(entries: Sequence[tuple[str, str, bool, bool]]) -> Markup:
    """One entry per line or point: its name, its kind, whether it has marks, whether it has a line."""
    items = "".join(
        '<li><svg aria-hidden="true" viewBox="0 0 28 12" class="key">'
        + (f'<line class="line {kind}" x1="1" x2="27" y1="6" y2="6"/>' if lined else "")
        + (mark(kind, 14, 6) if marked else "")
        + f"</svg>{escape(name)}</li>"
        for name, kind, marked, lined in entries
    )
    return Markup(f'<ul class="legend">{items}</ul>')
