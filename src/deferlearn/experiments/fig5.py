"""fig5: all methods on the three medical data sets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from deferlearn.experiments import style
from deferlearn.experiments.config import Config
from deferlearn.experiments.data import split_of
from deferlearn.experiments.experiment import Tables, jobs_of, selection_parameters
from deferlearn.experiments.jobs import Job, Row
from deferlearn.experiments.methods import NEAREST, SIGNED, alpha_of, method_rows
from deferlearn.experiments.performance import draw_performance, performance_tables
from deferlearn.experiments.recipe import RECIPE, points, published_rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "all methods on Messidor, Stare and Aptos"
COST = 3.2
# The first is that of the paper's text, logistic regression on the absolute margin, which may learn to
# defer the cases that the machine is surest about. The second is the appendix's, with the sign and without
# an intercept. The third is ours: it ranks by the absolute margin, the smallest first, and learns nothing.
POLICIES = ("margin", SIGNED, NEAREST)
# The policy of the figures.
SHOWN = "margin"


def medical_parameters(config: Config) -> dict[str, Any]:
    """The parameters of a job on medical data, except for its data set and seed."""
    return {
        "policies": list(POLICIES),
        "budgets": list(config.retina_budgets),
        "alphas": list(config.alphas),
        "folds": config.folds,
        **selection_parameters(config),
    }


def jobs(config: Config) -> list[Job]:
    """One job per data set and split."""
    axes = {"dataset": config.datasets, "seed": config.seeds}
    return jobs_of("fig5", axes, **medical_parameters(config))


def work(p: dict[str, Any]) -> list[Row]:
    """All methods at all budgets on one split."""
    split = split_of(p)
    alpha = alpha_of(split, p)
    if p["protocol"] == "published":
        return published_rows(split, alpha, p)
    return method_rows(split, alpha, p)


def tables(rows: pd.DataFrame) -> Tables:
    """Means of all methods, and their differences; of the published split also the published points."""
    found = points(rows)
    return performance_tables(rows) | ({} if found.empty else {"points": found})


def draw(rows: pd.DataFrame, config: Config) -> Figure:
    """Error above, F1 below, one column per data set; the published recipe above the text's method."""
    recipe = RECIPE in set(rows["policy"])
    shown = {RECIPE: "as published", SHOWN: "as in the text"} if recipe else {SHOWN: ""}
    count = len(shown)
    figure, axes = style.figure_of(
        6.0 if count == 1 else 10.0, 2 * count, len(config.datasets), sharex=True
    )
    for place, (policy, name) in enumerate(shown.items()):
        part = axes[2 * place : 2 * place + 2]
        draw_performance(part, rows, policy, config.datasets)
        if name:
            for ax in part[:, 0]:
                ax.set_ylabel(f"{name}:\n{ax.get_ylabel()}")
        for row in range(2 if place else 0):  # the same scale as above, to compare
            for above, ax in zip(axes[row], part[row], strict=True):
                ends = [above.get_ylim(), ax.get_ylim()]
                above.set_ylim(min(e[0] for e in ends), max(e[1] for e in ends))
                ax.set_ylim(above.get_ylim())
    for ax in axes[-1]:
        ax.set_xlabel(style.BUDGET)
        ax.locator_params(axis="x", nbins=3)
    style.method_legend(figure, rows["method"].unique())
    return figure
