"""Experts' skills and loads, as pictures that can be read and rank nobody without reason."""

import matplotlib
import numpy as np
import pytest
from matplotlib.figure import Figure

from deferlearn.experts import ExpertTeam, Skills, estimate_skills
from deferlearn.experts.skills import ALIKE, BETTER, UNKNOWN, WORSE
from deferlearn.plot import LoadDisplay, SkillsDisplay
from deferlearn.plot.skills import verdict_groups
from deferlearn.teams import UncertaintyTriage
from experts_team import CAPACITY, expert_team

matplotlib.use("agg")
plt = pytest.importorskip("matplotlib.pyplot")


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def skills_of(wrong, answered=400, names=None):
    """Skills from wrong answers among so many, by expert and class."""
    wrong = np.atleast_2d(np.asarray(wrong, dtype=float))
    answered = np.broadcast_to(answered, wrong.shape).astype(int)
    n_experts, n_classes = wrong.shape
    names = tuple(names or (f"reader_{e}" for e in range(n_experts)))
    mix = np.full(n_classes, 1 / n_classes)
    return estimate_skills(wrong, answered, mix, names, np.arange(n_classes))


def names_on(ax):
    return [label.get_text() for label in ax.get_yticklabels()]


def heights_of(ax):
    return dict(zip(names_on(ax), ax.get_yticks(), strict=True))


def test_nobody_is_ranked_where_the_data_cannot_tell():
    skills = skills_of([[44], [40], [36], [41]])
    assert set(skills.verdict) == {ALIKE}
    display = SkillsDisplay(skills).plot()
    # Neither by their error rates nor by their names: in the order given.
    assert names_on(display.ax_) == [f"reader_{e} (400)" for e in range(4)]
    assert [text.get_text() for text in display.ax_.texts] == [ALIKE]


def test_experts_are_sorted_as_far_as_the_data_support():
    wrong = [[150], [41], [5], [40], [1], [6]]
    skills = skills_of(wrong, [[400], [400], [400], [400], [5], [400]])
    assert skills.verdict == (WORSE, ALIKE, BETTER, ALIKE, UNKNOWN, BETTER)
    groups = verdict_groups(skills)
    assert groups == [(BETTER, [2, 5]), (ALIKE, [1, 3]), (WORSE, [0]), (UNKNOWN, [4])]
    ax = SkillsDisplay(skills).plot().ax_
    # Both are annotated from top to bottom, each verdict above its experts.
    rows = [(text.xy[1], text.get_text()) for text in ax.texts]
    rows += [(y, name) for name, y in heights_of(ax).items()]
    said = [f"reader_{e} ({skills.answers[e, 0]})" for e in range(6)]
    expected = [part for verdict, group in groups for part in (verdict, *(said[e] for e in group))]
    assert [name for _, name in sorted(rows)] == expected
    top, bottom = ax.get_ylim()[::-1]
    assert top < min(rows)[0] < max(rows)[0] < bottom


def test_points_and_intervals_are_the_estimates():
    skills = skills_of([[30, 80], [10, 0]], [[400, 300], [200, 0]])
    display = SkillsDisplay(skills).plot()
    panels = [(display.ax_, skills.low, skills.error, skills.high)]
    for k, ax in enumerate(display.class_axes_):
        ends = (skills.low_by_class, skills.error_by_class, skills.high_by_class)
        panels.append((ax, *(end[:, k] for end in ends)))
    assert len(panels) == 3
    order = [e for _, group in verdict_groups(skills) for e in group]
    for ax, low, error, high in panels:
        lines = [line for line in ax.lines if line is not display.average_line_]
        for place, e in enumerate(order):
            interval, point = lines[2 * place : 2 * place + 2]
            np.testing.assert_allclose(interval.get_xdata(), [low[e], high[e]])
            np.testing.assert_allclose(point.get_xdata(), [error[e]])
            assert point.get_ydata()[0] == ax.get_yticks()[place]
            assert ax.get_xlim()[1] >= high[e]
    np.testing.assert_allclose(display.average_line_.get_xdata()[0], skills.error.mean())
    # The second expert has answered no case of the second class.
    second = display.class_axes_[1].lines[2 * order.index(1) + 1]
    assert second.get_markerfacecolor() == "white"
    assert display.class_axes_[0].lines[2 * order.index(1) + 1].get_markerfacecolor() != "white"


def test_the_panel_over_all_classes_alone():
    skills = skills_of([[30, 80], [10, 4]])
    ax = Figure(layout="constrained").subplots()
    display = SkillsDisplay(skills).plot(ax)
    assert display.ax_ is ax
    assert display.class_axes_ == ()
    assert ax.figure.axes == [ax]
    assert SkillsDisplay(skills).plot(by_class=False).class_axes_ == ()
    assert SkillsDisplay(skills_of([[30], [10]])).plot().class_axes_ == ()


def texts_of(ax):
    labels = [label for label in ax.get_yticklabels() if label.get_visible()]
    ends = ax.get_xlim()
    ticks = [
        tick.label1 for tick in ax.xaxis.get_major_ticks() if ends[0] <= tick.get_loc() <= ends[1]
    ]
    return [ax.title, ax.xaxis.label, *ax.texts, *ticks, *labels]


