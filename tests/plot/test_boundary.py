"""What the picture of a fitted machine shows, against the machine itself."""

import sys
import warnings
from functools import cache

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib import rc_context
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from scipy.sparse import csr_matrix
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from deferlearn import AssistedSVC
from deferlearn.datasets import make_linear, make_quadratic
from deferlearn.humans import UniformHuman
from deferlearn.plot import DeferralBoundaryDisplay
from deferlearn.plot.plane import CLASS_STYLE
from deferlearn.teams import make_assisted_pipeline
from pictures import assert_nothing_overlaps, legend_texts

QUADRATIC = {"kernel": "poly", "degree": 2, "gamma": 0.5, "coef0": 0.0}

# A draw of the linear data whose machine has a boundary at every budget; many have none.
SEED = 3


def machine(**parameters):
    """No folds and no sweep: only the machine matters here."""
    return AssistedSVC(
        **({"cv": None, "submodularity_ratio": 0.01, "random_state": 0} | parameters)
    )


@cache
def fitted(kind, budget, n=100):
    make, kernel = {"linear": (make_linear, {}), "quadratic": (make_quadratic, QUADRATIC)}[kind]
    X, y = make(n, random_state=SEED)
    scores = UniformHuman(0.2).scores(y, random_state=0)
    return machine(budget=budget, **kernel).fit(X, y, human_scores=scores), X, y


@pytest.fixture
def ax():
    return Figure(layout="constrained").subplots()


def assert_samples_shown(display, X, y, deferred, classes):
    """Each sample is marked once, in the colour and shape of its class, filled if it is deferred."""
    for taken, drawn in ((False, display.kept_markers_), (True, display.deferred_markers_)):
        for label, side, markers in zip(classes, (-1, 1), drawn, strict=True):
            expected = X[(np.asarray(y) == label) & (deferred == taken)]
            np.testing.assert_array_equal(np.reshape(markers.get_offsets(), (-1, 2)), expected)
            colour = to_rgba(CLASS_STYLE[side][0])
            np.testing.assert_allclose(markers.get_edgecolor(), [colour])
            np.testing.assert_allclose(
                markers.get_facecolor(), [colour] if taken else np.empty((0, 4))
            )
            assert markers in display.ax_.collections
    a, b = display.kept_markers_
    assert not np.array_equal(a.get_paths()[0].vertices, b.get_paths()[0].vertices)


def vertices(line):
    return np.concatenate([path.vertices for path in line.get_paths()])


@pytest.mark.parametrize("kind", ["linear", "quadratic"])
@pytest.mark.parametrize("budget", [0.0, 0.12, 0.3])
def test_the_papers_figure_shows_the_machine(ax, kind, budget):
    clf, X, y = fitted(kind, budget)
    display = DeferralBoundaryDisplay.from_estimator(clf, X, y, ax=ax)
    assert display.ax_ is ax
    assert display.figure_ is ax.figure
    assert (display.deferred.sum() > 0) == (budget > 0)
    assert_samples_shown(display, X, y, clf.deferred_, [-1, 1])
    for side, low, high in zip("xy", X.min(axis=0), X.max(axis=0), strict=True):
        shown = getattr(ax, f"get_{side}lim")()
        assert shown[0] < low < high < shown[1]

    # On the lines the decision function is what they say. Between two points of the grid they follow
    # the chord, whose error for a quadratic function is its curvature times the square of the step / 8.
    error = 1e-9
    if kind == "quadratic":
        A = (clf.dual_coef_[0] * clf.support_vectors_.T) @ clf.support_vectors_ / 4
        steps = np.array(
            [display.xx0[0, 1] - display.xx0[0, 0], display.xx1[1, 0] - display.xx1[0, 0]]
        )
        error += np.max(2 * np.abs(np.diag(A)) * steps**2 / 8)
        assert error < 0.01
    for level, line in zip((0, -1, 1), (display.boundary_, *display.margins_), strict=True):
        assert line.levels.tolist() == [level]
        points = vertices(line)
        assert len(points) > 2
        np.testing.assert_allclose(clf.decision_function(points), level, atol=error)
    assert_nothing_overlaps(display)


def test_a_straight_boundary_crosses_the_whole_picture(ax):
    clf, X, y = fitted("linear", 0.3)
    line = vertices(DeferralBoundaryDisplay.from_estimator(clf, X, y, ax=ax).boundary_)
    (x0, x1), (y0, y1) = ax.get_xlim(), ax.get_ylim()
    for end in (line[0], line[-1]):
        to_frame = np.abs([end[0] - x0, end[0] - x1, end[1] - y0, end[1] - y1])
        assert to_frame.min() < 1e-9
    assert np.linalg.norm(line[0] - line[-1]) > 5


