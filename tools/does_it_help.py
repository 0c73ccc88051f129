"""Write the page "Does it help?" and two pictures from the tables in docs/results.

Usage::

    python tools/does_it_help.py

The tables are what the commands that the page names have written or printed:

- ``docs/results/team``: what `deferlearn bench team` writes, for data with two classes;
- ``docs/results/classes``: the same for data with several classes and grades, if it is there;
- ``docs/results/experts/skills.txt``, ``sleep.txt``: what ``benchmarks/experts.py`` prints with these;
- ``docs/results/sleep/first_example.txt``: what ``benchmarks/first_example.py`` prints.
"""

from __future__ import annotations

import csv
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "docs" / "results"
PAGE = ROOT / "docs" / "does_it_help.md"
PICTURE = ROOT / "docs" / "_static" / "does_it_help.png"
FIRST_PICTURE = ROOT / "docs" / "_static" / "first_example.png"
TEMPLATE = "does_it_help.md"

BEST_PEER = "best peer"
# Columns of team.csv that are no errors of a method.
OTHERS = ("dataset", "budget", "splits", "asked", "humans alone", "policy", "peer")
DIFFERENCES = ("minus ", "low ", "high ")
# What answers if no human is asked: the machine of the same search, or else a tuned forest.
ALONE = ("machine alone", "RF alone")
# The budget of the picture and of the table of data sets.
BUDGET = 0.1

# Who plays the human.
HUMANS = {
    "messidor": "simulated doctors",
    "stare": "simulated doctors",
    "aptos": "simulated doctors",
    "lidc-majority": "**real** radiologists",
    "lidc-decided": "**real** radiologists",
    "breast-cancer": "simulated, good in one half of the space",
    "digits": "simulated, good in one half of the space",
    "linear": "simulated, wrong in a fifth of the cases",
    "quadratic": "simulated, wrong in a fifth of the cases",
    "sleep": "**real** technologists, who take turns",
    "ten-digits": "simulated, good in some regions",
    **{f"stages-{k}": f"**real** technologist {k}" for k in range(1, 6)},
    **{f"{name}-grades": "simulated grader" for name in ("messidor", "stare", "aptos")},
}

# Why nothing is clear, or the team is worse, on a data set. A data set without a sentence here is an error.
# The words in braces are shares of wrong answers, and of cases asked; for grades, whose errors are no
# shares, use none but {asked}.
WHY = {
    "lidc-majority": "The radiologist, who only rates the nodule, errs on {human}; the machine, which sees "
    "what the other three drew, on {machine}. There is almost nothing to gain by asking, and the team "
    "learns that: it asks about {asked} of the nodules.",
    "lidc-decided": "These are the same radiologists, with a stricter truth: they err on {human}, the "
    "machine on {machine}. The team asks about {asked} of the nodules; at small budgets it is not clearly "
    "better than its rivals.",
    "breast-cancer": "The team errs on {team}, which is 5 or 6 of 228 test cases. Too few errors are left "
    "to tell methods apart, and the human ({human} wrong) can prevent few of them.",
    "sleep": "The machine gets the answers of six networks that already know nearly all there is to know. "
    "Asking pays ({machine} without, {team} with it), but every tuned method gains about the same, "
    "including the simple linear ones.",
    "ten-digits": "The machine errs on {machine} already, and few errors are left to prevent.",
    **{
        f"stages-{k}": "The technologist alone errs on {human}, and the machine, which sees the answers of "
        "six networks, on {machine}. Where the networks are in doubt, a technologist often is, too. "
        "The team ({team}) asks about {asked} of the epochs."
        for k in range(1, 6)
    },
    **{
        f"{name}-grades": "The grader errs far less than the machine. So each method gains by asking about "
        "as many images as it may, and which ones it asks about matters less. The test parts have a few "
        "hundred images, so the intervals are wide. The team asks about {asked}."
        for name in ("messidor", "stare", "aptos")
    },
}