def assert_legible(figure, axes):
    """All that is written is in the figure, and no two texts of the same panel overlap."""
    figure.draw_without_rendering()
    whole = figure.bbox.padded(1.0)
    for ax in axes:
        boxes = [t.get_window_extent() for t in texts_of(ax) if t.get_text() and t.get_visible()]
        for place, box in enumerate(boxes):
            assert whole.x0 <= box.x0 <= box.x1 <= whole.x1
            assert whole.y0 <= box.y0 <= box.y1 <= whole.y1
            for other in boxes[:place]:
                assert not box.padded(-1.0).overlaps(other.padded(-1.0))
        assert ax.get_window_extent().width > 0.9 * figure.dpi


@pytest.mark.parametrize(
    ("n_experts", "n_classes", "width"),
    [(1, 2, 7.0), (2, 2, 7.0), (2, 2, 3.6), (3, 10, 3.6), (20, 2, 3.6), (20, 10, 7.0)],
)
def test_skills_are_legible(n_experts, n_classes, width):
    rng = np.random.default_rng(0)
    answered = rng.integers(1, 60, size=(n_experts, n_classes))
    answered[-1] = 1
    rates = rng.beta(1, 6, size=(n_experts, 1))
    names = [f"Doctor of the long name {e}" for e in range(n_experts)]
    skills = skills_of(rng.binomial(answered, rates), answered, names)
    display = SkillsDisplay(skills).plot(width=width)
    assert display.figure_.get_figwidth() == width
    assert len(display.class_axes_) == n_classes
    # Names that are cut off are still told apart.
    assert len(set(names_on(display.ax_))) == n_experts
    assert_legible(display.figure_, (display.ax_, *display.class_axes_))


def load_of(n_experts):
    names = [f"Doctor of the long name {e}" for e in range(n_experts)]
    capacity = {name: 0.02 * (1 + e % 4) for e, name in enumerate(names)}
    load = {
        name: share * (1.0 if e % 3 else 0.4) for e, (name, share) in enumerate(capacity.items())
    }
    return {"load": load, "capacity": capacity, "prices": dict.fromkeys(names, 0.1234)}


def test_load_capacity_and_prices():
    given = load_of(4)
    given["prices"] |= {list(given["load"])[1]: 0.0, list(given["load"])[2]: 0.0005}
    display = LoadDisplay(**given).plot()
    np.testing.assert_allclose(
        [bar.get_width() for bar in display.bars_], list(given["load"].values())
    )
    frames = [frame.get_width() for frame in display.frames_]
    np.testing.assert_allclose(frames, list(given["capacity"].values()))
    heading, *prices = display.ax_.texts
    assert heading.get_text() == "errors avoided per\n1,000 more cases"
    assert [text.get_text() for text in prices] == ["123", "0", "less than 1", "123"]


@pytest.mark.parametrize(
    ("settings", "unit"),
    [
        ({}, "errors"),
        ({"classes": "grades"}, "grades of error"),
        ({"classes": "grades", "cost_matrix": np.ones((3, 3)) - np.eye(3)}, "units of cost"),
    ],
)
def test_prices_are_in_the_unit_of_the_team(settings, unit):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 2))
    y = np.digitize(X[:, 0], [-0.5, 0.5])
    answers = {name: np.where(rng.random(90) < 0.3, (y + 1) % 3, y) for name in ("Ann", "Bob")}
    machine = UncertaintyTriage(alpha=0.1, **settings)
    team = ExpertTeam(machine, {"Ann": 0.1, "Bob": 0.1}, skills="class", random_state=0)
    display = LoadDisplay.from_estimator(team.fit(X, y, answers), ax=Figure().subplots())
    assert display.ax_.texts[0].get_text() == f"{unit} avoided per\n1,000 more cases"


@pytest.mark.parametrize("width", [5.4, 3.6])
@pytest.mark.parametrize("n_experts", [1, 2, 20])
def test_loads_are_legible(width, n_experts):
    display = LoadDisplay(**load_of(n_experts)).plot(width=width)
    assert len(set(names_on(display.ax_))) == n_experts
    assert_legible(display.figure_, [display.ax_])
    # No bar runs into the prices.
    start = min(text.get_window_extent().x0 for text in display.ax_.texts[1:])
    assert max(bar.get_window_extent().x1 for bar in display.frames_) < start


def test_from_a_fitted_team():
    team = expert_team()
    display = SkillsDisplay.from_estimator(team)
    assert isinstance(display.skills, Skills)
    assert display.skills is team.skills_
    ax = Figure().subplots()
    loads = LoadDisplay.from_estimator(team, ax=ax)
    assert loads.ax_ is ax
    assert loads.load == team.load_
    assert loads.capacity == CAPACITY
    assert loads.prices == team.prices_


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda: SkillsDisplay({}), TypeError, "must be a Skills, got dict"),
        (lambda: SkillsDisplay.from_estimator(Figure()), TypeError, "Figure has none"),
        (lambda: LoadDisplay.from_estimator(Figure()), TypeError, "Figure has none"),
        (
            lambda: LoadDisplay({"Ann": 0.1}, capacity={}, prices={"Ann": 0.1}),
            ValueError,
            "capacity has no value for the expert 'Ann'",
        ),
        (lambda: LoadDisplay({}, capacity={}, prices={}), ValueError, "at least one expert"),
    ],
)
def test_errors_say_what_was_wrong(call, kind, message):
    with pytest.raises(kind, match=message):
        call()
