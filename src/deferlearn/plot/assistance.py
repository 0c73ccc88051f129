"""Does assistance pay? The team compared with its machine and its human, at each budget."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from deferlearn.evaluation import AssistanceReport
from deferlearn.plot._frame import add_legend, axes_or_new, label_axes, level_line, style
from deferlearn.plot.curves import BAND, COLOURS

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class AssistanceDisplay:
    """The team's error or cost at each budget, with level lines for machine and human.

    The band is the machine's level plus the interval of the paired difference from it: where the band
    leaves the machine's line, the difference is clear, and the marker is filled. A vertical line marks the
    best budget, if there is one.

    Parameters
    ----------
    report : AssistanceReport
        The measurements.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where it was drawn.
    figure_ : matplotlib Figure
        The figure that holds it.
    line_ : matplotlib Line2D
        The team, starting with the machine alone at a budget of 0.
    band_ : matplotlib PolyCollection
        The machine's level plus the interval of the team's difference from it.
    shown_ : matplotlib Line2D
        Markers at the budgets at which the team clearly differs from the machine.
    machine_line_, human_line_ : matplotlib Line2D
        The level lines.
    best_line_ : matplotlib Line2D or None
        At the best budget; None if no budget clearly helps.
    legend_ : matplotlib Legend or None
        The legend.

    See Also
    --------
    deferlearn.assistance_report : The measurement.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> import numpy as np
    >>> from deferlearn import assistance_report
    >>> from deferlearn.teams import UncertaintyTriage
    >>> from deferlearn.datasets import make_linear
    >>> from deferlearn.plot.assistance import AssistanceDisplay
    >>> X, y = make_linear(150, random_state=1)
    >>> expert = np.where(np.arange(150) % 10, y, -y)
    >>> report = assistance_report(
    ...     UncertaintyTriage(alpha=0.1, cv=None), X, y, expert, budgets=[0.2, 0.4], random_state=0
    ... )
    >>> display = AssistanceDisplay.from_report(report)
    >>> display.line_.get_xdata()
    array([0. , 0.2, 0.4])
    >>> matplotlib.pyplot.close(display.figure_)
    """

    def __init__(self, report: AssistanceReport) -> None:
        if not isinstance(report, AssistanceReport):
            raise TypeError(f"report must be an AssistanceReport, got {type(report).__name__}")
        self.report = report
        machine, *tried, _ = report.teams
        name = report.measure
        level = machine[name]
        self.budgets = np.array([machine["budget"], *(row["budget"] for row in tried)])
        self.values = np.array([level, *(row[name] for row in tried)])
        self.lower = np.array([level, *(level + row["difference_low"] for row in tried)])
        self.upper = np.array([level, *(level + row["difference_high"] for row in tried)])

    @classmethod
    def from_report(
        cls, report: AssistanceReport, *, ax: Axes | None = None, **kwargs: Any
    ) -> AssistanceDisplay:
        """Draw what `deferlearn.assistance_report` found.

        Parameters
        ----------
        report : AssistanceReport
            The result of `deferlearn.assistance_report`.
        ax : matplotlib Axes, default=None
            Where to draw; None makes a new figure.
        **kwargs
            Passed on to `plot`.

        Returns
        -------
        display : AssistanceDisplay
            Drawn.
        """
        return cls(report).plot(ax, **kwargs)

    def plot(
        self,
        ax: Axes | None = None,
        *,
        legend: bool = True,
        line_kw: dict[str, Any] | None = None,
        fill_between_kw: dict[str, Any] | None = None,
    ) -> AssistanceDisplay:
        """Draw team, machine and human.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None makes a new figure with pyplot.
        legend : bool, default=True
            Whether to add a legend below the axes.
        line_kw, fill_between_kw : dict, default=None
            Keywords for the team's line (`Axes.plot`) and its band (`Axes.fill_between`).

        Returns
        -------
        self : AssistanceDisplay
            With `ax_`, `figure_` and the artists.
        """
        ax = axes_or_new(ax)
        from matplotlib.collections import PolyCollection
        from matplotlib.lines import Line2D

        self.ax_, self.figure_ = ax, ax.figure
        report, level = self.report, self.values[0]
        looks: dict[str, Any] = {
            "color": COLOURS[0],
            "marker": "o",
            "markersize": 5.5,
            "markerfacecolor": "white",
            "linewidth": 1.8,
            "label": "team",
        }
        (self.line_,) = ax.plot(self.budgets, self.values, **style(Line2D, looks, line_kw))
        looks = {
            "facecolor": self.line_.get_color(),
            "alpha": BAND,
            "linewidth": 0.0,
            "label": f"{100 * report.confidence:.4g}% interval, paired",
        }
        self.band_ = ax.fill_between(
            self.budgets, self.lower, self.upper, **style(PolyCollection, looks, fill_between_kw)
        )
        clear = (self.lower > level) | (self.upper < level)
        (self.shown_,) = ax.plot(
            self.budgets[clear],
            self.values[clear],
            linestyle="none",
            marker=self.line_.get_marker(),
            markersize=self.line_.get_markersize(),
            color=self.line_.get_color(),
            zorder=self.line_.get_zorder() + 0.1,
            label="clear difference" if clear.any() else None,
        )
        self.machine_line_ = level_line(ax, "machine", level)
        self.human_line_ = level_line(ax, "human", report.teams[-1][report.measure])
        self.best_line_ = None
        if report.best_budget > 0:
            self.best_line_ = ax.axvline(
                report.best_budget, color="0.6", linewidth=1.0, zorder=1.0, label="best budget"
            )
        label_axes(ax, self.budgets, report.measure)
        self.legend_ = add_legend(ax) if legend else None
        return self
