"""fig4: how many samples the algorithms defer, for several levels of human error."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from deferlearn.experiments import style
from deferlearn.experiments.config import Config
from deferlearn.experiments.data import SYNTHETIC_ALPHA, split_of
from deferlearn.experiments.experiment import Tables, jobs_of, selection_parameters
from deferlearn.experiments.jobs import Job, Row
from deferlearn.experiments.selecting import ALGORITHMS, Selecting, selections
from deferlearn.experiments.stats import summary

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "number deferred against n, for several human errors"
COST = 2.0


def jobs(config: Config) -> list[Job]:
    """One job per level of human error and draw."""
    return jobs_of(
        "fig4",
        {"spread": config.spreads, "seed": config.seeds},
        dataset="linear",
        n_samples=config.n_samples,
        budgets=list(config.size_budgets),
        **selection_parameters(config),
    )


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
    """A panel per algorithm, a line per level of human error, and the line |S| = n."""
    figure, axes = style.figure_of(4.2, 1, 2, sharex=True, sharey=True)
    means = tables(rows)[""]
    top, dotted = means["n"].max(), {"color": "0.6", "linestyle": ":"}
    for ax, method in zip(axes.flat, ALGORITHMS, strict=True):
        ax.plot([0, top], [0, top], zorder=1, **dotted)
        looks = style.level_looks(len(config.spreads))
        for spread, look in zip(config.spreads, looks, strict=True):
            line = means[(means["method"] == method) & (means["spread"] == spread)]
            style.draw_line(ax, line, "n", "n_deferred", *look)
        ax.set(title=style.METHODS[method][0], xlabel="most that may be deferred, n")
    axes[0][0].set_ylabel("deferred, |S|")
    levels = [f"{spread:g}" for spread in config.spreads]
    style.level_legend(figure, levels, "human error ΔH", [("|S| = n", dotted)])
    return figure