def test_boundary_is_that_of_scikit_learn_on_the_kept_samples(ax):
    clf, X, y = fitted("quadratic", 0.3)
    kept = ~clf.deferred_
    other = SVC(C=1 / (2 * kept.sum()), tol=1e-10, **QUADRATIC).fit(X[kept], y[kept])
    display = DeferralBoundaryDisplay.from_estimator(clf, X, y, ax=ax, grid_resolution=30)
    grid = np.column_stack([display.xx0.ravel(), display.xx1.ravel()])
    np.testing.assert_allclose(display.decision.ravel(), other.decision_function(grid), atol=1e-5)


def test_one_legend_names_what_is_there(ax):
    clf, X, y = fitted("linear", 0.3)
    display = DeferralBoundaryDisplay.from_estimator(clf, X, y, ax=ax)
    assert len(set(zip(y, clf.deferred_, strict=True))) == 4  # both classes are kept and deferred
    assert legend_texts(display.legend_) == [
        "class -1, kept",
        "class +1, kept",
        "class -1, deferred",
        "class +1, deferred",
        "boundary",
        "margin of class -1",
        "margin of class +1",
    ]
    assert ax.get_legend() is display.legend_
    assert not ax.figure.legends

    bare = Figure().subplots()
    position = bare.get_position().bounds
    assert display.plot(bare, legend=False).legend_ is None
    assert bare.get_legend() is None
    assert bare.get_position().bounds == position
    assert bare.get_legend_handles_labels()[1] == legend_texts(ax.get_legend())


def test_nobody_deferred(ax):
    clf, X, y = fitted("linear", 0.0)
    display = DeferralBoundaryDisplay.from_estimator(clf, X, y, ax=ax)
    assert not display.deferred.any()
    assert not any("deferred" in text for text in legend_texts(display.legend_))


def test_everybody_deferred(ax):
    X, y = make_linear(11, random_state=1)
    with warnings.catch_warnings(action="ignore"):
        clf = machine(budget=1.0, fit_intercept=False).fit(X, y)
    display = DeferralBoundaryDisplay.from_estimator(clf, X, y, ax=ax)
    assert display.deferred.all()
    assert_samples_shown(display, X, y, np.ones(11, dtype=bool), [-1, 1])
    majority = "+1" if y.sum() > 0 else "-1"
    assert legend_texts(display.legend_) == ["class -1, deferred", "class +1, deferred"]
    assert ax.get_xlabel() == (
        f"first feature\n(no boundary: the machine\nalways answers class {majority})"
    )
    assert clf.predict(X).tolist() == [int(majority)] * 11
    assert_nothing_overlaps(display)


@pytest.mark.parametrize("lost", ["benign", "malignant"])
def test_one_class_kept(ax, lost):
    X, y = make_linear(60, random_state=1)
    few = np.flatnonzero(y == 1)[:10]
    rows = np.concatenate([np.flatnonzero(y == -1), few])
    kept = "malignant" if lost == "benign" else "benign"
    X, y = X[rows], np.where(y[rows] == 1, lost, kept)
    with pytest.warns(UserWarning, match=f"predicts '{kept}' for every case"):
        clf = machine(budget=10).fit(X, y)
    assert clf.deferred_.sum() == 10
    display = DeferralBoundaryDisplay.from_estimator(clf, X, y, ax=ax)
    assert_samples_shown(display, X, y, y == lost, ["benign", "malignant"])
    assert display.boundary_ is None
    assert display.margins_ == (None, None)
    assert legend_texts(display.legend_) == [f"{kept}, kept", f"{lost}, deferred"]
    assert f"always answers {kept})" in ax.get_xlabel()
    assert_nothing_overlaps(display)


def test_lines_outside_the_picture_are_left_out(ax):
    # decision = 0.1 x_0 + 1.1 on [-3, 3]: the boundary lies at -11 and the margin +1 at -1.
    xx0, xx1 = np.meshgrid(np.linspace(-3, 3, 7), [0.0, 1.0])
    display = DeferralBoundaryDisplay(
        [[0.0, 0.5]],
        y=["b"],
        deferred=[False],
        xx0=xx0,
        xx1=xx1,
        decision=0.1 * xx0 + 1.1,
        classes=["a", "b"],
    ).plot(ax)
    assert display.boundary_ is None
    assert display.margins_[0] is None
    np.testing.assert_allclose(vertices(display.margins_[1])[:, 0], -1.0)
    assert legend_texts(display.legend_) == ["b, kept", "margin of b"]
    assert "no boundary" not in ax.get_xlabel()  # there is one, elsewhere


