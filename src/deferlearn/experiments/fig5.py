"""fig5: all methods on the three medical data sets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from deferlearn.experiments import style
from deferlearn.experiments.config import Config
from deferlearn.experiments.data import split_of
from deferlearn.experiments.experiment import Tables, jobs_of, selection_parameters
from deferlearn.experiments.jobs import Job, Row
from deferlearn.experiments.methods import NEAREST, alpha_of, method_rows
from deferlearn.experiments.performance import draw_performance, performance_tables

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "all methods on Messidor, Stare and Aptos"
COST = 3.2
# The first is the paper's, logistic regression on the absolute margin, which may learn to defer the cases
# that the machine is surest about. The other ranks by the absolute margin, the smallest first.
POLICIES = ("margin", NEAREST)


def shown_policy(config: Config) -> str:
    """The policy of the figures: the text's, or the one behind the published figures."""
    return NEAREST if config.protocol == "published" else "margin"


def medical_parameters(config: Config) -> dict[str, Any]:
    """The parameters of a job on medical data, except for its data set and seed."""
    return {
        "policies": list(POLICIES),
        "budgets": list(config.retina_budgets),
        "alphas": list(config.alphas),
        "folds": config.folds,
        **selection_parameters(config),
    }


def jobs(config: Config) -> list[Job]:
    """One job per data set and split."""
    axes = {"dataset": config.datasets, "seed": config.seeds}
    return jobs_of("fig5", axes, **medical_parameters(config))


def work(p: dict[str, Any]) -> list[Row]:
    """All methods at all budgets on one split."""
    split = split_of(p)
    return method_rows(split, alpha_of(split, p), p)


def tables(rows: pd.DataFrame) -> Tables:
    """Means of all methods, and their differences."""
    return performance_tables(rows)


def draw(rows: pd.DataFrame, config: Config) -> Figure:
    """Error above, F1 below, one column per data set."""
    figure, axes = style.figure_of(6.0, 2, len(config.datasets), sharex=True)
    draw_performance(axes, rows, shown_policy(config), config.datasets)
    for ax in axes[-1]:
        ax.set_xlabel(style.BUDGET)
        ax.locator_params(axis="x", nbins=3)
    style.method_legend(figure, rows["method"].unique())
    return figure
