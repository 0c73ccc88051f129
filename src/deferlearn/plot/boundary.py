"""A fitted machine in the plane: the samples it keeps, those it defers, its boundary and margins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import issparse
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from deferlearn._utils.checks import is_whole
from deferlearn._utils.types import Array, Bools
from deferlearn.plot._frame import add_legend, axes_or_new, require_matplotlib, style
from deferlearn.plot.plane import (
    CLASS_STYLE,
    EDGE,
    HALO,
    LINE_COLOUR,
    LINE_WIDTH,
    MARGIN_STYLE,
    MARKER,
    check_plane,
    check_samples,
    grid_around,
    is_constant,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import PathCollection
    from matplotlib.contour import ContourSet


@dataclass(eq=False, repr=False)
class DeferralBoundaryDisplay:
    """One picture of a fitted machine: the samples it keeps, those it defers, its boundary and margins.

    Figure 2 of the paper. Samples that the machine keeps are hollow, deferred samples are filled; the
    solid line is the boundary w.phi(x) + b = 0, the broken lines are the margins -1 and +1.

    `from_estimator` makes it, which computes and draws.

    Parameters
    ----------
    X : array-like of shape (n_samples, 2)
        Features.
    y : array-like of shape (n_samples,)
        Labels.
    deferred : array-like of bool of shape (n_samples,)
        Mask of the deferred samples.
    xx0, xx1 : array-like of shape (n_rows, n_columns)
        A grid of points, as `numpy.meshgrid` makes it.
    decision : array-like of shape (n_rows, n_columns)
        The machine's decision function on the grid.
    classes : array-like of shape (2,), default=None
        The two labels, that of positive decisions last; None takes the sorted labels of `y`.
    xlabel, ylabel : str, default=None
        Names of the features.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where it was drawn.
    figure_ : matplotlib Figure
        The figure that holds it.
    kept_markers_, deferred_markers_ : tuple of two matplotlib PathCollection
        Markers of the samples, class by class in the order of `classes`.
    boundary_ : matplotlib ContourSet or None
        The boundary; None if it lies outside the picture or the machine always gives the same answer.
    margins_ : tuple of two matplotlib ContourSet or None
        The margins -1 and +1, of the first and of the second class; None for one that is not visible.
    legend_ : matplotlib Legend or None
        The legend.

    See Also
    --------
    SelectionDisplay : The machine before and after a selection, without an estimator.
    sklearn.inspection.DecisionBoundaryDisplay : The answers of any classifier in the plane.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> from deferlearn import AssistedSVC
    >>> from deferlearn.datasets import make_linear
    >>> from deferlearn.humans import UniformHuman
    >>> from deferlearn.plot import DeferralBoundaryDisplay
    >>> X, y = make_linear(100, random_state=3)
    >>> scores = UniformHuman(0.2).scores(y, random_state=0)
    >>> clf = AssistedSVC(budget=0.3, cv=None).fit(X, y, human_scores=scores)
    >>> display = DeferralBoundaryDisplay.from_estimator(clf, X, y)
    >>> int(display.deferred.sum())
    30
    >>> display.boundary_.levels
    array([0.])
    >>> matplotlib.pyplot.close(display.figure_)
    """

    X: Any
    _: KW_ONLY
    y: Any
    deferred: Any
    xx0: Any
    xx1: Any
    decision: Any
    classes: Any = None
    xlabel: str | None = None
    ylabel: str | None = None

    def __post_init__(self) -> None:
        self.X, self.y, self.deferred = check_samples(self.X, self.y, self.deferred)
        for name in ("xx0", "xx1", "decision"):
            setattr(self, name, np.asarray(getattr(self, name), dtype=np.float64))
        self.classes = np.unique(self.y) if self.classes is None else np.asarray(self.classes)
        if self.deferred.dtype != np.bool_:
            raise ValueError(
                f"deferred must be a mask of booleans, got the type {self.deferred.dtype}"
            )
        if self.classes.shape != (2,):
            raise ValueError(
                f"the machine has two classes, got {self.classes.tolist()[:5]}: give both as classes"
            )
        unknown = self.y[~np.isin(self.y, self.classes)]
        if len(unknown):
            raise ValueError(
                f"y has the label {unknown.tolist()[0]!r}, which is not one of the classes "
                f"{self.classes.tolist()}"
            )

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        *,
        deferred: str | ArrayLike = "fit",
        grid_resolution: int = 200,
        xlabel: str | None = None,
        ylabel: str | None = None,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> DeferralBoundaryDisplay:
        """Compute the machine's decisions around some samples, and draw them.

        Parameters
        ----------
        estimator : fitted estimator
            `AssistedSVC`, or a pipeline or search around it.
        X : array-like of shape (n_samples, 2)
            Samples, in the form that `estimator` takes.
        y : array-like of shape (n_samples,)
            Their labels.
        deferred : {"fit", "defer", "defer_top"} or mask of shape (n_samples,), default="fit"
            Which samples are deferred. "fit": those deferred in training, if X is the X of `fit`. For
            other X, "defer" and "defer_top" call these methods of the estimator.
        grid_resolution : int, default=200
            Points along each axis at which the decision function is evaluated.
        xlabel, ylabel : str, default=None
            Names of the features; None takes those of a data frame.
        ax : matplotlib Axes, default=None
            Where to draw; None makes a new figure.
        **kwargs
            Passed on to `plot`.

        Returns
        -------
        display : DeferralBoundaryDisplay
            Drawn.
        """
        require_matplotlib()
        check_is_fitted(estimator)
        if not is_whole(grid_resolution) or grid_resolution < 2:
            raise ValueError(f"grid_resolution must be an integer from 2, got {grid_resolution!r}")
        plane = check_plane(_dense(X))
        if not np.isfinite(plane).all():
            raise ValueError(
                "X has missing or infinite values, which cannot be drawn in the plane: leave these "
                "samples out"
            )
        mask = _deferred_mask(estimator, X, deferred)
        xx0, xx1, points = grid_around(plane, grid_resolution)
        names, grid = getattr(X, "columns", None), points
        if names is not None:
            # scikit-learn checks names: the grid must have those of X. Frames of pandas and of
            # other libraries can be made from a dict of columns.
            grid = type(X)(dict(zip(names, points.T, strict=True)))
            xlabel = str(names[0]) if xlabel is None else xlabel
            ylabel = str(names[1]) if ylabel is None else ylabel
        display = cls(
            plane,
            y=y,
            deferred=mask,
            xx0=xx0,
            xx1=xx1,
            decision=np.reshape(estimator.decision_function(grid), xx0.shape),
            classes=estimator.classes_,
            xlabel=xlabel,
            ylabel=ylabel,
        )
        return display.plot(ax, **kwargs)

    def plot(
        self,
        ax: Axes | None = None,
        *,
        legend: bool = True,
        scatter_kw: dict[str, Any] | None = None,
        contour_kw: dict[str, Any] | None = None,
    ) -> DeferralBoundaryDisplay:
        """Draw samples, boundary and margins.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None makes a new figure with pyplot.
        legend : bool, default=True
            Whether to add a legend below the axes. If the figure has no layout that makes room for it,
            such as ``layout="constrained"``, the height of the axes is reduced. Without a legend, all
            artists still have labels, so that panels can share one legend:
            ``figure.legend(*ax.get_legend_handles_labels(), loc="outside lower center")``.
        scatter_kw, contour_kw : dict, default=None
            Keywords for all markers (`Axes.scatter`) and all lines (`Axes.contour`).

        Returns
        -------
        self : DeferralBoundaryDisplay
            With `ax_`, `figure_` and the artists.
        """
        ax = axes_or_new(ax)
        names = _names(self.classes.tolist())
        self.ax_, self.figure_ = ax, ax.figure
        self.kept_markers_, self.deferred_markers_ = (
            self._draw_samples(ax, taken, names, scatter_kw) for taken in (False, True)
        )
        xlabel = "first feature" if self.xlabel is None else self.xlabel
        if is_constant(self.decision):
            # Below the picture, where it hides no sample.
            answer = names[int(self.decision.flat[0] > 0)]
            xlabel += f"\n(no boundary: the machine\nalways answers {answer})"
        ax.set(
            xlabel=xlabel,
            ylabel="second feature" if self.ylabel is None else self.ylabel,
            xlim=(self.xx0.min(), self.xx0.max()),
            ylim=(self.xx1.min(), self.xx1.max()),
        )
        self.boundary_ = self._draw_line(ax, 0.0, LINE_COLOUR, "-", "boundary", contour_kw)
        self.margins_ = tuple(
            self._draw_line(ax, float(side), *looks, f"margin of {name}", contour_kw)
            for (side, looks), name in zip(MARGIN_STYLE.items(), names, strict=True)
        )
        self.legend_ = add_legend(ax) if legend else None
        return self

    def _draw_samples(
        self, ax: Axes, taken: bool, names: Sequence[str], changes: dict[str, Any] | None
    ) -> tuple[PathCollection, ...]:
        """Markers of all kept or of all deferred samples, class by class."""
        from matplotlib.collections import PathCollection

        drawn = []
        for label, side, name in zip(self.classes, (-1, 1), names, strict=True):
            x = self.X[(self.deferred == taken) & (self.y == label)]
            colour, marker = CLASS_STYLE[side]
            looks = {
                "s": MARKER,
                "marker": marker,
                "facecolor": colour if taken else "none",
                "edgecolor": colour,
                "linewidth": EDGE,
                # Deferred samples are fewer: they are drawn above the others.
                "zorder": 3 if taken else 2,
                "label": f"{name}, {'deferred' if taken else 'kept'}" if len(x) else None,
            }
            drawn.append(ax.scatter(x[:, 0], x[:, 1], **style(PathCollection, looks, changes)))
        return tuple(drawn)

    def _draw_line(
        self,
        ax: Axes,
        level: float,
        colour: str,
        dashes: str,
        label: str,
        changes: dict[str, Any] | None,
    ) -> ContourSet | None:
        # There is nothing to draw outside the range, and matplotlib would warn.
        if is_constant(self.decision) or not self.decision.min() < level < self.decision.max():
            return None
        from matplotlib.patheffects import withStroke

        looks: dict[str, Any] = {
            "colors": colour,
            "linestyles": dashes,
            "linewidths": LINE_WIDTH,
            "zorder": 4,
        } | (changes or {})
        line = ax.contour(self.xx0, self.xx1, self.decision, [level], **looks)
        widest = float(np.max(line.get_linewidth()))
        line.set_path_effects([withStroke(linewidth=widest + 2 * HALO, foreground="white")])
        # Legends do not show contours: a line without points stands for it.
        shown = {"color": line.get_edgecolor()[0], "linestyle": looks["linestyles"]}
        ax.plot([], [], linewidth=widest, label=label, **shown)
        return line


def _deferred_mask(estimator: Any, X: Any, deferred: str | ArrayLike) -> Bools:
    if not isinstance(deferred, str):
        return np.asarray(deferred)
    if deferred == "fit":
        return _deferred_in_training(estimator, X)
    if deferred in ("defer", "defer_top"):
        return np.asarray(getattr(estimator, deferred)(X))
    raise ValueError(
        f"deferred must be 'fit', 'defer', 'defer_top' or a mask of booleans, got {deferred!r}"
    )


def _deferred_in_training(estimator: Any, X: Any) -> Bools:
    """The estimator's mask, if X are the samples that it was fitted on."""
    while not hasattr(estimator, "deferred_"):
        if isinstance(estimator, Pipeline) and len(estimator.steps) > 0:
            if len(estimator.steps) > 1:
                X = estimator[:-1].transform(X)
            estimator = estimator[-1]
        elif hasattr(estimator, "best_estimator_"):
            estimator = estimator.best_estimator_
        else:
            raise ValueError(
                f"{type(estimator).__name__} does not say which samples it deferred in training "
                "(deferred_): give a mask of the deferred samples, deferred=..."
            )
    mask = np.asarray(estimator.deferred_)
    cases = _dense(X)
    rows, vectors = getattr(estimator, "support_", []), getattr(estimator, "support_vectors_", [])
    others = len(cases) != len(mask)
    # The support vectors show whether the rows of X are those of the mask.
    if not others and len(rows) and len(rows) == np.shape(vectors)[0]:
        others = not np.allclose(cases[rows], _dense(vectors))
    if others:
        raise ValueError(
            f"X ({len(cases)} rows) are not the samples of fit ({len(mask)} rows), to which "
            "deferred='fit' refers: for other samples use deferred='defer' or 'defer_top'"
        )
    return mask


def _dense(X: Any) -> Array:
    return np.asarray(X.toarray() if issparse(X) else X, dtype=np.float64)


def _names(classes: Sequence[Any]) -> list[str]:
    if set(classes) == {-1, 1}:
        return [f"class {label:+.0f}" for label in classes]
    return [label if isinstance(label, str) else f"class {label}" for label in classes]
