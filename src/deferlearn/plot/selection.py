"""The machine before and after a selection: the samples that it defers, and the boundary that results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from deferlearn.plot._frame import require_matplotlib
from deferlearn.plot.boundary import DeferralBoundaryDisplay
from deferlearn.plot.plane import check_plane, check_samples, grid_around

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from deferlearn.objective import SVMObjective
    from deferlearn.selection import SelectionResult


@dataclass(eq=False, repr=False)
class SelectionDisplay:
    """Two panels: the machine that keeps all samples, and the machine that defers some of them.

    `from_result` makes it and computes everything; `plot` only draws.

    Parameters
    ----------
    X : array-like of shape (n_samples, 2)
        Features.
    y : array-like of shape (n_samples,)
        Labels, -1 or +1.
    deferred : array-like of shape (n_samples,)
        Mask of the deferred samples.
    loss_before, loss_after : float
        Total loss of the machine alone, and of machine and human together after the deferral.
    xx, yy : array-like of shape (n_rows, n_columns)
        A grid of points.
    decision_before, decision_after : array-like of shape (n_rows, n_columns)
        The decision functions on the grid of the machine for all samples, and of the machine for the
        samples that it keeps.

    Attributes
    ----------
    axes_ : tuple of two matplotlib Axes
        Where it was drawn.
    figure_ : matplotlib Figure
        The figure that holds the axes.

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

    X: Any
    _: KW_ONLY
    y: Any
    deferred: Any
    loss_before: float
    loss_after: float
    xx: Any
    yy: Any
    decision_before: Any
    decision_after: Any

    def __post_init__(self) -> None:
        mask = np.asarray(self.deferred, dtype=bool)
        self.X, self.y, self.deferred = check_samples(self.X, self.y, mask)
        for name in ("xx", "yy", "decision_before", "decision_after"):
            setattr(self, name, np.asarray(getattr(self, name), dtype=np.float64))

    @classmethod
    def from_result(
        cls,
        objective: SVMObjective,
        X: ArrayLike,
        y: ArrayLike,
        result: SelectionResult,
        *,
        grid_resolution: int = 200,
    ) -> SelectionDisplay:
        """Compute everything that the picture needs.

        Parameters
        ----------
        objective : SVMObjective
            The objective of `X` and `y` from which the selection started; it is not changed.
        X : array-like of shape (n_samples, 2)
            Features.
        y : array-like of shape (n_samples,)
            Labels, -1 or +1.
        result : SelectionResult
            The result of a selection.
        grid_resolution : int, default=200
            Points along each axis at which the decision functions are evaluated.

        Returns
        -------
        display : SelectionDisplay
            Not drawn yet.
        """
        X = check_plane(X)
        after = objective.copy()
        deferred = np.zeros(len(X), dtype=bool)
        for k in result.order:
            after.remove(int(k))
            deferred[k] = True
        xx, yy, points = grid_around(X, grid_resolution)
        return cls(
            X,
            y=y,
            deferred=deferred,
            loss_before=result.initial_value,
            loss_after=result.initial_value - result.value,
            xx=xx,
            yy=yy,
            decision_before=objective.decision_function(points).reshape(xx.shape),
            decision_after=after.decision_function(points).reshape(xx.shape),
        )

    def plot(self, axes: Sequence[Axes] | None = None) -> SelectionDisplay:
        """Draw both panels.

        Parameters
        ----------
        axes : two matplotlib Axes of one figure, default=None
            Where to draw; None makes a new figure with pyplot. The legend is below the panels; a figure
            with ``layout="constrained"`` makes room for it.

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
        panels = [
            (left, np.zeros_like(self.deferred), self.decision_before),
            (right, self.deferred, self.decision_after),
        ]
        for ax, deferred, decision in panels:
            DeferralBoundaryDisplay(
                self.X,
                y=self.y,
                deferred=deferred,
                xx0=self.xx,
                xx1=self.yy,
                decision=decision,
                classes=(-1, 1),
            ).plot(ax, legend=False)
        left.set_title(f"Full automation:\ntotal loss {self.loss_before:#.4g}")
        right.set_title(
            f"{self.deferred.sum()} of {len(self.X)} deferred:\ntotal loss {self.loss_after:#.4g}"
        )
        right.set_ylabel("")
        self.axes_ = (left, right)
        self.figure_ = left.figure
        shown: dict[str, Any] = {}
        for ax in axes:
            handles, labels = ax.get_legend_handles_labels()
            shown |= zip(labels, handles, strict=True)
        # Legends fill column by column: samples first, lines last.
        names = sorted(shown, key=lambda name: name.startswith(("boundary", "margin")))
        self.figure_.legend(
            [shown[name] for name in names],
            names,
            loc="outside lower center",
            ncols=4,
            frameon=False,
        )
        return self
