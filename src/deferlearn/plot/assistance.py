"""Does assistance pay? The team against its machine and its human, at each budget."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from deferlearn.evaluation import AssistanceReport
from deferlearn.plot._frame import add_legend, axes_or_new, style
from deferlearn.plot.curves import ALONE, BAND, COLOURS

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class AssistanceDisplay:
    """The team's error or cost at each budget, with level lines for machine and human.

    The band is the machine's level plus the interval of the paired difference from it: where it leaves
    the machine's line, the difference is shown, and the marker is filled. A line stands at the best
    budget, if there is one.

    Parameters
    ----------
    report : AssistanceReport
        What was measured.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where it was drawn.
    figure_ : matplotlib Figure
        The figure that holds it.
    line_ : matplotlib Line2D
        The team, from the machine alone at a budget of 0 on.
    band_ : matplotlib PolyCollection
        Where the team would be at the ends of the interval of its difference from the machine.
    shown_ : matplotlib Line2D
        Markers at the budgets at which the team is shown to differ from the machine.
    machine_line_, human_line_ : matplotlib Line2D
        The level lines.
    best_line_ : matplotlib Line2D or None
        At the best budget; None if no budget is shown to help.
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

    @classmethod
    def from_report(
        cls, report: AssistanceReport, *, ax: Axes | None = None, **kwargs: Any
    ) -> AssistanceDisplay:
        """Draw what `deferlearn.assistance_report` found.

        Parameters
        ----------
        report : AssistanceReport
            What it returned.
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
        """Draw it.

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
        report, name = self.report, self.report.measure
        machine, human = report.teams[0], report.teams[-1]
        tried = report.teams[1:-1]
        budgets = np.array([machine["budget"], *(row["budget"] for row in tried)])
        low, high = (
            np.array([machine[name], *(machine[name] + row[end] for row in tried)])
            for end in ("difference_low", "difference_high")
        )
        looks: dict[str, Any] = {
            "color": COLOURS[0],
            "marker": "o",
            "markersize": 5.5,
            "markerfacecolor": "white",
            "linewidth": 1.8,
            "label": "team",
        }
        values = np.array([machine[name], *(row[name] for row in tried)])
        (self.line_,) = ax.plot(budgets, values, **style(Line2D, looks, line_kw))
        level = f"{100 * report.confidence:.4g}%"
        looks = {
            "facecolor": self.line_.get_color(),
            "alpha": BAND,
            "linewidth": 0.0,
            "label": f"{level} interval, paired",
        }
        self.band_ = ax.fill_between(
            budgets, low, high, **style(PolyCollection, looks, fill_between_kw)
        )
        self.shown_ = self._draw_shown(ax, budgets, values, low, high)
        self.machine_line_ = _level_line(ax, "machine", machine[name])
        self.human_line_ = _level_line(ax, "human", human[name])
        self.best_line_ = None
        if report.best_budget > 0:
            self.best_line_ = ax.axvline(
                report.best_budget, color="0.6", linewidth=1.0, zorder=1.0, label="best budget"
            )
        unit = "number of training samples" if budgets.dtype.kind in "iu" else "share of cases"
        ax.set(xlabel=f"budget ({unit})", ylabel=f"{name} of the team")
        self.legend_ = add_legend(ax) if legend else None
        return self

    def _draw_shown(self, ax: Axes, budgets: Any, values: Any, low: Any, high: Any) -> Any:
        """Fill the markers where the interval leaves the machine's level."""
        level = values[0]
        clear = (low > level) | (high < level)
        (markers,) = ax.plot(
            budgets[clear],
            values[clear],
            linestyle="none",
            marker=self.line_.get_marker(),
            markersize=self.line_.get_markersize(),
            color=self.line_.get_color(),
            zorder=self.line_.get_zorder() + 0.1,
            label="clear difference" if clear.any() else None,
        )
        return markers


def _level_line(ax: Axes, who: str, value: float) -> Any:
    colour, dashes = ALONE[who]
    return ax.axhline(
        value, color=colour, linestyle=dashes, linewidth=1.5, zorder=1.5, label=f"{who} alone"
    )
