"""The tables of machine, human and team, as pictures that can be read."""

from itertools import pairwise

import matplotlib
import numpy as np
import pytest
from matplotlib.figure import Figure

from deferlearn.metrics import confusion_counts
from deferlearn.plot import ConfusionDisplay
from stub_team import StubTeam

matplotlib.use("agg")
plt = pytest.importorskip("matplotlib.pyplot")

RNG = np.random.default_rng(0)
Y = RNG.integers(10, size=3000)
MACHINE = np.where(RNG.random(3000) < 0.1, RNG.integers(10, size=3000), Y)
HUMAN = np.where(RNG.random(3000) < 0.3, RNG.integers(10, size=3000), Y)
ALL = {"machine": MACHINE, "human": HUMAN, "team": np.where(Y > 5, HUMAN, MACHINE)}


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def numbers(ax):
    return [text.get_text() for text in ax.texts]


def test_tables_are_the_counts():
    axes = Figure(layout="constrained").subplots(1, 3)
    display = ConfusionDisplay.from_predictions(Y, **ALL, axes=axes)
    assert display.axes_ == tuple(axes)
    assert display.figure_ is axes[0].figure
    for ax, (name, answers) in zip(axes, ALL.items(), strict=True):
        counts = confusion_counts(Y, answers)
        np.testing.assert_array_equal(display.counts[name], counts)
        assert numbers(ax) == [str(n) if n else "" for n in counts.ravel()]
        wrong = 100 * np.mean(answers != Y)
        assert ax.get_title() == f"{name}\n{wrong:.3g}% of 3,000 wrong"
        assert [label.get_text() for label in ax.get_yticklabels()] == list("0123456789")


def test_colours_tell_right_from_wrong():
    (ax,) = Figure().subplots(1, 1, squeeze=False).ravel()
    ConfusionDisplay({"team": [[8, 0], [5, 5]]}, classes=["a", "b"]).plot([ax])
    red, green, blue = np.moveaxis(ax.images[0].get_array(), -1, 0)
    assert blue[0, 0] > red[0, 0]
    assert red[1, 0] > blue[1, 0]
    assert red[0, 1] == green[0, 1] == blue[0, 1] == 1  # nothing there
    # The stronger of two is the darker one.
    assert green[0, 0] < green[1, 1]
    assert ax.texts[0].get_color() == "white"


def test_gaps_are_left_out_and_counted():
    human = [0, None, 2, 1]
    display = ConfusionDisplay.from_predictions([0, 1, 2, 2], machine=[0, 0, 2, 2], human=human)
    assert [ax.get_title() for ax in display.axes_] == [
        "machine\n25% of 4 wrong",
        "human\n33.3% of 3 wrong",
    ]
    # Floats with NaN are the same classes.
    floats = ConfusionDisplay.from_predictions([0, 1, 2, 2], human=[0.0, np.nan, 2.0, 1.0])
    np.testing.assert_array_equal(floats.counts["human"], display.counts["human"])
    assert floats.classes == [0, 1, 2]


def test_order_of_the_classes():
    y, grades = ["mild", "severe", "mild"], ["mild", "medium", "severe"]
    display = ConfusionDisplay.from_predictions(
        y, team=["severe", "severe", "mild"], classes=grades
    )
    np.testing.assert_array_equal(display.counts["team"], [[1, 0, 1], [0, 0, 0], [0, 0, 1]])
    (ax,) = display.axes_
    assert [label.get_text() for label in ax.get_xticklabels()] == grades
    assert {label.get_rotation() for label in ax.get_xticklabels()} == {90.0}


def test_from_estimator():
    X = np.column_stack([Y, RNG.normal(size=3000)])[:300]
    y, human = np.where(Y > 4, "high", "low")[:300], np.where(HUMAN > 4, "high", "low")[:300]
    team = StubTeam().fit(X, y, human)
    for batch in (False, True):
        display = ConfusionDisplay.from_estimator(team, X, y, human, batch=batch)
        expected = {
            "machine": team.predict(X),
            "human": human,
            "team": team.predict_assisted(X, human, batch=batch),
        }
        assert list(display.counts) == list(expected)
        for name, answers in expected.items():
            np.testing.assert_array_equal(display.counts[name], confusion_counts(y, answers))
    display = ConfusionDisplay.from_estimator(team, X, y, human, classes=["low", "high"])
    assert display.classes == ["low", "high"]


@pytest.mark.parametrize("width", [9.0, 6.0, 3.6])
@pytest.mark.parametrize(("k", "letters"), [(2, 1), (3, 30), (5, 6), (10, 1), (10, 30)])
def test_everything_is_legible(width, k, letters):
    names = [str(i) * letters for i in range(k)]
    # Four characters per cell at most.
    counts = np.full((k, k), 12_345)
    display = ConfusionDisplay(dict.fromkeys(ALL, counts), classes=names).plot(width=width)
    figure = display.figure_
    figure.draw_without_rendering()
    assert figure.bbox.width / figure.dpi <= width + 1e-9
    whole = figure.bbox.padded(1.0)
    boxes = []
    for ax in display.axes_:
        parts = [ax.title, ax.xaxis.label, ax.yaxis.label, *ax.get_xticklabels()]
        for part in [*parts, *ax.get_yticklabels()]:
            box = part.get_window_extent()
            assert whole.x0 <= box.x0 <= box.x1 <= whole.x1
            assert whole.y0 <= box.y0 <= box.y1 <= whole.y1
        cell = ax.get_window_extent().width / k
        for text in ax.texts:
            assert text.get_fontsize() >= 5
            assert text.get_window_extent().width <= cell
        boxes.append(ax.get_tightbbox())
    for first, second in pairwise(boxes):
        assert first.x1 <= second.x0 + 1 or first.y0 >= second.y1 - 1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: ConfusionDisplay.from_predictions(np.arange(11), team=np.arange(11)),
            "at most 10 classes, got 11",
        ),
        (lambda: ConfusionDisplay.from_predictions([0, 1]), "at least one of machine, human"),
        (
            lambda: ConfusionDisplay.from_predictions([0, 1], human=[0]),
            r"human must have one answer per label, got the shapes \(1,\) and \(2,\)",
        ),
        (lambda: ConfusionDisplay.from_predictions([0, 1], human=[None, None]), "no answer at all"),
        (lambda: ConfusionDisplay.from_predictions([0, None], human=[0, 1]), "no label at row 1"),
        (
            lambda: ConfusionDisplay.from_predictions([0, 1], team=[0, 5], classes=[0, 1]),
            "holds 5 at row 1",
        ),
        (lambda: ConfusionDisplay({"team": np.eye(3)}, classes=[0, 1]), "each of 2 classes"),
        (
            lambda: ConfusionDisplay({"team": np.eye(2)}, classes=[0, 1]).plot([]),
            "1 panels, got 0 axes",
        ),
    ],
)
def test_errors_say_what_was_wrong(call, message):
    with pytest.raises(ValueError, match=message):
        call()
