"""What the displays share: the axes they draw on, and the legend around them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.legend import Legend

# Of a new figure, in inches: its letters are still read when it is printed half a page wide.
FIGURE_SIZE = (4.6, 4.4)

# Height of a line of text over the size of its font, and the room, in points, that ticks and the gaps
# around their labels take.
LEADING, GAPS = 1.3, 16.0

# A letter's mean width over the size of its font, and what a legend puts around each name, in letters.
LETTER, AROUND_NAME = 0.52, 8


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

    It needs a figure whose layout makes room for it ("constrained" or "tight"). In any other figure it
    might be cut off, so that it stands inside the axes, in the emptiest corner.
    """
    from matplotlib import rcParams
    from matplotlib.font_manager import FontProperties
    from matplotlib.transforms import ScaledTranslation

    handles, names = ax.get_legend_handles_labels()
    if ax.figure.get_layout_engine() is None:
        return ax.legend(handles, names, loc="best", framealpha=0.9)

    def points(size: Any) -> float:
        return FontProperties(size=size).get_size_in_points()

    label = ax.xaxis.label
    label_lines = label.get_text().count("\n") + 1
    heights = points(rcParams["xtick.labelsize"]) + label_lines * points(label.get_fontsize())
    drop = GAPS + LEADING * heights
    below = ScaledTranslation(0.0, -drop / 72, ax.figure.dpi_scale_trans)
    letter = LETTER * points(rcParams["legend.fontsize"])
    width = ax.get_window_extent().width / ax.figure.dpi * 72
    columns = int(width / (letter * (max(map(len, names), default=1) + AROUND_NAME)))
    return ax.legend(
        handles,
        names,
        loc="upper center",
        bbox_to_anchor=(0.5, 0.0),
        bbox_transform=ax.transAxes + below,
        borderaxespad=0.0,
        ncols=min(max(columns, 1), 3),
        frameon=False,
    )
