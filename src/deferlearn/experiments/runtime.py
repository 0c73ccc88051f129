"""runtime: seconds a round of both algorithms on the medical data."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING, Any

import pandas as pd

from deferlearn._parameters import count_of
from deferlearn.experiments import style
from deferlearn.experiments.config import PUBLISHED_RATIO, Config
from deferlearn.experiments.data import retina, retina_split
from deferlearn.experiments.experiment import Experiment, Tables
from deferlearn.experiments.jobs import Job, Row
from deferlearn.experiments.methods import ALGORITHMS, objective_of
from deferlearn.experiments.stats import summary
from deferlearn.selection import distorted_greedy, stochastic_distorted_greedy

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BUDGET = 0.2
# Seconds an iteration in the paper's appendix, on another machine (2.2 GHz Core i7, Python 2.7).
PAPER = {
    ("messidor", "distorted"): 6.91,
    ("stare", "distorted"): 1.26,
    ("aptos", "distorted"): 10.79,
    ("messidor", "stochastic"): 0.98,
    ("stare", "stochastic"): 0.30,
    ("aptos", "stochastic"): 0.97,
}


def jobs(config: Config) -> list[Job]:
    """A job a data set and split."""
    return [
        Job(
            "runtime",
            {
                "dataset": dataset,
                "seed": seed,
                "protocol": config.protocol,
                "submodularity_ratio": PUBLISHED_RATIO,
                "epsilon": config.epsilon,
                "budget": BUDGET,
            },
        )
        for dataset in config.datasets
        for seed in config.seeds
    ]


def work(p: dict[str, Any]) -> list[Row]:
    """Each algorithm once, at the paper's lambda, after a first round that may have to compile."""
    split = retina_split(p["dataset"], p["seed"], published=p["protocol"] == "published")
    alpha, ratio = retina(p["dataset"]).alpha, p["submodularity_ratio"]
    n = count_of(p["budget"], len(split.y_train))
    rows = []
    for algorithm in ALGORITHMS:
        greedy: Any = distorted_greedy
        options: dict[str, Any] = {}
        if algorithm == "stochastic":
            greedy = stochastic_distorted_greedy
            options = {"epsilon": p["epsilon"], "random_state": p["seed"]}
        greedy(objective_of(split, alpha), split.loss, 1, ratio, **options)
        objective = objective_of(split, alpha)
        start = perf_counter()
        result = greedy(objective, split.loss, n, ratio, **options)
        seconds = perf_counter() - start
        rows.append(
            {
                "method": algorithm,
                "alpha": alpha,
                "n": n,
                "n_deferred": len(result.order),
                "n_exact": result.n_exact,
                "seconds": seconds,
                "seconds_per_round": seconds / n,
                "paper_seconds_per_round": PAPER[p["dataset"], algorithm],
            }
        )
    return rows


def tables(rows: pd.DataFrame) -> Tables:
    """Seconds a round, beside the paper's."""
    means = summary(rows, ["dataset", "method"], ["seconds_per_round", "paper_seconds_per_round"])
    means = means.drop(columns=["paper_seconds_per_round_low", "paper_seconds_per_round_high"])
    return {"": means}


def draw(rows: pd.DataFrame, config: Config) -> Figure:
    """Ours and the paper's, on a logarithmic scale."""
    from matplotlib.lines import Line2D

    means = tables(rows)[""]
    figure, axes = style.figure_of(3.6)
    ax = axes[0][0]
    for column, dataset in enumerate(config.datasets):
        for shift, method in zip((-0.12, 0.12), ALGORITHMS, strict=True):
            _, colour, marker, _ = style.METHODS[method]
            mine = means[(means["dataset"] == dataset) & (means["method"] == method)].iloc[0]
            x = column + shift
            ax.plot(x, mine["seconds_per_round"], marker=marker, color=colour, markersize=9)
            ax.plot(
                x, mine["paper_seconds_per_round"], marker=marker, color=colour, markersize=9,
                markerfacecolor="none",
            )  # fmt: skip
    ax.set_yscale("log")
    ax.set_xticks(range(len(config.datasets)), [style.DATASETS[d] for d in config.datasets])
    ax.set(ylabel="seconds a round", xlim=(-0.5, len(config.datasets) - 0.5))
    ax.grid(axis="y", color="0.9")
    handles = []
    for method in ALGORITHMS:
        name, colour, marker, _ = style.METHODS[method]
        for face, who in [(colour, "here"), ("none", "paper")]:
            handles.append(
                Line2D(
                    [],
                    [],
                    color=colour,
                    marker=marker,
                    markerfacecolor=face,
                    markersize=9,
                    linestyle="",
                    label=f"{name}, {who}",
                )
            )
    figure.legend(handles=handles, loc="outside lower center", ncols=2)
    return figure


EXPERIMENT = Experiment(
    "runtime",
    "seconds a round of both algorithms",
    jobs,
    work,
    tables,
    draw,
    medical=True,
    cost=0.5,
    alone=True,
)
