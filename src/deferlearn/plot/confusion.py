"""Which classes are taken for which: machine, human and team side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from deferlearn._utils.words import short_name
from deferlearn.humans.answers import as_array, distinct, find_missing
from deferlearn.humans.positions import check_complete
from deferlearn.metrics import confusion_counts, find_member
from deferlearn.plot._frame import require_matplotlib, short_count
from deferlearn.plot.curves import COLOURS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# More classes than this have cells too small for numbers.
MOST_CLASSES = 10

# Largest width of a new figure in inches.
WIDTH = 9.0

# Smallest width of a cell in inches that holds a number, and the largest that a few classes need. Panels
# with smaller cells are put below each other.
SMALLEST_CELL, LARGEST_CELL = 0.22, 0.9

# Room for titles, labels and ticks beside each panel, and above and below it, in inches; and for each
# letter of the classes' names, which are written along both axes.
BESIDE, ABOVE_AND_BELOW, NAME_LETTER = 0.5, 1.1, 0.085

# Letters of a title in points, and the width of a title in inches.
TITLE, TITLE_WIDTH = 10.0, 1.75

# Letters in points: the largest and smallest in cells, and their width as a share of their height. The
# longest number takes this share of the width of its cell.
LARGEST, SMALLEST, LETTER, FILLED = 11.0, 5.0, 0.65, 0.85

# Right answers and errors: blue and vermilion of Okabe and Ito's palette.
RIGHT, WRONG = COLOURS[0], COLOURS[1]

# From this strength of its colour on, a cell has white letters.
DARK = 0.6

# Names of classes that are longer are written upwards below the panels.
LONG_NAME = 3


@dataclass(eq=False, repr=False)
class ConfusionDisplay:
    r"""A table of true classes and answers for each of machine, human and team.

    Rows are true classes and columns are answers. Numbers count cases. The stronger the colour, the larger
    the cell's share of its row: blue on the diagonal, where answers are right, and red elsewhere.
    `from_estimator` or `from_predictions` makes the display.

    Parameters
    ----------
    counts : dict of name to array-like of shape (n_classes, n_classes)
        What `deferlearn.metrics.confusion_counts` found, for each panel.
    classes : array-like of labels
        The classes, at most ten, in the order of rows and columns.

    Attributes
    ----------
    axes_ : tuple of matplotlib Axes
        The panels.
    figure_ : matplotlib Figure
        The figure that holds them.

    See Also
    --------
    deferlearn.metrics.confusion_counts : The numbers.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> from deferlearn.plot import ConfusionDisplay
    >>> y, machine, human = [0, 0, 1, 2], [0, 1, 1, 1], [0, 0, 1, None]
    >>> display = ConfusionDisplay.from_predictions(y, machine=machine, human=human)
    >>> [ax.get_title() for ax in display.axes_]
    ['machine\n50% of 4 wrong', 'human\n0% of 3 wrong']
    >>> matplotlib.pyplot.close(display.figure_)
    """

    counts: Mapping[str, Any]
    _: KW_ONLY
    classes: Any

    def __post_init__(self) -> None:
        self.classes = np.asarray(self.classes).tolist()
        self.counts = {name: np.asarray(counts) for name, counts in self.counts.items()}
        k = len(self.classes)
        if k > MOST_CLASSES:
            raise ValueError(
                f"the picture is legible for at most {MOST_CLASSES} classes, got {k}: "
                "deferlearn.metrics.confusion_counts gives the numbers"
            )
        if not self.counts:
            raise ValueError("give the answers of at least one of machine, human and team")
        for name, counts in self.counts.items():
            if counts.shape != (k, k):
                raise ValueError(
                    f"the counts of {name} must have a row and a column for each of {k} classes, got "
                    f"the shape {counts.shape}"
                )

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        human_labels: ArrayLike,
        *,
        batch: bool = False,
        classes: ArrayLike | None = None,
        **kwargs: Any,
    ) -> ConfusionDisplay:
        """Compare a team with its machine and its human, and draw the result.

        Parameters
        ----------
        estimator : estimator with `predict_assisted`
            A fitted team, or a pipeline or search around one.
        X : array-like of shape (n_samples, n_features)
            Cases that were not used for fitting.
        y : array-like of shape (n_samples,)
            True labels.
        human_labels : array-like of shape (n_samples,)
            One human's answers to these cases.
        batch : bool, default=False
            False: cases are deferred one at a time (`defer`). True: the top cases of X (`defer_top`).
        classes : array-like of labels, default=None
            The classes in the order of rows and columns; None means the estimator's.
        **kwargs
            Passed on to `plot`.

        Returns
        -------
        display : ConfusionDisplay
            Drawn; the numbers are in `counts`.
        """
        require_matplotlib()
        member, X = find_member(estimator, X)
        return cls.from_predictions(
            y,
            machine=member.predict(X),
            human=human_labels,
            team=member.predict_assisted(X, human_labels, batch=batch),
            classes=member.classes_ if classes is None else classes,
            **kwargs,
        )

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        *,
        machine: ArrayLike | None = None,
        human: ArrayLike | None = None,
        team: ArrayLike | None = None,
        classes: ArrayLike | None = None,
        **kwargs: Any,
    ) -> ConfusionDisplay:
        """Draw the answers of machine, human and team, or of some of them.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
            True labels.
        machine, human, team : array-like of shape (n_samples,), default=None
            Answers; None means no panel. Cases without an answer (NaN, None) are left out of the panel,
            whose title counts the others.
        classes : array-like of labels, default=None
            The classes in the order of rows and columns; None means the labels that occur, sorted.
        **kwargs
            Passed on to `plot`.

        Returns
        -------
        display : ConfusionDisplay
            Drawn; the numbers are in `counts`.
        """
        truth = as_array(y_true)
        check_complete(truth, "y_true")
        given = {"machine": machine, "human": human, "team": team}
        pairs = {name: _answered(truth, answers, name) for name, answers in given.items()}
        shown = {name: pair for name, pair in pairs.items() if pair is not None}
        if classes is None and shown:
            # All panels have the same rows: those of all labels and answers together.
            labels = [label for pair in shown.values() for side in pair for label in side]
            classes = distinct(as_array(labels))
        counts = {name: confusion_counts(*pair, classes=classes) for name, pair in shown.items()}
        return cls(counts, classes=[] if classes is None else classes).plot(**kwargs)

    def plot(self, axes: Sequence[Axes] | None = None, *, width: float = WIDTH) -> ConfusionDisplay:
        """Draw a panel for each table.

        Parameters
        ----------
        axes : matplotlib Axes, one per panel, default=None
            Where to draw; None makes a new figure with pyplot.
        width : float, default=9
            Largest width of the new figure in inches. If it is too narrow for panels side by side, such
            as 3.6 on a phone, they are put one below the other.

        Returns
        -------
        self : ConfusionDisplay
            With `axes_` and `figure_`.
        """
        require_matplotlib()
        n_panels = len(self.counts)
        if axes is None:
            axes = self._new_axes(width)
        if len(axes) != n_panels:
            raise ValueError(f"the picture has {n_panels} panels, got {len(axes)} axes")
        self.axes_, self.figure_ = tuple(axes), axes[0].figure
        for ax, (name, counts) in zip(axes, self.counts.items(), strict=True):
            self._draw(ax, name, counts)
        # Once labels have taken their room, the cells have their size, and numbers can fill them.
        self.figure_.canvas.figure.draw_without_rendering()
        for ax in axes:
            _fit_numbers(ax, len(self.classes))
        return self

    def _new_axes(self, width: float) -> list[Axes]:
        import matplotlib.pyplot as plt

        n_panels, k = len(self.counts), len(self.classes)
        names = NAME_LETTER * max(len(name) for name in self._names())
        side = width / n_panels - BESIDE - names
        beside = side >= max(k * SMALLEST_CELL, TITLE_WIDTH)
        rows, columns = (1, n_panels) if beside else (n_panels, 1)
        side = min(width / columns - BESIDE - names, k * LARGEST_CELL)
        size = (columns * (side + BESIDE + names), rows * (side + ABOVE_AND_BELOW + names))
        _, axes = plt.subplots(rows, columns, figsize=size, layout="constrained", squeeze=False)
        return list(axes.ravel())

    def _names(self) -> list[str]:
        return [short_name(str(label)) for label in self.classes]

    def _draw(self, ax: Axes, name: str, counts: Any) -> None:
        """One table: colours by the shares of rows, numbers of cases, wrong answers in the title."""
        from matplotlib.colors import to_rgb

        n, k = int(counts.sum()), len(counts)
        rows = counts.sum(axis=1, keepdims=True)
        # The root makes rare confusions visible.
        strength = np.sqrt(np.divide(counts, rows, out=np.zeros((k, k)), where=rows > 0))
        on_diagonal = np.eye(k, dtype=bool)[:, :, None]
        colour = np.where(on_diagonal, to_rgb(RIGHT), to_rgb(WRONG))
        ax.imshow(1 - strength[:, :, None] * (1 - colour))
        for (i, j), count in np.ndenumerate(counts):
            number = short_count(int(count)) if count else ""
            ink = "white" if strength[i, j] > DARK else "black"
            ax.text(j, i, number, ha="center", va="center", color=ink)
        names = self._names()
        upwards = any(len(label) > LONG_NAME for label in names)
        ax.set_xticks(range(k), names, rotation=90 if upwards else 0)
        ax.set_yticks(range(k), names)
        ax.tick_params(length=0)
        # White lines between the cells.
        ax.set_xticks(np.arange(k - 1) + 0.5, minor=True)
        ax.set_yticks(np.arange(k - 1) + 0.5, minor=True)
        ax.grid(which="minor", color="white", linewidth=1.0)
        ax.tick_params(which="minor", length=0)
        share = 1 - np.trace(counts) / n if n else 0.0
        ax.set(xlabel="answer", ylabel="truth")
        ax.set_title(f"{name}\n{100 * share:.3g}% of {n:,} wrong", fontsize=TITLE)


def _fit_numbers(ax: Axes, n_classes: int) -> None:
    """Numbers of one size, at which the longest one fits its cell."""
    longest = max(len(text.get_text()) for text in ax.texts)
    cell = ax.get_window_extent().width / n_classes * 72 / ax.figure.dpi
    size = float(np.clip(FILLED * cell / (LETTER * max(longest, 1)), SMALLEST, LARGEST))
    for text in ax.texts:
        text.set_fontsize(size)


def _answered(
    truth: Any, answers: ArrayLike | None, name: str
) -> tuple[list[Any], list[Any]] | None:
    """Labels and answers of the cases that have an answer."""
    if answers is None:
        return None
    given = as_array(answers)
    if given.shape != truth.shape:
        raise ValueError(
            f"{name} must have one answer per label, got the shapes {given.shape} and {truth.shape}"
        )
    there = ~find_missing(given)
    if not there.any():
        raise ValueError(f"{name} has no answer at all")
    # Numbers with gaps are floats: 2.0 is the class 2.
    return truth[there].tolist(), given[there].tolist()
