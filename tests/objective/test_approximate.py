"""The approximate objective: whatever it says brackets what the exact one says."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from deferlearn.objective import ApproximateSVMObjective, SVMObjective
from deferlearn.objective.feasible_point import best_offset
from deferlearn.selection import SelectionInterrupted, distorted_greedy, submodularity_sweep
from problems import FULL


class Case(NamedTuple):
    X: Any
    y: np.ndarray
    alpha: float
    options: dict[str, Any]


def case(seed: int, *, n: int = 40, alpha: float | None = None, offset: bool | None = None) -> Case:
    """Dense or sparse rows, with copies, weights and a rare class in some."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 80))
    X: Any = rng.normal(size=(n, d)) * (rng.random((n, d)) < rng.choice([0.1, 0.5, 1.0]))
    if rng.random() < 0.3:
        X = X + 3.0 * rng.normal(size=d)
    if rng.random() < 0.5:
        X[rng.random(n) < 0.4] = X[-1]
    y = np.where(rng.random(n) < rng.choice([0.05, 0.5]), 1.0, -1.0)
    y[0], y[-1] = 1.0, -1.0
    return Case(
        sp.csr_array(X) if rng.random() < 0.5 else X,
        y,
        10 ** rng.uniform(-5, 1) if alpha is None else alpha,
        {
            "fit_intercept": bool(rng.random() < 0.6) if offset is None else offset,
            "weights": rng.uniform(0.2, 3.0, n) if rng.random() < 0.4 else None,
        },
    )


def both(data: Case) -> tuple[ApproximateSVMObjective, SVMObjective]:
    arguments = data.X, data.y, data.alpha
    return (
        ApproximateSVMObjective(*arguments, **data.options),
        SVMObjective(*arguments, **data.options),
    )


def assert_brackets(near: ApproximateSVMObjective, exact: SVMObjective) -> None:
    """Values and bounds of every kind contain the exact numbers, up to their own rounding."""
    rounding = 1e-9 * max(1.0, exact.value)
    assert near.value - near.gap - rounding <= exact.value <= near.value + rounding
    ks = np.flatnonzero(exact.kept)
    gains = exact.gains(ks)
    intervals = np.array([near.gain_interval(k) for k in ks[:4]]).T
    for lower, upper, true in (
        (*near.gain_bounds(ks), gains),
        (*near.score_bounds(ks, 0.9, np.full(len(ks), 0.1), 0.01), gains),
        (*intervals, gains[:4]),
    ):
        assert (lower <= upper).all()
        assert (lower <= true + rounding).all()
        assert (true <= upper + rounding).all()


@pytest.mark.parametrize("seed", range(12 if FULL else 6))
def test_bounds_picks_and_machine(seed: int) -> None:
    data = case(seed)
    near, exact = both(data)
    assert near.gap <= 1.1e-7 * near.value
    assert_brackets(near, exact)
    loss = np.random.default_rng(seed).choice([0.0, 0.3, 2.0], len(data.y))
    result = distorted_greedy(near, loss, 8, 0.5, tol=0.02)
    rounding = 1e-9 * max(1.0, exact.value)
    first = exact.value
    for i in result.iterations:
        ks = np.flatnonzero(exact.kept)
        gains = exact.gains(ks)
        scores = i.omega * gains - loss[ks]
        if i.picked < 0:
            assert scores.max() <= rounding
            continue
        at = int(np.flatnonzero(ks == i.picked)[0])
        assert scores[at] >= (1.0 - i.slack) * scores.max() - rounding
        assert i.slack <= 0.02 + 1e-6
        assert i.gain - rounding <= gains[at] <= i.gain + result.gap + rounding
        exact.remove(i.picked)
    true = first - exact.value - loss[result.order].sum()
    assert abs(result.value - true) <= result.gap + rounding
    assert abs(result.initial_value - first) <= result.gap + rounding
    for k in result.order:
        near.remove(k)
    assert_brackets(near, exact)
    np.testing.assert_array_equal(near.kept, exact.kept)
    np.testing.assert_array_equal(near.removed, exact.removed)
    scale = max(1.0, np.abs(exact.coef).max(initial=0.0))
    np.testing.assert_allclose(near.coef, exact.coef, atol=1e-6 * scale)
    assert near.intercept == pytest.approx(exact.intercept, rel=1e-6, abs=1e-6)
    np.testing.assert_allclose(
        near.decision_function(data.X), exact.decision_function(data.X), atol=1e-5 * scale
    )


