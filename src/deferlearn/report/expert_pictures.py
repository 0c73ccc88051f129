"""Pictures of experts: error rates with intervals below the verdicts, and load against capacity."""

from markupsafe import Markup, escape

from deferlearn._utils.words import distinct_names
from deferlearn.experts.skills import BETTER, UNKNOWN, WORSE
from deferlearn.plot.load import price_words
from deferlearn.report.bars import LABELS
from deferlearn.report.charts import RIGHT, WIDTH, Picture, svg, tick_text, ticks
from deferlearn.report.estimates import Row
from deferlearn.report.words import PerThousand

# The height of an expert's row and of a bar, the room for prices, and the letters that fit beside an axis.
ROW, THICK, PRICES, LETTERS = 24, 14, 92, 14
KINDS = {BETTER: "good", WORSE: "bad", UNKNOWN: "hollow"}


def skill_intervals(found: Row, told: PerThousand) -> Markup:
    """The error rate of each expert with its interval, in a row below the verdict."""
    rows = found["rows"]
    scale = ticks(max(0.001, *(row["error"]["upper"] for row in rows)))
    wide = WIDTH - LABELS - RIGHT

    def x(value: float) -> float:
        return LABELS + wide * min(value / scale[-1], 1.0)

    names = distinct_names([row["expert"] for row in rows], LETTERS)
    parts, y, verdict = [], 0, ""
    for name, row in zip(names, rows, strict=True):
        if row["verdict"] != verdict:
            verdict = row["verdict"]
            parts.append(f'<text class="said" x="{LABELS}" y="{y + 17}">{escape(verdict)}</text>')
            y += ROW
        middle, kind, error = y + ROW / 2, KINDS.get(verdict, "machine"), row["error"]
        parts.append(
            f'<text x="{LABELS - 8}" y="{middle + 4:g}" text-anchor="end">{escape(name)}</text>'
            f'<line class="whisker {kind}" x1="{x(error["lower"]):.1f}" x2="{x(error["upper"]):.1f}" '
            f'y1="{middle:g}" y2="{middle:g}"/>'
            f'<circle class="dot {kind}" cx="{x(error["share"]):.1f}" cy="{middle:g}" r="4"/>'
        )
        y += ROW
    said = "; ".join(
        f"{row['expert']} {told.interval(row['error'])}, {row['verdict']}" for row in rows
    )
    picture = Picture(
        "p-skills", "Errors of each expert, with intervals", f"Per 1,000 cases: {said}."
    )
    grid = _grid([(x(tick), tick) for tick in scale], 0, y + 4, "errors per 1,000 cases")
    return svg(picture, grid + "".join(parts), y + 50)


def load_bars(found: Row, told: PerThousand, unit: str) -> Markup:
    """What each expert gets, framed by the capacity, with the price of the expert's time in units."""
    rows = found["rows"]
    scale = ticks(max(0.001, *(max(row["load"], row["capacity"]) for row in rows)))
    wide = WIDTH - LABELS - PRICES

    def x(value: float) -> float:
        return LABELS + wide * min(value / scale[-1], 1.0)

    names = distinct_names([row["expert"] for row in rows], LETTERS)
    top = 36
    parts = [
        f'<text x="{WIDTH - 4}" y="{y}" text-anchor="end">{words}</text>'
        for y, words in ((13, f"{unit} avoided per"), (29, "1,000 more cases"))
    ]
    for place, (name, row) in enumerate(zip(names, rows, strict=True)):
        y = top + ROW * place + (ROW - THICK) / 2
        across = f'x="{LABELS}" y="{y:g}" height="{THICK}"'
        parts.append(
            f'<text x="{LABELS - 8}" y="{y + 11:g}" text-anchor="end">{escape(name)}</text>'
            f'<rect class="bar human" {across} width="{x(row["load"]) - LABELS:.1f}"/>'
            f'<rect class="range" {across} width="{x(row["capacity"]) - LABELS:.1f}"/>'
            f'<text x="{WIDTH - 4}" y="{y + 11:g}" text-anchor="end">{price_words(row["price"])}</text>'
        )
    said = "; ".join(
        f"{row['expert']} gets {told(row['load'])} of at most {told(row['capacity'])} "
        f"({unit} avoided per 1,000 more cases: {price_words(row['price'])})"
        for row in rows
    )
    picture = Picture(
        "p-load", "Load of each expert against the capacity", f"Of 1,000 cases: {said}."
    )
    bottom = top + ROW * len(rows) + 4
    grid = _grid([(x(tick), tick) for tick in scale], top, bottom, "of 1,000 cases")
    return svg(picture, grid + "".join(parts), bottom + 46)


def _grid(places: list[tuple[float, float]], top: int, bottom: int, label: str) -> str:
    """Lines at the ticks, with their numbers and a label below."""
    lines = [
        f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{top}" y2="{bottom}"/>'
        f'<text x="{x:.1f}" y="{bottom + 16}" text-anchor="middle">{tick_text(tick)}</text>'
        for x, tick in places
    ]
    middle = (places[0][0] + places[-1][0]) / 2
    return (
        "".join(lines)
        + f'<text x="{middle:.0f}" y="{bottom + 38}" text-anchor="middle">{label}</text>'
    )
