"""bounds: what the theorems say about the submodularity ratio on every data set."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from deferlearn._utils.types import Labels
from deferlearn.bounds import submodularity_bound
from deferlearn.experiments import style
from deferlearn.experiments.config import Config
from deferlearn.experiments.data import SYNTHETIC, SYNTHETIC_ALPHA, retina, split_of
from deferlearn.experiments.experiment import Tables, jobs_of
from deferlearn.experiments.jobs import Job, Row
from deferlearn.experiments.stats import summary
from deferlearn.objective import SVMObjective
from deferlearn.teams.parameters import count_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "lower bounds on the submodularity ratio, with their conditions"
COST = 0.15
BUDGET = 0.2
# Drawn in place of a bound that is not positive.
NOTHING = 1e-24


def jobs(config: Config) -> list[Job]:
    """One job per data set and split, with and without offset."""

    def of(names: Sequence[str], n_samples: int | None) -> list[Job]:
        axes = {"dataset": names, "fit_intercept": (True, False), "seed": config.seeds}
        common = {"protocol": config.protocol, "budget": BUDGET, "n_samples": n_samples}
        return jobs_of("bounds", axes, **common)

    return of(SYNTHETIC, config.n_samples) + of(config.datasets, None)


def work(p: dict[str, Any]) -> list[Row]:
    """The paper's bound, and the best of the stronger ones, with their conditions."""
    # A bound does not depend on the human's errors, so any spread will do.
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
            "rho_of_all": smaller_share(np.concatenate([split.y_train, split.y_test])),
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


def smaller_share(y: Labels) -> float:
    """The share of the smaller of two classes, -1 and +1."""
    return float(min(np.mean(y > 0), np.mean(y < 0)))


def tables(rows: pd.DataFrame) -> Tables:
    """Bounds by data set; how often the conditions hold; the conditions of the first split."""
    by = ["dataset", "fit_intercept"]
    rows = rows.assign(
        paper_condition_met=rows["paper_holds"].astype(float),
        stronger_condition_met=rows["stronger_holds"].astype(float),
        rho=rows["smaller_class"] / rows["n_train"],
    )
    values = ["paper", "stronger", "guarantee", "rho", "rho_of_all", "paper_condition_met"]
    means = summary(rows, by, [*values, "stronger_condition_met"])
    words = rows.groupby(by, sort=False)[["paper_condition", "stronger_condition"]].first()
    return {"": means, "conditions": words.reset_index()}


def draw(rows: pd.DataFrame, config: Config) -> Figure:
    """The bounds of every split on a logarithmic scale; what is on the left edge is no bound at all."""
    looks: dict[str, tuple[str, dict[str, Any]]] = {
        "paper": ("the paper's theorem", {"color": "#E69F00", "marker": "v"}),
        "stronger": ("stronger bounds", {"color": "#56B4E9", "marker": "P"}),
    }
    names = [(d, i) for d in (*SYNTHETIC, *config.datasets) for i in (True, False)]
    figure, axes = style.figure_of(5.2)
    ax = axes[0][0]
    for place, (dataset, offset) in enumerate(names):
        mine = rows[(rows["dataset"] == dataset) & (rows["fit_intercept"] == offset)]
        for shift, (which, (_, look)) in zip((0.15, -0.15), looks.items(), strict=True):
            look |= {"linestyle": "", "markersize": 7}
            x = np.maximum(mine[which].to_numpy(dtype=float), NOTHING)
            ax.plot(x, np.full(len(x), -place + shift), alpha=0.7, **look)
    ax.set_xscale("log")
    ax.axvline(1.0, color="0.6", linestyle=":")
    ax.axvline(NOTHING * 100, color="0.85")
    labels = [
        f"{style.DATASETS[d].removeprefix('synthetic, ')}, {'' if i else 'no '}offset"
        for d, i in names
    ]
    ax.set_yticks([-k for k in range(len(names))], labels)
    ax.set_xticks([NOTHING, 1e-18, 1e-12, 1e-6, 1.0], ["none", "1e-18", "1e-12", "1e-6", "1"])
    ax.minorticks_off()
    ax.set(xlabel="lower bound on the submodularity ratio", xlim=(NOTHING / 30, 30.0))
    style.legend(figure, looks.values())
    return figure
