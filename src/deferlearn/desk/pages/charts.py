"""Small pictures as inline SVG, coloured by the style sheet; words beside them say the same."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import Any

from markupsafe import Markup

from deferlearn.report.bars import BAR_HEIGHT, BAR_WIDTH
from deferlearn.report.charts import BOTTOM, LEFT, RIGHT, TOP, WIDTH, Picture, svg, ticks

HOURS_HEIGHT = 190
DAY_HOURS = 24


def load_bar(given: float, limit: float | None, most: float) -> Markup:
    """A bar of the readings of an expert, with a mark at the limit.

    Parameters
    ----------
    given : float
        Readings.
    limit : float or None
        The most readings.
    most : float
        What the whole width stands for.

    Returns
    -------
    svg : Markup
    """
    scale = BAR_WIDTH / max(most, 1.0)
    full = limit is not None and given >= limit
    wide = min(given * scale, BAR_WIDTH)
    parts = [
        f'<rect class="track" x="0" y="{BAR_HEIGHT / 2 - 1:g}" width="{BAR_WIDTH}" height="2"/>'
        f'<rect class="bar {"bad" if full else "team"}" x="0" y="4" width="{wide:.1f}" '
        f'height="{BAR_HEIGHT - 8}"/>'
    ]
    if limit is not None:
        at = min(limit * scale, BAR_WIDTH - 1)
        parts.append(f'<line class="range" x1="{at:.1f}" x2="{at:.1f}" y1="0" y2="{BAR_HEIGHT}"/>')
    return _spark("".join(parts))


def interval_bar(figure: Any, least: float, most: float) -> Markup:
    """A point with its interval, and a mark where it should be.

    Parameters
    ----------
    figure : dict
        With value, low, high and expected; None where nothing is known.
    least, most : float
        What the ends stand for.

    Returns
    -------
    svg : Markup
    """

    def x(value: float) -> float:
        width = BAR_WIDTH - 8
        return (
            4 + width * min(max((value - least) / (most - least), 0.0), 1.0)
            if most > least
            else 4.0
        )

    if figure["value"] is None:
        return _spark("")
    middle = BAR_HEIGHT / 2
    low = figure["low"] if figure["low"] is not None else least
    high = figure["high"] if figure["high"] is not None and isfinite(figure["high"]) else most
    parts = [
        f'<line class="grid" x1="4" x2="{BAR_WIDTH - 4}" y1="{middle:g}" y2="{middle:g}"/>',
        f'<path class="range" d="M{x(low):.1f} {middle:g}H{x(high):.1f}"/>',
        f'<circle class="dot team" cx="{x(figure["value"]):.1f}" cy="{middle:g}" r="4"/>',
    ]
    if figure["expected"] is not None:
        at = x(figure["expected"])
        parts.append(
            f'<line class="whisker human" x1="{at:.1f}" x2="{at:.1f}" y1="1" y2="{BAR_HEIGHT - 1}"/>'
        )
    return _spark("".join(parts))


def hours_chart(hours: Sequence[tuple[int, int, int]]) -> Markup:
    """Cases of each hour of the day: those of experts below, those of the machine above.

    Parameters
    ----------
    hours : sequence of (hour, machine, experts)
        Counts.

    Returns
    -------
    svg : Markup
    """
    most = max((machine + experts for _, machine, experts in hours), default=0)
    scale = [1000 * tick for tick in ticks(max(most, 4) / 1000)]
    wide, high = WIDTH - LEFT - RIGHT, HOURS_HEIGHT - TOP - BOTTOM
    step = wide / max(DAY_HOURS, len(hours))

    def y(count: float) -> float:
        return TOP + high * (1 - count / scale[-1])

    parts = [
        f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(tick):.1f}" y2="{y(tick):.1f}"/>'
        f'<text x="{LEFT - 6}" y="{y(tick) + 4:.1f}" text-anchor="end">{round(tick)}</text>'
        for tick in scale
        if abs(tick - round(tick)) < 1e-6
    ]
    for hour, machine, experts in hours:
        x = LEFT + step * (hour + 0.1)
        for kind, low, top in (("human", 0, experts), ("machine", experts, experts + machine)):
            if top > low:
                parts.append(
                    f'<rect class="bar {kind}" x="{x:.1f}" y="{y(top):.1f}" width="{0.8 * step:.1f}" '
                    f'height="{y(low) - y(top):.1f}"/>'
                )
    parts += [
        f'<text x="{LEFT + step * hour:.1f}" y="{HOURS_HEIGHT - BOTTOM + 18}" text-anchor="middle">'
        f"{hour}</text>"
        for hour in range(0, DAY_HOURS + 1, 6)
    ]
    parts.append(
        f'<text x="{LEFT + wide / 2:.0f}" y="{HOURS_HEIGHT - 8}" text-anchor="middle">hour of the day'
        "</text>"
    )
    total = sum(machine + experts for _, machine, experts in hours)
    picture = Picture(
        "hours",
        "Cases per hour of today",
        f"{total} cases; the busiest hour had {most}. Cases of experts stand below those of the machine.",
    )
    return svg(picture, "".join(parts), HOURS_HEIGHT)


def _spark(content: str) -> Markup:
    return Markup(
        f'<svg aria-hidden="true" class="spark" viewBox="0 0 {BAR_WIDTH} {BAR_HEIGHT}">{content}</svg>'
    )
