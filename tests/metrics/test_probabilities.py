"""Brier score, log loss and calibration of probabilities, against scikit-learn and by hand."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics
from sklearn.calibration import calibration_curve

from deferlearn.metrics import (
    brier_score,
    expected_calibration_error,
    log_loss,
    reliability_curve,
)

ALL = [brier_score, log_loss, expected_calibration_error]


def drawn(seed, n, k):
    rng = np.random.default_rng(seed)
    proba = rng.dirichlet(np.ones(k), size=n)
    return rng.integers(k, size=n), proba


@settings(deadline=None)
@given(st.integers(0, 1000), st.integers(1, 30), st.integers(2, 6))
def test_against_scikit_learn(seed, n, k):
    y, proba = drawn(seed, n, k)
    classes = list(range(k))
    assert log_loss(y, proba, classes=classes) == pytest.approx(
        metrics.log_loss(y, proba, labels=classes)
    )
    squares = ((proba - np.eye(k)[y]) ** 2).sum(axis=1).mean()
    by_hand = squares / 2 if k == 2 else squares
    assert brier_score(y, proba, classes=classes) == pytest.approx(by_hand)
    if k == 2 and len(set(y)) == 2:
        assert by_hand == pytest.approx(metrics.brier_score_loss(y, proba[:, 1]))


@settings(deadline=None)
@given(st.integers(0, 1000), st.integers(1, 40), st.integers(2, 5), st.integers(1, 12))
def test_bins_hold_every_case_once(seed, n, k, n_bins):
    y, proba = drawn(seed, n, k)
    for strategy in ("uniform", "quantile"):
        options = {"classes": list(range(k)), "n_bins": n_bins, "strategy": strategy}
        curve = reliability_curve(y, proba, **options)
        assert curve.counts.sum() == n
        assert len(curve.edges) == len(curve.counts) + 1 <= n_bins + 1
        used = curve.counts > 0
        assert (curve.predicted[used] >= curve.edges[:-1][used] - 1e-12).all()
        assert (curve.predicted[used] <= curve.edges[1:][used] + 1e-12).all()
        assert np.isnan(curve.observed[~used]).all()
        shown = proba[:, 1] if k == 2 else proba.max(axis=1)
        right = y == 1 if k == 2 else proba.argmax(axis=1) == y
        assert np.nansum(curve.predicted * curve.counts) == pytest.approx(shown.sum())
        assert curve.hits.sum() == right.sum()
        # With one bin, the error is the distance of the means; more bins can only add to it.
        error = expected_calibration_error(y, proba, **options)
        whole = abs(shown.mean() - right.mean())
        assert whole - 1e-12 <= error <= 1
        if n_bins == 1:
            assert error == pytest.approx(whole)


def test_curve_is_scikit_learns():
    y, proba = drawn(3, 500, 2)
    observed, predicted = calibration_curve(y, proba[:, 1], n_bins=10)
    curve = reliability_curve(y, proba)
    np.testing.assert_allclose(curve.observed, observed)
    np.testing.assert_allclose(curve.predicted, predicted)
    observed, predicted = calibration_curve(y, proba[:, 1], n_bins=7, strategy="quantile")
    curve = reliability_curve(y, proba, n_bins=7, strategy="quantile")
    np.testing.assert_allclose(curve.observed, observed)
    np.testing.assert_allclose(curve.predicted, predicted)
    assert np.ptp(curve.counts) <= 1


def test_by_hand():
    proba = [[0.7, 0.2, 0.1], [0.7, 0.2, 0.1], [0.1, 0.1, 0.8], [0.25, 0.5, 0.25]]
    y = ["a", "b", "c", "b"]
    squares = [0.09 + 0.04 + 0.01, 0.49 + 0.64 + 0.01, 0.01 + 0.01 + 0.04, 0.25 + 0.125]
    assert brier_score(y, proba) == pytest.approx(np.mean(squares))
    assert log_loss(y, proba) == pytest.approx(-np.log([0.7, 0.2, 0.8, 0.5]).mean())
    # Top labels a, a, c, b with the confidences 0.7, 0.7, 0.8, 0.5: right, wrong, right, right.
    assert expected_calibration_error(y, proba, n_bins=20) == pytest.approx(
        (2 * 0.2 + 0.2 + 0.5) / 4
    )
    # Class b: 0.2, 0.2, 0.1, 0.5, of which the second and the last come true.
    assert expected_calibration_error(y, proba, pos_label="b", n_bins=20) == pytest.approx(
        (2 * 0.3 + 0.1 + 0.5) / 4
    )


@pytest.mark.parametrize("metric", ALL)
def test_forms_of_two_classes_agree(metric):
    y, proba = drawn(1, 50, 2)
    value = pytest.approx(metric(y, proba))
    assert metric(y, proba[:, 1]) == value
    assert metric(y == 1, proba.tolist()) == value
    words = np.array(["well", "sick"])[y]
    assert metric(words, proba, classes=["well", "sick"]) == value
    assert metric(words, proba[:, 1], classes=["well", "sick"]) == value
    assert metric(y.astype(float), proba.astype(np.float32)) == value


@pytest.mark.parametrize("metric", ALL)
def test_columns_follow_the_classes(metric):
    y, proba = drawn(2, 60, 4)
    order = [2, 0, 3, 1]
    assert metric(y, proba[:, order], classes=order) == pytest.approx(metric(y, proba))
    perfect = np.eye(4)[y]
    assert metric(y, perfect) == 0
    assert metric(y[:1], perfect[:1], classes=range(4)) == 0


def test_a_true_class_of_probability_zero_costs_much_but_not_everything():
    assert log_loss([0, 1], [0.0, 0.0]) == pytest.approx(
        metrics.log_loss([0, 1], [[1.0, 0.0], [1.0, 0.0]])
    )


def test_calibrated_probabilities_have_a_small_error():
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(3), size=50_000)
    y = (proba.cumsum(axis=1) < rng.random(len(proba))[:, None]).sum(axis=1)
    for pos_label in (None, 0, 1, 2):
        assert expected_calibration_error(y, proba, pos_label=pos_label) < 0.01
    assert expected_calibration_error(y, proba**4 / (proba**4).sum(axis=1, keepdims=True)) > 0.1


THREE = [[0.2, 0.3, 0.5]] * 3


@pytest.mark.parametrize("metric", ALL)
@pytest.mark.parametrize(
    ("y", "proba", "options", "message"),
    [
        ([0, 1, 2], [[0.2, 0.3, 0.6]] * 3, {}, "row 0 sum to 1.1"),
        ([0, 1, 2], [[0.2, 0.3, np.nan]] * 3, {}, "row 0 holds nan"),
        ([0, 1, 2], [[0.2, -0.3, 1.1]] * 3, {}, "row 0 holds -0.3"),
        ([0, 1], [0.5, 1.2], {}, "row 1 holds 1.2"),
        ([0, 1], [0.5, np.nan], {}, "row 1 holds nan"),
        ([0, 1, 1], THREE, {}, "has 3 columns, but there are 2 classes"),
        ([0, 1, 2], [[0.5, 0.5]] * 3, {}, "has 2 columns, but there are 3 classes"),
        ([0, 1, 2], [0.5] * 3, {}, "is a vector, for two classes, but there are 3"),
        ([0, 0], [0.5] * 2, {}, "there are 1 classes"),
        ([0, 0], [[1.0], [1.0]], {}, "has 1 columns"),
        (["a", "b"], [0.5] * 2, {}, "of which class are these the probabilities"),
        ([0, 1], THREE, {}, r"shapes \(2,\) and \(3, 3\)"),
        ([[0], [1], [2]], THREE, {}, "y_true must be a vector"),
        ([], [], {}, "empty"),
        ([0, 1, 5], THREE, {"classes": [0, 1, 2]}, "y_true holds 5"),
        ([0.0, 1.0, np.nan], THREE, {"classes": [0, 1, 2]}, "no label at row 2"),
    ],
)
def test_errors_say_what_was_wrong(metric, y, proba, options, message):
    with pytest.raises(ValueError, match=message):
        metric(y, proba, **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_bins": 0}, "n_bins must be a whole number"),
        ({"n_bins": 2.5}, "got 2.5"),
        ({"strategy": "kmeans"}, "'uniform' or 'quantile', got 'kmeans'"),
        ({"pos_label": 7}, "pos_label=7 is none of the classes 0, 1, 2"),
    ],
)
def test_options_of_the_curve(options, message):
    with pytest.raises(ValueError, match=message):
        reliability_curve([0, 1, 2], THREE, **options)