@dataclass(frozen=True)
class Comparison:
    """The cells of a comparison, how often the team is better than its rivals, and the command."""

    cells: list[dict[str, Any]]
    counts: list[dict[str, Any]]
    command: str

    @property
    def methods(self) -> list[str]:
        """All methods with an error in every cell, the team first."""
        names = [name for name in self.cells[0] if not name.startswith(DIFFERENCES)]
        return [name for name in names if name not in OTHERS]

    @property
    def alone(self) -> str:
        """The method that asks no human."""
        return next(name for name in ALONE if name in self.methods)

    @property
    def names(self) -> list[str]:
        """The data sets."""
        return list(dict.fromkeys(cell["dataset"] for cell in self.cells))

    @property
    def splits(self) -> int:
        """The number of splits."""
        return int(self.cells[0]["splits"])

    def count(self, rival: str) -> dict[str, Any]:
        """In how many cells the team is clearly better than a rival, neither, and clearly worse."""
        return next(line for line in self.counts if line["rival"] == rival)

    def of(self, name: str) -> list[dict[str, Any]]:
        """The cells of a data set."""
        return [cell for cell in self.cells if cell["dataset"] == name]


def read_table(path: Path) -> list[dict[str, Any]]:
    """The rows of a CSV file; numbers are numbers, and empty cells are None."""
    with path.open(encoding="utf-8", newline="") as file:
        return [{name: _value(text) for name, text in row.items()} for row in csv.DictReader(file)]


def _value(text: str) -> Any:
    try:
        return float(text) if text else None
    except ValueError:
        return text


def read_printed(path: Path) -> list[dict[str, Any]]:
    """The rows of all tables that a benchmark has printed, with the budget that the line above names.

    A row is its cells, and the first difference with an interval among them, if there is one.
    """
    rows: list[dict[str, Any]] = []
    budget, heading = None, True
    for line in path.read_text(encoding="utf-8").splitlines():
        if not line.startswith("|"):
            found = re.search(r"budget (\d+)%", line)
            budget, heading = float(found.group(1)) / 100 if found else None, True
        elif line.startswith("|---"):
            heading = False
        elif not heading:
            cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
            interval = re.search(r"([+-][\d.]+) \[([+-][\d.]+), ([+-][\d.]+)\]", line)
            numbers = [float(text) for text in interval.groups()] if interval else [None] * 3
            named = dict(zip(("difference", "low", "high"), numbers, strict=True))
            rows.append({"cells": cells, "budget": budget, **named})
    return rows


def first_example() -> dict[str, dict[str, Any]]:
    """README's first example over many splits: who errs how often, and how often the expert is asked."""
    rows = read_printed(RESULTS / "sleep" / "first_example.txt")
    found = {row["cells"][0]: row | {"error": float(row["cells"][1])} for row in rows}
    words = next(who for who in found if who.startswith("team"))
    share = re.search(r"asks about ([\d.]+)%", words)
    if share is None:
        raise ValueError(f"nothing says how often the team asks: {words}")
    return {"team": found.pop(words), **found, "asked": {"error": float(share.group(1)) / 100}}


def skills() -> list[dict[str, Any]]:
    """Errors of teams that learn the skills of experts who differ, by the number of answers."""
    keys = ("known", "learned", "average")
    return [
        row
        | {"answers": int(row["cells"][1].replace(",", ""))}
        | dict(zip(keys, map(float, row["cells"][2:5]), strict=True))
        for row in read_printed(RESULTS / "experts" / "skills.txt")
        if row["cells"][0] == "differ"
    ]


def routing() -> dict[float, dict[str, dict[str, Any]]]:
    """Errors with five real experts, by budget and by who takes the cases."""
    found: dict[float, dict[str, dict[str, Any]]] = {}
    for row in read_printed(RESULTS / "experts" / "sleep.txt"):
        who, error = row["cells"][:2]
        found.setdefault(row["budget"], {})[who] = row | {"error": float(error)}
    return found


def read_comparison(folder: Path) -> Comparison | None:
    """What `deferlearn bench team` has written into a folder; None if there is nothing."""
    if not (folder / "team.csv").exists():
        return None
    page = (folder / "team.md").read_text(encoding="utf-8")
    found = re.search(r"`(deferlearn bench team[^`]*)`", page)
    if found is None:
        raise ValueError(f"{folder / 'team.md'} names no command")
    cells, counts = read_table(folder / "team.csv"), read_table(folder / "counts.csv")
    return Comparison(cells, counts, found.group(1))


