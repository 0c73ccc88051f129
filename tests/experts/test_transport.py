"""Assignments under hard capacities against other solvers, and the prices behind them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import LinearConstraint, linear_sum_assignment, milp

from deferlearn.experts import transport
from deferlearn.experts.transport import MANY, place_all


def best_by_repeated_columns(gain, capacity):
    """The largest sum of gains, by scipy's assignment with a column per place."""
    n = len(gain)
    places = np.hstack([np.repeat(gain, capacity, axis=1), np.zeros((n, n))])
    rows, columns = linear_sum_assignment(-places)
    return places[rows, columns].sum()


def best_by_milp(gain, capacity, total, usage):
    """The largest sum of gains, by branch and bound over all cases and options."""
    n, m = gain.shape
    one = np.kron(np.eye(n), np.ones(m))
    used = np.kron(np.ones(n), usage.T)
    limits = np.concatenate([np.ones(n), capacity, [total]])
    rows = np.vstack([one, used, np.ones(n * m)])
    found = milp(
        -gain.ravel(),
        integrality=1,
        bounds=(0, 1),
        constraints=LinearConstraint(rows, -np.inf, limits),
    )
    return -found.fun


def check(found, gain, capacity, total):
    taken = found.chosen >= 0
    load = np.bincount(found.chosen[taken], minlength=gain.shape[1])
    assert (load <= capacity).all()
    assert taken.sum() <= total
    assert found.gain == pytest.approx(gain[taken, found.chosen[taken]].sum(), abs=1e-12)
    assert (found.prices >= 0).all()
    assert found.common >= 0


@settings(deadline=None, max_examples=60)
@given(st.integers(1, 9), st.integers(1, 4), st.integers(0, 10**6))
def test_whole_numbers_reach_the_bound(n, n_experts, seed):
    luck = np.random.default_rng(seed)
    gain = np.round(luck.normal(size=(n, n_experts)), luck.integers(0, 3))  # ties, too
    capacity, total = luck.integers(0, n + 2, n_experts), int(luck.integers(0, n + 1))
    found = transport(gain, capacity, total)
    check(found, gain, capacity, total)
    best = best_by_milp(gain, capacity, total, np.eye(n_experts))
    assert found.gain == pytest.approx(best, abs=1e-9)
    assert found.bound == pytest.approx(best, abs=1e-9)


def test_many_cases_go_through_prices_first():
    luck = np.random.default_rng(0)
    gain = luck.beta(0.5, 5, (3000, 1)) - luck.beta(0.5, 6, (3000, 8)) / 2
    assert gain.size > MANY
    capacity = np.arange(8) * 20
    found = transport(gain, capacity, len(gain))
    check(found, gain, capacity, len(gain))
    assert found.gain == pytest.approx(best_by_repeated_columns(gain, capacity), rel=1e-9)
    assert found.bound == pytest.approx(found.gain, rel=1e-6)


def test_a_price_is_what_one_more_case_is_worth():
    luck = np.random.default_rng(1)
    gain, capacity = luck.normal(size=(60, 3)), np.array([5, 9, 60])
    found = transport(gain, capacity, 60)
    for e in range(3):
        more = transport(gain, capacity + np.eye(3, dtype=int)[e], 60)
        less = transport(gain, capacity - np.eye(3, dtype=int)[e], 60)
        assert more.gain - found.gain <= found.prices[e] + 1e-9
        assert found.gain - less.gain >= found.prices[e] - 1e-9
    assert found.prices[2] == 0  # there is time left


@settings(deadline=None, max_examples=30)
@given(st.integers(2, 7), st.integers(0, 10**6))
def test_pairs_of_readers_use_time_of_both(n, seed):
    luck = np.random.default_rng(seed)
    usage = np.array([[1.0, 1, 0], [1, 0, 1], [0, 1, 1]])
    gain, capacity = luck.uniform(-0.2, 1, (n, 3)), luck.integers(1, n + 1, 3)
    found = transport(gain, capacity, n, usage)
    taken = found.chosen >= 0
    assert (usage[found.chosen[taken]].sum(axis=0) <= capacity + 1e-9).all()
    best = best_by_milp(gain, capacity, n, usage)
    assert best <= found.bound + 1e-9
    assert found.gain <= best + 1e-9


@pytest.mark.parametrize("capacity", [[0, 0], [3, 0]])
def test_an_expert_without_time_takes_nothing(capacity):
    gain = np.array([[0.1, 0.9], [0.2, 0.8]])
    found = transport(gain, np.array(capacity), 2)
    assert (found.chosen != 1).all()
    assert found.bound == pytest.approx(found.gain)


def test_nobody_is_asked_where_all_would_lose():
    found = transport(np.full((4, 2), -0.1), np.array([2, 2]), 4)
    assert (found.chosen == -1).all()
    assert found.gain == found.bound == 0


def test_only_a_budget_has_a_common_price():
    luck = np.random.default_rng(3)
    gain = luck.uniform(0.1, 1.0, (50, 3))
    without = transport(gain, np.array([5, 6, 7]), 50)
    assert without.common == 0
    assert (without.prices > 0).all()
    limited = transport(gain, np.array([50, 50, 50]), 10)
    assert limited.common > 0
    np.testing.assert_allclose(limited.prices, 0.0, atol=1e-9)


def test_all_cases_that_fit_are_placed_at_the_smallest_cost():
    luck = np.random.default_rng(0)
    for unit in (1e-6, 1.0, 1e6):
        cost = unit * luck.normal(size=(40, 3))
        capacity = np.array([5, 20, 7])
        found = place_all(cost, capacity, 30)
        placed = found.chosen >= 0
        assert placed.sum() == 30
        reward = 100 * unit
        best = transport(reward - cost, capacity, 30)
        assert cost[placed, found.chosen[placed]].sum() == pytest.approx(30 * reward - best.gain)
        assert (place_all(cost, capacity, 100).chosen >= 0).sum() == 32
    assert (place_all(np.ones((4, 2)), np.array([1, 2]), 9).chosen >= 0).sum() == 3
    assert len(place_all(np.empty((0, 2)), np.array([1, 2]), 9).chosen) == 0


@pytest.mark.parametrize(
    ("gain", "capacity", "total", "usage", "said"),
    [
        (np.ones(3), [1], 1, None, r"gain is of the shape \(3,\)"),
        (np.ones((3, 0)), [], 1, None, r"gain is of the shape \(3, 0\)"),
        (np.ones((3, 2)), [1, 1, 1], 1, None, r"gain has 2 options, .* shape \(3,\)"),
        (np.ones((3, 2)), [1, 1], 1, np.ones((3, 2)), r"usage is of the shape \(3, 2\)"),
        (np.full((3, 2), np.nan), [1, 1], 1, None, "gain must hold numbers"),
        (np.full((3, 2), np.inf), [1, 1], 1, None, "gain and usage must be finite"),
        (np.ones((3, 2)), [1, -1], 1, None, "capacity must hold numbers, 0 or larger"),
        (np.ones((3, 2)), [1, np.nan], 1, None, "capacity must hold numbers, 0 or larger"),
        (np.ones((3, 2)), [1, 1], -1, None, "total must hold numbers, 0 or larger"),
        (np.ones((3, 2)), [1, 1], 1, np.zeros((2, 2)), "usage must be above 0"),
    ],
)
def test_mistakes_are_named(gain, capacity, total, usage, said):
    with pytest.raises(ValueError, match=said):
        transport(gain, capacity, total, usage)
