"""Error and F1 of all methods against the budget: tables and panels of fig3 and fig5."""

from collections.abc import Sequence
from typing import Any

import pandas as pd

from deferlearn.experiments import style
from deferlearn.experiments.experiment import Tables
from deferlearn.experiments.methods import BASELINES
from deferlearn.experiments.selecting import ALGORITHMS
from deferlearn.experiments.stats import differences, summary

VALUES = ("error", "f1")


def performance_tables(rows: pd.DataFrame) -> Tables:
    """Means by data set, method and budget, and differences from the baselines and between methods."""
    policies = [p for p in rows["policy"].unique() if p]
    methods = [(name, policy) for policy in policies for name in ALGORITHMS]
    return {
        "": summary(
            rows,
            ["dataset", "method", "policy", "budget"],
            [*VALUES, "n_deferred", "n_asked", "alpha"],
        ),
        "differences": differences(
            rows, ["dataset", "budget"], methods, [*BASELINES, "distorted"], VALUES
        ),
    }


def draw_performance(axes: Any, rows: pd.DataFrame, policy: str, datasets: Sequence[str]) -> None:
    """One column of panels per data set: error above, F1 below."""
    shown = rows[rows["policy"].isin([policy, ""])]
    means = summary(shown, ["dataset", "method", "budget"], VALUES)
    for column, dataset in enumerate(datasets):
        for row, value in enumerate(VALUES):
            ax = axes[row][column]
            for method, (_, *look) in style.METHODS.items():
                line = means[(means["dataset"] == dataset) & (means["method"] == method)]
                style.draw_line(ax, line, "budget", value, *look)
            if column == 0:
                ax.set_ylabel(style.METRICS[value])
            if row == 0 and len(datasets) > 1:
                ax.set_title(style.DATASETS[dataset])
