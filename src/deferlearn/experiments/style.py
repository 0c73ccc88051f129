"""How figures look: one colour and one marker a method everywhere, one legend, three formats."""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deferlearn._utils.atomic import write_atomically

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Of Okabe and Ito's palette, told apart with every kind of colour vision; markers and dashes differ too.
METHODS: dict[str, tuple[str, str, str, Any]] = {
    # name: (what the legend says, colour, marker, dashes)
    "distorted": ("distorted greedy", "#0072B2", "o", "-"),
    "stochastic": ("stochastic distorted greedy", "#D55E00", "^", "-"),
    "uncertainty": ("uncertainty triage", "#009E73", "s", "--"),
    "predicted": ("predicted error triage", "#CC79A7", "D", "--"),
    "full": ("full automation", "0.45", "", "-."),
    "humans": ("no automation (humans)", "0.0", "", ":"),
}
# Of levels of human error, in their order.
LEVEL_MARKERS = ("o", "^", "s", "D", "v", "P")
DATASETS = {
    "messidor": "Messidor",
    "stare": "Stare",
    "aptos": "Aptos",
    "linear": "synthetic, linear",
    "quadratic": "synthetic, quadratic",
}
METRICS = {"error": "test error", "f1": "F1 score"}
BUDGET = "budget n/|V|"

# Inches and points: letters are still read when the figure is printed half as wide.
WIDTH, FONT, DPI = 7.0, 14.0, 200
BAND = 0.18
FORMATS = ("pdf", "svg", "png")
# Without dates, the same numbers give the same files.
NO_DATE: dict[str, dict[str, Any]] = {
    "pdf": {"CreationDate": None},
    "svg": {"Date": None},
    "png": {},
}


def look() -> Any:
    """A context with matplotlib's settings for all figures."""
    import matplotlib

    settings: Any = {
        "font.size": FONT,
        "axes.titlesize": FONT,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "legend.frameon": False,
        "lines.linewidth": 1.8,
        "lines.markersize": 6.0,
        "svg.hashsalt": "deferlearn",
        "pdf.fonttype": 42,
    }
    return matplotlib.rc_context(settings)


def level_looks(count: int) -> list[tuple[Any, str]]:
    """Colour and marker of each level: dark to light, so that no colour vision is needed.

    Examples
    --------
    >>> from deferlearn.experiments.style import level_looks
    >>> [marker for _, marker in level_looks(4)]
    ['o', '^', 's', 'D']
    """
    import matplotlib

    shades = matplotlib.colormaps["cividis"]
    # Not to the end of the map, whose yellow is too light for thin lines.
    places = [0.84 * k / max(count - 1, 1) for k in range(count)]
    return [(shades(x), m) for x, m in zip(places, LEVEL_MARKERS[:count], strict=True)]


def bands(splits: int) -> str:
    """What the bands around the lines are, for a caption."""
    return "Bands are 95% intervals." if splits > 1 else "One split: there are no intervals."


def figure_of(height: float, rows: int = 1, columns: int = 1, **options: Any) -> tuple[Figure, Any]:
    """A figure and its axes, two-dimensional; without pyplot, which would want a screen."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False, **options)


def draw_line(
    ax: Axes, x: Any, mean: Any, low: Any, high: Any, colour: Any, marker: str, dashes: str
) -> None:
    """A mean against the budget, with the band of its interval."""
    ax.plot(x, mean, color=colour, marker=marker or None, linestyle=dashes, zorder=3)
    ax.fill_between(x, low, high, color=colour, alpha=BAND, linewidth=0, zorder=2)


def method_legend(figure: Figure, methods: Iterable[str], columns: int = 2) -> None:
    """One legend for the whole figure, below all panels."""
    from matplotlib.lines import Line2D

    entries = [METHODS[name] for name in METHODS if name in set(methods)]
    handles = [
        Line2D([], [], color=colour, marker=marker or None, linestyle=dashes)
        for _, colour, marker, dashes in entries
    ]
    figure.legend(handles, [e[0] for e in entries], loc="outside lower center", ncols=columns)


def level_legend(figure: Figure, levels: Sequence[str], title: str, extra: Any = ()) -> None:
    """One legend of levels of human error; `extra` are more pairs of a handle and its name."""
    from matplotlib.lines import Line2D

    handles: list[Any] = [
        Line2D([], [], color=colour, marker=marker) for colour, marker in level_looks(len(levels))
    ]
    names = list(levels)
    for handle, name in extra:
        handles.append(handle)
        names.append(name)
    figure.legend(
        handles, names, title=title, loc="outside lower center", ncols=min(len(names), 5),
        columnspacing=1.2,
    )  # fmt: skip


def save(figure: Figure, folder: str | os.PathLike[str], name: str) -> list[Path]:
    """Write the figure as PDF, SVG and PNG; each whole or not at all."""
    paths = []
    with look():
        for suffix in FORMATS:
            content = io.BytesIO()
            figure.savefig(content, format=suffix, dpi=DPI, metadata=NO_DATE[suffix])
            path = Path(folder) / f"{name}.{suffix}"
            written = _with_palette(content) if suffix == "png" else content.getvalue()
            write_atomically(path, written)
            paths.append(path)
    return paths


def _with_palette(png: io.BytesIO) -> bytes:
    """The picture in 256 colours: nobody sees the difference, and it is a third as large."""
    from PIL import Image  # comes with matplotlib

    small = io.BytesIO()
    with Image.open(png) as picture:
        flat = picture.convert("RGB").quantize(256, dither=Image.Dither.NONE)
        flat.save(small, format="png", optimize=True)
    return small.getvalue()
