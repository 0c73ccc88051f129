"""The picture of a report shows the report's numbers."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from deferlearn.evaluation import AssistanceReport
from deferlearn.plot.assistance import AssistanceDisplay
from pictures import assert_nothing_overlaps, legend_texts


def make_report(intervals, best=0.0, measure="error", budgets=(0.1, 0.2, 0.4), machine=0.3):
    """A report with these differences from the machine."""
    teams = [{"who": "machine", "budget": budgets[0] * 0, measure: machine}]
    for budget, (mean, low, high) in zip(budgets, intervals, strict=True):
        difference = {"difference": mean, "difference_low": low, "difference_high": high}
        teams.append({"who": "team", "budget": budget, measure: machine + mean} | difference)
    teams.append({"who": "human", "budget": None, measure: 0.15})
    return AssistanceReport(
        pays="yes",
        budget=best,
        best_budget=best,
        verdict=[],
        measure=measure,
        confidence=0.95,
        teams=teams,
        steps=[],
        factors=[],
    )


FALLING = [(-0.02, -0.05, 0.01), (-0.08, -0.12, -0.04), (-0.09, -0.14, -0.04)]


@pytest.fixture
def ax():
    return Figure(layout="constrained").subplots()


def test_lines_band_and_markers(ax):
    display = AssistanceDisplay.from_report(make_report(FALLING, best=0.2), ax=ax)
    assert isinstance(display, AssistanceDisplay)
    assert display.ax_ is ax
    assert display.figure_ is ax.figure
    np.testing.assert_allclose(display.line_.get_xdata(), [0.0, 0.1, 0.2, 0.4])
    np.testing.assert_allclose(display.line_.get_ydata(), [0.3, 0.28, 0.22, 0.21])
    (path,) = display.band_.get_paths()
    outline = {tuple(np.round(point, 12)) for point in path.vertices}
    ends = [
        (0.0, 0.3),
        (0.1, 0.25),
        (0.1, 0.31),
        (0.2, 0.18),
        (0.2, 0.26),
        (0.4, 0.16),
        (0.4, 0.26),
    ]
    assert outline == {tuple(np.round(point, 12)) for point in ends}
    np.testing.assert_allclose(display.shown_.get_xdata(), [0.2, 0.4])
    np.testing.assert_allclose(display.shown_.get_ydata(), [0.22, 0.21])
    assert list(display.machine_line_.get_ydata()) == [0.3, 0.3]
    assert list(display.human_line_.get_ydata()) == [0.15, 0.15]
    assert list(display.best_line_.get_xdata()) == [0.2, 0.2]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("budget (share of cases)", "error of the team")
    assert legend_texts(display.legend_) == [
        "team",
        "95% interval, paired",
        "clear difference",
        "machine alone",
        "human alone",
        "best budget",
    ]
    assert_nothing_overlaps(display)


def test_nothing_clear(ax):
    unclear = [(0.0, -0.03, 0.03)] * 3
    display = AssistanceDisplay.from_report(make_report(unclear), ax=ax)
    assert len(display.shown_.get_xdata()) == 0
    assert display.best_line_ is None
    assert "clear difference" not in legend_texts(display.legend_)
    assert "best budget" not in legend_texts(display.legend_)


def test_harm_is_clear_too(ax):
    report = make_report([(0.05, 0.01, 0.09)], budgets=[0.3])
    display = AssistanceDisplay(report).plot(ax)
    np.testing.assert_allclose(display.shown_.get_xdata(), [0.3])


def test_costs_and_numbers_of_samples(ax):
    report = make_report(FALLING, best=20, measure="cost", budgets=(10, 20, 40))
    looks = {"line_kw": {"c": "red"}, "fill_between_kw": {"alpha": 0.5}}
    display = AssistanceDisplay.from_report(report, ax=ax, legend=False, **looks)
    assert display.line_.get_xdata().tolist() == [0, 10, 20, 40]
    assert ax.get_xlabel() == "budget (number of training samples)"
    assert ax.get_ylabel() == "cost of the team"
    assert display.legend_ is None
    assert display.line_.get_color() == "red"
    assert display.shown_.get_color() == "red"
    assert display.band_.get_alpha() == 0.5


def test_a_new_figure_and_the_wrong_thing():
    plt = pytest.importorskip("matplotlib.pyplot")
    with plt.rc_context({"backend": "agg"}):
        display = AssistanceDisplay.from_report(make_report(FALLING, best=0.2))
        assert_nothing_overlaps(display)
        plt.close(display.figure_)
    with pytest.raises(TypeError, match="must be an AssistanceReport, got dict"):
        AssistanceDisplay({})
