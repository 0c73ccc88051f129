"""Kernels whose matrix is not kept: the limit on memory changes the time, and nothing else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist
from sklearn.svm import SVC

import deferlearn.kernels.columns as columns_module
import deferlearn.kernels.gram as gram_module
from deferlearn.datasets import make_shifted
from deferlearn.humans import UniformHuman
from deferlearn.kernels.columns import ColumnCache
from deferlearn.objective import SVMObjective
from deferlearn.selection import distorted_greedy, stochastic_distorted_greedy

N_SAMPLES = 900
X, Y = make_shifted(N_SAMPLES, 6, random_state=0)
LOSS = UniformHuman(0.2).losses(Y, random_state=0)
KERNELS: dict[str, dict[str, Any]] = {
    "rbf": {"kernel": "rbf"},
    "poly": {"kernel": "poly", "degree": 2, "coef0": 1.0},
    "callable": {"kernel": lambda A, B: A @ B.T + (A @ B.T / 9) ** 2, "fit_intercept": False},
}


def symmetric(n: int, seed: int) -> np.ndarray:
    matrix = np.random.default_rng(seed).normal(size=(n, n))
    return matrix + matrix.T


@settings(deadline=None, max_examples=60)
@given(
    n=st.integers(1, 12),
    columns=st.integers(1, 12),
    seed=st.integers(0, 10**6),
    block=st.integers(1, 40),
)
def test_whatever_was_asked_before_blocks_are_those_of_the_matrix(n, columns, seed, block):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(columns_module, "LEAST_COLUMNS", 1)
        patch.setattr(columns_module, "BLOCK_ENTRIES", block)
        matrix, rng = symmetric(n, seed), np.random.default_rng(seed)
        cache = ColumnCache(n, lambda r, c: matrix[np.ix_(r, c)], 8 * n * columns)
        for _ in range(12):
            rows, others = (rng.choice(n, rng.integers(0, n + 1), replace=False) for _ in range(2))
            way = rng.integers(3)
            if way == 0:
                np.testing.assert_array_equal(cache.columns(rows), matrix[rows])
            elif way == 1:
                np.testing.assert_array_equal(
                    cache.block(rows, others), matrix[np.ix_(rows, others)]
                )
            else:
                cache.load(rows)
            assert (cache._owner >= 0).sum() <= min(n, columns)


def test_a_column_that_fails_leaves_the_others_as_they_were():
    matrix = symmetric(6, 0)

    def evaluate(rows, columns):
        if 4 in rows:
            raise ValueError("no column 4")
        return matrix[np.ix_(rows, columns)]

    cache = ColumnCache(6, evaluate, 8 * 6 * 6)
    cache.load(np.arange(3))
    with pytest.raises(ValueError, match="no column 4"):
        cache.load(np.arange(6))
    np.testing.assert_array_equal(cache.columns(np.array([5, 0, 3])), matrix[[5, 0, 3]])


def test_threads_share_a_cache():
    matrix = symmetric(40, 0)
    cache = ColumnCache(40, lambda r, c: matrix[np.ix_(r, c)], 8 * 40 * 20)

    def ask(seed):
        rng = np.random.default_rng(seed)
        for _ in range(200):
            rows, columns = (rng.choice(40, 7, replace=False) for _ in range(2))
            np.testing.assert_array_equal(cache.columns(rows), matrix[rows])
            np.testing.assert_array_equal(cache.block(rows, columns), matrix[np.ix_(rows, columns)])

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(ask, range(8)))


@pytest.fixture
def short_of_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gram_module, "WHOLE_GRAM_LIMIT", 100)


@pytest.mark.parametrize("kernel", KERNELS)
def test_picks_and_gains_do_not_depend_on_the_limit(
    kernel: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = SVMObjective(X, Y, alpha=0.002, **KERNELS[kernel])
    expected = distorted_greedy(whole, LOSS, 60)
    at_random = stochastic_distorted_greedy(whole, LOSS, 30, random_state=0)
    monkeypatch.setattr(gram_module, "WHOLE_GRAM_LIMIT", 100)
    for megabytes in (0.05, 1.0, 100.0):
        objective = SVMObjective(X, Y, alpha=0.002, cache_size=megabytes, **KERNELS[kernel])
        assert objective._problem.gram.costly
        assert objective.value == pytest.approx(whole.value, rel=1e-9)
        result = distorted_greedy(objective, LOSS, 60)
        np.testing.assert_array_equal(result.order, expected.order)
        np.testing.assert_allclose(result.gains, expected.gains, rtol=1e-8)
        result = stochastic_distorted_greedy(objective, LOSS, 30, random_state=0)
        np.testing.assert_array_equal(result.order, at_random.order)


@pytest.mark.usefixtures("short_of_memory")
def test_gradients_that_were_carried_along_are_those_computed_afresh() -> None:
    """The bound on what rounding adds holds, and the state after many removals is a fresh solve's."""
    objective = SVMObjective(X, Y, alpha=0.002, kernel="rbf", cache_size=1)
    for k in distorted_greedy(objective, LOSS, 80).order:
        objective.remove(int(k))
    state = objective._state
    assert state.image is not None
    assert state.image.error > 0.0
    fresh = state._fresh_image()
    error = np.abs(state.image.Qa - fresh)
    length = float(state.problem.root @ state.a)
    allowed = state.problem.root * (state.image.error + np.finfo(float).eps * length * 2)
    assert (error <= allowed).all()
    assert objective.optimality_residual() < 1e-9
    kept = objective.kept
    gamma = 1.0 / (X.shape[1] * X.var())
    again = SVMObjective(X[kept], Y[kept], alpha=0.002, kernel="rbf", gamma=gamma)
    assert objective.value == pytest.approx(again.value, rel=1e-9)


