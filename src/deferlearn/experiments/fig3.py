"""fig3: all methods on the synthetic data, linear machine with offset."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from deferlearn.experiments import style
from deferlearn.experiments.config import Config
from deferlearn.experiments.data import SYNTHETIC_ALPHA, split_of
from deferlearn.experiments.experiment import Experiment, selection_parameters
from deferlearn.experiments.jobs import Job, Row
from deferlearn.experiments.methods import method_rows
from deferlearn.experiments.performance import draw_performance, performance_tables

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SPREAD = 0.2
POLICY = "mlp"


def jobs(config: Config) -> list[Job]:
    """A job a draw."""
    return [
        Job(
            "fig3",
            {
                "dataset": "linear",
                "n_samples": config.n_samples,
                "spread": SPREAD,
                "seed": seed,
                "policies": [POLICY],
                "budgets": list(config.budgets),
                **selection_parameters(config),
            },
        )
        for seed in config.seeds
    ]


def work(p: dict[str, Any]) -> list[Row]:
    """All methods at all budgets on one draw."""
    return method_rows(split_of(p), SYNTHETIC_ALPHA, p)


def draw(rows: pd.DataFrame, config: Config) -> Figure:
    """Error and F1 side by side."""
    figure, axes = style.figure_of(4.2, 1, 2)
    draw_performance(axes.T, rows, POLICY, ["linear"])
    for ax in axes.flat:
        ax.set_xlabel(style.BUDGET)
        ax.locator_params(axis="x", nbins=6)
    style.method_legend(figure, rows["method"].unique())
    return figure


def caption(config: Config) -> str:
    """Whose numbers they are."""
    return f"The two algorithms defer by a perceptron on x. {style.bands(config.splits)}"


EXPERIMENT = Experiment(
    "fig3",
    "all methods on synthetic data, linear machine with offset",
    jobs,
    work,
    performance_tables,
    draw,
    caption,
    cost=9.0,
)
