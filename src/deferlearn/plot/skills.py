"""Who is good at what: experts' error rates with intervals, ranked only as far as the data can tell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from deferlearn._utils.types import Array
from deferlearn._utils.words import distinct_names, short_name
from deferlearn.experts import Skills
from deferlearn.experts.skills import ALIKE, BETTER, LEVEL, UNKNOWN, WORSE
from deferlearn.plot._frame import percent_ticks, require_matplotlib, wrap_label
from deferlearn.plot.curves import COLOURS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.text import Annotation

# The verdicts from top to bottom. Within one of them nothing is known about who is better.
ORDER = (BETTER, ALIKE, WORSE, UNKNOWN)

# Colours of the verdicts; that of the classes, for which there is none.
INK = {BETTER: COLOURS[0], ALIKE: "0.25", WORSE: COLOURS[1], UNKNOWN: "0.25"}
PLAIN = "0.25"

# In inches: the largest width of a new figure, the height of an expert's row, the room for titles and
# labels of a panel, and the smallest width of a panel of one class.
WIDTH, ROW, AROUND, NARROWEST = 7.0, 0.21, 0.75, 1.2

# Letters in points, and the width of one of the experts' names in inches.
LETTERS, LETTER = 9.0, 0.075


def verdict_groups(skills: Skills) -> list[tuple[str, list[int]]]:
    """The experts by what the data say of them; in the order in which they were given where that is alike.

    Parameters
    ----------
    skills : Skills
        The error rates.

    Returns
    -------
    groups : list of (str, list of int)
        Verdicts, and the places of the experts who have it; verdicts that nobody has are left out.

    Examples
    --------
    >>> import numpy as np
    >>> from deferlearn.experts import estimate_skills
    >>> from deferlearn.plot.skills import verdict_groups
    >>> wrong, answered = np.array([[30], [10], [28]]), np.array([[400], [400], [400]])
    >>> skills = estimate_skills(wrong, answered, np.ones(1), ("Ann", "Bob", "Cem"), np.array([1]))
    >>> verdict_groups(skills)
    [('errs less often than the others', [1]), ('no clear difference from the others', [0, 2])]
    """
    verdicts = list(skills.verdict)
    return [
        (verdict, [e for e, own in enumerate(verdicts) if own == verdict])
        for verdict in ORDER
        if verdict in verdicts
    ]


@dataclass(eq=False, repr=False)
class SkillsDisplay:
    """How often each expert errs, over all classes and on each of them, with intervals.

    Experts stand below the verdict on them, in the order in which they were given: where the data cannot
    tell who is better, there is no ranking. A verdict compares an expert with the average of the others;
    two experts with different verdicts may still be alike. The point of an expert with too few answers, or
    with none on a class, is hollow: it mostly says what the others do. `from_estimator` makes the display.

    Parameters
    ----------
    skills : Skills
        What `ExpertTeam` or `deferlearn.experts.estimate_skills` found.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The panel over all classes.
    class_axes_ : tuple of matplotlib Axes
        The panels of the classes, if they were drawn.
    figure_ : matplotlib Figure
        The figure that holds them.
    average_line_ : matplotlib Line2D
        The average of the experts, over all classes.

    See Also
    --------
    LoadDisplay : What experts have to do, and what more of their time would be worth.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> import numpy as np
    >>> from deferlearn.experts import estimate_skills
    >>> from deferlearn.plot import SkillsDisplay
    >>> wrong, answered = np.array([[40, 9], [8, 2], [0, 1]]), np.array([[400, 90], [400, 80], [3, 2]])
    >>> names, classes = ("Ann", "Bob", "Cem"), np.array(["ill", "well"])
    >>> skills = estimate_skills(wrong, answered, np.array([0.8, 0.2]), names, classes)
    >>> display = SkillsDisplay(skills).plot()
    >>> [text.get_text() for text in display.ax_.get_yticklabels()]
    ['Bob (480)', 'Ann (490)', 'Cem (5)']
    >>> [text.get_text() for text in display.ax_.texts][-1]
    'too few answers to tell'
    >>> matplotlib.pyplot.close(display.figure_)
    """

    skills: Skills

    def __post_init__(self) -> None:
        if not isinstance(self.skills, Skills):
            raise TypeError(f"skills must be a Skills, got {type(self.skills).__name__}")

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, ax: Axes | None = None, **kwargs: Any
    ) -> SkillsDisplay:
        """Draw what a fitted `ExpertTeam` knows about its experts.

        Parameters
        ----------
        estimator : ExpertTeam
            A fitted one.
        ax : matplotlib Axes, default=None
            Where to draw; None makes a new figure.
        **kwargs
            Passed on to `plot`.

        Returns
        -------
        display : SkillsDisplay
            Drawn; the numbers are in `skills`.
        """
        if not hasattr(estimator, "skills_"):
            raise TypeError(
                f"the picture needs a fitted ExpertTeam with skills_; {type(estimator).__name__} has none"
            )
        return cls(estimator.skills_).plot(ax, **kwargs)

    def plot(
        self, ax: Axes | None = None, *, by_class: bool = True, width: float = WIDTH
    ) -> SkillsDisplay:
        """Draw the error rates.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw the error rates over all classes, without those on each class. None makes a new
            figure with pyplot, as high as the number of experts asks for.
        by_class : bool, default=True
            Whether a new figure has a panel for each class.
        width : float, default=7
            The width of a new figure in inches. The narrower it is, such as 3.6 on a phone, the fewer
            panels stand side by side.

        Returns
        -------
        self : SkillsDisplay
            With `ax_`, `class_axes_`, `figure_` and `average_line_`.
        """
        require_matplotlib()
        axes: list[Axes] = []
        if ax is None:
            ax, axes = self._new_axes(by_class and len(self.skills.classes) > 1, width)
        self.ax_, self.class_axes_, self.figure_ = ax, tuple(axes), ax.figure
        self._draw_all(ax)
        order = [e for _, group in verdict_groups(self.skills) for e in group]
        for k, own in enumerate(axes):
            self._draw_class(own, k, order)
        return self

    @property
    def _names(self) -> list[str]:
        return distinct_names(self.skills.experts)

    def _new_axes(self, by_class: bool, width: float) -> tuple[Axes, list[Axes]]:
        import matplotlib.pyplot as plt

        n, k = len(self.skills.experts), len(self.skills.classes) if by_class else 0
        names = LETTER * (max(map(len, self._names)) + 8)
        columns = max(1, min(k, int((width - names) / NARROWEST)))
        rows = -(-k // columns)
        heights = [ROW * (n + len(verdict_groups(self.skills)) + 0.5) + AROUND]
        heights += [ROW * n + AROUND] * rows
        figure = plt.figure(figsize=(width, sum(heights)), layout="constrained")
        parts = figure.add_gridspec(1 + rows, columns, height_ratios=heights)
        whole = figure.add_subplot(parts[0, :])
        axes: list[Axes] = []
        for place in range(k):
            shared = {"sharex": axes[0], "sharey": axes[0]} if axes else {}
            axes.append(figure.add_subplot(parts[1 + place // columns, place % columns], **shared))
            axes[-1].tick_params(labelleft=place % columns == 0)
        return whole, axes

    def _draw_all(self, ax: Axes) -> None:
        """The error rates over all classes, below the verdicts."""
        skills = self.skills
        places: dict[int, float] = {}
        words: list[Annotation] = []
        y = 0.0
        for verdict, group in verdict_groups(skills):
            if len(skills.experts) > 1 or verdict == UNKNOWN:
                words.append(self._write(ax, verdict, y))
            for e in group:
                y += 1
                places[e] = y
                ends = (skills.low[e], skills.error[e], skills.high[e])
                _draw_interval(ax, y, ends, INK[verdict], hollow=verdict == UNKNOWN)
            y += 1.15
        self.average_line_ = ax.axvline(
            float(np.mean(skills.error)), color="0.6", linewidth=1.0, linestyle=":", zorder=1.0
        )
        counts = skills.answers.sum(axis=1)
        labels = [f"{self._names[e]} ({counts[e]:,})" for e in places]
        ax.set_yticks(list(places.values()), labels, fontsize=LETTERS)
        ax.set_ylim(y - 0.55, -0.7)
        ax.set_xlim(0.0, _end(skills.high))
        _tidy(ax)
        label = f"error rate over all classes, {100 * LEVEL:.3g}% interval"
        wrap_label(ax, f"{label} (dotted: average; in brackets: answers)", LETTERS)
        for text in words:
            if text.get_window_extent().x1 > ax.get_window_extent().x1:
                # Narrow axes: the words may begin above the names, since the row is their own.
                text.set(ha="right", x=-4.0)
                text.xy = (1.0, text.xy[1])

    def _write(self, ax: Axes, verdict: str, y: float) -> Annotation:
        """A verdict at the left edge of the axes, in a row of its own."""
        text = ax.annotate(
            verdict,
            (0.0, y),
            (4.0, 0.0),
            xycoords=ax.get_yaxis_transform(),
            textcoords="offset points",
            va="center",
            fontsize=LETTERS,
            fontstyle="italic",
            color=INK[verdict],
        )
        text.set_in_layout(False)
        return text

    def _draw_class(self, ax: Axes, k: int, order: list[int]) -> None:
        """The error rates on one class, in the same order of experts."""
        skills = self.skills
        for place, e in enumerate(order):
            ends = (
                skills.low_by_class[e, k],
                skills.error_by_class[e, k],
                skills.high_by_class[e, k],
            )
            _draw_interval(ax, place, ends, PLAIN, hollow=skills.answers[e, k] == 0)
        names = [self._names[e] for e in order]
        ax.set_yticks(range(len(order)), names, fontsize=LETTERS)
        ax.set_ylim(len(order) - 0.4, -0.6)
        ax.set_xlim(0.0, _end(skills.high_by_class))
        ax.set_title(f"on {short_name(str(skills.classes[k]))}", fontsize=LETTERS)
        _tidy(ax)


def _draw_interval(
    ax: Axes, y: float, ends: tuple[float, float, float], ink: str, *, hollow: bool
) -> None:
    low, middle, high = ends
    ax.plot([low, high], [y, y], color=ink, linewidth=1.6, solid_capstyle="butt")
    face = "white" if hollow else ink
    ax.plot([middle], [y], marker="o", markersize=5.0, color=ink, markerfacecolor=face)


def _end(high: Array) -> float:
    """Where an axis of error rates ends: the longest interval is whole, and its end can be seen."""
    return min(1.02, 1.05 * float(high.max()))


def _tidy(ax: Axes) -> None:
    ax.tick_params(axis="x", labelsize=LETTERS)
    ax.tick_params(axis="y", length=0)
    percent_ticks(ax)
    ax.grid(axis="x", color="0.9", linewidth=0.8)
    ax.set_axisbelow(True)
    for side in ("left", "right", "top"):
        ax.spines[side].set_visible(False)
