"""Blocks and products of the signed Gram matrix against the matrix itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from deferlearn.kernels import KernelGram, LinearGram, make_gram

N = 40
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 6)) * (RNG.random((N, 6)) < 0.7)
Y = np.where(RNG.random(N) < 0.5, 1.0, -1.0)
DEFAULTS = {"kernel": "linear", "degree": 3, "gamma": 0.3, "coef0": 1.0, "offset": False}
LARGE, SMALL = 2**20, 2**10  # bytes: for the whole matrix, and for a few columns


def matrix_of(kernel: Any) -> np.ndarray:
    if kernel == "linear":
        return X @ X.T
    if kernel == "poly":
        return (0.3 * X @ X.T + 1.0) ** 3
    return np.exp(-0.3 * ((X[:, None] - X) ** 2).sum(axis=2))


@pytest.mark.parametrize(
    ("kernel", "memory", "rows"),
    [
        ("linear", LARGE, X),
        ("linear", LARGE, sp.csr_array(X)),
        ("poly", LARGE, X),
        ("poly", SMALL, X),
        ("rbf", LARGE, X),
        ("rbf", SMALL, X),
    ],
)
def test_all_ways_to_the_matrix(kernel: str, memory: int, rows: Any) -> None:
    gram = make_gram(rows, Y, **DEFAULTS | {"kernel": kernel}, memory=memory)
    assert isinstance(gram, LinearGram if kernel == "linear" else KernelGram)
    assert gram.costly == (memory == SMALL)
    Q = matrix_of(kernel) * np.outer(Y, Y) / gram.unit
    assert 1.0 <= Q.diagonal().max() < 4.0  # the largest entry is scaled to near one
    few, some = np.array([3, 11, 39]), np.array([0, 1, 3, 20])
    coef = np.array([0.5, -2.0, 1.0])
    np.testing.assert_allclose(gram.diagonal, Q.diagonal(), atol=1e-14)
    np.testing.assert_allclose(gram.block(some, few), Q[np.ix_(some, few)], atol=1e-13)
    np.testing.assert_allclose(sum(gram.block_pair(some, few)), Q[np.ix_(some, few)], atol=1e-13)
    np.testing.assert_allclose(gram.image(few, coef), Q[:, few] @ coef, atol=1e-13)
    both = np.column_stack([coef, -coef])
    np.testing.assert_allclose(gram.image(few, both), Q[:, few] @ both, atol=1e-13)
    np.testing.assert_allclose(gram.image_at(some, few, coef), Q[some][:, few] @ coef, atol=1e-13)
    image = gram.image_pair(few, coef, np.zeros(3))
    np.testing.assert_allclose(image, Q[:, few] @ coef, atol=1e-13)


@pytest.mark.parametrize("offset", [False, True])
def test_rows_far_from_the_origin_are_centred_with_an_offset(offset: bool) -> None:
    gram = make_gram(X + 1e6, Y, **DEFAULTS | {"offset": offset}, memory=LARGE)
    assert isinstance(gram, LinearGram)
    assert (np.abs(gram.centre - 1e6).max() < 1.0) == offset
