"""Tuned teams against tuned baselines, as a page in Markdown and a figure."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from deferlearn._utils.atomic import write_atomically
from deferlearn.experiments.comparison import BASELINES, TEAM, WORST, comparison_counts
from deferlearn.experiments.pages import fill_template
from deferlearn.experiments.style import figure_of, look, save

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PAGE, PICTURE = "team.md", "team"
# Colours of the intervals in the figure: the team is better, worse, or neither is clear.
COLOURS = {"better": "#0072B2", "worse": "#D55E00", "": "0.55"}


def write_comparison_page(
    folder: str | os.PathLike[str], rows: pd.DataFrame, table: pd.DataFrame, command: str
) -> Path:
    """Write the page and its figure; return the path of the page."""
    with look():
        figure = comparison_figure(table)
    save(figure, folder, PICTURE)
    path = Path(folder) / PAGE
    write_atomically(path, comparison_page(rows, table, command).encode())
    return path


def comparison_page(rows: pd.DataFrame, table: pd.DataFrame, command: str) -> str:
    """The page's text: counts, the table of all cells, and how often each policy was chosen.

    Parameters
    ----------
    rows : DataFrame
        One row per split, budget and method.
    table : DataFrame
        The table that `comparison_table` makes of them.
    command : str
        The command that makes the page.

    Returns
    -------
    text : str
    """
    names = list(BASELINES)
    chosen = rows[rows["method"] == TEAM].groupby(["dataset", "policy"], sort=False).size()
    choices = chosen.unstack(fill_value=0)
    choices = choices[choices.sum().sort_values(ascending=False).index]
    choices.loc["all"] = choices.sum()
    return fill_template(
        "comparison.md",
        command=command,
        seeds=sorted(rows["seed"].unique()),
        worst=WORST,
        counts=[
            (name, *(counts[key] for key in ("better", "no difference", "worse", "much worse")))
            for name, counts in comparison_counts(table).items()
        ],
        titles=[
            *("data", "budget", "team", "asked", "humans alone", *names),
            *(f"minus {name}" for name in names),
        ],
        cells=[
            (
                line["dataset"],
                f"{line['budget']:g}",
                f"{line[TEAM]:.3f}",
                f"{line['asked']:.2f}",
                *(f"{line[name]:.3f}" for name in ("humans alone", *names)),
                *(difference_of(line, name) for name in names),
            )
            for line in table.to_dict("records")
        ],
        policies=list(choices.columns),
        choices=list(choices.itertuples(name=None)),
    )


def difference_of(line: dict[str, Any], name: str) -> str:
    """The team's error minus a baseline's, its interval, and whether that is clear of zero."""
    low, high = line[f"low {name}"], line[f"high {name}"]
    said = f"{line[f'minus {name}']:+.3f} [{low:+.3f}, {high:+.3f}] {mark_of(low, high)}"
    return said.strip()


def mark_of(low: float, high: float) -> str:
    """Whether the interval shows the team to be better or worse; empty if it contains zero."""
    return "better" if high < 0 else "worse" if low > 0 else ""


def comparison_figure(table: pd.DataFrame) -> Figure:
    """One panel per baseline, one line per cell: the difference of errors with its interval."""
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
