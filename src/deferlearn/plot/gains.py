"""Which samples are worth deferring, seen against the machine's boundary."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Blue and vermilion of Okabe and Ito's palette, told apart with every kind of colour vision; the
# markers differ too, for print without colour.
CLASS_STYLE = {1: ("#D55E00", "^"), -1: ("#0072B2", "o")}

# Marker areas in points^2, for no gain and for the largest: visible, and not hiding the neighbours.
SMALLEST_MARKER, LARGEST_MARKER = 14.0, 90.0

# A decision function that varies by less than this share of its size is a constant, rounded: such
# a machine answers alike everywhere, and contours of rounding errors would only mislead.
CONSTANT = 1e-6

# Free room around the samples, as a share of their range.
FRAME = 0.06


class _Objective(Protocol):
    """What is asked of an objective here."""

    def gains(self, ks: Any) -> NDArray[np.float64]: ...

    def decision_function(self, X: Any) -> NDArray[np.float64]: ...


class GainDisplay:
    """Picture of samples in the plane, shaded by what it is worth to defer each of them.

    Make it with `from_objective`, which computes everything; `plot` then only draws.

    Parameters
    ----------
    X : array-like of shape (n_samples, 2)
        Features.
    y : array-like of shape (n_samples,)
        Labels, -1 or +1.
    gains : array-like of shape (n_samples,)
        Gain of deferring each sample, by which it is shaded and sized.
    xx, yy, decision : array-like of shape (n_rows, n_columns)
        A grid of points, and the machine's decision function there.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where it was drawn.
    figure_ : matplotlib Figure
        The figure that holds `ax_`.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> from deferlearn.datasets import make_linear
    >>> from deferlearn.objective import SVMObjective
    >>> from deferlearn.plot import GainDisplay
    >>> X, y = make_linear(60, random_state=0)
    >>> display = GainDisplay.from_objective(SVMObjective(X, y, alpha=1.0), X, y)
    >>> display.gains.shape
    (60,)
    >>> display.plot().ax_.get_xlabel()
    'first feature'
    >>> matplotlib.pyplot.close(display.figure_)
    """

    def __init__(
        self,
        X: ArrayLike,
        y: ArrayLike,
        gains: ArrayLike,
        *,
        xx: ArrayLike,
        yy: ArrayLike,
        decision: ArrayLike,
    ) -> None:
        self.X = _check_plane(X)
        self.y = np.asarray(y)
        self.gains = np.asarray(gains, dtype=np.float64)
        self.xx = np.asarray(xx, dtype=np.float64)
        self.yy = np.asarray(yy, dtype=np.float64)
        self.decision = np.asarray(decision, dtype=np.float64)
        if not self.y.shape == self.gains.shape == (len(self.X),):
            raise ValueError(
                f"X has {len(self.X)} rows, y the shape {self.y.shape} and gains the shape "
                f"{self.gains.shape}: give one label and one gain a sample"
            )

    @classmethod
    def from_objective(
        cls,
        objective: _Objective,
        X: ArrayLike,
        y: ArrayLike,
        *,
        gains: ArrayLike | None = None,
        grid_resolution: int = 200,
    ) -> GainDisplay:
        """Compute all that the picture needs.

        Parameters
        ----------
        objective : SVMObjective
            The objective of `X` and `y`, none of them deferred yet.
        X : array-like of shape (n_samples, 2)
            Features.
        y : array-like of shape (n_samples,)
            Labels, -1 or +1.
        gains : array-like of shape (n_samples,), default=None
            The gains where they are already known; otherwise they are computed.
        grid_resolution : int, default=200
            Points along each axis at which the decision function is evaluated.

        Returns
        -------
        display : GainDisplay
            Nothing is drawn yet.
        """
        X = _check_plane(X)
        if gains is None:
            gains = objective.gains(range(len(X)))
        low, high = X.min(axis=0), X.max(axis=0)
        # Samples that share a coordinate span no range; one unit keeps the grid a rectangle.
        room = FRAME * np.where(high > low, high - low, 1.0)
        xx, yy = np.meshgrid(*np.linspace(low - room, high + room, grid_resolution).T)
        decision = objective.decision_function(np.column_stack([xx.ravel(), yy.ravel()]))
        return cls(X, y, gains, xx=xx, yy=yy, decision=decision.reshape(xx.shape))

    def plot(self, ax: Axes | None = None) -> GainDisplay:
        """Draw it.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None makes a new figure with pyplot.

        Returns
        -------
        self : GainDisplay
            With `ax_` and `figure_`.
        """
        try:
            import matplotlib  # noqa: F401
        except ImportError as error:
            raise ImportError(
                "drawing needs matplotlib: pip install 'deferlearn[plot]'", name="matplotlib"
            ) from error

        if ax is None:
            import matplotlib.pyplot as plt

            _, ax = plt.subplots(figsize=(8, 6), layout="constrained")
        self._draw_machine(ax)
        self._draw_samples(ax)
        ax.set(
            xlabel="first feature",
            ylabel="second feature",
            xlim=(self.xx.min(), self.xx.max()),
            ylim=(self.yy.min(), self.yy.max()),
        )
        ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.1), ncols=4, frameon=False)
        self.ax_ = ax
        self.figure_ = ax.figure
        return self

    def _draw_machine(self, ax: Axes) -> None:
        if np.ptp(self.decision) <= CONSTANT * np.abs(self.decision).max():
            return
        # Contours do not enter legends, so lines without points stand for them.
        for level, style, label in [(0.0, "-", "boundary"), (1.0, "--", "margins")]:
            levels = sorted({-level, level})
            # Outside the range there is nothing to draw, and matplotlib would warn.
            if any(self.decision.min() < at < self.decision.max() for at in levels):
                ax.contour(self.xx, self.yy, self.decision, levels, colors="0.25", linestyles=style)
                ax.plot([], [], color="0.25", linestyle=style, label=label)

    def _draw_samples(self, ax: Axes) -> None:
        from matplotlib.cm import ScalarMappable
        from matplotlib.colors import LinearSegmentedColormap, Normalize
        from matplotlib.lines import Line2D

        top = max(float(self.gains.max(initial=0.0)), np.finfo(float).tiny)
        shade = Normalize(0.0, top)
        share = np.clip(self.gains / top, 0.0, 1.0)
        order = np.argsort(self.gains)  # the largest gains are drawn last, on top
        for label, (colour, marker) in CLASS_STYLE.items():
            rows = order[self.y[order] == label]
            colours = LinearSegmentedColormap.from_list(f"class {label:+d}", ["white", colour])
            ax.scatter(
                self.X[rows, 0],
                self.X[rows, 1],
                s=SMALLEST_MARKER + (LARGEST_MARKER - SMALLEST_MARKER) * share[rows],
                c=self.gains[rows],
                cmap=colours,
                norm=shade,
                marker=marker,
                edgecolors=colour,
                linewidths=0.8,
                zorder=3,
            )
            # The legend shows the class at full shade; shades are the colour bars' business.
            ax.add_line(
                Line2D([], [], color=colour, marker=marker, linestyle="", label=f"class {label:+d}")
            )
            bar = ax.figure.colorbar(
                ScalarMappable(shade, colours), ax=ax, pad=0.01, fraction=0.05, aspect=30
            )
            bar.ax.set_title(f"{label:+d}", fontsize="medium")
            if label == 1:
                bar.set_label("gain of deferring the sample")
            else:
                bar.set_ticks([])


def _check_plane(X: ArrayLike) -> NDArray[np.float64]:
    X = np.asarray(X, dtype=np.float64)
    if X.ndim != 2 or X.shape[1] != 2 or len(X) == 0:
        raise ValueError(
            f"only samples with two features can be drawn in the plane, got the shape {X.shape}: "
            "choose two of the features"
        )
    return X
