"""Bars as inline SVG: how the team's errors come about, and differences that point left or right."""

from collections.abc import Sequence
from typing import NamedTuple

from markupsafe import Markup, escape

from deferlearn.report.charts import RIGHT, WIDTH, Picture, svg, tick_text, ticks

LABELS, ROW, THICK = 126, 38, 18
# The size of a bar in a row of a table.
BAR_WIDTH, BAR_HEIGHT = 170, 20


class Bar(NamedTuple):
    """A bar of errors.

    Attributes
    ----------
    name : str
        What it shows.
    kind : str
        Its class in the style sheet.
    start, end : float
        Where it begins and ends.
    text : str
        The number beside it.
    ends : pair of float or None
        An interval.
    """

    name: str
    kind: str
    start: float
    end: float
    text: str
    ends: tuple[float, float] | None = None


def bar_chart(picture: Picture, bars: Sequence[Bar], label: str) -> Markup:
    """Bars one below the other, which may begin where another one ends.

    Parameters
    ----------
    picture : Picture
        Name, title and description.
    bars : sequence of Bar
        The bars from top to bottom.
    label : str
        The label of the axis.

    Returns
    -------
    svg : Markup
    """
    most = max(max(bar.start, bar.end, *(bar.ends or ())) for bar in bars)
    scale = ticks(max(0.001, min(most, 1.0)))
    # The numbers stand to the right of the bars.
    wide = WIDTH - LABELS - RIGHT - 34
    bottom = ROW * len(bars) + 6

    def x(value: float) -> float:
        return LABELS + wide * min(max(value / scale[-1], 0.0), 1.0)

    parts = [
        f'<line class="grid" x1="{x(tick):.1f}" x2="{x(tick):.1f}" y1="4" y2="{bottom}"/>'
        f'<text x="{x(tick):.1f}" y="{bottom + 16}" text-anchor="middle">{tick_text(tick)}</text>'
        for tick in scale
    ]
    for place, bar in enumerate(bars):
        low, high = sorted((x(bar.start), x(bar.end)))
        y = 6 + ROW * place + (ROW - THICK) / 2
        middle = y + THICK / 2
        far = high
        parts.append(
            f'<text x="{LABELS - 8}" y="{middle + 4:.1f}" text-anchor="end">{escape(bar.name)}</text>'
            f'<rect class="bar {bar.kind}" x="{low:.1f}" y="{y:.1f}" width="{max(high - low, 1.0):.1f}" '
            f'height="{THICK}"/>'
        )
        if bar.ends is not None:
            first, last = x(bar.ends[0]), x(bar.ends[1])
            far = max(far, last)
            parts.append(
                f'<path class="range" d="M{first:.1f} {middle - 6:.1f}V{middle + 6:.1f}M{first:.1f} '
                f'{middle:.1f}H{last:.1f}M{last:.1f} {middle - 6:.1f}V{middle + 6:.1f}"/>'
            )
        parts.append(f'<text x="{far + 6:.1f}" y="{middle + 4:.1f}">{escape(bar.text)}</text>')
    parts.append(
        f'<text x="{LABELS + wide / 2:.0f}" y="{bottom + 36}" text-anchor="middle">{escape(label)}</text>'
    )
    return svg(picture, "".join(parts), bottom + 44)


def spread_bars(spread: Sequence[dict[str, float]]) -> Markup:
    """Two spreads over the same bins, side by side; the text beside them says what changed most.

    Parameters
    ----------
    spread : sequence of dict
        For each bin its shares, under the keys training and now.

    Returns
    -------
    svg : Markup
    """
    most = max(max(row["training"], row["now"]) for row in spread)
    wide = BAR_WIDTH / len(spread)
    parts = []
    for place, row in enumerate(spread):
        for side, (key, kind) in enumerate((("training", "open"), ("now", "team"))):
            high = (BAR_HEIGHT - 1) * row[key] / most
            parts.append(
                f'<rect class="bar {kind}" x="{wide * (place + 0.1 + 0.4 * side):.1f}" '
                f'y="{BAR_HEIGHT - high:.1f}" width="{0.4 * wide:.1f}" height="{high:.1f}"/>'
            )
    return Markup(
        f'<svg aria-hidden="true" class="spark" viewBox="0 0 {BAR_WIDTH} {BAR_HEIGHT}">'
        f"{''.join(parts)}</svg>"
    )


def difference_bar(found: dict[str, float], most: float) -> Markup:
    """A bar from 0 to a difference, with its interval; the numbers beside it say the same.

    Parameters
    ----------
    found : dict
        With the keys difference, lower, upper and supported.
    most : float
        The largest difference that fits; intervals that go further are cut off.

    Returns
    -------
    svg : Markup
    """

    def x(value: float) -> float:
        return BAR_WIDTH / 2 * (1 + min(max(value / most, -1.0), 1.0))

    low, high = sorted((x(0.0), x(found["difference"])))
    first, last, middle = x(found["lower"]), x(found["upper"]), BAR_HEIGHT / 2
    sign = "good" if found["difference"] < 0 else "bad"
    kind = sign if found["supported"] else "open"
    return Markup(
        f'<svg aria-hidden="true" class="spark" viewBox="0 0 {BAR_WIDTH} {BAR_HEIGHT}">'
        f'<rect class="bar {kind}" x="{low:.1f}" y="4" width="{max(high - low, 1.0):.1f}" '
        f'height="{BAR_HEIGHT - 8}"/>'
        f'<path class="range" d="M{first:.1f} {middle:g}H{last:.1f}"/>'
        f'<line class="axis" x1="{x(0.0):g}" x2="{x(0.0):g}" y1="0" y2="{BAR_HEIGHT}"/></svg>'
    )
