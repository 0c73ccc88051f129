"""Which matrices are taken for Gram matrices, and what the engine makes of those that nearly are."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist

from deferlearn._utils.threads import one_blas_thread
from deferlearn.datasets import make_shifted
from deferlearn.kernels.definite import INDEFINITE, as_gram
from deferlearn.objective import SVMObjective

X, Y = make_shifted(60, 5, random_state=0)
SINGLE = X.astype(np.float32)


def objective(K, offset=True, alpha=0.05):
    return SVMObjective(K, Y, alpha, kernel="precomputed", fit_intercept=offset)


def with_smallest(eigenvalue, n, seed, dtype):
    """A symmetric matrix whose largest entry is one and whose smallest eigenvalue is about this."""
    rng = np.random.default_rng(seed)
    basis = np.linalg.qr(rng.normal(size=(n, n)))[0]
    spectrum = np.append(rng.uniform(0.5, 1.0, n - 1), 0.0)
    K = basis @ np.diag(spectrum) @ basis.T
    K /= np.abs(K).max()
    K += eigenvalue * np.outer(basis[:, -1], basis[:, -1])
    return ((K + K.T) / 2).astype(dtype).astype(np.float64)


@settings(deadline=None, max_examples=30)
@given(n=st.integers(3, 30), seed=st.integers(0, 10**6), offset=st.booleans())
def test_the_limit_depends_on_the_precision(n, seed, offset):
    limit = INDEFINITE["single"]
    for eigenvalue, dtype, refused in (
        (-limit / 10, np.float32, False),
        (-limit * 10, np.float32, True),
        (-limit / 10, np.float64, True),
        (-INDEFINITE["double"] / 10, np.float64, False),
        (-INDEFINITE["double"] * 10, np.float64, True),
    ):
        K = with_smallest(eigenvalue, n, seed, dtype)
        if refused:
            # Without offset: with one, a constant could make up for what is missing.
            with pytest.raises(ValueError, match="The kernel is indefinite"):
                as_gram(K, "The kernel", offset=False)
        else:
            gram = as_gram(K, "The kernel", offset)
            assert np.linalg.eigvalsh(gram)[0] >= -INDEFINITE["double"]
            np.testing.assert_allclose(gram, K, atol=limit)


@pytest.mark.parametrize("offset", [False, True])
@pytest.mark.parametrize(
    "K",
    [
        np.array([[1, 2], [2, 1]]),
        np.array([[1.0, 1.5], [1.5, 1.0]], dtype=np.float32),
        np.array([[0.1, 0.0], [0.0, -0.1]], dtype=np.float32),
        np.diag([1000.0, -10.0, -10.0]),
        10**6 * np.ones((2, 2)) - np.diag([0, 1]),  # -0.25 of a million: whole numbers are exact
    ],
    ids=str,
)
def test_truly_indefinite_kernels_are_refused_in_any_precision(K, offset):
    with pytest.raises(ValueError, match="indefinite"):
        as_gram(np.asarray(K, dtype=np.float64), "The kernel", offset)


@pytest.mark.parametrize("kind", ["linear", "rbf", "twins"])
@pytest.mark.parametrize("offset", [False, True])
def test_a_kernel_in_single_precision(kind, offset):
    """Against the same in double: values of F differ by no more than the matrices' distance allows.

    F = max_a sum(a) - a'Qa / (4 alpha n) over 0 <= a <= 1, so it moves by at most |dQ| n / (4 alpha n).
    """

    def kernel(Z):
        if kind == "twins":
            Z = np.concatenate([Z[:30], Z[:30]])
        inner = Z @ Z.T
        if kind == "rbf":
            norms = np.diag(inner)
            inner = np.exp(-(norms[:, None] + norms - 2 * inner))
        return inner

    exact, rounded = kernel(X), kernel(SINGLE)
    assert rounded.dtype == np.float32
    rounded = rounded.astype(np.float64)
    size = np.abs(exact).max()
    if kind != "rbf":
        assert np.linalg.eigvalsh(rounded)[0] < -INDEFINITE["double"] * size
    gram = as_gram(rounded, "The kernel", offset)
    assert np.linalg.eigvalsh(gram)[0] >= -1e-12 * size
    distance = np.linalg.norm(gram - exact, 2)
    assert distance < 1e-4 * size
    before, after = objective(exact, offset), objective(rounded, offset)
    for k in (3, 11, 25):
        assert abs(before.value - after.value) <= distance / (4 * 0.05) + 1e-9
        before.remove(k)
        after.remove(k)


def test_an_offset_does_not_notice_a_constant():
    K = X @ X.T
    centred = K - K.mean()
    assert np.linalg.eigvalsh(centred)[0] < -1.0
    with pytest.raises(ValueError, match="indefinite"):
        objective(centred, offset=False)
    as_rows = SVMObjective(X, Y, 0.05, kernel=lambda A, B: A @ B.T - K.mean())
    states = [objective(K), objective(centred), as_rows]
    everybody = np.arange(60)
    for k in (2, 40, 17):
        expected = states[0]
        for other, rows in ((states[1], centred), (states[2], X)):
            assert other.value == pytest.approx(expected.value, rel=1e-9)
            np.testing.assert_allclose(
                other.gains(everybody[other.kept]),
                expected.gains(everybody[expected.kept]),
                rtol=1e-7,
                atol=1e-9,
            )
            np.testing.assert_allclose(
                other.decision_function(rows), expected.decision_function(K), rtol=1e-7, atol=1e-9
            )
        for state in states:
            state.remove(k)


def test_a_distance_is_a_kernel_for_an_svm_with_offset():
    """Negative distances are definite on differences (Schoenberg): the centred matrix is a kernel."""
    K = -cdist(X, X)
    H = np.eye(60) - 1 / 60
    with pytest.raises(ValueError, match="indefinite"):
        objective(K, offset=False)
    ours, centred = objective(K), objective(H @ K @ H)
    for k in (5, 50):
        assert ours.value == pytest.approx(centred.value, rel=1e-9)
        ours.remove(k)
        centred.remove(k)


def test_a_large_matrix_in_single_precision():
    """Beyond a thousand rows the smallest eigenvalue comes from iterations."""
    Z, y = make_shifted(1100, 3, random_state=1)
    Z = Z.astype(np.float32)
    K = (Z @ Z.T).astype(np.float64)
    with one_blas_thread():  # several are slow where others work, too
        gram = as_gram(K, "The kernel", offset=True)
        assert np.linalg.eigvalsh(K)[0] < -1e-7
        assert np.linalg.eigvalsh(gram)[0] > -1e-9
        with pytest.raises(ValueError, match="indefinite"):
            as_gram(K - np.outer(y, y), "The kernel", offset=True)


def test_a_kernel_that_is_not_symmetric_by_rounding():
    K = X @ X.T
    K[3, 5] *= 1 + 1e-6
    with pytest.raises(ValueError, match=r"not symmetric: entry \((3, 5|5, 3)\)"):
        as_gram(K, "The kernel", offset=True)
    K = SINGLE @ SINGLE.T
    K[3, 5] = np.nextafter(K[3, 5], np.float32(np.inf))
    gram = as_gram(K.astype(np.float64), "The kernel", offset=True)
    np.testing.assert_array_equal(gram, gram.T)


def test_large_gram_matrices_are_judged_exactly():
    """Of rank 21 among 1,100: the smallest eigenvalue is zero many times over."""
    Z = np.random.RandomState(0).normal(size=(1100, 5))
    K = (Z @ Z.T + 1.0) ** 2
    assert as_gram(K, "K", offset=False) is K
    K[0, 0] -= 1.0 + K[0, 0]
    with pytest.raises(ValueError, match="indefinite"):
        as_gram(K, "K", offset=False)
