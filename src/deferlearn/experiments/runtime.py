"""runtime: seconds a round of both algorithms on the medical data."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING, Any

import pandas as pd

from deferlearn.experiments import style
from deferlearn.experiments.config import PUBLISHED_RATIO, Config
from deferlearn.experiments.data import retina, split_of
from deferlearn.experiments.experiment import Experiment, Tables
from deferlearn.experiments.jobs import Job, Row
from deferlearn.experiments.selecting import ALGORITHMS, Selecting, objective_of
from deferlearn.experiments.stats import paired, summary
from deferlearn.teams.parameters import count_of

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
    split, alpha = split_of(p), float(retina(p["dataset"]).alpha)
    how = Selecting(p["submodularity_ratio"], epsilon=p["epsilon"], seed=p["seed"])
    n = count_of(p["budget"], len(split.y_train))
    rows = []
    for algorithm in ALGORITHMS:
        how.select(algorithm, objective_of(split, alpha), split.loss, 1)
        objective = objective_of(split, alpha)
        start = perf_counter()
        result = how.select(algorithm, objective, split.loss, n)
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
    """Seconds a round, beside the paper's; and stochastic minus distorted, split by split."""
    means = summary(rows, ["dataset", "method", "paper_seconds_per_round"], ["seconds_per_round"])
    lines = []
    for dataset, group in rows.groupby("dataset", sort=False):
        slow, fast = (group[group["method"] == method] for method in ALGORITHMS)
        line = {"dataset": dataset, "method": "stochastic", "minus": "distorted"}
        lines.append({**line, **paired(fast, slow, ["seconds_per_round"])})
    return {"": means, "differences": pd.DataFrame(lines)}


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
    ax.set_yticks([1e-3, 1e-2, 1e-1, 1.0, 10.0], ["1 ms", "10 ms", "100 ms", "1 s", "10 s"])
    ax.minorticks_off()
    ax.set_xticks(range(len(config.datasets)), [style.DATASETS[d] for d in config.datasets])
    ax.set(ylabel="time of a round", xlim=(-0.5, len(config.datasets) - 0.5))
    ax.grid(axis="y", color="0.9")
    handles = []
    for method in ALGORITHMS:
        name, colour, marker, _ = style.METHODS[method]
        for face, who in [(colour, "here"), ("none", "paper")]:
            look: Any = {"color": colour, "marker": marker, "markerfacecolor": face}
            short = name.removesuffix(" greedy")
            handles.append(
                Line2D([], [], markersize=9, linestyle="", label=f"{short}, {who}", **look)
            )
    figure.legend(handles=handles, loc="outside lower center", ncols=2)
    return figure


def caption(config: Config) -> str:
    """What was measured, and on what."""
    return (
        f"One selection of {BUDGET:g} |V| samples at the paper's lambda and the ratio {PUBLISHED_RATIO:g}, "
        "divided by its rounds. The paper's times are those of its own machine and of Python 2.7."
    )


EXPERIMENT = Experiment(
    "runtime",
    "seconds a round of both algorithms",
    jobs,
    work,
    tables,
    draw,
    caption,
    cost=0.15,
    alone=True,
)
