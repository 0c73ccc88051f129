"""fig4: how many samples the algorithms defer, for humans that err more and more."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from deferlearn.experiments import style
from deferlearn.experiments.config import Config
from deferlearn.experiments.data import SYNTHETIC_ALPHA, split_of
from deferlearn.experiments.experiment import Experiment, Tables, selection_parameters
from deferlearn.experiments.jobs import Job, Row
from deferlearn.experiments.selecting import ALGORITHMS, Selecting, selections
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
                **selection_parameters(config),
            },
        )
        for spread in config.spreads
        for seed in config.seeds
    ]


def work(p: dict[str, Any]) -> list[Row]:
    """The size of the selection at all budgets on one draw."""
    split, how = split_of(p), Selecting.of(p)
    return [
        {
            "method": algorithm,
            "budget": chosen.budget,
            "n": chosen.n,
            "n_deferred": len(chosen.picks),
            "unused": chosen.n - len(chosen.picks),
            "ratio": chosen.ratio,
            "value": chosen.value,
            "seconds": chosen.seconds,
        }
        for algorithm in ALGORITHMS
        for chosen in selections(split, SYNTHETIC_ALPHA, algorithm, p["budgets"], how)
    ]


def tables(rows: pd.DataFrame) -> Tables:
    """Sizes by algorithm, spread and budget; `unused` is n - |S|, draw by draw."""
    return {"": summary(rows, ["method", "spread", "budget", "n"], ["n_deferred", "unused"])}


def draw(rows: pd.DataFrame, config: Config) -> Figure:
    """A panel an algorithm, a line a level of human error, and the line |S| = n."""
    from matplotlib.lines import Line2D

    figure, axes = style.figure_of(4.2, 1, 2, sharex=True, sharey=True)
    means = tables(rows)[""]
    for ax, method in zip(axes.flat, ALGORITHMS, strict=True):
        top = means["n"].max()
        ax.plot([0, top], [0, top], color="0.6", linestyle=":", zorder=1)
        looks = style.level_looks(len(config.spreads))
        for spread, (colour, marker) in zip(config.spreads, looks, strict=True):
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


def caption(config: Config) -> str:
    """What the human error is."""
    return f"ΔH is the probability that the human errs. {style.bands(config.splits)}"


EXPERIMENT = Experiment(
    "fig4",
    "number deferred against n, for several human errors",
    jobs,
    work,
    tables,
    draw,
    caption,
    cost=2.0,
)
