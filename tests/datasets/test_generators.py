import numpy as np
import pytest

from deferlearn.datasets import make_linear, make_quadratic, make_shifted

MANY = 40_000


def assert_moments(sample, mean, covariance):
    """Within five standard errors; the covariance's are bounded through the normal law's."""
    covariance = np.asarray(covariance, dtype=float)
    error = 5 / np.sqrt(len(sample))
    np.testing.assert_array_less(
        np.abs(sample.mean(axis=0) - mean), error * np.sqrt(covariance.diagonal())
    )
    scale = np.sqrt(2 * np.outer(covariance.diagonal(), covariance.diagonal()))
    np.testing.assert_array_less(np.abs(np.cov(sample.T) - covariance), error * scale)


@pytest.mark.parametrize("make", [make_linear, make_quadratic, make_shifted])
def test_shapes_types_and_seeds(make):
    X, y = make(random_state=0)
    assert len(X) == len(y) == 400
    assert X.dtype == np.float64
    assert y.dtype == np.int64
    assert set(y) == {-1, 1}
    again = make(random_state=0)
    np.testing.assert_array_equal(X, again[0])
    np.testing.assert_array_equal(y, again[1])
    assert (make(random_state=1)[0] != X).any()
    assert make(np.int32(7), random_state=np.random.RandomState(0))[0].shape == (7, X.shape[1])


@pytest.mark.parametrize("make", [make_linear, make_quadratic, make_shifted])
@pytest.mark.parametrize("n", [0, -3, 2.0, True, "4"])
def test_n_samples_must_be_a_positive_integer(make, n):
    with pytest.raises(ValueError, match="n_samples must be a positive integer"):
        make(n)


def test_linear_has_the_papers_moments():
    X, y = make_linear(MANY, random_state=0)
    assert np.mean(y == 1) == pytest.approx(0.5, abs=5 * 0.5 / np.sqrt(MANY))
    covariance = np.array([[6, 1], [1, 6]])
    assert_moments(X[y == -1], [0, 0], covariance)
    # Mixing N(+m, C) and N(-m, C) evenly has mean 0 and covariance C + m m'.
    assert_moments(X[y == 1], [0, 0], covariance + 25)


def test_linear_mixes_two_clouds_evenly_sample_by_sample():
    X, y = make_linear(MANY, random_state=0)
    positive = X[y == 1]
    # Their centres are 10 sqrt(2) apart, with a deviation of sqrt(7) in that direction.
    upper = positive.sum(axis=1) > 0
    assert upper.mean() == pytest.approx(0.5, abs=0.02)
    assert positive[upper].mean(axis=0) == pytest.approx([5, 5], abs=0.15)
    assert positive[~upper].mean(axis=0) == pytest.approx([-5, -5], abs=0.15)
    assert np.mean(upper[1:] != upper[:-1]) == pytest.approx(0.5, abs=0.02)


def test_quadratic_has_the_papers_moments_and_labels():
    X, y = make_quadratic(MANY, random_state=0)
    assert_moments(X, [0, 0], [[12, 1], [1, 14]])
    for x, label in zip(X[:2000], y[:2000], strict=True):
        near = (x[0] - 1) ** 2 + (x[1] - 1) ** 2 <= 4
        far = (x[0] + 1) ** 2 + (x[1] + 1) ** 2 >= 25
        assert label == (1 if near or far else -1)


def test_shifted_classes_differ_by_one_direction_of_the_unit_cube():
    X, y = make_shifted(MANY, n_features=5, shift=2.0, random_state=0)
    assert np.mean(y == 1) == pytest.approx(0.5, abs=5 * 0.5 / np.sqrt(MANY))
    direction = (X * y[:, None]).mean(axis=0) / 2.0
    assert ((direction > -0.02) & (direction < 1.02)).all()
    assert np.ptp(direction) > 0.1
    assert_moments(X - 2.0 * y[:, None] * direction, np.zeros(5), np.eye(5))


def test_shift_of_zero_makes_the_classes_alike():
    X, y = make_shifted(MANY, n_features=3, shift=0.0, random_state=0)
    assert_moments(X[y == 1], np.zeros(3), np.eye(3))


def test_shifted_names_its_own_mistakes():
    with pytest.raises(ValueError, match="n_features must be a positive integer, got 0"):
        make_shifted(10, n_features=0)
    with pytest.raises(ValueError, match="shift must be a finite number, got nan"):
        make_shifted(10, shift=float("nan"))
