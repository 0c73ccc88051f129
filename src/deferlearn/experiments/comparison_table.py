"""What the rows of a comparison say: means, paired differences with intervals, counts of cells."""

from typing import Any

import numpy as np
import pandas as pd

from deferlearn.evaluation.intervals import t_interval
from deferlearn.experiments.comparison import ALONE, BASELINES, SVM_TEAM, TEAM
from deferlearn.experiments.comparison_classes import GRADED, STAGES, TEN_DIGITS
from deferlearn.experiments.comparison_data import SLEEP
from deferlearn.experiments.comparison_peers import CLASS_PEERS, PEERS

# The peer that cross-validation would pick on the same split at the same budget.
BEST_PEER = "best peer"
# With two classes and with several; of peers that tie on the folds the first is picked.
ALL_PEERS = tuple(dict.fromkeys((*PEERS, *CLASS_PEERS)))
RIVALS = (BEST_PEER, ALONE, SVM_TEAM, *BASELINES, *ALL_PEERS)
# The team is much worse than a rival if the whole interval of the difference is above this.
WORST = 0.01
GROUPS = {
    "six medical sets": (
        "messidor",
        "stare",
        "aptos",
        "lidc-majority",
        "lidc-decided",
        "breast-cancer",
    ),
    "linear, quadratic, digits": ("linear", "quadratic", "digits"),
    "sleep": (SLEEP,),
    "ten digits": (TEN_DIGITS,),
    "sleep stages, five experts": STAGES,
    "grades of the retina": GRADED,
}
# Means of groups are over these budgets.
GROUP_BUDGETS = (0.1, 0.2, 0.3)
CELL = ["dataset", "budget", "seed"]


def with_best_peer(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows, and one more for each split and budget: those of the peer with the least error on folds.

    Of peers that tie on the folds the first of `ALL_PEERS` is taken. The row keeps what it was except
    for its method, and names the peer in the column `peer`.
    """
    order = {name: place for place, name in enumerate(ALL_PEERS)}
    peers = rows[rows["method"].isin(order)].assign(peer=lambda t: t["method"])
    # Errors on folds are shares of the same samples: rounding is all that can part equal ones.
    ranked = peers.assign(_error=peers["cv_error"].round(12), _place=peers["method"].map(order))
    ranked = ranked.sort_values([*CELL, "_error", "_place"], kind="stable")
    best = ranked.drop_duplicates(CELL).drop(columns=["_error", "_place"])
    return pd.concat([rows, best.assign(method=BEST_PEER)], ignore_index=True)


def comparison_table(rows: pd.DataFrame) -> pd.DataFrame:
    """One line per data set and budget: mean errors, and paired differences from each rival that is there.

    Parameters
    ----------
    rows : DataFrame
        One row per split, budget and method, all methods on the same splits; the team and the peers are
        among them.

    Returns
    -------
    table : DataFrame
    """
    lines = []
    rows = with_best_peer(rows)
    for (dataset, budget), cell in rows.groupby(["dataset", "budget"], sort=False):
        errors = cell.pivot(index="seed", columns="method", values="error")
        team = cell[cell["method"] == TEAM]
        line: dict[str, Any] = {
            "dataset": dataset,
            "budget": budget,
            "splits": len(errors),
            TEAM: errors[TEAM].mean(),
            "asked": team["asked"].mean(),
            "humans alone": team["humans"].mean(),
            "policy": team["policy"].mode()[0],
            "peer": cell.loc[cell["method"] == BEST_PEER, "peer"].mode()[0],
        }
        for name in (name for name in RIVALS if name in errors):
            mean, low, high = t_interval(errors[TEAM] - errors[name])
            line |= {name: errors[name].mean()}
            line |= {f"minus {name}": mean, f"low {name}": low, f"high {name}": high}
        lines.append(line)
    return pd.DataFrame(lines)


def rivals_in(table: pd.DataFrame) -> list[str]:
    """The rivals that a table has."""
    return [name for name in RIVALS if name in table]


def comparison_counts(table: pd.DataFrame) -> dict[str, dict[str, int]]:
    """For each rival, in how many cells the team is better, neither, worse, or much worse."""
    out = {}
    for name in rivals_in(table):
        low, high = table[f"low {name}"], table[f"high {name}"]
        out[name] = {
            "cells": len(table),
            "better": int((high < 0).sum()),
            "no difference": int(((low <= 0) & (high >= 0)).sum()),
            "worse": int((low > 0).sum()),
            "much worse": int((low > WORST).sum()),
        }
    return out


def group_means(table: pd.DataFrame) -> pd.DataFrame:
    """Mean errors of all methods over the cells of each group that has all its data sets."""
    lines, methods = [], [TEAM, *rivals_in(table)]
    for group, names in GROUPS.items():
        cells = table[table["dataset"].isin(names) & table["budget"].isin(GROUP_BUDGETS)]
        if set(cells["dataset"]) == set(names):
            lines.append({"group": group, "cells": len(cells), **cells[methods].mean()})
    return pd.DataFrame(lines, columns=["group", "cells", *methods])


def dataset_differences(table: pd.DataFrame) -> pd.DataFrame:
    """The team's error minus the picked peer's: the mean and the largest of each data set."""
    name = f"minus {BEST_PEER}"
    lines = []
    for dataset, cells in table.groupby("dataset", sort=False):
        worst = cells.iloc[int(np.argmax(cells[name]))]
        lines.append(
            {
                "dataset": dataset,
                "mean": cells[name].mean(),
                "largest": worst[name],
                "at budget": worst["budget"],
            }
        )
    return pd.DataFrame(lines)


def where_it_pays(table: pd.DataFrame) -> pd.DataFrame:
    """For each data set, whether assistance does better than the machine alone, and up to which budget.

    Parameters
    ----------
    table : DataFrame
        From `comparison_table`, with the machine alone among the rivals.

    Returns
    -------
    lines : DataFrame
        The columns `dataset`, `human`, `machine`, `best` (the budget at which the team's mean error is
        least), `error` (that error), and `pays` and `harms`: the budgets at which the team is clearly
        better, or clearly worse, than the machine alone.
    """
    lines = []
    for dataset, cells in table.groupby("dataset", sort=False):
        best = cells.iloc[int(np.argmin(cells[TEAM]))]
        lines.append(
            {
                "dataset": dataset,
                "human": best["humans alone"],
                "machine": best[ALONE],
                "best": best["budget"],
                "error": best[TEAM],
                "pays": list(cells.loc[cells[f"high {ALONE}"] < 0, "budget"]),
                "harms": list(cells.loc[cells[f"low {ALONE}"] > 0, "budget"]),
            }
        )
    return pd.DataFrame(lines)


def seconds_per_method(rows: pd.DataFrame) -> pd.DataFrame:
    """Mean processor seconds per split, all budgets together: a line per method, a column per data set."""
    total = rows.groupby(["method", "dataset", "seed"], sort=False)["seconds"].sum()
    mean = total.groupby(level=["method", "dataset"], sort=False).mean()
    return mean.unstack("dataset")
