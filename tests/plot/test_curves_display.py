"""What the curves show, against the numbers that were measured."""

import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib import rc_context
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from scipy import stats
from sklearn.metrics import balanced_accuracy_score

from deferlearn import AssistedSVC
from deferlearn.datasets import make_linear
from deferlearn.evaluation import AutomationCurve, automation_curve
from deferlearn.humans import UniformHuman
from deferlearn.plot import AutomationCurveDisplay
from deferlearn.plot.curves import COLOURS, MARKERS
from pictures import assert_nothing_overlaps, legend_texts
from stub_team import StubTeam

X, Y = make_linear(80, random_state=3)
HUMAN = UniformHuman(0.1).labels(Y, random_state=0)
BUDGETS = [0.0, 0.1, 0.3]


def curve(budgets=BUDGETS, n_splits=5, seed=0, metrics=("error", "f1"), **options):
    rng = np.random.RandomState(seed)
    values = {name: rng.uniform(size=(n_splits, len(budgets))) for name in metrics}
    return AutomationCurve(np.array(budgets), values, np.zeros((n_splits, len(budgets))), **options)


@pytest.fixture
def ax():
    return Figure(layout="constrained").subplots()


def assert_band(band, budgets, lower, upper):
    """Its outline runs along the lower ends, and back along the upper ones."""
    (path,) = band.get_paths()
    outline = {tuple(np.round(point, 12)) for point in path.vertices}
    ends = [*zip(budgets, lower, strict=True), *zip(budgets, upper, strict=True)]
    assert outline == {tuple(np.round(point, 12)) for point in ends}


def test_lines_are_means_and_bands_are_t_intervals(ax):
    measured = curve()
    display = AutomationCurveDisplay.from_curve(measured, ax=ax)
    assert display.ax_ is ax
    assert display.figure_ is ax.figure
    values = measured.values["error"]
    interval = stats.ttest_1samp(values, 0.0, axis=0).confidence_interval(0.95)
    np.testing.assert_array_equal(display.lines_["team"].get_xdata(), BUDGETS)
    np.testing.assert_allclose(display.lines_["team"].get_ydata(), values.mean(axis=0))
    assert_band(display.bands_["team"], BUDGETS, interval.low, interval.high)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("budget (share of cases)", "error of the team")
    assert legend_texts(display.legend_) == ["team", "95% interval"]
    assert display.human_line_ is None
    assert display.machine_line_ is None


def test_another_metric_and_another_level(ax):
    measured = curve(confidence=0.9)
    display = AutomationCurveDisplay.from_curve(measured, metric="f1", ax=ax)
    values = measured.values["f1"]
    interval = stats.ttest_1samp(values, 0.0, axis=0).confidence_interval(0.9)
    np.testing.assert_allclose(display.lines_["team"].get_ydata(), values.mean(axis=0))
    assert_band(display.bands_["team"], BUDGETS, interval.low, interval.high)
    assert ax.get_ylabel() == "F1 score of the team"
    assert "90% interval" in legend_texts(display.legend_)


def test_several_curves_share_one_legend(ax):
    teams = {f"team {i}": curve(seed=i) for i in range(8)}
    display = AutomationCurveDisplay.from_curve(teams, human=0.2, machine=0.4, ax=ax)
    for name, measured in teams.items():
        np.testing.assert_allclose(display.lines_[name].get_ydata(), measured.mean["error"])
        assert_band(display.bands_[name], BUDGETS, measured.lower["error"], measured.upper["error"])
        np.testing.assert_allclose(
            display.bands_[name].get_facecolor()[0][:3],
            to_rgba(display.lines_[name].get_color())[:3],
        )
    looks = {(line.get_color(), line.get_marker()) for line in display.lines_.values()}
    assert len(looks) == 8
    for line, level in ((display.human_line_, 0.2), (display.machine_line_, 0.4)):
        assert list(line.get_ydata()) == [level, level]
        assert list(line.get_xdata()) == [0, 1]  # from edge to edge
    assert display.human_line_.get_linestyle() != display.machine_line_.get_linestyle()
    assert legend_texts(display.legend_) == [*teams, "95% interval", "human alone", "machine alone"]
    assert ax.get_legend() is display.legend_
    assert not ax.figure.legends
    assert_nothing_overlaps(display)


