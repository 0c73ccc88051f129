import numpy as np
import pytest
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure

from deferlearn.plot import GainDisplay
from deferlearn.plot.gains import CLASS_STYLE, LARGEST_MARKER, SMALLEST_MARKER

X = np.array([[0.0, 0.0], [4.0, 1.0], [1.0, 3.0], [3.0, 2.0]])
LABELS = np.array([-1, 1, -1, 1])


class PlaneObjective:
    """An objective whose machine is the plane f(x) = slope * (x_0 - 2) + shift."""

    def __init__(self, slope=1.0, shift=0.0):
        self.slope, self.shift = slope, shift
        self.asked = []

    def gains(self, ks):
        self.asked.append(list(ks))
        return np.array([0.0, 0.5, 2.0, 1.0])

    def decision_function(self, points):
        return self.slope * (points[:, 0] - 2.0) + self.shift


@pytest.fixture
def axes():
    return Figure(layout="constrained").add_subplot()


def legend(display):
    return [text.get_text() for text in display.ax_.get_legend().get_texts()]


def test_computing_needs_no_axes():
    objective = PlaneObjective()
    display = GainDisplay.from_objective(objective, X, LABELS, grid_resolution=50)
    assert objective.asked == [[0, 1, 2, 3]]
    assert display.gains.tolist() == [0.0, 0.5, 2.0, 1.0]
    assert display.xx.shape == display.yy.shape == display.decision.shape == (50, 50)
    np.testing.assert_allclose(display.decision, display.xx - 2.0)
    for grid, column in ((display.xx, X[:, 0]), (display.yy, X[:, 1])):
        assert grid.min() < column.min()
        assert grid.max() > column.max()
    assert not hasattr(display, "ax_")


def test_known_gains_are_not_computed_again():
    objective = PlaneObjective()
    display = GainDisplay.from_objective(objective, X, LABELS, gains=[1, 2, 3, 4])
    assert objective.asked == []
    assert display.gains.tolist() == [1, 2, 3, 4]


def test_drawing(axes):
    display = GainDisplay.from_objective(PlaneObjective(), X, LABELS)
    assert display.plot(ax=axes) is display
    assert display.ax_ is axes
    assert display.figure_ is axes.figure
    assert set(legend(display)) == {"boundary", "margins", "class +1", "class -1"}
    # The axes themselves, and a colour bar a class.
    assert len(axes.figure.axes) == 3
    assert "gain of deferring the sample" in {a.get_ylabel() for a in axes.figure.axes}
    axes.figure.canvas.draw()


def test_size_and_shade_follow_the_gain(axes):
    GainDisplay.from_objective(PlaneObjective(), X, LABELS).plot(ax=axes)
    size, shade = {}, {}
    for points in axes.collections:
        if points.get_offsets().shape[0] == 2 and len(points.get_sizes()) == 2:
            points.update_scalarmappable()
            for where, area, face in zip(
                points.get_offsets(), points.get_sizes(), points.get_facecolors(), strict=True
            ):
                size[tuple(where)], shade[tuple(where)] = area, tuple(face)
    least, most = tuple(X[0]), tuple(X[2])
    assert size[least] == SMALLEST_MARKER
    assert size[most] == LARGEST_MARKER
    assert size[tuple(X[1])] < size[tuple(X[3])] < size[most]
    assert shade[least] == pytest.approx(to_rgba("white"))
    assert shade[most] == pytest.approx(to_rgba(CLASS_STYLE[-1][0]))


def test_new_figure_where_no_axes_are_given():
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    display = GainDisplay.from_objective(PlaneObjective(), X, LABELS).plot()
    assert display.figure_.number in plt.get_fignums()
    plt.close(display.figure_)


@pytest.mark.parametrize(
    ("objective", "lines"),
    [
        # No machine to speak of: rounding errors of a constant are not a boundary.
        (PlaneObjective(slope=0.0, shift=1.0), set()),
        (PlaneObjective(slope=1e-12, shift=1.0), set()),
        (PlaneObjective(slope=0.0, shift=0.0), set()),
        # Margins outside the picture, one margin inside, all of it beyond the margin.
        (PlaneObjective(slope=0.1), {"boundary"}),
        (PlaneObjective(slope=0.1, shift=-1.0), {"margins"}),
        (PlaneObjective(slope=0.1, shift=9.0), set()),
    ],
)
def test_only_lines_that_show_are_in_the_legend(axes, objective, lines):
    display = GainDisplay.from_objective(objective, X, LABELS).plot(ax=axes)
    assert set(legend(display)) - {"class +1", "class -1"} == lines
    axes.figure.canvas.draw()


def test_no_gain_anywhere_one_class_and_one_sample(axes):
    display = GainDisplay.from_objective(PlaneObjective(), X[:1], [1], gains=[0.0]).plot(ax=axes)
    display.figure_.canvas.draw()


@pytest.mark.parametrize("samples", [np.zeros((4, 3)), np.zeros(4), np.zeros((0, 2))])
def test_only_two_features_fit_the_plane(samples):
    with pytest.raises(ValueError, match="two features"):
        GainDisplay.from_objective(PlaneObjective(), samples, LABELS)


@pytest.mark.parametrize(("y", "gains"), [(LABELS[:3], np.zeros(4)), (LABELS, np.zeros(3))])
def test_one_label_and_one_gain_a_sample(y, gains):
    with pytest.raises(ValueError, match="one label and one gain a sample"):
        GainDisplay.from_objective(PlaneObjective(), X, y, gains=gains)
