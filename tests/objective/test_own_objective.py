"""The objective of the page "Write your own objective" against other programs, and in a selection."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression

from deferlearn.selection import distorted_greedy, submodularity_sweep

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "own_objective.md"


@pytest.fixture(scope="module")
def logistic() -> Any:
    """The class that the page defines: its first block."""
    (code, *_) = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.M | re.S)
    names: dict[str, Any] = {"__name__": "docs"}
    exec(compile(code, str(PAGE), "exec"), names)
    return names["LogisticObjective"]


def problem(seed: int, size: int) -> tuple[np.ndarray, np.ndarray, float]:
    """Overlapping classes, features of several lengths, alpha from 0.001 to 1."""
    rng = np.random.default_rng([71, seed])
    y = np.where(rng.random(size) < 0.4, 1.0, -1.0)
    X = rng.normal(size=(size, 3)) * [1.0, 4.0, 0.2] + 0.7 * y[:, None]
    return X, y, float(10.0 ** rng.uniform(-3.0, 0.0))


def refitted(X: np.ndarray, y: np.ndarray, alpha: float) -> float:
    """F by scikit-learn: its C is 1 / (2 alpha n)."""
    if len(y) == 0:
        return 0.0
    if len(set(y)) == 1:  # scikit-learn wants two classes, and scipy does not mind
        return by_scipy(X, y, alpha)
    C = 1.0 / (2.0 * alpha * len(y))
    model = LogisticRegression(C=C, fit_intercept=False, tol=1e-12, max_iter=10000).fit(X, y)
    return loss(model.coef_[0], X, y, alpha)


def loss(w: np.ndarray, X: np.ndarray, y: np.ndarray, alpha: float) -> float:
    return float(len(y) * alpha * w @ w + np.log1p(np.exp(-y * (X @ w))).sum())


def by_scipy(X: np.ndarray, y: np.ndarray, alpha: float) -> float:
    """F by a method that needs no derivatives from us."""
    found = minimize(
        loss, np.zeros(X.shape[1]), (X, y, alpha), "Powell", options={"xtol": 1e-9, "ftol": 1e-15}
    )
    return float(found.fun)


@pytest.mark.parametrize("seed", range(4))
def test_value_and_gains_are_those_of_refits(logistic: Any, seed: int) -> None:
    X, y, alpha = problem(seed, 25)
    objective = logistic(X, y, alpha)
    assert objective.value == pytest.approx(refitted(X, y, alpha), rel=1e-9)
    assert objective.value == pytest.approx(by_scipy(X, y, alpha), rel=1e-7)
    gains = objective.gains(range(25))
    for k in range(25):
        rest = np.delete(np.arange(25), k)
        expected = objective.value - refitted(X[rest], y[rest], alpha)
        assert gains[k] == pytest.approx(expected, abs=1e-7 * objective.value)


@pytest.mark.parametrize("seed", range(6))
def test_bounds_hold_in_every_state_down_to_the_last_sample(logistic: Any, seed: int) -> None:
    X, y, alpha = problem(seed, 16)
    objective = logistic(X, y, alpha)
    for k in np.random.default_rng(seed).permutation(16):
        left = np.flatnonzero(objective.kept)
        lower, upper = objective.gain_bounds(left)
        gains = objective.gains(left)
        assert (lower <= gains).all()
        assert (gains <= upper).all()
        before, gain = objective.value, objective.gain(k)
        objective.remove(k)
        assert before - objective.value == pytest.approx(gain, abs=1e-11)
    assert objective.value == 0.0


def test_one_newton_step_nearly_closes_the_bounds(logistic: Any) -> None:
    X, y, _ = problem(1, 150)
    objective = logistic(X, y, alpha=0.05)
    lower, upper = objective.gain_bounds(range(150))
    assert np.median(upper - lower) < 1e-5
    assert (upper - lower).max() < 0.01


@pytest.mark.parametrize("ratio", [0.01, 0.7])
def test_the_selection_is_that_of_a_loop_that_refits(logistic: Any, ratio: float) -> None:
    X, y, alpha = problem(9, 14)
    human_loss = np.random.default_rng(2).uniform(0.0, 0.6, size=14)
    n, order = 5, []
    for index in range(n):
        omega = (1.0 - ratio / n) ** (n - 1 - index)
        left = [k for k in range(14) if k not in order]
        whole = refitted(X[left], y[left], alpha)
        scores = {}
        for k in left:
            rest = [i for i in left if i != k]
            scores[k] = omega * (whole - refitted(X[rest], y[rest], alpha)) - human_loss[k]
        best = max(scores, key=lambda k: scores[k])
        if scores[best] > 0:
            order.append(best)
    objective = logistic(X, y, alpha)
    result = distorted_greedy(objective, human_loss, n, submodularity_ratio=ratio)
    assert result.order.tolist() == order
    assert len(order) > 2
    assert result.n_screened > result.n_exact
    assert objective.kept.all()  # the selection works on a copy


def test_a_sweep_shares_its_states(logistic: Any) -> None:
    X, y, alpha = problem(4, 20)
    human_loss = np.full(20, 0.2)
    objective = logistic(X, y, alpha)
    swept = submodularity_sweep(objective, human_loss, 4, delta=0.5)
    alone = [
        distorted_greedy(objective, human_loss, 4, submodularity_ratio=m.submodularity_ratio).value
        for m in swept.members
    ]
    assert swept.value == pytest.approx(max(alone), rel=1e-9)
