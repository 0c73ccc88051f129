from types import SimpleNamespace

import numpy as np
import pytest
from matplotlib.collections import PathCollection
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure

from deferlearn.objective import SVMObjective
from deferlearn.plot import SelectionDisplay
from deferlearn.plot.plane import CLASS_STYLE
from deferlearn.selection import distorted_greedy

X = np.array([[0.0, 0.0], [4.0, 1.0], [1.0, 3.0], [3.0, 2.0]])
LABELS = np.array([-1, 1, -1, 1])


class PlaneObjective:
    """Its machine is the plane slope * (x_0 - 2) + shift; each removal raises the slope by a half."""

    def __init__(self, slope=1.0, shift=0.0, removed=()):
        self.slope, self.shift, self.removed = slope, shift, list(removed)

    def copy(self):
        return PlaneObjective(self.slope, self.shift, self.removed)

    def remove(self, k):
        self.removed.append(k)
        self.slope *= 1.5

    def decision_function(self, points):
        return self.slope * (points[:, 0] - 2.0) + self.shift


def selected(*order):
    return SimpleNamespace(order=np.array(order, dtype=np.int64), value=1.5, initial_value=4.0)


@pytest.fixture
def axes():
    return Figure(layout="constrained").subplots(1, 2)


def legend(display):
    return [text.get_text() for text in display.figure_.legends[0].get_texts()]


def points_of(ax):
    """Place of each marker -> its colour, and whether it is filled."""
    found = {}
    for markers in ax.collections:
        if isinstance(markers, PathCollection):  # not the contours
            filled = len(markers.get_facecolors()) > 0
            for place in np.asarray(markers.get_offsets()):
                found[tuple(place)] = (tuple(markers.get_edgecolors()[0]), filled)
    return found


def test_computing_needs_no_axes_and_leaves_the_objective():
    objective = PlaneObjective()
    display = SelectionDisplay.from_result(objective, X, LABELS, selected(2, 1), grid_resolution=50)
    assert objective.removed == []
    assert display.deferred.tolist() == [False, True, True, False]
    assert (display.loss_before, display.loss_after) == (4.0, 2.5)
    assert display.xx.shape == display.yy.shape == (50, 50)
    np.testing.assert_allclose(display.decision_before, display.xx - 2.0)
    np.testing.assert_allclose(display.decision_after, 2.25 * (display.xx - 2.0))
    for grid, column in ((display.xx, X[:, 0]), (display.yy, X[:, 1])):
        assert grid.min() < column.min()
        assert grid.max() > column.max()
    assert not hasattr(display, "axes_")


def test_deferred_samples_are_filled_and_the_others_hollow(axes):
    display = SelectionDisplay.from_result(PlaneObjective(), X, LABELS, selected(2))
    assert display.plot(axes=axes) is display
    assert display.axes_ == tuple(axes)
    for ax, deferred in zip(axes, (set(), {2}), strict=True):
        points = points_of(ax)
        assert len(points) == len(X)
        for k, place in enumerate(X):
            colour = to_rgba(CLASS_STYLE[LABELS[k]][0])
            assert points[tuple(place)] == (colour, k in deferred)
    assert axes[0].get_title() == "Full automation:\ntotal loss 4.000"
    assert axes[1].get_title() == "1 of 4 deferred:\ntotal loss 2.500"
    display.figure_.draw_without_rendering()


def test_one_legend_names_what_is_there(axes):
    display = SelectionDisplay.from_result(PlaneObjective(), X, LABELS, selected(2)).plot(axes)
    assert len(display.figure_.legends) == 1
    assert not any(ax.get_legend() for ax in axes)
    kept = ["class -1, kept", "class +1, kept"]
    lines = ["boundary", "margin of class -1", "margin of class +1"]
    assert legend(display) == [*kept, "class -1, deferred", *lines]

    others = Figure(layout="constrained").subplots(1, 2)
    display = SelectionDisplay.from_result(PlaneObjective(), X, LABELS, selected()).plot(others)
    assert legend(display) == [*kept, *lines]


