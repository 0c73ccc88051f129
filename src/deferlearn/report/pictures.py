"""From numbers to the pictures of the report, each with a description for readers who cannot see it."""

from typing import Any

from deferlearn.report.charts import Line, Picture, interval_chart, line_chart
from deferlearn.report.refit_study import TEAM
from deferlearn.report.words import measured, percent

BUDGET = "budget (share of cases)"


def pictures(numbers: dict[str, Any]) -> dict[str, str]:
    """All pictures of the page by their names, as SVG; without refitted teams there are no curves."""
    found = {"errors": _error_intervals(numbers["errors"])}
    if numbers["assistance"] is not None:
        found["verdict"] = _verdict_curve(numbers["assistance"]["teams"])
        found["curves"] = _automation_curves(numbers["curves"])
        found["rate"] = _rate_curve(numbers["curves"][TEAM])
    return found


def _error_intervals(errors: dict[str, Any]) -> str:
    said = "; ".join(
        f"{who} {measured(e['share'])}, from {measured(e['lower'])} to {measured(e['upper'])}"
        for who, e in errors.items()
    )
    picture = Picture(
        "p-errors", "Errors of machine, human and team", f"Errors with 95% intervals: {said}."
    )
    return interval_chart(picture, errors)


def _verdict_curve(teams: list[dict[str, Any]]) -> str:
    """The team's error against the budget, from the report of assistance."""
    machine, human = teams[0], teams[-1]
    rows = [row for row in teams if row["who"] == "team"]
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
    picture = Picture(
        "p-verdict",
        "Error against the budget",
        f"Machine alone {measured(level)}, human alone {measured(human['error'])}, team at a budget of "
        f"{said}.",
    )
    return line_chart(picture, lines, BUDGET, "error")


def _automation_curves(curves: dict[str, Any]) -> str:
    """Errors over the splits, one case at a time."""
    lines = [
        Line(name, "team" if name == TEAM else "other", curve["budgets"], **_band(curve["error"]))
        for name, curve in curves.items()
    ]
    said = "; ".join(
        f"{line.name}: "
        + ", ".join(f"{percent(x)} {measured(y)}" for x, y in zip(line.x, line.y, strict=True))
        for line in lines
    )
    picture = Picture(
        "p-curves",
        "Error against the budget, one case at a time",
        f"Mean error at each budget. {said}.",
    )
    return line_chart(picture, lines, BUDGET, "error")


def _rate_curve(curve: dict[str, Any]) -> str:
    """The share deferred against the budget."""
    x = curve["budgets"]
    lines = [
        Line("team", "team", x, **_band(curve["deferred"])),
        Line("the whole budget", "ideal", [0.0, x[-1]], [0.0, x[-1]], dots=False),
    ]
    said = ", ".join(
        f"budget {percent(budget)}, deferred {measured(share)}"
        for budget, share in zip(x, curve["deferred"]["mean"], strict=True)
    )
    picture = Picture("p-rate", "Share deferred against the budget", f"{said}.")
    return line_chart(picture, lines, BUDGET, "share deferred")


def _band(numbers: dict[str, Any]) -> dict[str, Any]:
    return {"y": numbers["mean"], "lower": numbers["lower"], "upper": numbers["upper"]}
