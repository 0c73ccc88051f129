"""Alarms: the capital by brute force, the promised rate of false alarms, and what is found how fast."""

import numpy as np
import pytest

from deferlearn.desk.monitoring.evidence import (
    AT_ONCE,
    FACTORS,
    HORIZON,
    Evidence,
    bets_on,
    first_alarm,
    log_capital,
    reserve,
)
from deferlearn.desk.monitoring.watches import (
    column_bets,
    column_rate,
    deferral_bets,
    error_bets,
    error_limits,
    unusual_bets,
)
from deferlearn.tables.guard import learn_guard

RUNS = [100, pytest.param(1000, marks=pytest.mark.slow)]


def test_capital_is_that_of_bets_laid_out_one_by_one() -> None:
    luck = np.random.default_rng(0)
    happened = luck.random(40) < 0.3
    bets = bets_on(happened, 0.2)
    _, found = log_capital(bets)
    for t in range(1, 41):
        total = 0.0
        for factor in FACTORS:
            odds = 0.25 * factor
            q = odds / (1 + odds)
            ratios = np.where(happened, q / 0.2, (1 - q) / 0.8)
            for start in range(t):
                before = (
                    1.0 if start == 0 else (1 - AT_ONCE) * np.log(HORIZON) / np.log(start + HORIZON)
                )
                after = (1 - AT_ONCE) * np.log(HORIZON) / np.log(start + 1 + HORIZON)
                total += (before - after) * np.prod(ratios[start:t]) / len(FACTORS)
        total += float(reserve(t))
        np.testing.assert_allclose(found[t - 1], np.log(total), rtol=1e-9)


def test_bets_are_fair_at_the_limit_and_lose_below_it() -> None:
    for limit in (0.01, 0.2, 0.9):
        won, lost = np.exp(bets_on([1.0, 0.0], limit))
        np.testing.assert_allclose(limit * won + (1 - limit) * lost, 1.0)
        assert (0.5 * limit * won + (1 - 0.5 * limit) * lost < 1).all()
    assert (bets_on([np.nan], 0.1) == 0).all()


def test_evidence_in_parts_is_evidence_at_once() -> None:
    bets = bets_on(np.random.default_rng(1).random(300) < 0.2, 0.1)
    whole, at_once = Evidence().after(bets)
    state, parts = Evidence(), []
    for part in np.split(bets, [1, 2, 50, 50, 299]):
        state, capital = state.after(part)
        state = Evidence.from_plain(state.plain())
        parts.append(capital)
    np.testing.assert_allclose(np.concatenate(parts), at_once)
    assert state.count == whole.count == 300
    assert state.peak == pytest.approx(whole.peak)
    assert state.peak == pytest.approx(at_once.max())


@pytest.mark.parametrize("runs", RUNS)
def test_false_alarms_at_the_limit_are_at_most_the_rate(runs: int) -> None:
    luck = np.random.default_rng(2)
    for limit in (0.02, 0.3):
        _, capital = log_capital(bets_on(luck.random((2000, 2 * runs)) < limit, limit))
        for rate in (0.2, 0.01):
            false = np.isfinite(first_alarm(capital, rate)).mean()
            assert false <= rate + 3 * np.sqrt(rate * (1 - rate) / (2 * runs))
        # The bound is not idle: at a rate of 20% some alarms are false.
        assert np.isfinite(first_alarm(capital, 0.2)).mean() > 0.02


@pytest.mark.parametrize("runs", RUNS)
def test_doubled_error_is_found_and_a_usual_one_is_not(runs: int) -> None:
    luck = np.random.default_rng(3)
    expected = luck.beta(2, 18, (2500, runs))
    before, after = expected[:500], np.minimum(2 * expected[500:], 1.0)
    wrong = luck.random(expected.shape) < np.concatenate([before, after])
    _, capital = log_capital(_each(error_bets, wrong, expected))
    assert np.isfinite(first_alarm(capital[:500], 0.01)).mean() <= 0.01
    delay = first_alarm(capital, 0.01) - 500
    assert np.median(delay) < 700
    assert (delay < 2000).mean() > 0.98


