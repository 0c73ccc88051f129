"""fig2: whom the algorithms defer in the plane, and the two counts that the paper's text claims."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from deferlearn.experiments import style
from deferlearn.experiments.config import Config
from deferlearn.experiments.data import SYNTHETIC_ALPHA, Split, synthetic_split
from deferlearn.experiments.experiment import Experiment, Tables, selecting
from deferlearn.experiments.jobs import Job, Row
from deferlearn.experiments.methods import ALGORITHMS, Selecting, machine_without, selections
from deferlearn.experiments.stats import summary, t_interval
from deferlearn.plot.selection import is_constant

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SPREAD = 0.2
BUDGETS = (0.12, 0.3)
KINDS = ("linear", "quadratic")
GRID = 160
COUNTS = ("deferred_wrong", "kept_wrong", "kept_inside", "inside_before")


def jobs(config: Config) -> list[Job]:
    """A job a data set and draw; the budgets are the paper's two."""
    return [
        Job(
            "fig2",
            {
                "dataset": kind,
                "n_samples": config.n_samples,
                "spread": SPREAD,
                "seed": seed,
                "budgets": list(BUDGETS),
                **selecting(config),
            },
        )
        for kind in KINDS
        for seed in config.seeds
    ]


def work(p: dict[str, Any]) -> list[Row]:
    """Who of the deferred and of the kept samples the machine gets wrong or has inside its margin."""
    split = _split(p["dataset"], p["n_samples"], p["seed"], p["protocol"])
    before, _ = machine_without(split, SYNTHETIC_ALPHA, [])
    inside_before = np.abs(before.decision_function(split.X_train)) <= 1
    rows = []
    for algorithm in ALGORITHMS:
        for budget, n, picks, result, seconds in selections(
            split, SYNTHETIC_ALPHA, algorithm, p["budgets"], Selecting.of(p)
        ):
            machine, deferred = machine_without(split, SYNTHETIC_ALPHA, picks)
            margin = machine.decision_function(split.X_train)
            wrong, inside = split.y_train * margin < 0, np.abs(margin) <= 1
            rows.append(
                {
                    "method": algorithm,
                    "budget": budget,
                    "n": n,
                    "n_deferred": len(picks),
                    "n_kept": int((~deferred).sum()),
                    "deferred_wrong": int(wrong[deferred].sum()),
                    "kept_wrong": int(wrong[~deferred].sum()),
                    "kept_inside": int(inside[~deferred].sum()),
                    "inside_before": int(inside_before.sum()),
                    "has_boundary": not is_constant(margin),
                    "value": result.value,
                    "seconds": seconds,
                }
            )
    return rows


def tables(rows: pd.DataFrame) -> Tables:
    """Mean counts; shares of wrong samples among deferred and kept; and the fall with n."""
    rows = rows.assign(
        deferred_wrong_share=rows["deferred_wrong"] / rows["n_deferred"].clip(lower=1),
        kept_wrong_share=rows["kept_wrong"] / rows["n_kept"],
    )
    rows["wrong_gap"] = rows["deferred_wrong_share"] - rows["kept_wrong_share"]
    shares = ["deferred_wrong_share", "kept_wrong_share", "wrong_gap"]
    lines = []
    for (dataset, method), group in rows.groupby(["dataset", "method"], sort=False):
        few, many = (
            group[group["budget"] == b].set_index("seed")["kept_inside"]
            for b in (group["budget"].min(), group["budget"].max())
        )
        mean, low, high = t_interval(many - few)
        lines.append(
            {
                "dataset": dataset,
                "method": method,
                "runs": len(many),
                "kept_inside": mean,
                "kept_inside_low": low,
                "kept_inside_high": high,
                "runs_with_fewer": int((many < few).sum()),
            }
        )
    by = ["dataset", "method", "budget", "n"]
    return {
        "": summary(rows, by, ["n_deferred", "n_kept", *COUNTS, *shares]),
        "differences": pd.DataFrame(lines),
    }


