"""What the displays share: the axes that they draw on, lines of reference, and the legend."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.legend import Legend
    from matplotlib.lines import Line2D

# Size of a new figure in inches: its letters are legible in print at half the width of a page.
FIGURE_SIZE = (4.6, 4.4)

# Distance between the axis and the legend below it, in inches.
GAP = 0.08

# A legend may be a little wider than its axes, since their labels extend to the left.
OVERHANG = 1.1

# Largest share of the height of the axes that a legend may take.
MOST_TAKEN = 0.7

# The width of a letter as a share of its height, and how much wider than its axes a label may be.
LETTER_WIDTH, LABEL_OVERHANG = 0.6, 1.2

# Name -> colour and dashes of the human or the machine alone.
ALONE = {"human": ("0.0", ":"), "machine": ("0.4", "--")}


def require_matplotlib() -> None:
    """Say how to install matplotlib if it is missing; called before long computations."""
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise ImportError(
            "drawing needs matplotlib: pip install 'deferlearn[plot]'", name="matplotlib"
        ) from error


def axes_or_new(ax: Axes | None) -> Axes:
    """The axes given, or those of a new figure of pyplot."""
    require_matplotlib()
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=FIGURE_SIZE, layout="constrained")[1]


def style(artist: type, defaults: dict[str, Any], changes: dict[str, Any] | None) -> dict[str, Any]:
    """Keywords of an artist with a user's changes, which may use short names such as `lw`."""
    from matplotlib.cbook import normalize_kwargs

    return defaults | normalize_kwargs(changes or {}, artist)


def level_line(ax: Axes, who: str, value: float | None) -> Line2D | None:
    """A horizontal line at the level of the human or the machine alone; None without a value."""
    if value is None:
        return None
    colour, dashes = ALONE[who]
    return ax.axhline(
        value, color=colour, linestyle=dashes, linewidth=1.5, zorder=1.5, label=f"{who} alone"
    )


def label_axes(ax: Axes, budgets: NDArray[Any], metric: str) -> None:
    """The labels of axes that show a metric of the team against the budget."""
    unit = "number of training samples" if is_whole(budgets) else "share of cases"
    ax.set(xlabel=f"budget ({unit})", ylabel=f"{metric} of the team")


def short_count(n: int) -> str:
    """A number of cases in at most four characters, for narrow places: 950, 9.5k, 95k."""
    if n < 1000:
        return str(n)
    thousands = f"{n / 1000:.1f}" if n < 9950 else f"{n / 1000:.0f}"
    return f"{thousands.removesuffix('.0')}k"


def percent_ticks(ax: Axes) -> None:
    """A few ticks in per cent along the axis of x, even if it is short."""
    ax.locator_params(axis="x", nbins=4)
    ax.xaxis.set_major_formatter(lambda share, _: f"{100 * share:.3g}%")


def wrap_label(ax: Axes, text: str, size: float) -> None:
    """A label below the axes in as many lines as their width asks for, once a layout has set it."""
    ax.set_xlabel("\n" * (len(text) // 50), fontsize=size)
    ax.figure.canvas.figure.draw_without_rendering()
    points = ax.get_window_extent().width * 72 / ax.figure.dpi
    letters = int(LABEL_OVERHANG * points / (LETTER_WIDTH * size))
    ax.set_xlabel(textwrap.fill(text, max(letters, 12)), fontsize=size)


def is_whole(budgets: NDArray[Any]) -> bool:
    """Whether budgets are numbers of samples rather than shares."""
    return budgets.dtype.kind in "iu"


def add_legend(ax: Axes) -> Legend:
    """One legend of everything that has a label, below the axes, where it hides nothing.

    A figure with a layout ("constrained", "tight") makes room for it by itself. In any other figure the
    height of the axes is reduced by that of the legend, as for a colour bar.
    """
    from matplotlib.transforms import ScaledTranslation

    frame, dpi = ax.get_window_extent(), ax.figure.dpi
    labels = ax.xaxis.get_tightbbox()
    bottom = frame.y0 if labels is None else min(frame.y0, labels.y0)
    drop = GAP + (frame.y0 - bottom) / dpi
    below = ax.transAxes + ScaledTranslation(0.0, -drop, ax.figure.dpi_scale_trans)
    handles, names = ax.get_legend_handles_labels()
    for columns in (3, 2, 1):
        legend = ax.legend(
            handles,
            names,
            loc="upper center",
            bbox_to_anchor=(0.5, 0.0),
            bbox_transform=below,
            borderaxespad=0.0,
            ncols=columns,
            frameon=False,
        )
        size = legend.get_window_extent()
        if size.width <= OVERHANG * frame.width:
            break
    if ax.figure.get_layout_engine() is None:
        # Up to the end of the labels, or to the edge of the figure if they extend beyond it.
        end = max(bottom, ax.figure.bbox.y0 + GAP * dpi)
        lifted = end - (bottom - GAP * dpi - size.height)
        x, y, width, height = ax.get_position().bounds
        taken = height * min(lifted / frame.height, MOST_TAKEN)
        ax.set_position((x, y + taken, width, height - taken))
    return legend
