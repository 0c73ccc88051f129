"""The reliability picture shows the curve's numbers, and hides nothing."""

from itertools import pairwise

import numpy as np
import pytest
from matplotlib.figure import Figure
from scipy import stats
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from deferlearn.metrics import brier_score, expected_calibration_error, reliability_curve
from deferlearn.plot import ReliabilityDisplay
from deferlearn.plot._frame import short_count
from pictures import assert_nothing_overlaps, legend_texts

RNG = np.random.default_rng(0)
PROBA = RNG.dirichlet(np.ones(3), size=400)
Y = (PROBA.cumsum(axis=1) < RNG.random(400)[:, None]).sum(axis=1)
WORDS = np.array(["low", "mid", "high"])


@pytest.fixture
def ax():
    return Figure(layout="constrained").subplots()


def test_points_and_intervals_are_the_curves(ax):
    display = ReliabilityDisplay.from_predictions(Y, PROBA, ax=ax, confidence=0.9)
    assert display.ax_ is ax
    assert display.figure_ is ax.figure
    curve = reliability_curve(Y, PROBA)
    used = curve.counts > 0
    np.testing.assert_allclose(display.line_.get_xdata(), curve.predicted[used])
    np.testing.assert_allclose(display.line_.get_ydata(), curve.observed[used])
    for segment, hits, n, predicted in zip(
        display.intervals_.get_segments(),
        curve.hits[used],
        curve.counts[used],
        curve.predicted[used],
        strict=True,
    ):
        # Wilson's formula, written out.
        z, share = stats.norm.ppf(0.95), hits / n
        middle = (share + z**2 / (2 * n)) / (1 + z**2 / n)
        half = z / (1 + z**2 / n) * np.sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
        np.testing.assert_allclose(
            segment, [[predicted, middle - half], [predicted, middle + half]], atol=1e-9
        )
    assert [bar.get_height() for bar in display.counts_ax_.patches] == curve.counts.tolist()
    numbers = [text.get_text() for text in display.counts_ax_.texts]
    assert numbers == [str(n) for n in curve.counts if n]
    brier, error = brier_score(Y, PROBA), expected_calibration_error(Y, PROBA)
    assert legend_texts(display.legend_) == [
        "as predicted",
        f"observed, 90% interval\nBrier score {brier:.3f}, ECE {error:.3f}",
    ]
    assert ax.get_xlabel() == "highest predicted probability"
    assert ax.get_ylabel() == "share of right answers"


@pytest.mark.parametrize(
    ("y", "proba", "options", "name"),
    [
        (WORDS[Y], PROBA, {"classes": WORDS, "pos_label": "mid"}, "mid"),
        (Y == 1, PROBA[:, 1], {}, "True"),
        (np.where(Y == 1, "sick", "well"), PROBA[:, 1], {"classes": ["well", "sick"]}, "sick"),
        (Y, PROBA, {"pos_label": np.int64(1)}, "1"),
    ],
)
def test_one_class(ax, y, proba, options, name):
    display = ReliabilityDisplay.from_predictions(y, proba, ax=ax, **options)
    assert display.of == name
    assert ax.get_xlabel() == f"predicted probability of {name}"
    assert ax.get_ylabel() == f"observed share of {name}"
    curve = reliability_curve(Y == 1, PROBA[:, 1])
    np.testing.assert_allclose(display.curve.observed, curve.observed)


def test_from_estimator(ax):
    X = RNG.normal(size=(300, 2)) + Y[:300, None]
    machine = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, WORDS[Y[:300]])
    display = ReliabilityDisplay.from_estimator(
        machine, X, WORDS[Y[:300]], ax=ax, n_bins=5, strategy="quantile", legend=False
    )
    proba = machine.predict_proba(X)
    curve = reliability_curve(
        WORDS[Y[:300]], proba, classes=machine.classes_, n_bins=5, strategy="quantile"
    )
    np.testing.assert_array_equal(display.curve.counts, curve.counts)
    assert display.legend_ is None
    with pytest.raises(TypeError, match="StandardScaler has none"):
        ReliabilityDisplay.from_estimator(StandardScaler(), X, Y)


@pytest.mark.parametrize("layout", ["constrained", None])
@pytest.mark.parametrize("size", [(4.6, 4.4), (3.6, 3.8), (9.0, 6.0)])
@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
def test_nothing_overlaps(layout, size, strategy):
    ax = Figure(figsize=size, layout=layout).subplots()
    display = ReliabilityDisplay.from_predictions(Y, PROBA, ax=ax, strategy=strategy)
    assert_nothing_overlaps(display)
    bars, whole = display.counts_ax_, display.figure_.bbox
    assert bars.get_window_extent().y0 > ax.get_window_extent().y1
    assert bars.get_tightbbox().y1 <= whole.y1
    numbers = [text.get_window_extent() for text in bars.texts]
    assert numbers
    assert all(left.x1 <= right.x0 for left, right in pairwise(numbers))


def test_line_keywords(ax):
    display = ReliabilityDisplay.from_predictions(
        Y, PROBA, ax=ax, line_kw={"c": "red", "label": "mine"}
    )
    assert display.line_.get_color() == "red"
    assert legend_texts(display.legend_)[-1] == "mine"


def test_new_figure_where_no_axes_are_given():
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    display = ReliabilityDisplay.from_predictions(Y, PROBA)
    assert display.figure_.number in plt.get_fignums()
    plt.close(display.figure_)


def test_errors_say_what_was_wrong(ax):
    curve = reliability_curve(Y, PROBA)
    with pytest.raises(TypeError, match="must be a ReliabilityCurve, got ndarray"):
        ReliabilityDisplay(PROBA, brier=0.1)
    with pytest.raises(ValueError, match="confidence must lie between 0 and 1"):
        ReliabilityDisplay(curve, brier=0.1, confidence=1.0)
    with pytest.raises(ValueError, match="has 3 columns, but there are 2 classes"):
        ReliabilityDisplay.from_predictions(Y == 1, PROBA, ax=ax)


@pytest.mark.parametrize(
    ("n", "words"),
    [
        (0, "0"),
        (999, "999"),
        (1000, "1k"),
        (1240, "1.2k"),
        (9949, "9.9k"),
        (9950, "10k"),
        (53_236, "53k"),
        (123_456, "123k"),
    ],
)
def test_short_counts(n, words):
    assert short_count(n) == words