def draw(rows: pd.DataFrame, config: Config) -> Figure:
    """Two rows of panels, an algorithm each; the columns are the two data sets at two budgets."""
    seeds = {kind: seed_to_show(rows[rows["dataset"] == kind]) for kind in KINDS}
    figure, axes = style.figure_of(5.0, len(ALGORITHMS), len(KINDS) * len(BUDGETS))
    for row, algorithm in enumerate(ALGORITHMS):
        for column, (kind, budget) in enumerate((k, b) for k in KINDS for b in BUDGETS):
            ax = axes[row][column]
            split = _split(kind, config.n_samples, seeds[kind], config.protocol)
            how = Selecting.of({**selecting(config), "seed": seeds[kind]})
            chosen = selections(split, SYNTHETIC_ALPHA, algorithm, [budget], how)
            _draw_panel(ax, split, next(chosen)[2])
            if row == 0:
                ax.set_title(f"{kind}\nn/|V| = {budget:g}", fontsize=style.FONT - 1)
            if column == 0:
                ax.set_ylabel(style.METHODS[algorithm][0].replace("distorted ", "distorted\n"))
    _legend(figure)
    return figure


def seed_to_show(rows: pd.DataFrame) -> int:
    """The first draw in which every machine has a boundary, if there is one."""
    with_all = rows.groupby("seed")["has_boundary"].all()
    shown = with_all[with_all].index
    return int(shown[0] if len(shown) else rows["seed"].iloc[0])


def _split(kind: str, n_samples: int, seed: int, protocol: str) -> Split:
    return synthetic_split(kind, n_samples, SPREAD, seed, published=protocol == "published")


def _draw_panel(ax: Axes, split: Split, picks: list[int]) -> None:
    from deferlearn.plot.boundary import MARGIN_STYLE
    from deferlearn.plot.selection import CLASS_STYLE

    machine, deferred = machine_without(split, SYNTHETIC_ALPHA, picks)
    X, y = split.X_train, split.y_train
    for label, (colour, marker) in CLASS_STYLE.items():
        for rows, face, above in [(~deferred, "none", 2), (deferred, colour, 3)]:
            part = X[rows & (y == label)]
            ax.scatter(
                part[:, 0], part[:, 1], s=9, marker=marker, facecolors=face, edgecolors=colour,
                linewidths=0.6, zorder=above,
            )  # fmt: skip
    low, high = X.min(axis=0) - 0.5, X.max(axis=0) + 0.5
    xx, yy = np.meshgrid(*np.linspace(low, high, GRID).T)
    decision = machine.decision_function(np.column_stack([xx.ravel(), yy.ravel()]))
    decision = decision.reshape(xx.shape)
    ax.set(xticks=[], yticks=[], xlim=(low[0], high[0]), ylim=(low[1], high[1]))
    if is_constant(decision):
        return
    lines = [(0, "0.1", "-"), *((level, *MARGIN_STYLE[level]) for level in (-1, 1))]
    for level, colour, dashes in lines:
        if decision.min() < level < decision.max():
            ax.contour(
                xx, yy, decision, [level], colors=colour, linestyles=dashes, linewidths=1.6,
                zorder=4,
            )  # fmt: skip


def _legend(figure: Figure) -> None:
    from matplotlib.lines import Line2D

    from deferlearn.plot.boundary import MARGIN_STYLE
    from deferlearn.plot.selection import CLASS_STYLE

    handles: list[Any] = []
    for label, (colour, marker) in sorted(CLASS_STYLE.items()):
        for face, what in [("none", "kept"), (colour, "deferred")]:
            handles.append(
                Line2D(
                    [],
                    [],
                    color=colour,
                    marker=marker,
                    markerfacecolor=face,
                    linestyle="",
                    label=f"class {label:+d}, {what}",
                )
            )
    handles.append(Line2D([], [], color="0.1", label="boundary"))
    for level in (-1, 1):
        look: Any = dict(zip(("color", "linestyle"), MARGIN_STYLE[level], strict=True))
        handles.append(Line2D([], [], label=f"margin {level:+d}", **look))
    figure.legend(handles=handles, loc="outside lower center", ncols=3, columnspacing=1.2)


EXPERIMENT = Experiment(
    "fig2",
    "deferred and kept samples in the plane, with counts",
    jobs,
    work,
    tables,
    draw,
    cost=1.5,
)