@settings(deadline=None, max_examples=40)
@given(
    n=st.integers(2, 14),
    alpha=st.sampled_from([1e-5, 1e-3, 0.1, 1.0, 10.0]),
    offset=st.booleans(),
    seed=st.integers(0, 10**6),
    n_removed=st.integers(0, 4),
)
def test_degenerate_problems(n: int, alpha: float, offset: bool, seed: int, n_removed: int) -> None:
    """Few samples, copies of both classes, classes that vanish on the way."""
    data = case(seed, n=n, alpha=alpha, offset=offset)
    near, exact = both(data)
    rng = np.random.default_rng(seed)
    for k in rng.permutation(n)[: min(n_removed, n - 1)]:
        near.remove(int(k))
        exact.remove(int(k))
    assert_brackets(near, exact)
    dual = near.dual
    assert (dual >= 0.0).all()
    assert (dual[~near.kept] == 0.0).all()
    if offset:
        assert abs(dual @ data.y) <= 1e-9 * max(1.0, dual.sum())


def test_value_and_gap_belong_to_one_point_where_the_solver_gives_up() -> None:
    near, exact = both(case(324_297, n=12, alpha=1e-5, offset=False))
    assert_brackets(near, exact)
    value = near.value
    assert value - near.gap <= exact.value + 1e-9
    assert near.value == value


def test_nothing_left() -> None:
    near = ApproximateSVMObjective([[1.0], [-1.0]], [1, -1], 0.1, fit_intercept=False)
    assert near.gain(0) == pytest.approx(near.value / 2)
    near.remove(0)
    lower, _ = near.gain_interval(1)
    assert lower == pytest.approx(near.value)
    near.remove(1)
    assert (near.value, near.gap) == (0.0, 0.0)
    assert not near.coef.any()


def test_one_class_with_offset() -> None:
    near = ApproximateSVMObjective([[1.0], [2.0], [-1.0]], [1, 1, -1], 0.1)
    near.remove(2)
    assert (near.value, near.intercept) == (0.0, 1.0)
    assert near.score_bounds([0, 1], 1.0, [0.0, 0.0], 0.1)[1].tolist() == [0.0, 0.0]


def test_copies_are_independent() -> None:
    near, _ = both(case(1))
    value, coef = near.value, near.coef
    other = near.copy()
    other.remove(3)
    other.remove(4)
    again = near.copy()
    again.remove(3)
    assert again.value >= other.value
    assert near.kept.all()
    assert near.value == value
    np.testing.assert_array_equal(near.coef, coef)
    assert near.nbytes > 0
    with pytest.raises(ValueError, match="removed already"):
        other.gain(3)


def test_a_checkpoint_keeps_the_gap(tmp_path: Any) -> None:
    near, _ = both(case(2, alpha=0.01, offset=True))
    loss = np.full(len(near.kept), 0.1)

    def stop(iteration: Any) -> None:
        if iteration.index == 2:
            raise KeyboardInterrupt

    arguments: Any = near, loss, 5, 0.5
    options: dict[str, Any] = {"tol": 0.05, "checkpoint": tmp_path / "run"}
    with pytest.raises(SelectionInterrupted):
        distorted_greedy(*arguments, **options, callback=stop)
    whole = distorted_greedy(*arguments, **options)
    again = distorted_greedy(*arguments, **options)
    assert again.order.tolist() == whole.order.tolist()
    assert again.gap == whole.gap > 0.0


def test_runs_of_a_sweep_share_states() -> None:
    data = case(3, alpha=0.01, offset=True)
    near, exact = both(data)
    loss = np.full(len(data.y), 0.2)
    result = submodularity_sweep(near, loss, 4, delta=0.3, tol=0.05)
    for k in result.order:
        exact.remove(k)
    true = SVMObjective(data.X, data.y, data.alpha, **data.options).value - exact.value
    assert abs(result.value - (true - loss[result.order].sum())) <= result.gap + 1e-9
    assert result.slack <= 0.05 + 1e-6


@pytest.mark.parametrize("seed", range(5))
def test_best_offset(seed: int) -> None:
    """Against all places where a sample meets its margin; with a good guess, and with a bad one."""
    rng = np.random.default_rng(seed)
    at, y = rng.normal(size=30), np.where(rng.random(30) < 0.4, 1.0, -1.0)
    weight = rng.choice([0.0, 1.0, 1.0, 2.5], 30)

    def loss(b: float) -> float:
        return float(weight @ np.maximum(0.0, y * (at - b)))

    least = min(loss(b) for b in at)
    for guess in (0.0, 100.0, float(at[0])):
        assert loss(best_offset(at, weight, y, guess)) == pytest.approx(least)
