"""Tuned teams against tuned baselines and peers, as a page in Markdown and a figure."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from deferlearn._utils.atomic import write_atomically
from deferlearn.experiments.comparison import ALONE, SVM_TEAM, TEAM, TEAM_SEARCH
from deferlearn.experiments.comparison_classes import CLASS_NAMES, GRADED
from deferlearn.experiments.comparison_peers import CLASS_PEERS
from deferlearn.experiments.comparison_table import (
    BEST_PEER,
    GROUP_BUDGETS,
    WORST,
    comparison_counts,
    dataset_differences,
    group_means,
    rivals_in,
    seconds_per_method,
    where_it_pays,
    with_best_peer,
)
from deferlearn.experiments.pages import fill_template
from deferlearn.experiments.style import figure_of, look, save

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PAGE, PICTURE = "team.md", "team"
# Rivals with a panel of their own in the figure.
SHOWN = (BEST_PEER, SVM_TEAM, "uncertainty", "automation")
CLASS_SHOWN = (BEST_PEER, ALONE, *CLASS_PEERS)
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
    """The page's text: counts, means of groups, all cells, and what was chosen.

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
    chosen = rows[rows["method"] == TEAM].groupby(["dataset", "policy"], sort=False).size()
    picked = with_best_peer(rows).query("method == @BEST_PEER")
    picked = picked.groupby(["dataset", "peer"], sort=False).size()
    choices, picks = (_counted(counts) for counts in (chosen, picked))
    groups, seconds = group_means(table), seconds_per_method(rows)
    methods = [TEAM, *rivals_in(table)]
    others = [name for name in rivals_in(table) if name != BEST_PEER]
    return fill_template(
        "comparison.md",
        command=command,
        several_classes=bool(set(table["dataset"]) & set(CLASS_NAMES)),
        pays=_pays(table),
        search=TEAM_SEARCH.__name__,
        seeds=sorted(rows["seed"].unique()),
        worst=WORST,
        group_budgets=GROUP_BUDGETS,
        counts=[
            (name, *(counts[key] for key in ("better", "no difference", "worse", "much worse")))
            for name, counts in comparison_counts(table).items()
        ],
        methods=methods,
        groups=[
            (line["group"], line["cells"], *(f"{line[name]:.3f}" for name in methods))
            for line in groups.to_dict("records")
        ],
        differences=[
            (
                line["dataset"],
                f"{line['mean']:+.4f}",
                f"{line['largest']:+.4f}",
                f"{line['at budget']:g}",
            )
            for line in dataset_differences(table).to_dict("records")
        ],
        titles=["data", "budget", "team", "asked", "humans alone", BEST_PEER, f"minus {BEST_PEER}"]
        + ["picked most often"],
        cells=[
            (
                line["dataset"],
                f"{line['budget']:g}",
                f"{line[TEAM]:.3f}",
                f"{line['asked']:.2f}",
                f"{line['humans alone']:.3f}",
                f"{line[BEST_PEER]:.3f}",
                difference_of(line, BEST_PEER),
                line["peer"],
            )
            for line in table.to_dict("records")
        ],
        other_titles=["data", "budget", *others],
        others=[
            (
                line["dataset"],
                f"{line['budget']:g}",
                *(f"{line[name]:.3f}" for name in others),
            )
            for line in table.to_dict("records")
        ],
        policies=list(choices.columns),
        choices=list(choices.itertuples(name=None)),
        peers=list(picks.columns),
        picks=list(picks.itertuples(name=None)),
        timed=list(seconds.columns),
        seconds=[
            (name, *(f"{value:.1f}" for value in values))
            for name, *values in seconds.itertuples(name=None)
        ],
    )


def _pays(table: pd.DataFrame) -> list[tuple[str, ...]]:
    """Where assistance does better than the machine alone, as cells of a table; empty if unknown."""
    if ALONE not in table:
        return []
    return [
        (
            line["dataset"],
            f"{line['human']:.3f}",
            f"{line['machine']:.3f}",
            f"{line['error']:.3f} at {line['best']:g}",
            *(", ".join(f"{budget:g}" for budget in line[key]) or "-" for key in ("pays", "harms")),
        )
        for line in where_it_pays(table).to_dict("records")
    ]


def _counted(counts: pd.Series) -> pd.DataFrame:
    """Counts by data set and choice as a table, the most frequent choice first, and their sums."""
    table = counts.unstack(fill_value=0)
    table = table[table.sum().sort_values(ascending=False, kind="stable").index]
    table.loc["all"] = table.sum()
    return table


def difference_of(line: dict[str, Any], name: str) -> str:
    """The team's error minus a rival's, its interval, and whether that is clear of zero."""
    low, high = line[f"low {name}"], line[f"high {name}"]
    said = f"{line[f'minus {name}']:+.3f} [{low:+.3f}, {high:+.3f}] {mark_of(low, high)}"
    return said.strip()


def mark_of(low: float, high: float) -> str:
    """Whether the interval shows the team to be better or worse; empty if it contains zero."""
    return "better" if high < 0 else "worse" if low > 0 else ""


def shown_in(table: pd.DataFrame) -> list[str]:
    """The rivals of a table that are shown side by side with the team: some, or the peers themselves."""
    if ALONE in table:
        return [name for name in CLASS_SHOWN if name in table]
    found = [name for name in SHOWN if name in table]
    return found if len(found) > 1 else [BEST_PEER, "CC", "HGB", "RF"]


def comparison_figure(table: pd.DataFrame) -> Figure:
    """One panel for each of some rivals, one line per cell: the difference of errors with its interval.

    Shares of wrong answers and numbers of grades have rows, and scales, of their own.
    """
    names, graded = shown_in(table), table["dataset"].isin(GRADED)
    parts = [part for part in (table[~graded], table[graded]) if len(part)]
    height = max(3.0, 0.22 * len(table) + 1.2 * len(parts))
    figure, axes = figure_of(
        height, len(parts), len(names), sharey="row", height_ratios=[len(part) for part in parts]
    )
    figure.set_size_inches(12.0, height)
    for row, part in zip(axes, parts, strict=True):
        for ax, name in zip(row, names, strict=True):
            _draw_differences(ax, part, name)
        labels = [f"{line['dataset']}  {line['budget']:g}" for line in part.to_dict("records")]
        row[0].set_yticks(np.arange(len(part)), labels)
        row[0].invert_yaxis()
        row[0].margins(y=0.02)
    for ax, name in zip(axes[0], names, strict=True):
        ax.set_title(f"minus {name}")
    figure.supxlabel(
        "error of the tuned team minus that of the rival (blue: clearly less, orange: clearly more)",
        fontsize=11,
    )
    return figure


def _draw_differences(ax: Axes, table: pd.DataFrame, name: str) -> None:
    place = np.arange(len(table))
    low, high = table[f"low {name}"].to_numpy(), table[f"high {name}"].to_numpy()
    colours = [COLOURS[mark_of(a, b)] for a, b in zip(low, high, strict=True)]
    ax.hlines(place, low, high, color=colours, linewidth=2.2)
    ax.scatter(table[f"minus {name}"], place, c=colours, s=22, zorder=3)
    ax.axvline(0.0, color="0.0", linewidth=0.8)
    ax.grid(axis="x", color="0.9")
    ax.tick_params(axis="both", labelsize=9)
    # A line between data sets.
    names = table["dataset"].to_numpy()
    for start in np.flatnonzero(names[1:] != names[:-1]):
        ax.axhline(start + 0.5, color="0.85", linewidth=0.8)
