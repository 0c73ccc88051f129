"""bounds: what the theorems promise about the submodularity ratio on every data set."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from deferlearn.bounds import submodularity_bound
from deferlearn.experiments import style
from deferlearn.experiments.config import Config
from deferlearn.experiments.data import SYNTHETIC, SYNTHETIC_ALPHA, retina, split_of
from deferlearn.experiments.experiment import Experiment, Tables
from deferlearn.experiments.jobs import Job, Row
from deferlearn.experiments.stats import summary
from deferlearn.objective import SVMObjective
from deferlearn.teams.parameters import count_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BUDGET = 0.2
# What is drawn where no positive bound holds.
NOTHING = 1e-24


def jobs(config: Config) -> list[Job]:
    """A job a data set and split, with and without offset."""
    return [
        Job(
            "bounds",
            {
                "dataset": dataset,
                "fit_intercept": fit_intercept,
                "n_samples": config.n_samples if dataset in SYNTHETIC else None,
                "seed": seed,
                "protocol": config.protocol,
                "budget": BUDGET,
            },
        )
        for dataset in (*SYNTHETIC, *config.datasets)
        for fit_intercept in (True, False)
        for seed in config.seeds
    ]


def work(p: dict[str, Any]) -> list[Row]:
    """The paper's bound, and the best of the stronger ones, with their conditions."""
    # The human's errors are no part of a bound; any spread will do.
    split = split_of({**p, "spread": 0.0})
    alpha = SYNTHETIC_ALPHA if p["dataset"] in SYNTHETIC else float(retina(p["dataset"]).alpha)
    objective = SVMObjective(
        split.X_train, split.y_train, alpha=alpha, fit_intercept=p["fit_intercept"], **split.kernel
    )
    n = count_of(p["budget"], len(split.y_train))
    start = perf_counter()
    bound = submodularity_bound(objective, n)
    best = max(bound.stronger, key=lambda one: one.value, default=bound.paper)
    return [
        {
            "alpha": alpha,
            "n": n,
            "n_train": len(split.y_train),
            "smaller_class": int(min(np.sum(split.y_train > 0), np.sum(split.y_train < 0))),
            "paper": bound.paper.value,
            "paper_holds": bound.paper.holds,
            "paper_name": bound.paper.name,
            "paper_condition": bound.paper.condition,
            "stronger": best.value,
            "stronger_holds": best.holds,
            "stronger_name": best.name,
            "stronger_condition": best.condition,
            "guarantee": 1.0 - float(np.exp(-bound.best)),
            "seconds": perf_counter() - start,
        }
    ]


def tables(rows: pd.DataFrame) -> Tables:
    """Bounds by data set; how often the conditions hold; the conditions of the first split."""
    by = ["dataset", "fit_intercept"]
    rows = rows.assign(
        paper_condition_met=rows["paper_holds"].astype(float),
        stronger_condition_met=rows["stronger_holds"].astype(float),
        rho=rows["smaller_class"] / rows["n_train"],
    )
    values = ["paper", "stronger", "guarantee", "rho", "paper_condition_met"]
    means = summary(rows, by, [*values, "stronger_condition_met"])
    words = rows.groupby(by, sort=False)[["paper_condition", "stronger_condition"]].first()
    return {"": means, "conditions": words.reset_index()}


def draw(rows: pd.DataFrame, config: Config) -> Figure:
    """Every split's bounds on a logarithmic scale; what is on the left edge is no bound at all."""
    from matplotlib.lines import Line2D

    look = {"paper": ("#E69F00", "v"), "stronger": ("#56B4E9", "P")}
    names = [(d, i) for d in (*SYNTHETIC, *config.datasets) for i in (True, False)]
    figure, axes = style.figure_of(5.2)
    ax = axes[0][0]
    for place, (dataset, offset) in enumerate(names):
        mine = rows[(rows["dataset"] == dataset) & (rows["fit_intercept"] == offset)]
        for shift, (which, (colour, marker)) in zip((0.15, -0.15), look.items(), strict=True):
            x = np.maximum(mine[which].to_numpy(dtype=float), NOTHING)
            y = np.full(len(x), -place + shift)
            ax.plot(x, y, marker=marker, color=colour, linestyle="", markersize=7, alpha=0.7)
    ax.set_xscale("log")
    ax.axvline(1.0, color="0.6", linestyle=":")
    ax.axvline(NOTHING * 100, color="0.85")
    ax.set_yticks(
        [-k for k in range(len(names))],
        [
            f"{style.DATASETS[d].replace('synthetic, ', '')}, {'' if i else 'no '}offset"
            for d, i in names
        ],
    )
    ticks = [NOTHING, 1e-18, 1e-12, 1e-6, 1.0]
    ax.set_xticks(ticks, ["none", "1e-18", "1e-12", "1e-6", "1"])
    ax.minorticks_off()
    ax.set(xlabel="lower bound on the submodularity ratio", xlim=(NOTHING / 30, 30.0))
    handles = [
        Line2D([], [], color=colour, marker=marker, linestyle="", markersize=7, label=name)
        for name, (colour, marker) in zip(
            ("the paper's theorem", "stronger bounds"), look.values(), strict=True
        )
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=2)
    return figure


def caption(config: Config) -> str:
    """With which budget and lambda."""
    return (
        f"For n/|V| = {BUDGET:g}, at the paper's lambda; a marker a split. Of the stronger bounds the "
        "largest that can be proved."
    )


EXPERIMENT = Experiment(
    "bounds",
    "lower bounds on the submodularity ratio, with their conditions",
    jobs,
    work,
    tables,
    draw,
    caption,
    cost=0.15,
)