def mark(cell: dict[str, Any], rival: str = BEST_PEER) -> str:
    """Whether the interval of a cell shows the team to be better or worse; empty if it contains zero."""
    if cell[f"high {rival}"] < 0:
        return "better"
    return "worse" if cell[f"low {rival}"] > 0 else ""


def difference(cell: dict[str, Any], rival: str = BEST_PEER) -> str:
    """The team's error minus a rival's, with its interval."""
    low, high = cell[f"low {rival}"], cell[f"high {rival}"]
    return f"{cell[f'minus {rival}']:+.3f} [{low:+.3f}, {high:+.3f}]"


def span(values: list[float], digits: int = 1) -> str:
    """Percentages as words, such as 2% to 6%."""
    low, high = (f"{100 * value:.{digits}f}%" for value in (min(values), max(values)))
    return low if low == high else f"{low} to {high}"


def lines_of(comparison: Comparison) -> list[dict[str, Any]]:
    """One line per data set: who errs how often, and in how many cells the team is clearly better."""
    lines = []
    for name in comparison.names:
        cells = comparison.of(name)
        middle = next(cell for cell in cells if cell["budget"] == BUDGET)
        marks = [mark(cell) for cell in cells]
        lines.append(
            {
                "name": name,
                "who": HUMANS[name],
                "human": middle["humans alone"],
                "alone": middle[comparison.alone],
                "team": middle["team"],
                "asked": middle["asked"],
                "better": f"{marks.count('better')} of {len(marks)}",
                "worse": marks.count("worse"),
            }
        )
    return lines


def not_better(comparison: Comparison) -> list[dict[str, Any]]:
    """The data sets with a cell in which the team is not clearly better than the best peer, and why."""
    found = []
    for name in comparison.names:
        cells = comparison.of(name)
        rest = [cell for cell in cells if mark(cell) != "better"]
        if not rest:
            continue
        if name not in WHY:
            sys.exit(
                f"{name} has cells in which the team is not better: say why in WHY of {__file__}"
            )
        words = {
            "human": span([cell["humans alone"] for cell in cells], 0),
            "machine": span([cell[comparison.alone] for cell in cells]),
            "team": span([cell["team"] for cell in cells]),
            "asked": span([cell["asked"] for cell in cells], 0),
        }
        found.append({"name": name, "cells": rest, "why": WHY[name].format(**words)})
    return found


def budgets_where(comparison: Comparison, name: str, want: str) -> str:
    """The budgets at which the team is clearly better, or worse, than the machine alone."""
    cells = [cell for cell in comparison.of(name) if mark(cell, comparison.alone) == want]
    return ", ".join(f"{100 * cell['budget']:g}%" for cell in cells)


def advice(comparison: Comparison, name: str) -> str:
    """At which budgets asking this expert pays, in words."""
    pays, harms = (budgets_where(comparison, name, want) for want in ("better", "worse"))
    cells = comparison.of(name)
    marks = [mark(cell, comparison.alone) for cell in cells]
    if marks == ["better"] * len(cells):
        said = f"asking pays at every budget that was tried, up to {100 * cells[-1]['budget']:g}%."
    elif pays:
        said = f"asking pays at {pays}; at the other budgets no gain is clear."
    else:
        said = "no budget clearly pays."
    return said + (f" At {harms} it does harm." if harms else "")


def least(comparison: Comparison, name: str) -> dict[str, Any]:
    """The cell with the team's lowest mean error."""
    return min(comparison.of(name), key=lambda cell: float(cell["team"]))


def readable(name: str) -> str:
    """The name of a data set in a sentence."""
    return re.sub(r"^stages-(\d)$", r"sleep stages with expert \1", name)


