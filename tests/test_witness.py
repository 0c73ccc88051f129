"""The witness itself: values known by hand, and proof that its certificate can fail."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from exact import dual_value, integers, primal_value
from problems import FULL, VARIANTS, chunks, problem
from witness import make_sample, own_gap, witness_value

X2 = np.array([[1.0], [-1.0]])
Y2 = np.array([1.0, -1.0])


@pytest.mark.parametrize("alpha", [1e-6, 0.01, 0.4, 0.5, 3.0, 1e6])
@pytest.mark.parametrize("offset", [True, False])
def test_two_points_by_hand(alpha: float, offset: bool) -> None:
    # min 2 alpha w^2 + 2 [1 - w]_+: w = 1 while 4 alpha <= 2, otherwise w = 1/(2 alpha).
    by_hand = 2 * alpha if alpha <= 0.5 else 2 - 1 / (2 * alpha)
    found = witness_value(X2, Y2, alpha, fit_intercept=offset)
    assert found.ok
    assert_allclose(found.value, by_hand, rtol=0, atol=1e-10)


def test_weights_by_hand() -> None:
    # Without offset, one sample of weight 3: min 3 alpha w^2 + 3 [1 - w]_+, three times the plain.
    found = witness_value(X2[:1], Y2[:1], 2.0, fit_intercept=False, weights=np.array([3.0]))
    assert_allclose(found.value, 3 * (1 - 1 / 8), rtol=1e-10)


@pytest.mark.parametrize("shift", [0.0, 5.0])
def test_hard_margin_by_hand(shift: float) -> None:
    # Points at shift +- 1 are separated by w = 1: F = alpha m.
    found = witness_value(X2 + shift, Y2, 1e-4, margin="hard")
    assert found.ok
    assert_allclose(found.value, 2e-4, rtol=1e-10)


def test_zero_data_counts_the_smaller_class() -> None:
    y = np.array([1.0, 1.0, 1.0, -1.0, -1.0])
    assert_allclose(witness_value(np.zeros((5, 2)), y, 1.0).value, 4.0, rtol=1e-10)
    assert_allclose(witness_value(np.zeros((5, 2)), y, 1.0, fit_intercept=False).value, 5.0)


def test_integers_represent_doubles_without_rounding() -> None:
    x = np.array([0.1, -3e-200, 7.5e99, 0.0, 5e-324])
    whole, exponent = integers(x)
    assert exponent < 0
    assert [int(v) / 2**-exponent for v in whole] == x.tolist()


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_exact_values_match_plain_numpy(kernel: str) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(9, 3)), rng.choice([-1.0, 1.0], size=9)
    u, b = rng.uniform(0.5, 2, size=9), 0.3
    sample = make_sample(X, y, 0.2, kernel=kernel, gamma=0.7, weights=u, fit_intercept=False)
    a, mu = rng.uniform(0, 0.5, size=9), 0.4 * u.sum()
    distances = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    K = X @ X.T if kernel == "linear" else np.exp(-0.7 * distances)
    c = a * y / mu
    hinge = np.maximum(0, 1 - y * (K @ c + b))
    w = X.T @ c if kernel == "linear" else c
    assert_allclose(primal_value(sample, w, b), mu / 2 * c @ K @ c + u @ hinge, rtol=1e-13)
    assert_allclose(dual_value(sample, a), a.sum() - mu / 2 * c @ K @ c, rtol=1e-13)


def test_dual_value_is_that_of_a_feasible_point() -> None:
    # y.a = 1 is far from feasible: the point must be moved, and its value stays below F.
    sample = make_sample(X2, Y2, 0.1)
    assert dual_value(sample, np.array([1.0, 0.0])) <= witness_value(X2, Y2, 0.1).value
    # Clipped to [0, 1]: a = (1, 1), D = 2 - 4 / (2 mu) with mu = 0.4.
    assert_allclose(dual_value(sample, np.array([7.0, 9.0])), -3.0)


@pytest.mark.parametrize("change", ["dual", "coef", "intercept", "value"])
def test_own_gap_notices_a_wrong_answer(change: str) -> None:
    # By hand: alpha = 0.25 gives w = 1, b = 0, a = mu w / 2 = 0.5 each, F = 0.5.
    answer = {
        "dual": np.array([0.5, 0.5]),
        "coef": np.array([1.0]),
        "intercept": 0.0,
        "value": 0.5,
        "kept": np.array([True, True]),
    }
    assert own_gap(SimpleNamespace(**answer), X2, Y2, 0.25) <= 1e-15
    answer[change] = answer[change] - 1e-4
    assert own_gap(SimpleNamespace(**answer), X2, Y2, 0.25) > 1e-9


@pytest.mark.parametrize("seeds", chunks(0, 10_000 if FULL else 500, 250), ids=str)
def test_witness_has_an_answer_nearly_always(seeds: range) -> None:
    """Else the tests that lean on it would silently test something weaker."""
    failed = [p.name for p in map(problem, seeds) if not p.witness().ok]
    assert len(failed) <= 0.01 * len(seeds), failed


def test_any_280_seeds_cover_all_pairs() -> None:
    names = [problem(seed).name.split(", ") for seed in range(20 * len(VARIANTS))]
    assert len({(head.split(": ")[1], shape.split(" ")[0]) for head, shape, *_ in names}) == 280
