"""Products of sparse rows against those of dense ones."""

import numpy as np
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from deferlearn.kernels.sparse import inner_products


@settings(deadline=None, max_examples=60)
@given(
    n=st.integers(1, 12), d=st.integers(1, 9), density=st.floats(0.0, 1.0), seed=st.integers(0, 999)
)
def test_products_of_sparse_rows(n: int, d: int, density: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    dense = rng.normal(size=(n, d)) * (rng.random((n, d)) < density)
    left, right = (rng.integers(0, n, size) for size in rng.integers(0, 2 * n, 2))
    products = inner_products(sp.csr_array(dense), left, right)
    np.testing.assert_allclose(products, dense[left] @ dense[right].T, atol=1e-13)
    # The engine takes Q for symmetric, to the last digit.
    np.testing.assert_array_equal(inner_products(sp.csr_array(dense), right, left), products.T)
