"""Sparse rows with more features than samples: many samples are free, and the guess must find them."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import deferlearn.objective.active_set as active_set
import deferlearn.objective.coordinate_descent as coordinate_descent
import deferlearn.objective.solver as solver
from deferlearn.humans import UniformHuman
from deferlearn.objective import SVMObjective
from deferlearn.objective.coordinate_descent import descend
from deferlearn.objective.start import guess_start
from deferlearn.objective.state import empty_state
from deferlearn.selection import distorted_greedy

N_SAMPLES, N_FEATURES, PER_ROW = 900, 4_000, 30


def text(seed: int = 0) -> tuple[sp.csr_array, np.ndarray]:
    """Rows of length one whose few entries are in common columns more often than in rare ones."""
    rng = np.random.default_rng(seed)
    share = 1.0 / np.arange(10, N_FEATURES + 10)
    columns = rng.choice(N_FEATURES, size=(N_SAMPLES, PER_ROW), p=share / share.sum())
    rows = np.repeat(np.arange(N_SAMPLES), PER_ROW)
    X = sp.csr_array(
        (rng.exponential(size=rows.size), (rows, columns.ravel())), shape=(N_SAMPLES, N_FEATURES)
    )
    X = sp.csr_array(sp.diags_array(1.0 / np.sqrt(X.multiply(X).sum(axis=1))) @ X)
    score = X @ rng.normal(size=N_FEATURES)
    y = np.where(score + rng.normal(size=N_SAMPLES) * score.std() / 2 > 0, 1.0, -1.0)
    return X, y


X, Y = text()


@pytest.mark.parametrize("alpha", [0.05, 0.001])
@pytest.mark.parametrize("offset", [True, False])
def test_sparse_and_dense_agree(alpha: float, offset: bool) -> None:
    """Dense rows take other products, and here a path from nothing, without a guess."""
    sparse = SVMObjective(X, Y, alpha=alpha, fit_intercept=offset)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(solver, "guess_start", lambda state: None)
        dense = SVMObjective(X.toarray(), Y, alpha=alpha, fit_intercept=offset)
    assert sparse.optimality_residual() < 1e-9
    assert sparse.value == pytest.approx(dense.value, rel=1e-9)
    ks = np.random.default_rng(0).choice(N_SAMPLES, 5, replace=False)
    np.testing.assert_allclose(sparse.gains(ks), dense.gains(ks), rtol=1e-6, atol=1e-9)


def test_the_guess_is_the_solution_but_for_rounding() -> None:
    objective = SVMObjective(X, Y, alpha=0.001)
    assert len(objective._state.members) > active_set.LEAST_FREE
    guess = empty_state(objective._problem)
    guess_start(guess)
    assert np.count_nonzero(guess.a) > 0  # there was one
    np.testing.assert_allclose(guess.a, objective.dual, atol=1e-7)


@settings(deadline=None, max_examples=60)
@given(
    n=st.integers(2, 30),
    more=st.integers(0, 60),
    density=st.floats(0.0, 1.0),
    share=st.floats(0.05, 0.95),
    alpha=st.sampled_from([1e-3, 0.02, 0.5]),
    offset=st.booleans(),
    sparse=st.booleans(),
    seed=st.integers(0, 10**6),
)
def test_coordinate_descent_meets_the_optimality_conditions(
    n, more, density, share, alpha, offset, sparse, seed
):
    """An empty row, equal rows, rare classes and unequal weights included; conditions written out again.

    Not equal rows of both classes, which take thousands of passes.
    """
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, n + more)) * (rng.random((n, n + more)) < density)
    rows[:-1, : n - 1] += np.eye(n - 1)
    rows[-1] = 0.0
    y = np.where(rng.random(n) < share, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    equal = rng.random(n) < 0.2
    equal[[1, -1]] = False
    rows[equal], y[equal] = rows[0], y[0]
    weights = rng.uniform(0.5, 3.0, n)
    objective = SVMObjective(
        sp.csr_array(rows) if sparse else rows, y, alpha, fit_intercept=offset, weights=weights
    )
    state = empty_state(objective._problem)
    a, b, close = descend(state, objective._problem.gram)
    assert close or alpha == 1e-3  # which may take more passes than are allowed
    assume(close)  # hypothesis fails if that leaves too few
    assert (a >= 0.0).all()
    assert (a <= weights).all()
    mu = 2.0 * alpha * weights.sum()
    w = (a * y) @ (rows - objective._problem.gram.centre) / mu
    excess = y * ((rows - objective._problem.gram.centre) @ w + b) - 1.0
    violation = np.where(a > 0.0, excess, 0.0).max(), np.where(a < weights, -excess, 0.0).max()
    assert max(violation) < 1e-3
    if offset:
        assert abs(y @ a) <= 1e-3 * weights.sum()


@pytest.mark.parametrize("passes", [3, 2000])
def test_steps_that_go_astray_are_no_guess(passes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without Newton steps the path takes over, to the same value; from nothing if the guess is bad."""
    expected = SVMObjective(X, Y, alpha=0.001)
    monkeypatch.setattr(active_set, "MOST_NEWTON_STEPS", 0)
    monkeypatch.setattr(coordinate_descent, "MOST_PASSES", passes)
    astray = SVMObjective(X, Y, alpha=0.001)
    assert astray.value == pytest.approx(expected.value, rel=1e-9)
    assert (astray.counters.n_steps > N_SAMPLES) == (passes == 3)


