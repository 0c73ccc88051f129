"""What the displays share: the axes they draw on, and the legend around them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.legend import Legend

# Of a new figure, in inches: its letters are still read when it is printed half a page wide.
FIGURE_SIZE = (4.6, 4.4)

# Between the axis and the legend below it, in inches.
GAP = 0.08

# A legend may be a little wider than its axes, since their labels stand out to the left.
OVERHANG = 1.1

# Share of the height of axes that a legend may take: no picture is left where it takes all.
MOST_TAKEN = 0.7


def require_matplotlib() -> None:
    """Say how to get matplotlib where it is missing; asked before long computations."""
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


def add_legend(ax: Axes) -> Legend:
    """One legend of everything that has a label, below the axes, where it can hide nothing.

    A figure with a layout ("constrained", "tight") makes room for it by itself. In any other the axes
    become lower by the height of the legend, as they do for a colour bar.
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
        # Up to where the labels ended, or to the edge of the figure if they went beyond it.
        end = max(bottom, ax.figure.bbox.y0 + GAP * dpi)
        lifted = end - (bottom - GAP * dpi - size.height)
        x, y, width, height = ax.get_position().bounds
        taken = height * min(lifted / frame.height, MOST_TAKEN)
        ax.set_position((x, y + taken, width, height - taken))
    return legend
