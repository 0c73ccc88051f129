"""Tuned teams against tuned baselines, as a page in Markdown and a picture."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from deferlearn._utils.atomic import write_atomically
from deferlearn.experiments.style import figure_of, look, save
from deferlearn.experiments.team import BASELINES, TEAM, WORST, verdicts

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PAGE, PICTURE = "team.md", "team"
# Of the intervals in the picture: the team is better, worse, or neither is clear.
COLOURS = {"better": "#0072B2", "worse": "#D55E00", "": "0.55"}

HEAD = """\
# Tuned teams against tuned baselines

`{command}`

`AssistedSVCCV` chooses one of its default policies, and the regularisation, by the team's cross-validated
error on the training part of each of {splits} random splits (60% to 40%; seeds {first} to {last}). So does
every baseline, with one policy alone. Test parts take no part in any choice. "asked" is the share of test
cases that the team gives to the human; "minus" columns are the team's error minus the baseline's, with the
paired 95% interval over the splits. Those intervals speak of other splits of the same cases; for new cases
they would be wider.

- automation: the machine alone; uncertainty: the human takes the cases of which the machine is least sure;
  predicted error: two networks say who errs where; the paper's: distorted greedy with the margin policy.
- messidor, stare and aptos have simulated doctors; lidc has real radiologists, and two rules for the truth;
  experts for breast-cancer and digits err with probability 0.05 on one side of the first principal
  component and 0.35 on the other; those for the synthetic sets (linear, quadratic) with probability 0.2.

![differences](team.png)
"""


def write_team_page(
    folder: str | os.PathLike[str], rows: pd.DataFrame, table: pd.DataFrame, command: str
) -> Path:
    """Write the page and its picture; return the page's path."""
    with look():
        figure = team_figure(table)
    save(figure, folder, PICTURE)
    path = Path(folder) / PAGE
    write_atomically(path, team_page(rows, table, command).encode())
    return path


def team_page(rows: pd.DataFrame, table: pd.DataFrame, command: str) -> str:
    """The page's text: counts, the table of all cells, and how often each policy was chosen.

    Parameters
    ----------
    rows : DataFrame
        A row a split, budget and method.
    table : DataFrame
        What `team_table` makes of them.
    command : str
        What prints it.

    Returns
    -------
    text : str
    """
    seeds = rows["seed"]
    head = HEAD.format(command=command, splits=seeds.nunique(), first=seeds.min(), last=seeds.max())
    parts = [head, _counts(table), _cells(table), _choices(rows)]
    return "\n".join(parts)


def _counts(table: pd.DataFrame) -> str:
    lines = [
        "## How often it pays\n",
        f"Of {len(table)} cells (data set and budget), those in which the interval is",
        "",
        f"| against | clear of zero, better | neither | clear of zero, worse | wholly above +{WORST:g} |",
        "|---|---|---|---|---|",
    ]
    for name, counts in verdicts(table).items():
        numbers = [counts[key] for key in ("better", "no difference", "worse", "much worse")]
        lines.append(f"| {name} | {' | '.join(str(n) for n in numbers)} |")
    return "\n".join(lines) + "\n"


def _cells(table: pd.DataFrame) -> str:
    names = list(BASELINES)
    titles = ["data", "budget", "team", "asked", "humans alone", *names]
    titles += [f"minus {name}" for name in names]
    lines = ["## Every cell\n", f"| {' | '.join(titles)} |", "|---" * len(titles) + "|"]
    for line in table.to_dict("records"):
        cells = [
            line["dataset"],
            f"{line['budget']:g}",
            f"{line[TEAM]:.3f}",
            f"{line['asked']:.2f}",
        ]
        cells += [f"{line['humans alone']:.3f}", *(f"{line[name]:.3f}" for name in names)]
        cells += [difference_of(line, name) for name in names]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def difference_of(line: dict[str, Any], name: str) -> str:
    """The team's error minus a baseline's, its interval, and whether that is clear of zero."""
    low, high = line[f"low {name}"], line[f"high {name}"]
    said = f"{line[f'minus {name}']:+.3f} [{low:+.3f}, {high:+.3f}] {mark_of(low, high)}"
    return said.strip()


def mark_of(low: float, high: float) -> str:
    """What the interval says of the team; nothing where it holds zero."""
    return "better" if high < 0 else "worse" if low > 0 else ""


def _choices(rows: pd.DataFrame) -> str:
    team = rows[rows["method"] == TEAM]
    counts = team.groupby(["dataset", "policy"], sort=False).size().unstack(fill_value=0)
    policies = counts.sum().sort_values(ascending=False).index
    lines = [
        "## What was chosen\n",
        "How many times, of all splits and budgets. A policy that is rarely chosen has rarely won.",
        "",
        f"| data | {' | '.join(policies)} |",
        "|---" * (len(policies) + 1) + "|",
    ]
    for name, line in counts[policies].iterrows():
        lines.append(f"| {name} | {' | '.join(str(number) for number in line)} |")
    total = counts[policies].sum()
    lines.append(f"| all | {' | '.join(str(number) for number in total)} |")
    return "\n".join(lines) + "\n"


def team_figure(table: pd.DataFrame) -> Figure:
    """A panel a baseline, a line a cell: the team's error minus the baseline's with its interval."""
    names = list(BASELINES)
    labels = [f"{line['dataset']}  {line['budget']:g}" for line in table.to_dict("records")]
    height = max(3.0, 0.22 * len(labels) + 1.2)
    figure, axes = figure_of(height, 1, len(names), sharey=True)
    figure.set_size_inches(12.0, height)
    place = np.arange(len(labels))
    for ax, name in zip(axes[0], names, strict=True):
        low, high = table[f"low {name}"].to_numpy(), table[f"high {name}"].to_numpy()
        colours = [COLOURS[mark_of(a, b)] for a, b in zip(low, high, strict=True)]
        ax.hlines(place, low, high, color=colours, linewidth=2.2)
        ax.scatter(table[f"minus {name}"], place, c=colours, s=22, zorder=3)
        ax.axvline(0.0, color="0.0", linewidth=0.8)
        ax.set_title(f"minus {name}")
        ax.grid(axis="x", color="0.9")
        ax.tick_params(axis="both", labelsize=9)
        # A line between data sets.
        for start in np.flatnonzero(table["dataset"].to_numpy()[1:] != table["dataset"][:-1]):
            ax.axhline(start + 0.5, color="0.85", linewidth=0.8)
    axes[0, 0].set_yticks(place, labels)
    axes[0, 0].invert_yaxis()
    axes[0, 0].margins(y=0.02)
    figure.supxlabel(
        "error of the tuned team minus that of the baseline (blue: clearly less, orange: clearly more)",
        fontsize=11,
    )
    return figure