def test_no_two_of_many_curves_look_alike():
    looks = {(COLOURS[i % len(COLOURS)], MARKERS[i % len(MARKERS)]) for i in range(42)}
    assert len(looks) == 42


def test_level_lines_are_inside_the_picture(ax):
    AutomationCurveDisplay.from_curve(curve(), human=-3.0, machine=5.0, ax=ax)
    low, high = ax.get_ylim()
    assert low < -3.0
    assert high > 5.0


def test_budgets_in_any_order_and_as_numbers(ax):
    measured = curve(budgets=[30, 0, 10])
    display = AutomationCurveDisplay.from_curve(measured, ax=ax)
    order = [1, 2, 0]
    assert display.lines_["team"].get_xdata().tolist() == [0, 10, 30]
    np.testing.assert_allclose(display.lines_["team"].get_ydata(), measured.mean["error"][order])
    assert_band(
        display.bands_["team"],
        [0, 10, 30],
        measured.lower["error"][order],
        measured.upper["error"][order],
    )
    assert ax.get_xlabel() == "budget (number of training samples)"


def test_one_split_has_no_band(ax):
    display = AutomationCurveDisplay.from_curve(
        {"one": curve(n_splits=1), "many": curve(n_splits=3)}, ax=ax
    )
    assert display.bands_["one"] is None
    assert display.bands_["many"] is not None
    alone = AutomationCurveDisplay.from_curve(curve(n_splits=1), ax=Figure().subplots())
    assert legend_texts(alone.legend_) == ["team"]


def test_one_budget_is_a_marker(ax):
    display = AutomationCurveDisplay.from_curve(curve(budgets=[0.1]), ax=ax)
    assert display.lines_["team"].get_marker() not in ("", "None", None)
    assert display.lines_["team"].get_xdata().tolist() == [0.1]
    assert_nothing_overlaps(display)


@settings(max_examples=15, deadline=None)
@given(
    st.lists(st.floats(0, 1), min_size=1, max_size=6),
    st.integers(1, 4),
    st.integers(1, 3),
)
def test_any_curves_are_drawn_as_they_are(budgets, n_splits, n_teams):
    teams = {str(i): curve(budgets, n_splits, seed=i) for i in range(n_teams)}
    display = AutomationCurveDisplay.from_curve(teams, ax=Figure(layout="constrained").subplots())
    for name, measured in teams.items():
        line = display.lines_[name]
        drawn = sorted(zip(line.get_xdata(), line.get_ydata(), strict=True))
        assert drawn == sorted(zip(budgets, measured.mean["error"], strict=True))
        assert (np.diff(line.get_xdata()) >= 0).all()
        assert (display.bands_[name] is None) == (n_splits == 1)


def test_from_estimator_draws_what_is_measured(ax):
    options = {"human_labels": HUMAN, "budgets": BUDGETS, "cv": 3, "random_state": 5}
    team = AssistedSVC(submodularity_ratio=0.01, cv=None)
    measured = automation_curve(team, X, Y, **options)
    display = AutomationCurveDisplay.from_estimator(team, X, Y, ax=ax, **options)
    np.testing.assert_array_equal(display.lines_["team"].get_ydata(), measured.mean["error"])
    assert_band(display.bands_["team"], BUDGETS, measured.lower["error"], measured.upper["error"])
    assert display.curves["team"].values["error"].shape == (3, 3)


