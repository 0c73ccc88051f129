"""fig5: all methods on the three medical data sets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from deferlearn.experiments import style
from deferlearn.experiments.config import Config
from deferlearn.experiments.data import retina, retina_split
from deferlearn.experiments.experiment import Experiment, selecting
from deferlearn.experiments.jobs import Job, Row
from deferlearn.experiments.methods import (
    ALGORITHMS,
    NEAREST,
    Selecting,
    algorithm_rows,
    baseline_rows,
    choose_alpha,
)
from deferlearn.experiments.performance import draw_performance, performance_tables

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# The paper's: logistic regression on the absolute margin, which may learn to defer the cases that the
# machine is surest of. The other ranks by the absolute margin, the smallest first.
POLICIES = ("margin", NEAREST)
# Behind the published figures.
PUBLISHED_POLICY = NEAREST


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
                **selecting(config),
            },
        )
        for dataset in config.datasets
        for seed in config.seeds
    ]


def work(p: dict[str, Any]) -> list[Row]:
    """All methods at all budgets on one split."""
    published = p["protocol"] == "published"
    split = retina_split(p["dataset"], p["seed"], published=published)
    alpha = (
        retina(p["dataset"]).alpha
        if published
        else choose_alpha(split, p["alphas"], p["folds"], p["seed"])
    )
    how = Selecting.of(p)
    rows = [
        row
        for algorithm in ALGORITHMS
        for row in algorithm_rows(split, alpha, algorithm, p["budgets"], how)
    ]
    return [*rows, *baseline_rows(split, alpha, p["budgets"], p["seed"])]


def draw(rows: pd.DataFrame, config: Config) -> Figure:
    """Error above, F1 below, a column a data set."""
    figure, axes = style.figure_of(6.0, 2, len(config.datasets), sharex=True)
    policy = PUBLISHED_POLICY if config.protocol == "published" else POLICIES[0]
    draw_performance(axes, rows, policy, config.datasets)
    for ax in axes[-1]:
        ax.set_xlabel("share n/|V|")
    style.method_legend(figure, rows["method"].unique())
    return figure


EXPERIMENT = Experiment(
    "fig5",
    "all methods on Messidor, Stare and Aptos",
    jobs,
    work,
    performance_tables,
    draw,
    medical=True,
    cost=8.0,
)
