"""fig3: all methods on the synthetic data, linear machine with offset."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from deferlearn.experiments import style
from deferlearn.experiments.config import Config
from deferlearn.experiments.data import SYNTHETIC_ALPHA, split_of
from deferlearn.experiments.experiment import Tables, jobs_of, selection_parameters
from deferlearn.experiments.jobs import Job, Row
from deferlearn.experiments.methods import method_rows
from deferlearn.experiments.performance import draw_performance, performance_tables

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "all methods on synthetic data, linear machine with offset"
COST = 9.0
SPREAD = 0.2
POLICY = "mlp"


def jobs(config: Config) -> list[Job]:
    """One job per draw."""
    return jobs_of(
        "fig3",
        {"seed": config.seeds},
        dataset="linear",
        n_samples=config.n_samples,
        spread=SPREAD,
        policies=[POLICY],
        budgets=list(config.budgets),
        **selection_parameters(config),
    )


def work(p: dict[str, Any]) -> list[Row]:
    """All methods at all budgets on one draw."""
    return method_rows(split_of(p), SYNTHETIC_ALPHA, p)


def tables(rows: pd.DataFrame) -> Tables:
    """Means of all methods, and their differences."""
    return performance_tables(rows)


def draw(rows: pd.DataFrame, config: Config) -> Figure:
    """Error and F1 side by side."""
    figure, axes = style.figure_of(4.2, 1, 2)
    draw_performance(axes.T, rows, POLICY, ["linear"])
    for ax in axes.flat:
        ax.set_xlabel(style.BUDGET)
        ax.locator_params(axis="x", nbins=6)
    style.method_legend(figure, rows["method"].unique())
    return figure