def test_from_several_estimators(ax):
    options = {
        "human_labels": HUMAN,
        "human_loss": 2.0 * (HUMAN != Y),
        "budgets": [4, 8],
        "cv": 4,
        "groups": np.arange(80) // 2,
        "batch": False,
        "random_state": 0,
        "confidence": 0.8,
        "n_jobs": 1,
    }
    teams = {"mild": StubTeam(C=1.0), "strict": StubTeam(C=1e-3)}
    measured = automation_curve(
        teams, X, Y, metrics={"balance": balanced_accuracy_score}, **options
    )
    display = AutomationCurveDisplay.from_estimator(
        teams, X, Y, metric=balanced_accuracy_score, ax=ax, human=0.1, **options
    )
    for name in teams:
        np.testing.assert_array_equal(
            display.lines_[name].get_ydata(), measured[name].mean["balance"]
        )
        np.testing.assert_array_equal(
            display.curves[name].lower["balanced_accuracy_score"], measured[name].lower["balance"]
        )
    assert ax.get_ylabel() == "balanced_accuracy_score of the team"
    assert legend_texts(display.legend_) == ["mild", "strict", "80% interval", "human alone"]


@pytest.mark.parametrize(
    ("curves", "metric", "kind", "error"),
    [
        ({}, None, ValueError, "at least one curve"),
        ([0.1, 0.2], None, TypeError, "an AutomationCurve or a dict .* got list"),
        ({"a": 3}, None, TypeError, "got int as 'a'"),
        (
            {"a": curve()},
            "speed",
            ValueError,
            r"'speed' was not measured for 'a'.*\['error', 'f1'\]",
        ),
        (
            {"a": curve(), "b": curve(metrics=("cost",))},
            None,
            ValueError,
            "'error' was not measured for 'b'",
        ),
        ({"a": curve(), "b": curve(budgets=[1, 2])}, None, ValueError, "one axis cannot show both"),
        ({"a": curve(), "b": curve(confidence=0.9)}, None, ValueError, "level 0.9, others 0.95"),
    ],
)
def test_errors_say_what_is_wrong(ax, curves, metric, kind, error):
    with pytest.raises(kind, match=error):
        AutomationCurveDisplay.from_curve(curves, metric=metric, ax=ax)


@pytest.mark.parametrize("layout", ["constrained", "tight", None])
@pytest.mark.parametrize("font", [8, 10, 13])
def test_nothing_overlaps_whatever_the_layout_and_the_font(layout, font):
    teams = {f"a long name, number {i}": curve(seed=i) for i in range(3)}
    with rc_context({"font.size": font}):
        figure = Figure(layout=layout)
        display = AutomationCurveDisplay(teams, human=0.2, machine=0.5).plot(figure.subplots())
        assert_nothing_overlaps(display)


def test_looks_can_be_changed_and_the_legend_left_out(ax):
    display = AutomationCurveDisplay(curve(), human=0.5).plot(
        ax, legend=False, line_kw={"c": "k", "lw": 3.0}, fill_between_kw={"alpha": 0.5}
    )
    assert display.legend_ is None
    assert ax.get_legend() is None
    assert ax.get_legend_handles_labels()[1] == ["team", "95% interval", "human alone"]
    assert (display.lines_["team"].get_color(), display.lines_["team"].get_linewidth()) == (
        "k",
        3.0,
    )
    np.testing.assert_allclose(display.bands_["team"].get_facecolor(), [to_rgba("k", 0.5)])


def test_new_figure_where_no_axes_are_given():
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    display = AutomationCurveDisplay(curve())
    assert not hasattr(display, "ax_")
    assert display.plot() is display
    assert display.figure_.number in plt.get_fignums()
    assert_nothing_overlaps(display)
    plt.close(display.figure_)


def test_missing_matplotlib_is_said_before_the_measurement(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"pip install 'deferlearn\[plot\]'"):
        AutomationCurveDisplay.from_estimator(None, None, None, human_labels=None)
    with pytest.raises(ImportError, match=r"pip install 'deferlearn\[plot\]'"):
        AutomationCurveDisplay(curve()).plot()
