"""How figures look: one colour and one marker per method everywhere, one legend, three formats."""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from deferlearn._utils.atomic import write_atomically

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# From the palette of Okabe and Ito, which suits every kind of colour vision; markers and dashes differ too.
METHODS: dict[str, tuple[str, str, str, Any]] = {
    # name: (text of the legend, colour, marker, dashes)
    "distorted": ("distorted greedy", "#0072B2", "o", "-"),
    "stochastic": ("stochastic distorted greedy", "#D55E00", "^", "-"),
    "uncertainty": ("uncertainty triage", "#009E73", "s", "--"),
    "predicted": ("predicted error triage", "#CC79A7", "D", "--"),
    "full": ("full automation", "0.45", "", "-."),
    "humans": ("no automation (humans)", "0.0", "", ":"),
}
# Markers of the levels of human error, in their order.
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

# Inches and points: the text is still legible if the figure is printed half as wide.
WIDTH, FONT, DPI = 7.0, 14.0, 200
BAND = 0.18
# Formats, with metadata without dates: so the same numbers give the same files.
FORMATS: dict[str, dict[str, Any]] = {
    "pdf": {"CreationDate": None},
    "svg": {"Date": None},
    "png": {},
}


def look() -> Any:
    """A context with matplotlib's settings for all figures."""
    import matplotlib.style

    return matplotlib.style.context(Path(__file__).parent / "templates" / "figures.mplstyle")


def level_looks(count: int) -> list[tuple[Any, str]]:
    """Colour and marker of each level, from dark to light, so that no colour vision is needed.

    Examples
    --------
    >>> from deferlearn.experiments.style import level_looks
    >>> [marker for _, marker in level_looks(4)]
    ['o', '^', 's', 'D']
    """
    import matplotlib

    shades = matplotlib.colormaps["cividis"]
    # Not to the end of the map, where yellow is too light for thin lines.
    places = [0.84 * k / max(count - 1, 1) for k in range(count)]
    return [(shades(x), m) for x, m in zip(places, LEVEL_MARKERS[:count], strict=True)]


def figure_of(height: float, rows: int = 1, columns: int = 1, **options: Any) -> tuple[Figure, Any]:
    """A figure and its axes, as a two-dimensional array; made without pyplot, which needs a screen."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False, **options)


def draw_line(
    ax: Axes, lines: pd.DataFrame, x: str, value: str, colour: Any, marker: str, dashes: Any = "-"
) -> None:
    """The column `value` against the column `x`, with the band of its interval."""
    ax.plot(lines[x], lines[value], color=colour, marker=marker or None, linestyle=dashes, zorder=3)
    ends = (lines[f"{value}{end}"] for end in ("_low", "_high"))
    ax.fill_between(lines[x], *ends, color=colour, alpha=BAND, linewidth=0, zorder=2)


def legend(
    figure: Figure, entries: Iterable[tuple[str, dict[str, Any]]], columns: int = 2, **options: Any
) -> None:
    """One legend for the whole figure, below all panels; an entry is a text and the look of a line."""
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], label=text, **look) for text, look in entries]
    figure.legend(handles=handles, loc="outside lower center", ncols=columns, **options)


def method_legend(figure: Figure, methods: Iterable[str]) -> None:
    """The legend of these methods."""
    known = [METHODS[name] for name in METHODS if name in set(methods)]
    legend(
        figure,
        [
            (text, {"color": colour, "marker": marker or None, "linestyle": dashes})
            for text, colour, marker, dashes in known
        ],
    )


def level_legend(figure: Figure, levels: Sequence[str], title: str, extra: Any = ()) -> None:
    """The legend of levels of human error; `extra` are more entries."""
    looks = level_looks(len(levels))
    entries = [
        (text, {"color": colour, "marker": marker})
        for text, (colour, marker) in zip(levels, looks, strict=True)
    ]
    entries += extra
    legend(figure, entries, min(len(entries), 5), title=title, columnspacing=1.2)


def save(figure: Figure, folder: str | os.PathLike[str], name: str) -> list[Path]:
    """Write the figure as PDF, SVG and PNG; each file is written completely or not at all."""
    paths = []
    with look():
        for suffix, metadata in FORMATS.items():
            content = io.BytesIO()
            figure.savefig(content, format=suffix, dpi=DPI, metadata=metadata)
            paths.append(Path(folder) / f"{name}.{suffix}")
            written = _with_palette(content) if suffix == "png" else content.getvalue()
            write_atomically(paths[-1], written)
    return paths


def _with_palette(png: io.BytesIO) -> bytes:
    """The picture in 256 colours, which look the same and take a third of the space."""
    from PIL import Image  # comes with matplotlib

    small = io.BytesIO()
    with Image.open(png) as picture:
        flat = picture.convert("RGB").quantize(256, dither=Image.Dither.NONE)
        flat.save(small, format="png", optimize=True)
    return small.getvalue()
