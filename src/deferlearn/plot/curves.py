"""How good the team is as more cases are deferred: a metric against the budget."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from deferlearn.evaluation.curves import AutomationCurve, automation_curve
from deferlearn.plot._frame import (
    add_legend,
    axes_or_new,
    is_whole,
    label_axes,
    level_line,
    require_matplotlib,
    style,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import PolyCollection
    from matplotlib.lines import Line2D

# Okabe and Ito's palette can be distinguished with every kind of colour vision; its yellow is too pale
# for lines, its black is used for the lines of human and machine. One more marker than colours: together
# they repeat only after 42 curves, and distinguish curves in print without colour.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00")
MARKERS = ("o", "^", "s", "D", "v", "P", "X")

# Light enough for two bands to show through each other.
BAND = 0.18

# How metrics are written if that differs from their names.
WRITTEN = {
    "f1": "F1 score",
    "macro_f1": "macro F1 score",
    "macro_sensitivity": "macro sensitivity",
    "grade_error": "grade error",
    "quadratic_kappa": "quadratic kappa",
}


@dataclass(eq=False, repr=False)
class AutomationCurveDisplay:
    """One line per team: its metric against the budget, with bands.

    `from_estimator` makes it, which measures and draws, or `from_curve`, which draws what
    `deferlearn.evaluation.curves.automation_curve` has measured.

    Parameters
    ----------
    curves : AutomationCurve or dict of name to AutomationCurve
        The measurements.
    metric : str, default=None
        Which of the curves' metrics to draw; None is the first.
    human, machine : float, default=None
        The metric of the human alone and of the machine alone, each drawn as a level line.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where it was drawn.
    figure_ : matplotlib Figure
        The figure that holds it.
    lines_ : dict of name to matplotlib Line2D
        Means over the splits.
    bands_ : dict of name to matplotlib PolyCollection or None
        Intervals of these means; None if there was only one split, which gives no interval.
    human_line_, machine_line_ : matplotlib Line2D or None
        The level lines.
    legend_ : matplotlib Legend or None
        The legend.

    See Also
    --------
    deferlearn.evaluation.curves.automation_curve : The measurement.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> import numpy as np
    >>> from deferlearn import AssistedSVC
    >>> from deferlearn.datasets import make_linear
    >>> from deferlearn.humans import UniformHuman
    >>> from deferlearn.plot import AutomationCurveDisplay
    >>> X, y = make_linear(60, random_state=1)
    >>> human = UniformHuman(0.2).labels(y, random_state=0)
    >>> display = AutomationCurveDisplay.from_estimator(
    ...     AssistedSVC(submodularity_ratio=0.01, cv=None),
    ...     X, y, human_labels=human, budgets=[0.0, 0.3], cv=2, random_state=0,
    ...     human=np.mean(human != y),
    ... )
    >>> display.lines_["team"].get_xdata()
    array([0. , 0.3])
    >>> [text.get_text() for text in display.legend_.get_texts()]
    ['team', '95% interval', 'human alone']
    >>> matplotlib.pyplot.close(display.figure_)
    """

    curves: Any
    _: KW_ONLY
    metric: Any = None
    human: float | None = None
    machine: float | None = None

    def __post_init__(self) -> None:
        several = isinstance(self.curves, Mapping)
        self.curves = dict(self.curves) if several else {"team": self.curves}
        if not self.curves:
            raise ValueError("give at least one curve")
        for name, curve in self.curves.items():
            if not isinstance(curve, AutomationCurve):
                raise TypeError(
                    "curves must be an AutomationCurve or a dict of name to AutomationCurve, got "
                    f"{type(curve).__name__} as {name!r}"
                )
        first = next(iter(self.curves.values()))
        self.metric = next(iter(first.values)) if self.metric is None else self.metric
        for name, curve in self.curves.items():
            if self.metric not in curve.values:
                raise ValueError(
                    f"the metric {self.metric!r} was not measured for {name!r}, which has "
                    f"{list(curve.values)}"
                )
            if is_whole(curve.budgets) != is_whole(first.budgets):
                raise ValueError(
                    "some budgets are fractions and others are numbers of samples: one axis cannot "
                    "show both"
                )
            if curve.confidence != first.confidence:
                raise ValueError(
                    f"the intervals of {name!r} have the level {curve.confidence}, others "
                    f"{first.confidence}: one legend cannot name both"
                )

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        *,
        metric: Any = "error",
        human: float | None = None,
        machine: float | None = None,
        ax: Axes | None = None,
        legend: bool = True,
        line_kw: dict[str, Any] | None = None,
        fill_between_kw: dict[str, Any] | None = None,
        **options: Any,
    ) -> AutomationCurveDisplay:
        """Measure one or more teams at each budget over many splits, and draw the result.

        Parameters
        ----------
        estimator : estimator with `predict_assisted`, or dict of name to estimator
            `AssistedSVC`, a baseline, or a pipeline around one; clones of it are fitted.
        X : array-like of shape (n_samples, n_features)
            Cases.
        y : array-like of shape (n_samples,)
            True labels.
        metric : str or callable, default="error"
            The metric to measure: a name that `deferlearn.metrics.find_metric` knows, or a function.
        human, machine : float, default=None
            The metric of the human alone and of the machine alone, each drawn as a level line.
        ax : matplotlib Axes, default=None
            Where to draw; None makes a new figure.
        legend : bool, default=True
            Whether to add a legend, as in `plot`.
        line_kw, fill_between_kw : dict, default=None
            Keywords for all means and all bands, as in `plot`.
        **options
            Passed on to `deferlearn.evaluation.curves.automation_curve`: `human_labels`, which is always
            needed, and `human_scores`, `human_loss`, `budgets`, `cv`, `batch`, `groups`, `random_state`,
            `n_jobs`, `confidence` and `pos_label`.

        Returns
        -------
        display : AutomationCurveDisplay
            Drawn; the measurements are in `curves`.
        """
        require_matplotlib()
        name = metric if isinstance(metric, str) else getattr(metric, "__name__", "metric")
        curves = automation_curve(estimator, X, y, metrics={name: metric}, **options)
        display = cls(curves, metric=name, human=human, machine=machine)
        return display.plot(ax, legend=legend, line_kw=line_kw, fill_between_kw=fill_between_kw)

    @classmethod
    def from_curve(
        cls,
        curves: AutomationCurve | Mapping[str, AutomationCurve],
        *,
        metric: str | None = None,
        human: float | None = None,
        machine: float | None = None,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> AutomationCurveDisplay:
        """Draw what `deferlearn.evaluation.curves.automation_curve` measured.

        Parameters
        ----------
        curves : AutomationCurve or dict of name to AutomationCurve
            The result of `automation_curve`.
        metric : str, default=None
            Which of the metrics to draw; None is the first.
        human, machine : float, default=None
            The metric of the human alone and of the machine alone, each drawn as a level line.
        ax : matplotlib Axes, default=None
            Where to draw; None makes a new figure.
        **kwargs
            Passed on to `plot`.

        Returns
        -------
        display : AutomationCurveDisplay
            Drawn.

        Examples
        --------
        >>> import matplotlib
        >>> matplotlib.use("agg")
        >>> import numpy as np
        >>> from deferlearn.evaluation.curves import AutomationCurve
        >>> from deferlearn.plot import AutomationCurveDisplay
        >>> errors = np.array([[0.30, 0.20], [0.34, 0.18]])  # two splits, two budgets
        >>> shares = np.array([[0.0, 0.2], [0.0, 0.2]])
        >>> curve = AutomationCurve(np.array([0.0, 0.2]), {"error": errors}, shares)
        >>> display = AutomationCurveDisplay.from_curve({"assisted": curve}, machine=0.32)
        >>> display.lines_["assisted"].get_ydata()
        array([0.32, 0.19])
        >>> matplotlib.pyplot.close(display.figure_)
        """
        return cls(curves, metric=metric, human=human, machine=machine).plot(ax, **kwargs)

    def plot(
        self,
        ax: Axes | None = None,
        *,
        legend: bool = True,
        line_kw: dict[str, Any] | None = None,
        fill_between_kw: dict[str, Any] | None = None,
    ) -> AutomationCurveDisplay:
        """Draw the curves.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None makes a new figure with pyplot.
        legend : bool, default=True
            Whether to add a legend below the axes. If the figure has no layout that makes room for it,
            such as ``layout="constrained"``, the height of the axes is reduced. Without a legend, all
            artists still have labels, so that panels can share one legend:
            ``figure.legend(*ax.get_legend_handles_labels(), loc="outside lower center")``.
        line_kw, fill_between_kw : dict, default=None
            Keywords for all means (`Axes.plot`) and all bands (`Axes.fill_between`).

        Returns
        -------
        self : AutomationCurveDisplay
            With `ax_`, `figure_` and the artists.
        """
        ax = axes_or_new(ax)
        self.ax_, self.figure_ = ax, ax.figure
        self.lines_: dict[str, Line2D] = {}
        self.bands_: dict[str, PolyCollection | None] = {}
        for number, name in enumerate(self.curves):
            self._draw_curve(ax, number, name, line_kw, fill_between_kw)
        first = next(iter(self.curves.values()))
        if any(band is not None for band in self.bands_.values()):
            # One entry for the bands of all curves.
            level = f"{100 * first.confidence:.4g}% interval"
            ax.plot([], [], color="0.5", alpha=2 * BAND, linewidth=8, label=level)
        self.human_line_ = level_line(ax, "human", self.human)
        self.machine_line_ = level_line(ax, "machine", self.machine)
        label_axes(ax, first.budgets, WRITTEN.get(self.metric, self.metric))
        self.legend_ = add_legend(ax) if legend else None
        return self

    def _draw_curve(
        self,
        ax: Axes,
        number: int,
        name: str,
        line_changes: dict[str, Any] | None,
        band_changes: dict[str, Any] | None,
    ) -> None:
        from matplotlib.collections import PolyCollection
        from matplotlib.lines import Line2D

        curve = self.curves[name]
        order = np.argsort(curve.budgets, kind="stable")  # lines run from left to right
        budgets = curve.budgets[order]
        looks = {
            "color": COLOURS[number % len(COLOURS)],
            "marker": MARKERS[number % len(MARKERS)],
            "markersize": 5.0,
            "linewidth": 1.8,
            "label": name,
        }
        (line,) = ax.plot(
            budgets, curve.mean[self.metric][order], **style(Line2D, looks, line_changes)
        )
        lower, upper = curve.lower[self.metric][order], curve.upper[self.metric][order]
        self.lines_[name] = line
        self.bands_[name] = None
        if np.isfinite(lower).any():
            looks = {"facecolor": line.get_color(), "alpha": BAND, "linewidth": 0.0}
            self.bands_[name] = ax.fill_between(
                budgets, lower, upper, **style(PolyCollection, looks, band_changes)
            )
