"""fig4: how many samples the algorithms defer, for humans that err more and more."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from deferlearn.experiments import style
from deferlearn.experiments.config import Config
from deferlearn.experiments.data import SYNTHETIC_ALPHA, synthetic_split
from deferlearn.experiments.experiment import Experiment, Tables, selecting
from deferlearn.experiments.jobs import Job, Row
from deferlearn.experiments.methods import ALGORITHMS, Selecting, selections
from deferlearn.experiments.stats import summary

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def jobs(config: Config) -> list[Job]:
    """A job a draw and level of human error."""
    return [
        Job(
            "fig4",
            {
                "dataset": "linear",
                "n_samples": config.n_samples,
                "spread": spread,
                "seed": seed,
                "budgets": list(config.size_budgets),
                **selecting(config),
            },
        )
        for spread in config.spreads
        for seed in config.seeds
    ]


def work(p: dict[str, Any]) -> list[Row]:
    """The size of the selection at all budgets on one draw."""
    published = p["protocol"] == "published"
    split = synthetic_split(
        p["dataset"], p["n_samples"], p["spread"], p["seed"], published=published
    )
    how = Selecting.of(p)
    return [
        {
            "method": algorithm,
            "budget": budget,
            "n": n,
            "n_deferred": len(picks),
            "unused": n - len(picks),
            "ratio": result.submodularity_ratio,
            "value": result.value,
            "seconds": seconds,
        }
        for algorithm in ALGORITHMS
        for budget, n, picks, result, seconds in selections(
            split, SYNTHETIC_ALPHA, algorithm, p["budgets"], how
        )
    ]


def tables(rows: pd.DataFrame) -> Tables:
    """Sizes by algorithm, spread and budget; `unused` is n - |S|, draw by draw."""
    return {
        "": summary(rows, ["method", "spread", "budget", "n"], ["n_deferred", "unused", "seconds"])
    }


def draw(rows: pd.DataFrame, config: Config) -> Figure:
    """A panel an algorithm, a line a level of human error, and the line |S| = n."""
    from matplotlib.lines import Line2D

    figure, axes = style.figure_of(4.2, 1, 2, sharex=True, sharey=True)
    means = tables(rows)[""]
    for ax, method in zip(axes.flat, ALGORITHMS, strict=True):
        top = means["n"].max()
        ax.plot([0, top], [0, top], color="0.6", linestyle=":", zorder=1)
        for spread, (colour, marker) in zip(config.spreads, style.LEVELS, strict=False):
            line = means[(means["method"] == method) & (means["spread"] == spread)]
            style.draw_line(
                ax, line["n"], line["n_deferred"], line["n_deferred_low"],
                line["n_deferred_high"], colour, marker, "-",
            )  # fmt: skip
        ax.set(title=style.METHODS[method][0], xlabel="most that may be deferred, n")
    axes[0][0].set_ylabel("deferred, |S|")
    bound = (Line2D([], [], color="0.6", linestyle=":"), "|S| = n")
    style.level_legend(figure, [f"{s:g}" for s in config.spreads], "human error ΔH", [bound])
    return figure


EXPERIMENT = Experiment(
    "fig4",
    "number deferred against n, for several human errors",
    jobs,
    work,
    tables,
    draw,
    cost=3.0,
)