@pytest.mark.usefixtures("short_of_memory")
@pytest.mark.parametrize("offset", [True, False])
@pytest.mark.parametrize("alpha", [1e-5, 1e-3, 1.0])
def test_large_kernels_agree_with_libsvm(offset: bool, alpha: float) -> None:
    ours = SVMObjective(
        X, Y, alpha=alpha, kernel="rbf", gamma=0.1, fit_intercept=offset, cache_size=1
    )
    assert ours.optimality_residual() < 1e-9
    if offset:
        C = 1.0 / (2.0 * alpha * N_SAMPLES)  # of scikit-learn, for the same problem
        theirs = SVC(C=C, gamma=0.1, tol=1e-8).fit(X, Y)
        a = np.abs(theirs.dual_coef_[0]) / C
        signed = a * Y[theirs.support_]
        squares = ((X[theirs.support_, None] - X[theirs.support_]) ** 2).sum(axis=2)
        value = a.sum() - C * signed @ np.exp(-0.1 * squares) @ signed / 2
        assert ours.value == pytest.approx(value, rel=1e-6)


@pytest.mark.parametrize("size", [0, -3.0, np.nan, "512", None, True])
def test_what_is_no_size(size: Any) -> None:
    with pytest.raises(ValueError, match="cache_size="):
        SVMObjective(X[:5], Y[:5], cache_size=size)


# In a process of its own, after a small problem has loaded what every problem needs.
SCRIPT = """
import json
from pathlib import Path
from deferlearn.datasets import make_shifted
from deferlearn.objective import SVMObjective

def megabytes(name):
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(name)).split()[1]) / 1024

X, y = make_shifted({n}, 5, random_state=0)
small = SVMObjective(X[:900], y[:900], alpha=0.01, kernel="rbf")
small.score_bounds(range(900), 1.0, [0.0] * 900)
before = megabytes("VmRSS")
objective = SVMObjective(X, y, alpha=0.01, kernel="rbf", cache_size={limit})
for _ in range(3):
    ks = objective.kept.nonzero()[0]
    lower, upper = objective.score_bounds(ks, 1.0, [0.0] * len(ks))
    objective.remove(int(ks[lower.argmax()]))
print(json.dumps([megabytes("VmHWM") - before, objective.optimality_residual()]))
"""


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="asks Linux for the peak")
def test_peak_memory_stays_near_the_limit() -> None:
    n, limit, besides = 6_000, 32, 100  # all pairs would take 288 MB
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    run = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(n=n, limit=limit)],
        env=environment, capture_output=True, text=True,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    peak, residual = json.loads(run.stdout)
    assert peak < limit + besides
    assert residual < 1e-9


def test_what_cannot_be_mended_without_the_whole_matrix_is_refused() -> None:
    """Kept as a whole it is put right; otherwise it would be solved with wrong digits, silently."""

    def single(A: np.ndarray, B: np.ndarray) -> np.ndarray:
        return np.exp(-cdist(A, B, "sqeuclidean")).astype(np.float32)

    SVMObjective(X, Y, alpha=1e-4, kernel=single)
    with pytest.raises(ValueError, match=r"single precision.*cache_size.*return float64"):
        SVMObjective(X, Y, alpha=1e-4, kernel=single, cache_size=2)
