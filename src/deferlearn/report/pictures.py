"""From numbers to the pictures of the report, each with a sentence for those who cannot see it."""

from __future__ import annotations

from typing import Any

from deferlearn.report.charts import Line, interval_chart, line_chart, measured, percent
from deferlearn.report.html import Markup, join, tag
from deferlearn.report.refits import TEAM

BUDGET = "share that humans may take"


def error_intervals(numbers: dict[str, Any]) -> Markup:
    """Errors of machine, human and team."""
    errors = numbers["errors"]
    said = "; ".join(
        f"{who} {measured(e['share'])}, from {measured(e['lower'])} to {measured(e['upper'])}"
        for who, e in errors.items()
    )
    picture = interval_chart(
        "p-errors",
        "Errors of machine, human and team",
        f"Errors with 95% intervals: {said}.",
        [(who, who, share) for who, share in errors.items()],
    )
    return _figure(picture, "Share of wrong answers, with 95% intervals.")


def verdict_curve(numbers: dict[str, Any]) -> Markup:
    """The team's error against the budget, from the report of assistance."""
    found = numbers["assistance"]
    machine, human = found["teams"][0], found["teams"][-1]
    rows = [row for row in found["teams"] if row["who"] == "team"]
    x = [0.0, *(row["budget"] for row in rows)]
    level = machine["error"]
    lines = [
        Line(
            "team",
            "team",
            x,
            [level, *(row["error"] for row in rows)],
            [level, *(level + row["difference_low"] for row in rows)],
            [level, *(level + row["difference_high"] for row in rows)],
        ),
        Line("machine alone", "machine", [0.0, x[-1]], [level] * 2, dots=False),
        Line("human alone", "human", [0.0, x[-1]], [human["error"]] * 2, dots=False),
    ]
    said = ", ".join(f"{percent(row['budget'])}: {measured(row['error'])}" for row in rows)
    picture = line_chart(
        "p-verdict",
        "Error against the budget",
        f"Machine alone {measured(level)}, human alone {measured(human['error'])}, team at a budget of "
        f"{said}.",
        lines,
        BUDGET,
        "error",
    )
    return _figure(
        picture,
        "Batch rule, on cases left out. The band is the 95% interval of the difference from the machine "
        "alone, drawn at the machine's level: where it leaves that line, the difference is shown.",
    )


def automation_curves(numbers: dict[str, Any]) -> Markup:
    """Errors over the splits, one case at a time."""
    lines = [
        Line(
            name,
            "team" if name == TEAM else "other",
            curve["budgets"],
            curve["error"]["mean"],
            curve["error"]["lower"],
            curve["error"]["upper"],
        )
        for name, curve in numbers["curves"].items()
    ]
    said = "; ".join(
        f"{line.name}: "
        + ", ".join(f"{percent(x)} {measured(y)}" for x, y in zip(line.x, line.y, strict=True))
        for line in lines
    )
    n = next(iter(numbers["curves"].values()))["n_splits"]
    picture = line_chart(
        "p-curves",
        "Error against the budget, one case at a time",
        f"Mean error at each budget. {said}.",
        lines,
        BUDGET,
        "error",
    )
    return _figure(
        picture,
        f"One case at a time. Means over {n} parts left out in turn; the bands (95%, over these parts) "
        "tell how much the split matters.",
    )


def rate_curve(numbers: dict[str, Any]) -> Markup:
    """Share deferred against the share asked for."""
    curve = numbers["curves"][TEAM]
    x, shares = curve["budgets"], curve["deferred"]
    lines = [
        Line("team", "team", x, shares["mean"], shares["lower"], shares["upper"]),
        Line("as asked for", "ideal", [0.0, x[-1]], [0.0, x[-1]], dots=False),
    ]
    said = ", ".join(
        f"{percent(asked)} asked, {measured(got)} deferred"
        for asked, got in zip(x, shares["mean"], strict=True)
    )
    picture = line_chart(
        "p-rate",
        "Share deferred against share asked for",
        f"{said}.",
        lines,
        "share asked for",
        "share deferred",
    )
    return _figure(
        picture,
        f"Teams of this kind on {curve['n_splits']} parts left out in turn, one case at a time; band: 95% "
        "interval over these parts. Some teams leave a part of the budget where humans are not expected to "
        "do better.",
    )


def _figure(picture: str, caption: str) -> Markup:
    return tag("figure", join(Markup(picture), tag("figcaption", caption)))