def test_two_doubles_take_no_dense_rows() -> None:
    """A tiny alpha needs them where classes overlap; memory is that of entries and of vectors."""
    rng = np.random.default_rng(0)
    wide = sp.random_array((150, 60_000), density=2e-4, format="csr", rng=rng)
    wide = wide[np.r_[np.repeat(np.arange(50), 2), 100:150]]  # equal rows of both classes
    y = np.where(np.arange(150) % 2, 1.0, -1.0)
    narrow = np.ascontiguousarray(wide[:, np.unique(wide.indices)].toarray())
    dense = SVMObjective(narrow, y, alpha=1e-9)
    tracemalloc.start()
    try:
        sparse = SVMObjective(wide, y, alpha=1e-9)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert sparse.counters.n_precise > 0
    assert peak < 0.2 * 8 * 150 * 60_000
    assert sparse.value == pytest.approx(dense.value, rel=1e-9)
    np.testing.assert_allclose(
        sparse.gains(range(20)), dense.gains(range(20)), rtol=1e-6, atol=1e-9
    )


def test_picks_do_not_depend_on_who_may_respond(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits on near samples and working sets change what bounds cost, not the picks."""
    import deferlearn.objective.screening as screening

    loss = UniformHuman(0.2).losses(Y, random_state=0)
    expected = distorted_greedy(SVMObjective(X, Y, alpha=0.001), loss, 8)
    monkeypatch.setattr(screening, "MOST_NEAR", 40)
    monkeypatch.setattr(solver, "MOST_EXTRA", 30)
    result = distorted_greedy(SVMObjective(X, Y, alpha=0.001), loss, 8)
    np.testing.assert_array_equal(result.order, expected.order)
    np.testing.assert_allclose(result.gains, expected.gains, rtol=1e-8)


@pytest.mark.parametrize("params", [{}, {"fit_intercept": False}, {"kernel": "rbf", "gamma": 0.02}])
def test_copies_are_not_free_besides_their_originals(params: dict[str, Any]) -> None:
    """Rows drawn with replacement: a free set of copies has no inverse, and paths from it none either."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(500, 80))
    y = np.where(rows[:, 0] + rng.normal(size=500) > 0, 1.0, -1.0)
    drawn = rng.integers(0, 500, 500)
    rows, y = rows[drawn], y[drawn]
    copies = SVMObjective(rows, y, alpha=0.005, **params)
    first, times = np.unique(drawn, return_index=True, return_counts=True)[1:]
    weighted = SVMObjective(rows[first], y[first], alpha=0.005, weights=times, **params)
    assert copies.value == pytest.approx(weighted.value, rel=1e-9)
    assert np.linalg.cond(copies._state.R) < 1e9
    for k in rng.choice(len(first), 4, replace=False):
        fewer = times.astype(float)
        fewer[k] -= 1.0
        kept = fewer > 0.0
        left = SVMObjective(rows[first][kept], y[first][kept], 0.005, weights=fewer[kept], **params)
        gain = copies.gain(int(first[k]))
        assert gain == pytest.approx(copies.value - left.value, abs=1e-7)
    assert copies.counters.n_resolved == 0