def test_hard_margin(ax):
    rng = np.random.RandomState(0)
    y = np.repeat([0, 1], 20)
    X = rng.uniform(-1, 1, size=(40, 2)) + np.where(y[:, None] == 1, 1.5, -1.5)
    clf = machine(budget=4, margin="hard").fit(X, y)
    display = DeferralBoundaryDisplay.from_estimator(clf, X, y, ax=ax)
    assert_samples_shown(display, X, y, clf.deferred_, [0, 1])
    assert legend_texts(display.legend_)[:2] == ["class 0, kept", "class 1, kept"]
    # No kept sample lies between the margins that are drawn, and some lie on them.
    w, b = clf.coef_[0], clf.intercept_[0]
    for side, line in zip((-1, 1), display.margins_, strict=True):
        np.testing.assert_allclose(vertices(line) @ w + b, side, atol=1e-9)
        kept = X[~clf.deferred_ & (y == (side > 0))]
        assert (side * (kept @ w + b)).min() == pytest.approx(1.0, abs=1e-6)


def test_data_frame_with_string_labels(ax):
    _, X, y = fitted("linear", 0.3)
    frame = pd.DataFrame(X, columns=["age", "size"], index=np.arange(100)[::-1])
    words = pd.Series(np.where(y > 0, "sick", "well"), index=frame.index)
    clf = machine(budget=0.3).fit(frame, words)
    # Warnings are errors: the grid has the names of the frame, else scikit-learn would warn.
    display = DeferralBoundaryDisplay.from_estimator(clf, frame, words, ax=ax)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("age", "size")
    assert_samples_shown(display, X, words, clf.deferred_, ["sick", "well"])
    grid = np.column_stack([display.xx0.ravel(), display.xx1.ravel()])
    names = pd.DataFrame(grid, columns=["age", "size"])
    np.testing.assert_array_equal(display.decision.ravel(), clf.decision_function(names))
    assert DeferralBoundaryDisplay.from_estimator(
        clf, frame, words, ax=ax, xlabel="years"
    ).ax_.get_xlabel() == "years"  # fmt: skip


def test_sparse_samples(ax):
    clf, X, y = fitted("linear", 0.3)
    sparse = machine(budget=0.3).fit(csr_matrix(X), y, human_loss=clf.human_loss_)
    display = DeferralBoundaryDisplay.from_estimator(sparse, csr_matrix(X), y, ax=ax)
    assert_samples_shown(display, X, y, clf.deferred_, [-1, 1])


@pytest.mark.parametrize("wrap", [make_pipeline, make_assisted_pipeline])
def test_pipelines_are_drawn_in_the_plane_of_their_input(ax, wrap):
    _, X, y = fitted("linear", 0.3)
    X = X * [1.0, 100.0]
    team = wrap(StandardScaler(), machine(budget=0.3, kernel="rbf", alpha=0.01)).fit(X, y)
    display = DeferralBoundaryDisplay.from_estimator(team, X, y, ax=ax, grid_resolution=40)
    assert_samples_shown(display, X, y, team[-1].deferred_, [-1, 1])
    grid = np.column_stack([display.xx0.ravel(), display.xx1.ravel()])
    expected = team[-1].decision_function(team[0].transform(grid))
    np.testing.assert_allclose(display.decision.ravel(), expected)


def test_search(ax):
    _, X, y = fitted("linear", 0.3)
    search = GridSearchCV(machine(budget=0.3), {"alpha": [0.1, 1.0]}, cv=2).fit(X, y)
    display = DeferralBoundaryDisplay.from_estimator(search, X, y, ax=ax)
    assert_samples_shown(display, X, y, search.best_estimator_.deferred_, [-1, 1])


@pytest.mark.parametrize("rule", ["defer", "defer_top"])
def test_new_samples(ax, rule):
    clf, _, _ = fitted("linear", 0.3)
    new, labels = make_linear(50, random_state=5)
    display = DeferralBoundaryDisplay.from_estimator(clf, new, labels, ax=ax, deferred=rule)
    assert_samples_shown(display, new, labels, getattr(clf, rule)(new), [-1, 1])

    mask = labels == 1
    display = DeferralBoundaryDisplay.from_estimator(clf, new, labels, ax=ax, deferred=mask)
    assert_samples_shown(display, new, labels, mask, [-1, 1])