def worst_cell() -> dict[str, Any]:
    """The cell in which the team loses most against the machine alone, without grades."""
    comparisons = [read_comparison(RESULTS / name) for name in ("team", "classes")]
    cells = [
        cell | {"alone": cell[one.alone]}
        for one in comparisons
        if one is not None
        for cell in one.cells
        if not cell["dataset"].endswith("-grades")
    ]
    return max(cells, key=lambda cell: float(cell["team"] - cell["alone"]))


def page() -> str:
    """The page's text."""
    two = read_comparison(RESULTS / "team")
    if two is None:
        raise ValueError(f"there is no table in {RESULTS / 'team'}")
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        undefined=StrictUndefined,
        autoescape=False,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["percent"] = lambda value, digits=1: f"{100 * value:.{digits}f}%"
    return (
        environment.get_template(TEMPLATE)
        .render(
            two=two,
            classes=read_comparison(RESULTS / "classes"),
            lines_of=lines_of,
            not_better=not_better,
            difference=difference,
            mark=mark,
            span=span,
            budgets_where=budgets_where,
            advice=advice,
            least=least,
            worst=worst_cell(),
            readable=readable,
            best_peer=BEST_PEER,
            budget=BUDGET,
            example=first_example(),
            skills=skills(),
            routing=routing(),
        )
        .rstrip()
        + "\n"
    )


def draw() -> None:
    """The picture: errors of human, machine and team on every data set."""
    from matplotlib.figure import Figure

    found = [read_comparison(RESULTS / name) for name in ("team", "classes")]
    comparisons = [one for one in found if one is not None]
    heights = [len(one.names) for one in comparisons]
    figure = Figure(figsize=(7.5, 0.36 * sum(heights) + 1.3 * len(heights)), layout="constrained")
    axes = figure.subplots(len(heights), 1, squeeze=False, height_ratios=heights)[:, 0]
    looks = {
        "human": ("human alone", "#D55E00", "D"),
        "alone": ("machine alone", "#0072B2", "s"),
        "team": (f"team, budget {BUDGET:.0%}", "#009E73", "o"),
    }
    for ax, comparison in zip(axes, comparisons, strict=True):
        lines = lines_of(comparison)
        for key, (label, colour, marker) in looks.items():
            ax.plot(
                [line[key] for line in lines],
                range(len(lines)),
                marker,
                color=colour,
                label=label,
                markersize=8,
                alpha=0.9,
            )
        ax.set_yticks(range(len(lines)), [line["name"] for line in lines])
        ax.invert_yaxis()
        ax.set_xlim(left=0)
        ax.grid(color="0.9")
        ax.set_axisbelow(True)
        grades = any(name.endswith("-grades") for name in comparison.names)
        label = "share of wrong answers"
        ax.set_xlabel(f"{label}; of grades, how far off" if grades else label)
    axes[0].legend(loc="lower right")
    figure.savefig(PICTURE, dpi=130)


def draw_first_example() -> None:
    """README's picture: who errs how often in its first example."""
    from matplotlib.figure import Figure

    found = {who: row["error"] for who, row in first_example().items()}
    asked = found.pop("asked")
    names = {
        "expert": "the expert alone",
        "random forest": "a random forest alone",
        "SVC, tuned": "a tuned SVC alone",
        "team": f"the team: the machine, and\nthe expert for {asked:.0%} of the cases",
    }
    figure = Figure(figsize=(5.4, 2.4), layout="constrained")
    ax = figure.subplots()
    for place, (who, label) in enumerate(names.items()):
        ax.barh(place, found[who], color="#009E73" if who == "team" else "0.7")
        ax.text(found[who], place, f" {found[who]:.1%}", va="center")
        ax.text(-0.0003, place, label, va="center", ha="right")
    ax.invert_yaxis()
    ax.set_title("wrong answers: is the sleeper in REM sleep?", fontsize=11)
    ax.set_axis_off()
    figure.savefig(FIRST_PICTURE, dpi=130, bbox_inches="tight", pad_inches=0.15)


def main() -> None:
    """Command line: write them."""
    PAGE.write_text(page(), encoding="utf-8")
    draw()
    draw_first_example()
    for path in (PAGE, PICTURE, FIRST_PICTURE):
        print(path.relative_to(ROOT))


if __name__ == "__main__":
    main()
