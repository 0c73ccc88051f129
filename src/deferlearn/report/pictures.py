"""From numbers to the pictures of the report, each with a description for readers who cannot see it."""

from typing import Any

from markupsafe import Markup

from deferlearn._utils.words import short_name
from deferlearn.report.bars import Bar, bar_chart
from deferlearn.report.charts import Axes, Line, Picture, Point, chart
from deferlearn.report.effect import NOT_ASKED
from deferlearn.report.expert_pictures import load_bars, skill_intervals
from deferlearn.report.refit_study import TEAM
from deferlearn.report.words import PerThousand

Row = dict[str, Any]
BUDGET, ERRORS = "cases that humans may read, of 1,000", "errors per 1,000 cases"
COSTS = "cost of errors per 1,000 cases"


def pictures(numbers: Row, told: PerThousand) -> dict[str, Markup]:
    """All pictures of the page by their names, as SVG; what was not measured has none."""
    found = {"verdict": verdict_bars(numbers["effect"], numbers["errors"], told)}
    if numbers["points"] is not None:
        found["points"] = operating_points(numbers["points"], told)
    if numbers["reliability"] is not None:
        found["reliability"] = reliability_points(numbers["reliability"], told)
    if numbers["assistance"] is not None:
        found["refits"] = refit_curve(numbers["assistance"], told)
        found["curves"] = automation_curves(numbers["curves"], told)
    if numbers["experts"] is not None:
        found["skills"] = skill_intervals(numbers["experts"], told)
        found["load"] = load_bars(numbers["experts"], told, numbers["model"]["unit"])
    return found


def verdict_bars(effect: Row, errors: Row, told: PerThousand) -> Markup:
    """From the machine's errors, by those that humans put right or wrong, to the team's."""
    machine, human, team = (errors[who]["share"] for who in ("machine", "human", "team"))
    fixed, spoilt = (effect[name] / effect["cases"] for name in ("fixed", "spoilt"))
    ends = (machine + effect["difference"]["lower"], machine + effect["difference"]["upper"])
    bars = [
        Bar("machine alone", "machine", 0.0, machine, told(machine)),
        Bar("put right", "good", machine, machine - fixed, told.signed(-fixed)),
        Bar("put wrong", "bad", machine - fixed, team, told.signed(spoilt)),
        Bar("team", "team", 0.0, team, told(team), ends),
        Bar("humans alone", "human", 0.0, human, told(human)),
    ]
    if effect["answer"] == NOT_ASKED:  # the team is the machine
        picture = Picture(
            "p-verdict",
            "Errors per 1,000 cases: machine alone and humans alone",
            f"Machine alone {told(machine)}, humans alone {told(human)}.",
        )
        return bar_chart(picture, [bars[0], bars[-1]], ERRORS)
    picture = Picture(
        "p-verdict",
        "Errors per 1,000 cases: machine alone, team and humans alone",
        f"Machine alone {told(machine)}, put right by humans {told(fixed)}, put wrong by humans "
        f"{told(spoilt)}, team {told(team)}, from {told(max(ends[0], 0.0))} to {told(ends[1])}; "
        f"humans alone {told(human)}.",
    )
    return bar_chart(picture, bars, ERRORS)


def operating_points(found: Row, told: PerThousand) -> Markup:
    """Found cases against false alarms: machine, human and team, and the machine at other thresholds."""
    positive, negative = found["positive"], found["negative"]
    points = [
        Point(
            who,
            who,
            own["false_alarms"]["share"],
            own["found"]["share"],
            (own["false_alarms"]["lower"], own["false_alarms"]["upper"]),
            (own["found"]["lower"], own["found"]["upper"]),
        )
        for who, own in found["points"].items()
    ]
    lines = [Line("chance", "ideal", [0.0, 1.0], [0.0, 1.0], dots=False)]
    if found["curve"] is not None:
        alarms, hits = zip(*found["curve"], strict=True)
        name = "machine at other thresholds"
        lines.insert(0, Line(name, "machine", alarms, hits, dots=False))
    said = "; ".join(
        f"{who} finds {told(own['found']['share'])} for {told(own['false_alarms']['share'])} false alarms"
        for who, own in found["points"].items()
    )
    picture = Picture(
        "p-points",
        f"Cases of {positive} that are found, against false alarms",
        f"Per 1,000 cases of each class: {said}.",
    )
    negative, positive = (short_name(label, 14) for label in (negative, positive))
    labels = (f"false alarms per 1,000 {negative}", f"found per 1,000 {positive}")
    return chart(picture, Axes(*labels), lines, points)


def reliability_points(found: Row, told: PerThousand) -> Markup:
    """How often the machine is right against how sure it is."""
    points = [
        Point(
            "",
            "machine",
            row["says"],
            row["right"]["share"],
            None,
            (row["right"]["lower"], row["right"]["upper"]),
        )
        for row in found["bins"]
    ]
    x_from = min(row["says"] for row in found["bins"])
    y_from = min(row["right"]["lower"] for row in found["bins"])
    said = ", ".join(f"says {told(p.x)}, right {told(p.y)}" for p in points)
    picture = Picture(
        "p-reliability",
        "How often the machine is right, against how sure it is",
        f"Of 1,000 answers, from the least to the most sure: {said}.",
    )
    least = min(x_from, y_from)
    lines = [Line("as often right as it says", "ideal", [least, 1.0], [least, 1.0], dots=False)]
    axes = Axes("the machine says, of 1,000", "right, of 1,000", x_from, y_from)
    return chart(picture, axes, lines, points)


def refit_curve(assistance: Row, told: PerThousand) -> Markup:
    """The errors of refitted teams, or their costs, against the budget, from the report of assistance."""
    measure, teams = assistance["measure"], assistance["teams"]
    label = ERRORS if measure == "error" else COSTS
    machine, human = teams[0], teams[-1]
    rows = [row for row in teams if row["who"] == "team"]
    x = [0.0, *(row["budget"] for row in rows)]
    level = machine[measure]
    lines = [
        Line(
            "refitted team",
            "team",
            x,
            [level, *(row[measure] for row in rows)],
            [level, *(level + row["difference_low"] for row in rows)],
            [level, *(level + row["difference_high"] for row in rows)],
        ),
        Line("refitted machine alone", "machine", [0.0, x[-1]], [level] * 2, dots=False),
        Line("humans alone", "human", [0.0, x[-1]], [human[measure]] * 2, dots=False),
    ]
    said = ", ".join(f"{told(row['budget'])}: {told(row[measure])}" for row in rows)
    picture = Picture(
        "p-refits",
        f"{label.split()[0].capitalize()} of refitted teams against the budget",
        f"{label.capitalize()}: refitted machine alone {told(level)}, humans alone "
        f"{told(human[measure])}, refitted team by the cases that humans may read {said}.",
    )
    return chart(picture, Axes(BUDGET, label), lines)


def automation_curves(curves: Row, told: PerThousand) -> Markup:
    """Errors over the splits, one case at a time."""
    lines = [
        Line(
            f"refitted {name}",
            "team" if name == TEAM else "other",
            curve["budgets"],
            curve["error"]["mean"],
            curve["error"]["lower"],
            curve["error"]["upper"],
        )
        for name, curve in curves.items()
    ]
    said = "; ".join(
        f"{line.name}: "
        + ", ".join(f"{told(x)} {told(y)}" for x, y in zip(line.x, line.y, strict=True))
        for line in lines
    )
    picture = Picture(
        "p-curves",
        "Errors against the budget, one case at a time",
        f"Mean errors per 1,000 cases at each budget. {said}.",
    )
    return chart(picture, Axes(BUDGET, ERRORS), lines)
