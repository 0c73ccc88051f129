"""Sums in two doubles against exact fractions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from deferlearn.kernels.doubledouble import (
    add,
    divide,
    multiply,
    row_products,
    sparse_row_products,
    two_product,
    two_sum,
    weighted_row_sum,
    weighted_sparse_row_sum,
)

DIGITS = 2.0**-98  # of a result, relative to its terms: a pair has 104 bits
numbers = st.floats(-1e100, 1e100).map(lambda x: 0.0 if abs(x) < 1e-100 else x)


def exactly(hi: float, lo: float) -> Fraction:
    return Fraction(float(hi)) + Fraction(float(lo))


@settings(deadline=None)
@given(numbers, numbers)
def test_errors_of_one_operation_are_exact(a: float, b: float) -> None:
    assert exactly(*two_sum.py_func(a, b)) == Fraction(a) + Fraction(b)
    assert exactly(*two_product.py_func(a, b)) == Fraction(a) * Fraction(b)


@pytest.mark.parametrize("seed", range(20))
def test_pairs(seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, b = ((x, x * 1e-17 * rng.normal()) for x in rng.normal(size=2))
    for function, exact in (
        (add, exactly(*a) + exactly(*b)),
        (multiply, exactly(*a) * exactly(*b)),
        (divide, exactly(*a) / exactly(*b)),
    ):
        found = exactly(*with_python(function)(*a, *b))
        assert abs(found - exact) <= DIGITS * (abs(exactly(*a)) + abs(exactly(*b)) + abs(exact))


def with_python(function):  # type: ignore[no-untyped-def]
    """The function as Python runs it: compiled, only other compiled functions can call it."""
    names = {"two_sum": two_sum.py_func, "two_product": two_product.py_func}
    for used in (add, multiply):
        names[used.py_func.__name__] = type(used.py_func)(used.py_func.__code__, names)
    return type(function.py_func)(function.py_func.__code__, names)


@pytest.mark.parametrize("sparse", [False, True])
def test_sums_that_cancel(sparse: bool) -> None:
    """Weights that cancel to the last digits of a double, and beyond."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(40, 5)) * (rng.random((40, 5)) < 0.6)
    rows[20:] = rows[:20]
    hi, lo = np.tile(rng.normal(size=20), 2), rng.normal(size=40) * 1e-17
    hi[20:] *= -1.0
    exact = [sum(Fraction(rows[i, j]) * exactly(hi[i], lo[i]) for i in range(40)) for j in range(5)]
    X = sp.csr_array(rows)
    found = (
        weighted_sparse_row_sum(X.data, X.indices, X.indptr, np.arange(40), hi, lo, 5)
        if sparse
        else weighted_row_sum(rows, hi, lo)
    )
    for j in range(5):
        assert abs(exactly(found[0][j], found[1][j]) - exact[j]) <= 100 * DIGITS
        assert 0 < abs(exact[j]) < 1e-14


@pytest.mark.parametrize("sparse", [False, True])
def test_products_of_rows(sparse: bool) -> None:
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(6, 30)) * (rng.random((6, 30)) < 0.6)
    left, right = np.array([0, 3, 5]), np.array([1, 3])
    X = sp.csr_array(rows)
    found = (
        sparse_row_products(X.data, X.indices, X.indptr, left, right)
        if sparse
        else row_products(rows[left], rows[right])
    )
    for i, k in enumerate(left):
        for j, m in enumerate(right):
            exact = sum(Fraction(a) * Fraction(b) for a, b in zip(rows[k], rows[m], strict=True))
            assert abs(exactly(found[0][i, j], found[1][i, j]) - exact) <= 100 * DIGITS
