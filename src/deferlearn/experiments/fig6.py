"""fig6: the stochastic algorithm on Aptos, with doctors who guess more or less often."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from deferlearn.experiments import style
from deferlearn.experiments.config import Config
from deferlearn.experiments.data import split_of
from deferlearn.experiments.experiment import Tables, jobs_of
from deferlearn.experiments.fig5 import SHOWN, medical_parameters
from deferlearn.experiments.jobs import Job, Row
from deferlearn.experiments.methods import algorithm_rows, alpha_of
from deferlearn.experiments.performance import VALUES
from deferlearn.experiments.selecting import Selecting
from deferlearn.experiments.stats import paired, summary

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "stochastic distorted greedy on Aptos, for several human errors"
COST = 1.6
DATASET = "aptos"
METHOD = "stochastic"


def jobs(config: Config) -> list[Job]:
    """One job per level of human error and split."""
    axes = {"human_weight": config.human_weights, "seed": config.seeds}
    return jobs_of("fig6", axes, dataset=DATASET, **medical_parameters(config))


def work(p: dict[str, Any]) -> list[Row]:
    """The stochastic algorithm at all budgets on one split, and how often its human errs."""
    split = split_of(p)
    human_error = float(np.mean(split.answers != split.y_test))
    alpha, how = alpha_of(split, p), Selecting.of(p)
    return [
        {**row, "human_error": human_error}
        for row in algorithm_rows(split, alpha, METHOD, p["budgets"], how)
    ]


def tables(rows: pd.DataFrame) -> Tables:
    """Means by level and budget, and the change from the smallest budget, split by split."""
    lines = []
    for (weight, policy), group in rows.groupby(["human_weight", "policy"], sort=False):
        start = group[group["budget"] == group["budget"].min()]
        for budget, at in group.groupby("budget"):
            line = {"human_weight": weight, "policy": policy, "budget": budget}
            lines.append({**line, **paired(at, start, VALUES)})
    return {
        "": summary(
            rows, ["human_weight", "policy", "budget"], [*VALUES, "human_error", "n_deferred"]
        ),
        "differences": pd.DataFrame(lines),
    }


def draw(rows: pd.DataFrame, config: Config) -> Figure:
    """Error and F1, with one line per level of human error."""
    shown = rows[rows["policy"] == SHOWN]
    means = summary(shown, ["human_weight", "budget"], [*VALUES, "human_error"])
    figure, axes = style.figure_of(4.2, 1, 2)
    names = []
    looks = style.level_looks(len(config.human_weights))
    for weight, look in zip(config.human_weights, looks, strict=True):
        line = means[means["human_weight"] == weight]
        names.append(f"{line['human_error'].mean():.2f}")
        for ax, value in zip(axes.flat, VALUES, strict=True):
            style.draw_line(ax, line, "budget", value, *look)
    for ax, value in zip(axes.flat, VALUES, strict=True):
        ax.set(xlabel=style.BUDGET, ylabel=style.METRICS[value])
        ax.locator_params(axis="x", nbins=4)
    style.level_legend(figure, names, "error of the humans alone")
    return figure
