"""Can probabilities be taken at their word? What was predicted against what came true."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from deferlearn._utils.checks import plain
from deferlearn._utils.types import Array
from deferlearn.evaluation.checks import check_confidence
from deferlearn.evaluation.intervals import CONFIDENCE, share_interval
from deferlearn.metrics import ReliabilityCurve, brier_score, reliability_curve
from deferlearn.plot._frame import (
    add_legend,
    axes_or_new,
    require_matplotlib,
    short_count,
    style,
)
from deferlearn.plot.curves import COLOURS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# The bars of the counts above the axes: their distance and height, as shares of the height of the axes.
BARS_GAP, BARS_HEIGHT = 0.04, 0.14

# Height of the numbers above the bars, and the width of a digit, in points.
NUMBER, DIGIT = 7.5, 4.6

# Free room around the unit square, so that markers in its corners are whole.
MARGIN = 0.03


@dataclass(eq=False, repr=False)
class ReliabilityDisplay:
    r"""Predicted probabilities in bins against how often they came true, with intervals.

    On the diagonal, probabilities come true as often as they say. Bars above the axes count the
    cases of each bin. `from_estimator` or `from_predictions` makes the display.

    Parameters
    ----------
    curve : ReliabilityCurve
        What `deferlearn.metrics.reliability_curve` found.
    brier : float
        The Brier score of the same probabilities, of all classes.
    of : str, default=None
        The class whose probability is examined, in words; None means the most probable class of each case.
    confidence : float, default=0.95
        Level of the intervals, which are Wilson intervals.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where it was drawn.
    figure_ : matplotlib Figure
        The figure that holds it.
    line_ : matplotlib Line2D
        Observed shares against mean predicted probabilities, of bins that hold cases.
    intervals_ : matplotlib LineCollection
        The intervals of the observed shares.
    diagonal_ : matplotlib Line2D
        Where observed shares equal predicted probabilities.
    counts_ax_ : matplotlib Axes
        The bars above.
    legend_ : matplotlib Legend or None
        The legend.

    See Also
    --------
    deferlearn.metrics.reliability_curve : The measurement.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> from deferlearn.plot import ReliabilityDisplay
    >>> y, proba = [0, 0, 0, 1, 0, 1, 1, 1], [0.1, 0.1, 0.2, 0.2, 0.6, 0.8, 0.9, 0.9]
    >>> display = ReliabilityDisplay.from_predictions(y, proba, n_bins=2)
    >>> display.line_.get_ydata()
    array([0.25, 0.75])
    >>> [text.get_text() for text in display.legend_.get_texts()][-1]
    'observed, 95% interval\nBrier score 0.140, ECE 0.075'
    >>> matplotlib.pyplot.close(display.figure_)
    """

    curve: ReliabilityCurve
    _: KW_ONLY
    brier: float
    of: str | None = None
    confidence: float = CONFIDENCE

    def __post_init__(self) -> None:
        if not isinstance(self.curve, ReliabilityCurve):
            raise TypeError(f"curve must be a ReliabilityCurve, got {type(self.curve).__name__}")
        check_confidence(self.confidence)

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: ArrayLike, **options: Any
    ) -> ReliabilityDisplay:
        """Examine the probabilities of a team's machine, or of any classifier, and draw them.

        Parameters
        ----------
        estimator : estimator with `predict_proba`
            A fitted team, a classifier, or a pipeline.
        X : array-like of shape (n_samples, n_features)
            Cases that were not used for fitting.
        y : array-like of shape (n_samples,)
            True labels.
        **options
            As in `from_predictions`: `pos_label`, `n_bins`, `strategy`, `confidence`, `ax` and those of
            `plot`.

        Returns
        -------
        display : ReliabilityDisplay
            Drawn; the measurement is in `curve`.
        """
        require_matplotlib()
        if not hasattr(estimator, "predict_proba"):
            raise TypeError(
                f"the picture needs an estimator with predict_proba; {type(estimator).__name__} has none"
            )
        proba = estimator.predict_proba(X)
        return cls.from_predictions(y, proba, classes=estimator.classes_, **options)

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        proba: ArrayLike,
        classes: ArrayLike | None = None,
        *,
        pos_label: Any = None,
        n_bins: int = 10,
        strategy: Literal["uniform", "quantile"] = "uniform",
        confidence: float = CONFIDENCE,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> ReliabilityDisplay:
        """Examine probabilities, and draw them.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
            True labels.
        proba : array-like of shape (n_samples, n_classes) or (n_samples,)
            A column per class, as `predict_proba` gives them; a vector is for the second of two classes.
        classes : array-like of labels, default=None
            The classes in the order of the columns; None means the labels that occur, sorted.
        pos_label : label, default=None
            The class whose probability is examined. None means the second of two classes, and with more
            classes the most probable one of each case.
        n_bins : int, default=10
            Number of bins.
        strategy : {"uniform", "quantile"}, default="uniform"
            Bins of equal width, or of about equally many cases.
        confidence : float, default=0.95
            Level of the intervals.
        ax : matplotlib Axes, default=None
            Where to draw; None makes a new figure.
        **kwargs
            Passed on to `plot`.

        Returns
        -------
        display : ReliabilityDisplay
            Drawn; the measurement is in `curve`.
        """
        require_matplotlib()
        options: dict[str, Any] = {"pos_label": pos_label, "n_bins": n_bins, "strategy": strategy}
        curve = reliability_curve(y_true, proba, classes=classes, **options)
        known = (np.unique(y_true) if classes is None else np.asarray(classes)).tolist()
        of = known[1] if pos_label is None and len(known) == 2 else pos_label
        display = cls(
            curve,
            brier=brier_score(y_true, proba, classes=classes),
            of=None if of is None else str(plain(of)),
            confidence=confidence,
        )
        return display.plot(ax, **kwargs)

    def plot(
        self,
        ax: Axes | None = None,
        *,
        legend: bool = True,
        line_kw: dict[str, Any] | None = None,
    ) -> ReliabilityDisplay:
        """Draw the curve, its intervals, and the counts above them.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None makes a new figure with pyplot.
        legend : bool, default=True
            Whether to add a legend below the axes.
        line_kw : dict, default=None
            Keywords for the line and its markers (`Axes.plot`).

        Returns
        -------
        self : ReliabilityDisplay
            With `ax_`, `figure_` and the artists.
        """
        ax = axes_or_new(ax)
        from matplotlib.lines import Line2D

        self.ax_, self.figure_ = ax, ax.figure
        (self.diagonal_,) = ax.plot(
            [0, 1], [0, 1], color="0.4", linestyle="--", linewidth=1.2, label="as predicted"
        )
        used = self.curve.counts > 0
        predicted, observed = self.curve.predicted[used], self.curve.observed[used]
        lower, upper = self._intervals()
        level = f"observed, {100 * self.confidence:.4g}% interval"
        error = self.curve.calibration_error
        looks: dict[str, Any] = {
            "color": COLOURS[0],
            "marker": "o",
            "markersize": 5.0,
            "linewidth": 1.8,
            "zorder": 3.0,
            "label": f"{level}\nBrier score {self.brier:.3f}, ECE {error:.3f}",
        }
        (self.line_,) = ax.plot(predicted, observed, **style(Line2D, looks, line_kw))
        self.intervals_ = ax.vlines(
            predicted, lower, upper, color=self.line_.get_color(), linewidth=1.2, zorder=2.5
        )
        ends = (-MARGIN, 1 + MARGIN)
        if self.of is None:
            names = ("highest predicted probability", "share of right answers")
        else:
            names = (f"predicted probability of {self.of}", f"observed share of {self.of}")
        ax.set(xlim=ends, ylim=ends, xlabel=names[0], ylabel=names[1])
        self._draw_counts(ax)
        self.legend_ = add_legend(ax) if legend else None
        return self

    def _intervals(self) -> tuple[Array, Array]:
        """Both ends of the interval of each bin that holds cases."""
        ends = [
            share_interval(int(hits), int(n), self.confidence, method="wilson")
            for hits, n in zip(self.curve.hits, self.curve.counts, strict=True)
            if n
        ]
        lower, upper = np.array(ends).T
        return lower, upper

    def _draw_counts(self, ax: Axes) -> None:
        """Bars above the axes, with numbers where they fit."""
        if ax.figure.get_layout_engine() is None:
            # Nothing makes room for them: the axes do, down from where they end.
            x, y, width, height = ax.get_position().bounds
            ax.set_position((x, y, width, height / (1 + BARS_GAP + BARS_HEIGHT)))
        bars = ax.inset_axes((0.0, 1 + BARS_GAP, 1.0, BARS_HEIGHT), sharex=ax)
        edges, counts = self.curve.edges, self.curve.counts
        widths = np.diff(edges)
        bars.bar(
            edges[:-1], counts, widths, align="edge", color="0.8", edgecolor="white", linewidth=0.8
        )
        dots = ax.get_window_extent().width / (1 + 2 * MARGIN)
        points = widths * dots * 72 / ax.figure.dpi
        for left, width, count, room in zip(edges, widths, counts, points, strict=False):
            number = short_count(int(count))
            if count and len(number) * DIGIT <= room:
                middle = (left + width / 2, count)
                bars.annotate(number, middle, ha="center", va="bottom", fontsize=NUMBER)
        bars.set_ylim(0, 1.05 * counts.max())
        bars.set_ylabel("cases")
        bars.set_yticks([])
        bars.tick_params(bottom=False, labelbottom=False)
        for side in ("left", "right", "top"):
            bars.spines[side].set_visible(False)
        self.counts_ax_ = bars
