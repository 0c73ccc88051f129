"""fig1: convex hulls of two overlapping classes, and reduced hulls that do not overlap."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from deferlearn._utils.types import Array
from deferlearn.bounds import reduced_hull_distance, separating_hulls
from deferlearn.experiments import style
from deferlearn.experiments.config import Config
from deferlearn.experiments.experiment import Tables, jobs_of
from deferlearn.experiments.jobs import Job, Row
from deferlearn.experiments.stats import summary
from deferlearn.objective import SVMObjective

if TYPE_CHECKING:
    from matplotlib.figure import Figure


TITLE = "hulls and reduced hulls of classes that overlap"
COST = 0.15
# Two clouds that overlap a little, small enough that single samples can be seen.
N_EACH, DISTANCE = 20, 2.4
# Chosen by eye: a draw whose hulls overlap and whose reduced hulls leave a visible gap.
SHOWN_SEED = 31
DIRECTIONS = 720


def samples(seed: int) -> tuple[Array, NDArray[np.int64]]:
    """Two Gaussian clouds in the plane, of equal size."""
    rng = np.random.RandomState(seed)
    y = np.repeat([-1, 1], N_EACH)
    X = rng.normal(size=(2 * N_EACH, 2)) + 0.5 * DISTANCE * y[:, None] * np.array([1.0, 0.0])
    return X, y


def hull(X: Array, s: int) -> Array:
    """Corners of the reduced convex hull, whose weights are at most 1/s.

    In any direction its farthest point is the mean of the s farthest samples.

    Examples
    --------
    >>> import numpy as np
    >>> from deferlearn.experiments.fig1 import hull
    >>> corners = hull(np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]), s=3)
    >>> corners.round(3).tolist()  # a point: the mean
    [[0.333, 0.333]]
    """
    angles = np.linspace(0.0, 2.0 * np.pi, DIRECTIONS, endpoint=False)
    farthest = np.argsort(-X @ np.array([np.cos(angles), np.sin(angles)]), axis=0)[:s]
    corners = X[farthest].mean(axis=0)
    moved = np.abs(corners - np.roll(corners, 1, axis=0)).max(axis=1) > 1e-12
    return corners[moved] if moved.any() else corners[:1]


def jobs(config: Config) -> list[Job]:
    """One job per draw; the published protocol has the draw that is shown."""
    seeds = [SHOWN_SEED] if config.protocol == "published" else list(config.seeds)
    return jobs_of("fig1", {"seed": seeds}, n_each=N_EACH, distance=DISTANCE)


def work(p: dict[str, Any]) -> list[Row]:
    """The distance of the reduced hulls for every s."""
    X, y = samples(p["seed"])
    machine = SVMObjective(X, y)
    first = separating_hulls(machine)
    return [
        {
            "s": s,
            "distance_of_hulls": reduced_hull_distance(machine, s).distance,
            "s_star": int(first.s),
            "distance_star": first.distance,
        }
        for s in range(1, N_EACH + 1)
    ]


def tables(rows: pd.DataFrame) -> Tables:
    """The distance by s, and s*."""
    return {"": summary(rows, ["s"], ["distance_of_hulls", "s_star", "distance_star"])}


def draw(rows: pd.DataFrame, config: Config) -> Figure:
    """(a) the hulls, and the first reduced ones that do not meet; (b) reduced hulls on the way there."""
    from matplotlib.patches import Polygon

    from deferlearn.plot.plane import CLASS_STYLE

    X, y = samples(SHOWN_SEED)
    first = separating_hulls(SVMObjective(X, y))
    figure, axes = style.figure_of(3.9, 1, 2, sharex=True, sharey=True)
    steps = sorted({2, (2 + int(first.s)) // 2, int(first.s)})
    for ax, sizes in zip(axes.flat, ([1, int(first.s)], steps), strict=True):
        for label, (colour, marker) in CLASS_STYLE.items():
            part = X[y == label]
            looks: Any = {"marker": marker, "facecolors": "none", "edgecolors": colour}
            ax.scatter(*part.T, s=22, zorder=3, **looks)
            faces: list[Any] = [
                {"facecolor": colour, "alpha": 0.16, "edgecolor": "none"},
                {"fill": False, "edgecolor": colour, "lw": 1.4},
            ]
            for s in sizes:
                for face in faces:
                    ax.add_patch(Polygon(hull(part, s), closed=True, **face))
        ax.set(xticks=[], yticks=[], aspect="equal")
    axes[0][0].set_title(f"(a) hulls, and reduced, s = {int(first.s)}")
    axes[0][1].set_title("(b) reduced, s = " + ", ".join(str(s) for s in steps))
    nearest = [first.weights[y == label] @ X[y == label] for label in (-1, 1)]
    gap: Any = {"color": "0.1", "linewidth": 2.2}
    for ax in axes.flat:
        ax.plot(*np.array(nearest).T, zorder=5, **gap)
    entries = [
        (f"class {label:+d}", {"color": colour, "marker": marker, "markerfacecolor": "none"})
        for label, (colour, marker) in sorted(CLASS_STYLE.items())
    ]
    entries.append((f"Δ* = {first.distance:.2f} at s* = {int(first.s)}", gap))
    style.legend(figure, entries, 3, columnspacing=1.2)
    return figure
