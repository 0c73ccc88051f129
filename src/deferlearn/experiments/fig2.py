"""fig2: the samples that the algorithms defer in the plane, and the counts that the paper claims."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from deferlearn.experiments import style
from deferlearn.experiments.config import Config
from deferlearn.experiments.data import SYNTHETIC, SYNTHETIC_ALPHA, Split, split_of
from deferlearn.experiments.experiment import Tables, jobs_of, selection_parameters
from deferlearn.experiments.jobs import Job, Row
from deferlearn.experiments.selecting import ALGORITHMS, Selecting, machine_without, selections
from deferlearn.experiments.stats import paired, summary
from deferlearn.plot.plane import is_constant

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TITLE = "deferred and kept samples in the plane, with counts"
COST = 0.75
SPREAD = 0.2
BUDGETS = (0.12, 0.3)
# A sample on the margin counts as inside, as in the paper, up to rounding errors.
ON_MARGIN = 1e-6
GRID, LINE, MARKERS = 160, 1.6, {"s": 9, "linewidths": 0.6}
COUNTS = ("deferred_wrong", "kept_wrong", "kept_inside", "inside_before")


def jobs(config: Config) -> list[Job]:
    """One job per data set and draw; the budgets are the two of the paper."""
    return jobs_of(
        "fig2",
        {"dataset": SYNTHETIC, "seed": config.seeds},
        n_samples=config.n_samples,
        spread=SPREAD,
        budgets=list(BUDGETS),
        on_margin=ON_MARGIN,
        **selection_parameters(config),
    )


def work(p: dict[str, Any]) -> list[Row]:
    """How many deferred and kept samples the machine gets wrong or has inside its margin."""
    split, edge = split_of(p), 1.0 + p["on_margin"]
    before, _ = machine_without(split, SYNTHETIC_ALPHA, [])
    inside_before = np.abs(before.decision_function(split.X_train)) <= edge
    rows = []
    for algorithm in ALGORITHMS:
        for chosen in selections(split, SYNTHETIC_ALPHA, algorithm, p["budgets"], Selecting.of(p)):
            machine, deferred = machine_without(split, SYNTHETIC_ALPHA, chosen.picks)
            margin = machine.decision_function(split.X_train)
            wrong, inside = split.y_train * margin < 0, np.abs(margin) <= edge
            rows.append(
                {
                    "method": algorithm,
                    "budget": chosen.budget,
                    "n": chosen.n,
                    "n_deferred": len(chosen.picks),
                    "n_kept": int((~deferred).sum()),
                    "deferred_wrong": int(wrong[deferred].sum()),
                    "kept_wrong": int(wrong[~deferred].sum()),
                    "kept_inside": int(inside[~deferred].sum()),
                    "inside_before": int(inside_before.sum()),
                    "has_boundary": not is_constant(margin),
                    "value": chosen.value,
                    "seconds": chosen.seconds,
                }
            )
    return rows


def tables(rows: pd.DataFrame) -> Tables:
    """Mean counts, shares of wrong samples among deferred and kept, and the fall of counts with n.

    The fall is about the draws in which the machine has a boundary at both budgets. A machine without a
    boundary gives the same answer everywhere, and all samples are on its margin: their number falls
    only because fewer are kept.
    """
    rows = rows.assign(
        deferred_wrong_share=rows["deferred_wrong"] / rows["n_deferred"].clip(lower=1),
        kept_wrong_share=rows["kept_wrong"] / rows["n_kept"],
        with_boundary=rows["has_boundary"].astype(float),
    )
    rows["wrong_gap"] = rows["deferred_wrong_share"] - rows["kept_wrong_share"]
    shares = ["deferred_wrong_share", "kept_wrong_share", "wrong_gap", "with_boundary"]
    lines = []
    for (dataset, method), group in rows.groupby(["dataset", "method"], sort=False):
        bounded = group[group.groupby("seed")["has_boundary"].transform("all")]
        few, many = (bounded[bounded["budget"] == budget] for budget in BUDGETS)
        falls = many.set_index("seed")["kept_inside"] - few.set_index("seed")["kept_inside"]
        lines.append(
            {
                "dataset": dataset,
                "method": method,
                "all_runs": group["seed"].nunique(),
                **paired(many, few, ["kept_inside"]),
                "runs_with_fewer": int((falls < 0).sum()),
            }
        )
    by = ["dataset", "method", "budget", "n"]
    return {
        "": summary(rows, by, ["n_deferred", "n_kept", *COUNTS, *shares]),
        "differences": pd.DataFrame(lines),
    }


def draw(rows: pd.DataFrame, config: Config) -> Figure:
    """A row of panels per algorithm; the columns are the two data sets at two budgets."""
    shown = {kind: seed_to_show(rows[rows["dataset"] == kind]) for kind in SYNTHETIC}
    figure, axes = style.figure_of(5.6, len(ALGORITHMS), len(SYNTHETIC) * len(BUDGETS))
    wanted = (j.parameters for j in jobs(config))
    for block, p in enumerate(p for p in wanted if p["seed"] == shown[p["dataset"]]):
        split, how = split_of(p), Selecting.of(p)
        for row, algorithm in enumerate(ALGORITHMS):
            both = selections(split, SYNTHETIC_ALPHA, algorithm, BUDGETS, how)
            for column, chosen in enumerate(both, start=block * len(BUDGETS)):
                _draw_panel(axes[row][column], split, chosen.picks)
                if row == 0:
                    title = f"{p['dataset']}\nn/|V| = {chosen.budget:g}"
                    axes[row][column].set_title(title, fontsize=style.FONT - 1)
            name = style.METHODS[algorithm][0]
            axes[row][0].set_ylabel(name.replace("distorted ", "distorted\n"))
    _legend(figure)
    return figure


def seed_to_show(rows: pd.DataFrame) -> int:
    """The first draw in which every machine has a boundary, or else the first draw."""
    with_all = rows.groupby("seed")["has_boundary"].all()
    shown = with_all[with_all].index
    return int(shown[0] if len(shown) else rows["seed"].iloc[0])


def _draw_panel(ax: Axes, split: Split, picks: list[int]) -> None:
    from deferlearn.plot import DeferralBoundaryDisplay

    machine, deferred = machine_without(split, SYNTHETIC_ALPHA, picks)
    X = split.X_train
    xx, yy = np.meshgrid(*np.linspace(X.min(axis=0) - 0.5, X.max(axis=0) + 0.5, GRID).T)
    decision = machine.decision_function(np.column_stack([xx.ravel(), yy.ravel()]))
    display = DeferralBoundaryDisplay(
        X, y=split.y_train, deferred=deferred, xx0=xx, xx1=yy, decision=decision.reshape(xx.shape)
    )
    display.plot(ax, legend=False, scatter_kw=MARKERS, contour_kw={"linewidths": LINE})
    ax.set(xticks=[], yticks=[], xlabel="", ylabel="")


def _legend(figure: Figure) -> None:
    from deferlearn.plot.plane import CLASS_STYLE, LINE_COLOUR, MARGIN_STYLE

    entries: list[tuple[str, dict[str, Any]]] = []
    for label, (colour, marker) in sorted(CLASS_STYLE.items()):
        look: dict[str, Any] = {"color": colour, "marker": marker, "linestyle": ""}
        for face, what in [("none", "kept"), (colour, "deferred")]:
            entries.append((f"class {label:+d}, {what}", look | {"markerfacecolor": face}))
        entries.append(("", {"linestyle": ""}))  # fills the column, so that each class has its own
    entries.append(("boundary", {"color": LINE_COLOUR}))
    for level in (-1, 1):
        look = dict(zip(("color", "linestyle"), MARGIN_STYLE[level], strict=True))
        entries.append((f"margin {level:+d}", look))
    style.legend(figure, entries, 3, columnspacing=1.0)
