"""fig2: whom the algorithms defer in the plane, and the two counts that the paper's text claims."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from deferlearn.experiments import style
from deferlearn.experiments.config import Config
from deferlearn.experiments.data import SYNTHETIC, SYNTHETIC_ALPHA, Split, split_of
from deferlearn.experiments.experiment import Experiment, Tables, selection_parameters
from deferlearn.experiments.jobs import Job, Row
from deferlearn.experiments.selecting import ALGORITHMS, Selecting, machine_without, selections
from deferlearn.experiments.stats import paired, summary
from deferlearn.plot.plane import is_constant

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SPREAD = 0.2
BUDGETS = (0.12, 0.3)
# A sample on the margin counts as inside, as in the paper, whatever the rounding of its last digits.
ON_MARGIN = 1e-6
GRID, LINE = 160, 1.6
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
                "on_margin": ON_MARGIN,
                **selection_parameters(config),
            },
        )
        for kind in SYNTHETIC
        for seed in config.seeds
    ]


def work(p: dict[str, Any]) -> list[Row]:
    """Who of the deferred and of the kept samples the machine gets wrong or has inside its margin."""
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
    """Mean counts; shares of wrong samples among deferred and kept; and the fall with n.

    The fall is that of draws in which the machine has a boundary at both budgets. A machine without
    one answers alike everywhere, and all samples are on its margin: their number falls only because
    fewer are kept.
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
    """Two rows of panels, an algorithm each; the columns are the two data sets at two budgets."""
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
    """The first draw in which every machine has a boundary, if there is one."""
    with_all = rows.groupby("seed")["has_boundary"].all()
    shown = with_all[with_all].index
    return int(shown[0] if len(shown) else rows["seed"].iloc[0])


def _draw_panel(ax: Axes, split: Split, picks: list[int]) -> None:
    from matplotlib.patheffects import withStroke

    from deferlearn.plot.plane import CLASS_STYLE, HALO, MARGIN_STYLE

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
            curves = ax.contour(
                xx, yy, decision, [level], colors=colour, linestyles=dashes, linewidths=LINE,
                zorder=4,
            )  # fmt: skip
            # White on both sides, so that lines show where samples are dense.
            curves.set_path_effects([withStroke(linewidth=LINE + 2 * HALO, foreground="white")])


def _legend(figure: Figure) -> None:
    from matplotlib.lines import Line2D

    from deferlearn.plot.plane import CLASS_STYLE, MARGIN_STYLE

    handles: list[Any] = []
    for label, (colour, marker) in sorted(CLASS_STYLE.items()):
        for face, what in [("none", "kept"), (colour, "deferred")]:
            look: Any = {"color": colour, "marker": marker, "markerfacecolor": face}
            name = f"class {label:+d}, {what}"
            handles.append(Line2D([], [], linestyle="", label=name, **look))
        # Fills the column, so that each class has one of its own.
        handles.append(Line2D([], [], linestyle="", label=""))
    handles.append(Line2D([], [], color="0.1", label="boundary"))
    for level in (-1, 1):
        look = dict(zip(("color", "linestyle"), MARGIN_STYLE[level], strict=True))
        handles.append(Line2D([], [], label=f"margin {level:+d}", **look))
    figure.legend(handles=handles, loc="outside lower center", ncols=3, columnspacing=1.0)


def caption(config: Config) -> str:
    """Which draws are shown."""
    return (
        "Shown is, of each data set, the first draw in which every machine has a boundary; the tables "
        "are about all draws. A machine without a boundary answers alike everywhere."
    )


EXPERIMENT = Experiment(
    "fig2",
    "deferred and kept samples in the plane, with counts",
    jobs,
    work,
    tables,
    draw,
    caption,
    cost=0.75,
)