@pytest.mark.parametrize("order", [slice(0, 99), slice(None, None, -1)])
def test_rows_that_are_not_those_of_fit_are_refused(ax, order):
    clf, X, y = fitted("linear", 0.3)
    with pytest.raises(ValueError, match=r"not the samples of fit .*deferred='defer'"):
        DeferralBoundaryDisplay.from_estimator(clf, X[order], y[order], ax=ax)


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"X": np.zeros((100, 3))}, "two features .*(100, 3)"),
        ({"X": np.zeros((0, 2))}, "two features"),
        ({"X": np.full((100, 2), np.nan)}, "missing or infinite"),
        ({"y": np.ones(99)}, r"X has 100 rows, y the shape \(99,\)"),
        ({"y": np.full(100, "x")}, r"label 'x', which is not one of the classes \[-1, 1\]"),
        ({"deferred": "all"}, "'fit', 'defer', 'defer_top' or a mask of booleans, got 'all'"),
        ({"deferred": np.arange(100)}, "mask of booleans, got the type int"),
        ({"deferred": [True]}, r"deferred the shape \(1,\)"),
        ({"grid_resolution": 1}, "integer from 2, got 1"),
        ({"grid_resolution": 2.5}, "integer from 2, got 2.5"),
    ],
)
def test_errors_say_what_is_wrong(ax, change, error):
    clf, X, y = fitted("linear", 0.3)
    with pytest.raises(ValueError, match=error):
        DeferralBoundaryDisplay.from_estimator(
            **({"estimator": clf, "X": X, "y": y, "ax": ax} | change)
        )


def test_estimators_that_cannot_be_drawn(ax):
    _, X, y = fitted("linear", 0.3)
    with pytest.raises(NotFittedError):
        DeferralBoundaryDisplay.from_estimator(machine(), X, y, ax=ax)
    other = LogisticRegression().fit(X, y)
    with pytest.raises(ValueError, match=r"LogisticRegression does not say .*deferred="):
        DeferralBoundaryDisplay.from_estimator(other, X, y, ax=ax)
    # Told who is deferred, any machine with two classes will do.
    mask = np.arange(100) < 5
    display = DeferralBoundaryDisplay.from_estimator(other, X, y, ax=ax, deferred=mask)
    assert_samples_shown(display, X, y, mask, [-1, 1])


def test_two_classes_are_needed():
    grid = {"xx0": [[0, 1], [0, 1]], "xx1": [[0, 0], [1, 1]], "decision": [[0, 1], [0, 1]]}
    with pytest.raises(ValueError, match=r"has two classes, got .*'a'.*: give both"):
        DeferralBoundaryDisplay([[0.0, 0.0]], y=["a"], deferred=[False], **grid)


@settings(max_examples=20, deadline=None)
@given(
    st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=8),
    st.sampled_from([0.0, 1.0]),
    st.sampled_from([0.0, 1e-13, 0.5, 3.0]),
)
def test_whoever_is_there_is_drawn_once(cases, spread, slope):
    labels, deferred = np.array(cases).T
    X = spread * np.random.RandomState(0).normal(size=(len(cases), 2))
    clf = LogisticRegression().fit([[0.0, 0.0], [1.0, 0.0]], [False, True])
    clf.coef_, clf.intercept_ = np.array([[slope, 0.0]]), np.array([0.5])
    display = DeferralBoundaryDisplay.from_estimator(
        clf,
        X,
        labels,
        deferred=deferred,
        grid_resolution=5,
        ax=Figure(layout="constrained").subplots(),
    )
    assert_samples_shown(display, X, labels, deferred, [False, True])
    shown = {
        text for text in legend_texts(display.legend_) if "class" in text and "margin" not in text
    }
    assert shown == {f"class {c}, {'deferred' if d else 'kept'}" for c, d in cases}
    assert ("always answers class True" in display.ax_.get_xlabel()) == (slope < 1e-6)


@pytest.mark.parametrize("layout", ["constrained", "tight", None])
@pytest.mark.parametrize("font", [8, 10, 13])
def test_nothing_overlaps_whatever_the_layout_and_the_font(layout, font):
    clf, X, y = fitted("linear", 0.3)
    with rc_context({"font.size": font}):
        figure = Figure(layout=layout)
        assert_nothing_overlaps(
            DeferralBoundaryDisplay.from_estimator(clf, X, y, ax=figure.subplots())
        )


def test_looks_can_be_changed(ax):
    clf, X, y = fitted("linear", 0.3)
    display = DeferralBoundaryDisplay.from_estimator(
        clf,
        X,
        y,
        ax=ax,
        scatter_kw={"s": 7.0, "lw": 0.5},
        contour_kw={"linewidths": 3.0, "colors": "k"},
    )
    for markers in (*display.kept_markers_, *display.deferred_markers_):
        assert markers.get_sizes().tolist() == [7.0]
        assert markers.get_linewidth() == [0.5]
    for line in (display.boundary_, *display.margins_):
        assert line.get_linewidth() == [3.0]
        np.testing.assert_allclose(line.get_edgecolor(), [to_rgba("k")])


def test_new_figure_where_no_axes_are_given():
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    clf, X, y = fitted("linear", 0.3)
    display = DeferralBoundaryDisplay.from_estimator(clf, X, y)
    assert display.figure_.number in plt.get_fignums()
    assert_nothing_overlaps(display)
    plt.close(display.figure_)


def test_missing_matplotlib_is_said_first(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"pip install 'deferlearn\[plot\]'"):
        DeferralBoundaryDisplay.from_estimator(None, None, None)
