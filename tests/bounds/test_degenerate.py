"""Bounds where data are few, one-sided, zero or tied: every generated problem gets a true answer."""

from __future__ import annotations

import numpy as np
import pytest

from deferlearn.bounds import optimum_upper_bound, separating_hulls, submodularity_bound
from deferlearn.objective import SVMObjective
from problems import FULL, chunks, problem


# Steps of 5 meet every variant and every shape of data, though not every pair of them.
@pytest.mark.parametrize("part", chunks(0, 560 if FULL else 20, 20))
def test_every_variant_and_shape(part: range) -> None:
    for seed in (5 * index for index in part):
        case = problem(seed)
        objective = case.objective()
        n = case.n // 4
        bound = submodularity_bound(objective, n)
        assert 0.0 <= bound.best <= 1.0, case.name
        assert bound.words
        loss = np.random.default_rng(seed).uniform(0.0, 1.0, size=case.n)
        upper = optimum_upper_bound(objective, loss, n)
        assert 0.0 <= upper.value <= objective.value, case.name
        # A greedy selection must not be better.
        state, worth = objective.copy(), 0.0
        for _ in range(min(n, 3)):
            kept = np.flatnonzero(state.kept)
            gains = state.gains(kept)
            best = int(np.argmax(gains - loss[kept]))
            worth += float(gains[best] - loss[kept[best]])
            assert worth <= upper.value + 1e-12, case.name
            state.remove(int(kept[best]))


def test_one_class_with_offset_has_nothing_to_bound() -> None:
    objective = SVMObjective([[0.0], [1.0]], [1, 1])
    assert submodularity_bound(objective, 1).best == 1.0
    assert optimum_upper_bound(objective, [0.0, 0.0], 1).value == 0.0


def test_a_zero_kernel() -> None:
    X, y = np.zeros((6, 2)), np.repeat([1.0, -1.0], 3)
    with_offset = submodularity_bound(SVMObjective(X, y), 1)
    assert (with_offset.best, with_offset.vacuous) == (0.0, True)
    assert "No positive bound" in with_offset.words
    # Without offset every sample costs exactly 1, alone or together: g is modular.
    without = submodularity_bound(SVMObjective(X, y, fit_intercept=False), 1)
    assert without.paper.value == pytest.approx(0.125)
    assert 0.125 < without.best <= 1.0


def test_two_samples() -> None:
    objective = SVMObjective([[0.0], [3.0]], [-1, 1], alpha=0.1)
    assert submodularity_bound(objective, 0).best > 0
    assert not submodularity_bound(objective, 1).stronger[0].holds
    found = separating_hulls(objective)
    assert (found.s, found.distance) == (1, pytest.approx(3.0))


def test_bounds_do_not_depend_on_the_scale_of_the_data() -> None:
    rng = np.random.default_rng(9)
    y = np.repeat([1.0, -1.0], 10)
    X = rng.normal(size=(20, 2)) + 0.7 * y[:, None]
    small = SVMObjective(X, y, alpha=0.3)
    large = SVMObjective(1e5 * X, y, alpha=0.3e10)
    one, two = submodularity_bound(small, 2), submodularity_bound(large, 2)
    assert two.best == pytest.approx(one.best, rel=1e-6)
    loss = np.full(20, 0.2)
    assert optimum_upper_bound(large, loss, 2).value == pytest.approx(
        optimum_upper_bound(small, loss, 2).value, rel=1e-4
    )
