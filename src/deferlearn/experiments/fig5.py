"""fig5: all methods on the three medical data sets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from deferlearn.experiments import style
from deferlearn.experiments.config import Config
from deferlearn.experiments.data import split_of
from deferlearn.experiments.experiment import Experiment, selection_parameters
from deferlearn.experiments.jobs import Job, Row
from deferlearn.experiments.methods import NEAREST, alpha_of, method_rows
from deferlearn.experiments.performance import draw_performance, performance_tables

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# The paper's: logistic regression on the absolute margin, which may learn to defer the cases that the
# machine is surest of. The other ranks by the absolute margin, the smallest first.
POLICIES = ("margin", NEAREST)


def shown_policy(config: Config) -> str:
    """The policy of the figures: the text's, or the one behind the published figures."""
    return NEAREST if config.protocol == "published" else "margin"


def jobs(config: Config) -> list[Job]:
    """A job a data set and split."""
    return [
        Job(
            "fig5",
            {
                "dataset": dataset,
                "seed": seed,
                "policies": list(POLICIES),
                "budgets": list(config.retina_budgets),
                "alphas": list(config.alphas),
                "folds": config.folds,
                **selection_parameters(config),
            },
        )
        for dataset in config.datasets
        for seed in config.seeds
    ]


def work(p: dict[str, Any]) -> list[Row]:
    """All methods at all budgets on one split."""
    split = split_of(p)
    return method_rows(split, alpha_of(split, p), p)


def draw(rows: pd.DataFrame, config: Config) -> Figure:
    """Error above, F1 below, a column a data set."""
    figure, axes = style.figure_of(6.0, 2, len(config.datasets), sharex=True)
    draw_performance(axes, rows, shown_policy(config), config.datasets)
    for ax in axes[-1]:
        ax.set_xlabel(style.BUDGET)
        ax.locator_params(axis="x", nbins=3)
    style.method_legend(figure, rows["method"].unique())
    return figure


def caption(config: Config) -> str:
    """Whose policy is shown."""
    return f'Shown with the policy "{shown_policy(config)}". {style.bands(config.splits)}'


EXPERIMENT = Experiment(
    "fig5",
    "all methods on Messidor, Stare and Aptos",
    jobs,
    work,
    performance_tables,
    draw,
    caption,
    cost=3.2,
)
