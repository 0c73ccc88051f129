"""The machine before and after a selection: whom it gave to humans, and the boundary it won by that."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, zip_longest
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deferlearn.plot._frame import require_matplotlib

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Blue and vermilion of Okabe and Ito's palette, told apart with every kind of colour vision; the
# markers differ too, for print without colour.
CLASS_STYLE = {1: ("#D55E00", "^"), -1: ("#0072B2", "o")}

# Area in points^2 and width of the edge: a hollow marker still shows its shape at half a page's width.
MARKER, EDGE = 26.0, 1.0

# Told apart by dashes; nearly black, so that they stand out from the samples.
LINES: dict[str, Literal["-", "--"]] = {"boundary": "-", "margins": "--"}
LINE_COLOUR, LINE_WIDTH = "0.15", 1.8

# A decision function that varies by less than this share of its size is a constant, rounded: such
# a machine answers alike everywhere, and contours of rounding errors would only mislead.
CONSTANT = 1e-6

# Free room around the samples, as a share of their range.
FRAME = 0.06


class _Objective(Protocol):
    """What is asked of an objective here."""

    def copy(self) -> Any: ...

    def remove(self, k: int) -> None: ...

    def decision_function(self, X: Any) -> NDArray[np.float64]: ...


class _Result(Protocol):
    """What is asked of a selection's result here."""

    order: NDArray[np.int64]
    value: float
    initial_value: float