def _each(bets: object, *arrays: np.ndarray) -> np.ndarray:
    """Bets for each simulated desk."""
    columns = [bets(*parts) for parts in zip(*(one.T for one in arrays), strict=True)]  # type: ignore[operator]
    return np.stack(columns, axis=1)


def test_limits_of_errors_leave_room() -> None:
    np.testing.assert_allclose(error_limits([0.0, 0.02, 0.2, 0.9]), [0.01, 0.03, 0.25, 0.95])
    bets = error_bets([1, 0, np.nan, 1], [0.1, 0.1, 0.1, np.nan])
    assert (bets[0] > 0).all()
    assert (bets[1] < 0).all()
    assert (bets[2:] == 0).all()


def test_many_unusual_cases_are_found_at_once() -> None:
    usual = np.random.default_rng(4).random((3000, 50)) < 0.0075
    _, capital = log_capital(unusual_bets(usual))
    assert not np.isfinite(first_alarm(capital, 0.01)).any()
    broken = np.concatenate([usual[:2000], np.ones((20, 50))])
    _, capital = log_capital(unusual_bets(broken))
    assert (first_alarm(capital, 0.01) - 2000).max() <= 5


def test_more_deferred_than_the_budget_is_found() -> None:
    luck = np.random.default_rng(5)
    _, capital = log_capital(deferral_bets(luck.random((3000, 50)) < 0.2, 0.2))
    assert not np.isfinite(first_alarm(capital, 0.01)).any()
    _, capital = log_capital(deferral_bets(luck.random((1000, 50)) < 0.35, 0.2))
    assert np.median(first_alarm(capital, 0.01)) < 400


@pytest.mark.parametrize("runs", [20, pytest.param(1000, marks=pytest.mark.slow)])
def test_columns(runs: int) -> None:
    luck = np.random.default_rng(6)
    false, found, drifted = 0, [], []
    for _ in range(runs):
        training = np.column_stack(
            [luck.lognormal(size=400), luck.integers(0, 3, 400), luck.normal(size=400)]
        )
        training[luck.random(400) < 0.1, 0] = np.nan
        guard = learn_guard(["dose", "site", "age"], {"site": ["a", "b", "c"]}, training)
        new = np.column_stack(
            [luck.lognormal(size=600), luck.integers(0, 3, 600), luck.normal(size=600)]
        )
        new[luck.random(600) < 0.1, 0] = np.nan
        rate = column_rate(guard)
        capitals = [log_capital(column_bets(guard, k, new[:, k]))[1] for k in range(3)]
        false += any(np.isfinite(first_alarm(capital, rate)) for capital in capitals)
        thousandfold = np.where(np.arange(600) < 300, 1, 1000) * new[:, 0]
        capital = log_capital(column_bets(guard, 0, thousandfold))[1]
        found.append(first_alarm(capital, rate) - 300)
        slow = new[:, 2] + np.arange(600) / 200  # three deviations in 600 cases
        drifted.append(first_alarm(log_capital(column_bets(guard, 2, slow))[1], rate))
    assert false <= 0.01 * runs + 3 * np.sqrt(0.01 * runs)
    assert np.quantile(found, 0.9) < 40
    assert np.quantile(drifted, 0.9) < 350


def test_gaps_and_new_categories_are_shifts() -> None:
    luck = np.random.default_rng(7)
    training = np.column_stack([luck.normal(size=300), luck.integers(0, 2, 300)])
    guard = learn_guard(["a", "b"], {"b": ["x", "y"]}, training)
    empty = log_capital(column_bets(guard, 0, np.full(60, np.nan)))[1]
    unknown = log_capital(column_bets(guard, 1, np.full(60, -1.0)))[1]
    one = log_capital(column_bets(guard, 1, np.zeros(200)))[1]
    for capital in (empty, unknown, one):
        assert np.isfinite(first_alarm(capital, column_rate(guard)))
    # A column that was empty in training cannot shift by being empty.
    guard = learn_guard(["a"], {}, np.full((300, 1), np.nan))
    assert not np.isfinite(
        first_alarm(log_capital(column_bets(guard, 0, np.full(60, np.nan)))[1], column_rate(guard))
    )