@pytest.mark.parametrize(
    ("objective", "lines"),
    [
        # No machine to speak of: rounding errors of a constant are not a boundary.
        (PlaneObjective(slope=0.0, shift=1.0), None),
        (PlaneObjective(slope=1e-12, shift=1.0), None),
        (PlaneObjective(slope=0.0, shift=0.0), None),
        # Margins outside the picture, one margin inside, all of it beyond the margin.
        (PlaneObjective(slope=0.1), {"boundary"}),
        (PlaneObjective(slope=0.1, shift=-1.0), {"margin of class -1"}),
        (PlaneObjective(slope=0.1, shift=9.0), set()),
    ],
)
def test_only_lines_that_show_are_in_the_legend(axes, objective, lines):
    display = SelectionDisplay.from_result(objective, X, LABELS, selected()).plot(axes)
    samples = {"class -1, kept", "class +1, kept"}
    assert set(legend(display)) == samples | (lines or set())
    for ax in axes:
        assert ("no boundary: the machine\nalways answers" in ax.get_xlabel()) == (lines is None)
    display.figure_.draw_without_rendering()


def test_new_figure_where_no_axes_are_given():
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    display = SelectionDisplay.from_result(PlaneObjective(), X, LABELS, selected(0)).plot()
    assert display.figure_.number in plt.get_fignums()
    plt.close(display.figure_)


@pytest.mark.parametrize("n", [0, 1, 4])
def test_the_engine_down_to_no_sample(axes, n):
    objective = SVMObjective(X, LABELS, alpha=0.1)
    result = distorted_greedy(objective, np.zeros(4), n)
    display = SelectionDisplay.from_result(objective, X, LABELS, result).plot(axes)
    assert display.deferred.sum() == len(result.order)
    assert objective.kept.all()
    display.figure_.draw_without_rendering()


@pytest.mark.parametrize("label", [-1, 1])
@pytest.mark.parametrize("n", [1, 4])
def test_one_class_and_one_sample(axes, label, n):
    labels = np.full(n, label)
    display = SelectionDisplay.from_result(PlaneObjective(), X[:n], labels, selected(0)).plot(axes)
    display.figure_.draw_without_rendering()
    colour = to_rgba(CLASS_STYLE[label][0])
    for ax, deferred in zip(axes, (set(), {0}), strict=True):
        expected = {tuple(X[k]): (colour, k in deferred) for k in range(n)}
        assert points_of(ax) == expected
        # A sample alone spans no range, and still stands in the middle of a picture.
        assert ax.get_xlim()[0] < 0.0 < ax.get_xlim()[1]
        assert ax.get_ylim()[0] < 0.0 < ax.get_ylim()[1]
    assert axes[1].get_title() == f"1 of {n} deferred:\ntotal loss 2.500"
    # Nothing is named that is not there: no other class, and no line far from the one sample.
    lines = {"boundary", "margin of class -1", "margin of class +1"} if n == 4 else set()
    samples = {f"class {label:+d}, kept", f"class {label:+d}, deferred"}
    assert set(legend(display)) == samples | lines


@pytest.mark.parametrize("samples", [np.zeros((4, 3)), np.zeros(4), np.zeros((0, 2))])
def test_only_two_features_fit_the_plane(samples):
    with pytest.raises(ValueError, match="two features"):
        SelectionDisplay.from_result(PlaneObjective(), samples, LABELS, selected())


def test_one_label_per_sample():
    with pytest.raises(ValueError, match="one label and one entry of the mask per sample"):
        SelectionDisplay.from_result(PlaneObjective(), X, LABELS[:3], selected())


def test_two_panels_need_two_axes(axes):
    display = SelectionDisplay.from_result(PlaneObjective(), X, LABELS, selected())
    with pytest.raises(ValueError, match="two axes, got 1"):
        display.plot(axes[:1])