class SelectionDisplay:
    """Two panels: the machine alone, and the machine with the samples it may defer to humans.

    Make it with `from_result`, which computes everything; `plot` then only draws.

    Parameters
    ----------
    X : array-like of shape (n_samples, 2)
        Features.
    y : array-like of shape (n_samples,)
        Labels, -1 or +1.
    deferred : array-like of shape (n_samples,)
        Mask of the deferred samples.
    loss_before, loss_after : float
        Total loss of the machine alone, and of machine and human after the deferral.
    xx, yy : array-like of shape (n_rows, n_columns)
        A grid of points.
    decision_before, decision_after : array-like of shape (n_rows, n_columns)
        The decision function there of the machine for all samples, and of that for those it keeps.

    Attributes
    ----------
    axes_ : tuple of two matplotlib Axes
        Where it was drawn.
    figure_ : matplotlib Figure
        The figure that holds them.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> from deferlearn.datasets import make_linear
    >>> from deferlearn.humans import UniformHuman
    >>> from deferlearn.objective import SVMObjective
    >>> from deferlearn.plot import SelectionDisplay
    >>> from deferlearn.selection import distorted_greedy
    >>> X, y = make_linear(60, random_state=0)
    >>> objective = SVMObjective(X, y, alpha=1.0)
    >>> result = distorted_greedy(objective, UniformHuman(0.2).losses(y, random_state=1), n=12)
    >>> display = SelectionDisplay.from_result(objective, X, y, result)
    >>> int(display.deferred.sum())
    12
    >>> display.plot().axes_[0].get_xlabel()
    'first feature'
    >>> matplotlib.pyplot.close(display.figure_)
    """

    def __init__(
        self,
        X: ArrayLike,
        y: ArrayLike,
        deferred: ArrayLike,
        *,
        loss_before: float,
        loss_after: float,
        xx: ArrayLike,
        yy: ArrayLike,
        decision_before: ArrayLike,
        decision_after: ArrayLike,
    ) -> None:
        self.X = check_plane(X)
        self.y = np.asarray(y)
        self.deferred = np.asarray(deferred, dtype=bool)
        self.loss_before = float(loss_before)
        self.loss_after = float(loss_after)
        self.xx = np.asarray(xx, dtype=np.float64)
        self.yy = np.asarray(yy, dtype=np.float64)
        self.decision_before = np.asarray(decision_before, dtype=np.float64)
        self.decision_after = np.asarray(decision_after, dtype=np.float64)
        if not self.y.shape == self.deferred.shape == (len(self.X),):
            raise ValueError(
                f"X has {len(self.X)} rows, y the shape {self.y.shape} and deferred the shape "
                f"{self.deferred.shape}: give one label and one entry of the mask a sample"
            )

    @classmethod
    def from_result(
        cls,
        objective: _Objective,
        X: ArrayLike,
        y: ArrayLike,
        result: _Result,
        *,
        grid_resolution: int = 200,
    ) -> SelectionDisplay:
        """Compute all that the picture needs.

        Parameters
        ----------
        objective : SVMObjective
            The objective of `X` and `y` from which the selection started; left as it was.
        X : array-like of shape (n_samples, 2)
            Features.
        y : array-like of shape (n_samples,)
            Labels, -1 or +1.
        result : SelectionResult
            What a selection returned.
        grid_resolution : int, default=200
            Points along each axis at which the decision functions are evaluated.

        Returns
        -------
        display : SelectionDisplay
            Nothing is drawn yet.
        """
        X = check_plane(X)
        after = objective.copy()
        deferred = np.zeros(len(X), dtype=bool)
        for k in result.order:
            after.remove(int(k))
            deferred[k] = True
        low, high = X.min(axis=0), X.max(axis=0)
        # Samples that share a coordinate span no range; one unit keeps the grid a rectangle.
        room = FRAME * np.where(high > low, high - low, 1.0)
        xx, yy = np.meshgrid(*np.linspace(low - room, high + room, grid_resolution).T)
        points = np.column_stack([xx.ravel(), yy.ravel()])
        return cls(
            X,
            y,
            deferred,
            loss_before=result.initial_value,
            loss_after=result.initial_value - result.value,
            xx=xx,
            yy=yy,
            decision_before=objective.decision_function(points).reshape(xx.shape),
            decision_after=after.decision_function(points).reshape(xx.shape),
        )

    def plot(self, axes: Sequence[Axes] | None = None) -> SelectionDisplay:
        """Draw it.

        Parameters
        ----------
        axes : two matplotlib Axes of one figure, default=None
            Where to draw; None makes a new figure with pyplot. The legend stands below, for which a
            figure with ``layout="constrained"`` makes room.

        Returns
        -------
        self : SelectionDisplay
            With `axes_` and `figure_`.
        """
        require_matplotlib()
        if axes is None:
            import matplotlib.pyplot as plt

            _, axes = plt.subplots(
                1, 2, sharex=True, sharey=True, figsize=(9, 5.4), layout="constrained"
            )
        if len(axes) != 2:
            raise ValueError(f"the picture has two panels: give two axes, got {len(axes)}")
        left, right = axes
        n, nobody = len(self.X), np.zeros(len(self.X), dtype=bool)
        drawn = self._draw_panel(left, nobody, self.decision_before)
        drawn |= self._draw_panel(right, self.deferred, self.decision_after)
        left.set_title(f"Full automation:\ntotal loss {self.loss_before:#.4g}")
        right.set_title(
            f"{self.deferred.sum()} of {n} deferred:\ntotal loss {self.loss_after:#.4g}"
        )
        left.set_ylabel("second feature")
        self.axes_ = (left, right)
        self.figure_ = left.figure
        self._draw_legend(drawn)
        return self

    def _draw_panel(
        self, ax: Axes, deferred: NDArray[np.bool_], decision: NDArray[np.float64]
    ) -> set[str]:
        """One machine and its samples; returns which of its lines can be seen."""
        for label, (colour, marker) in CLASS_STYLE.items():
            for rows, face, above in [(~deferred, "none", 2), (deferred, colour, 3)]:
                x = self.X[rows & (self.y == label)]
                ax.scatter(
                    x[:, 0], x[:, 1], s=MARKER, marker=marker, facecolors=face,
                    edgecolors=colour, linewidths=EDGE, zorder=above,
                )  # fmt: skip
        ax.set(
            xlabel="first feature",
            xlim=(self.xx.min(), self.xx.max()),
            ylim=(self.yy.min(), self.yy.max()),
        )
        if is_constant(decision):
            # Below the panel, where it can hide no sample.
            ax.set_xlabel("first feature\n(no boundary: the machine\nanswers alike everywhere)")
            return set()
        drawn = set()
        for name, levels in [("boundary", [0.0]), ("margins", [-1.0, 1.0])]:
            # Outside the range there is nothing to draw, and matplotlib would warn.
            if any(decision.min() < at < decision.max() for at in levels):
                ax.contour(
                    self.xx, self.yy, decision, levels, colors=LINE_COLOUR,
                    linestyles=LINES[name], linewidths=LINE_WIDTH, zorder=4,
                )  # fmt: skip
                drawn.add(name)
        return drawn

    def _draw_legend(self, drawn: set[str]) -> None:
        from matplotlib.legend_handler import HandlerTuple
        from matplotlib.lines import Line2D

        def marker(label: int, filled: bool) -> Line2D:
            colour, shape = CLASS_STYLE[label]
            face = colour if filled else "none"
            return Line2D([], [], color=colour, marker=shape, markerfacecolor=face, linestyle="")

        samples: list[tuple[Any, str]] = [
            (marker(label, False), f"class {label:+d}, kept")
            for label in CLASS_STYLE
            if np.any(self.y == label)
        ]
        taken = [label for label in CLASS_STYLE if np.any(self.deferred & (self.y == label))]
        if taken:
            samples.append((tuple(marker(label, True) for label in taken), "deferred"))
        lines = [
            (Line2D([], [], color=LINE_COLOUR, linestyle=style, linewidth=LINE_WIDTH), name)
            for name, style in LINES.items()
            if name in drawn
        ]
        # Legends fill column by column: samples come to stand above, lines below.
        pairs = chain.from_iterable(zip_longest(samples, lines))
        handles, names = zip(*(pair for pair in pairs if pair is not None), strict=True)
        self.figure_.legend(
            handles,
            names,
            loc="outside lower center",
            ncols=len(samples),
            frameon=False,
            handler_map={tuple: HandlerTuple(ndivide=None)},
        )


def is_constant(decision: NDArray[np.float64]) -> bool:
    """Whether a machine with these decision values answers alike everywhere."""
    return bool(np.ptp(decision) <= CONSTANT * np.abs(decision).max(initial=0.0))


def check_plane(X: ArrayLike) -> NDArray[np.float64]:
    """Samples as an array, which needs two columns and a row at least."""
    X = np.asarray(X, dtype=np.float64)
    if X.ndim != 2 or X.shape[1] != 2 or len(X) == 0:
        raise ValueError(
            f"only samples with two features can be drawn in the plane, got the shape {X.shape}: "
            "choose two of the features"
        )
    return X
