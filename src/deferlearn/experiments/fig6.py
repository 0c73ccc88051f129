"""fig6: the stochastic algorithm on Aptos, with doctors who guess more and more."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from deferlearn.experiments import style
from deferlearn.experiments.config import Config
from deferlearn.experiments.data import retina, retina_split
from deferlearn.experiments.experiment import Experiment, Tables, selecting
from deferlearn.experiments.fig5 import POLICIES, PUBLISHED_POLICY
from deferlearn.experiments.jobs import Job, Row
from deferlearn.experiments.methods import Selecting, algorithm_rows, choose_alpha
from deferlearn.experiments.stats import summary, t_interval

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DATASET = "aptos"
METHOD = "stochastic"
VALUES = ("error", "f1")


def jobs(config: Config) -> list[Job]:
    """A job a level of human error and split."""
    return [
        Job(
            "fig6",
            {
                "dataset": DATASET,
                "human_weight": weight,
                "seed": seed,
                "policies": list(POLICIES),
                "budgets": list(config.retina_budgets),
                "alphas": list(config.alphas),
                "folds": config.folds,
                **selecting(config),
            },
        )
        for weight in config.human_weights
        for seed in config.seeds
    ]


def work(p: dict[str, Any]) -> list[Row]:
    """The stochastic algorithm at all budgets on one split, and how often its human errs."""
    published = p["protocol"] == "published"
    split = retina_split(
        p["dataset"], p["seed"], published=published, uniform_weight=p["human_weight"]
    )
    alpha = (
        retina(p["dataset"]).alpha
        if published
        else choose_alpha(split, p["alphas"], p["folds"], p["seed"])
    )
    human_error = float(np.mean(split.answers != split.y_test))
    return [
        {**row, "human_error": human_error}
        for row in algorithm_rows(split, alpha, METHOD, p["budgets"], Selecting.of(p))
    ]


def tables(rows: pd.DataFrame) -> Tables:
    """Means by level and budget; and the change from deferring nobody, split by split."""
    lines = []
    for (weight, policy), group in rows.groupby(["human_weight", "policy"], sort=False):
        start = group[group["budget"] == group["budget"].min()].set_index("seed")
        for budget, at in group.groupby("budget"):
            line: dict[str, Any] = {"human_weight": weight, "policy": policy, "budget": budget}
            for value in VALUES:
                mean, low, high = t_interval(at.set_index("seed")[value] - start[value])
                line |= {value: mean, f"{value}_low": low, f"{value}_high": high}
            lines.append(line)
    return {
        "": summary(
            rows, ["human_weight", "policy", "budget"], [*VALUES, "human_error", "n_deferred"]
        ),
        "differences": pd.DataFrame(lines),
    }


def draw(rows: pd.DataFrame, config: Config) -> Figure:
    """Error and F1, a line a level of human error."""
    policy = PUBLISHED_POLICY if config.protocol == "published" else POLICIES[0]
    means = summary(
        rows[rows["policy"] == policy], ["human_weight", "budget"], [*VALUES, "human_error"]
    )
    figure, axes = style.figure_of(4.2, 1, 2)
    names = []
    for weight, (colour, marker) in zip(config.human_weights, style.LEVELS, strict=False):
        line = means[means["human_weight"] == weight]
        names.append(f"{line['human_error'].mean():.2f}")
        for ax, value in zip(axes.flat, VALUES, strict=True):
            style.draw_line(
                ax, line["budget"], line[value], line[f"{value}_low"], line[f"{value}_high"],
                colour, marker, "-",
            )  # fmt: skip
    for ax, value in zip(axes.flat, VALUES, strict=True):
        ax.set(xlabel="share deferred, n/|V|", ylabel=style.METRICS[value])
    style.level_legend(figure, names, "error of the humans alone")
    return figure


EXPERIMENT = Experiment(
    "fig6",
    "stochastic distorted greedy on Aptos, for several human errors",
    jobs,
    work,
    tables,
    draw,
    medical=True,
    cost=4.0,
)
