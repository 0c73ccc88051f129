"""Decision values against scikit-learn's SVC, which users will compare with."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.svm import SVC

from problems import laplacian_gram

# libsvm keeps its kernel matrix in single precision: its answers carry about seven digits
# however small `tol` is. This is no witness of F, but of conventions: C, gamma, signs, offset.
LIBSVM = 1e-5

KERNELS: dict[str, dict[str, Any]] = {
    "linear": {"kernel": "linear"},
    "poly": {"kernel": "poly", "degree": 2, "coef0": 1.0},
    "poly, gamma given": {"kernel": "poly", "degree": 3, "gamma": 0.3, "coef0": 0.5},
    "rbf": {"kernel": "rbf"},
    "rbf, gamma auto": {"kernel": "rbf", "gamma": "auto"},
    "rbf, gamma given": {"kernel": "rbf", "gamma": 0.5},
    "callable": {"kernel": laplacian_gram},
}


def data(seed: int, n: int = 120, d: int = 4) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = rng.choice([-1.0, 1.0], size=n)
    X = rng.normal(loc=0.5, size=(n, d)) + 0.6 * y[:, None]
    return X, y, rng.normal(loc=0.5, size=(30, d))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("alpha", [0.003, 0.1, 2.0])
@pytest.mark.parametrize("name", KERNELS)
def test_decision_values(name: str, alpha: float, weighted: bool) -> None:
    from deferlearn.objective import SVMObjective

    X, y, new = data(3)
    u = np.random.default_rng(4).uniform(0.5, 2.0, size=len(y)) if weighted else None
    m = len(y) if u is None else u.sum()
    theirs = SVC(C=1 / (2 * alpha * m), tol=1e-10, cache_size=50, **KERNELS[name])
    theirs.fit(X, y, sample_weight=u)
    ours = SVMObjective(X, y, alpha=alpha, weights=u, **KERNELS[name])
    expected = theirs.decision_function(new)
    size = max(1.0, np.abs(expected).max())
    np.testing.assert_allclose(ours.decision_function(new), expected, rtol=0, atol=LIBSVM * size)
    assert np.ndim(ours.intercept) == 0
    if name == "linear":
        np.testing.assert_allclose(np.ravel(ours.coef), theirs.coef_[0], rtol=0, atol=LIBSVM * size)


@pytest.mark.parametrize("alpha", [0.003, 0.1, 2.0])
def test_precomputed(alpha: float) -> None:
    from deferlearn.objective import SVMObjective

    X, y, new = data(5)
    K, K_new = laplacian_gram(X, X), laplacian_gram(new, X)
    theirs = SVC(C=1 / (2 * alpha * len(y)), kernel="precomputed", tol=1e-10).fit(K, y)
    ours = SVMObjective(K, y, alpha=alpha, kernel="precomputed")
    np.testing.assert_allclose(
        ours.decision_function(K_new), theirs.decision_function(K_new), rtol=0, atol=LIBSVM
    )


@pytest.mark.parametrize("name", KERNELS)
def test_decision_values_after_removals(name: str) -> None:
    """C = 1 / (2 alpha m) moves with m: the state must follow it. Gamma stays that of all of X."""
    from deferlearn.objective import SVMObjective

    X, y, new = data(6)
    params = dict(KERNELS[name])
    if params["kernel"] in ("poly", "rbf") and "gamma" not in params:
        params["gamma"] = 1.0 / (X.shape[1] * X.var())
    ours = SVMObjective(X, y, alpha=0.05, **KERNELS[name])
    gone = np.random.default_rng(8).permutation(len(y))[:60]
    for k in gone:
        ours.remove(k)
    kept = np.setdiff1d(np.arange(len(y)), gone)
    theirs = SVC(C=1 / (2 * 0.05 * len(kept)), tol=1e-10, **params).fit(X[kept], y[kept])
    expected = theirs.decision_function(new)
    size = max(1.0, np.abs(expected).max())
    np.testing.assert_allclose(ours.decision_function(new), expected, rtol=0, atol=LIBSVM * size)
