"""Work: shares, load and waiting times against closed forms; shifts of columns."""

import numpy as np
import pytest
from scipy import stats

from deferlearn.desk.monitoring.columns import column_shifts
from deferlearn.desk.monitoring.workload import load, share_deferred, share_unusual, waiting
from deferlearn.tables.guard import learn_guard


def test_share_deferred_against_the_budget() -> None:
    over = share_deferred([True] * 40 + [False] * 60, 0.2)
    assert over.interval.mean == 0.4
    assert "above the budget, by more than chance" in over.sentence
    assert "may be chance" in share_deferred([True] * 22 + [False] * 78, 0.2).sentence
    assert "below the budget" in share_deferred([False] * 100, 0.2).sentence
    assert not share_deferred([], 0.2).known
    ends = stats.binomtest(40, 100).proportion_ci(method="wilson")
    np.testing.assert_allclose((over.interval.low, over.interval.high), ends)


def test_share_of_unusual_cases() -> None:
    figure = share_unusual([True] + [False] * 99, 0.0075)
    assert figure.sentence.startswith("1% of 100 cases are unlike the training cases")


def test_load_is_a_rate_with_the_exact_interval_of_poisson() -> None:
    figure = load("Ann", 30, 10, 4)
    assert figure.interval.mean == 3.0
    assert stats.poisson.sf(29, 10 * figure.interval.low) == pytest.approx(0.025)
    assert stats.poisson.cdf(30, 10 * figure.interval.high) == pytest.approx(0.025)
    assert "75% of the limit of 4" in figure.sentence
    assert load("Bob", 0, 5, None).interval.low == 0
    assert "given 30 readings today" in load("Ann", 30, 1, None).sentence


def test_waiting_times_count_cases_that_still_wait() -> None:
    luck = np.random.default_rng(0)
    hits = 0
    for _ in range(100):
        times, ends = luck.exponential(100.0, 150), luck.uniform(50, 300, 150)
        figure = waiting(np.minimum(times, ends), times > ends)
        hits += figure.interval.low <= 100 * np.log(2) <= figure.interval.high
    assert hits >= 88
    assert "still wait" in figure.sentence
    # Without open cases it is the median.
    assert waiting([1.0, 2.0, 3.0, 4.0, 5.0], [False] * 5).interval.mean == 3.0
    stuck = waiting([10.0, 7200.0, 7200.0], [False, True, True])
    assert stuck.interval.mean == np.inf
    assert "Fewer than 50% of the deferred cases are answered so far" in stuck.sentence
    hopeless = waiting([7200.0] * 50, [True] * 50)
    assert "answered so far, by 50 cases, of which 50 still wait." in hopeless.sentence
    assert not waiting([], []).known


def test_shifts_of_columns_have_intervals_that_cover() -> None:
    luck = np.random.default_rng(1)
    true = 2 * stats.norm.cdf(0.25) - 1  # two normal distributions that are half a deviation apart
    hits = 0
    for _ in range(100):
        guard = learn_guard(["a"], {}, luck.normal(size=(500, 1)))
        (figure,) = column_shifts(guard, luck.normal(0.5, size=(300, 1)))
        hits += figure.interval.low <= true <= figure.interval.high
    assert hits >= 95
    assert column_shifts(guard, np.empty((0, 1)))[0].count == 0


def test_clear_shifts_are_named() -> None:
    luck = np.random.default_rng(2)
    training = np.column_stack([luck.lognormal(size=500), luck.integers(0, 2, 500)])
    guard = learn_guard(["dose", "site"], {"site": ["Bonn", "Oslo"]}, training)
    new = np.column_stack([1000 * luck.lognormal(size=200), np.zeros(200)])
    dose, site = column_shifts(guard, new)
    assert "multiplied by about 1,000" in dose.sentence
    assert dose.interval.mean > 0.99
    assert "'Bonn' in" in site.sentence or "is Bonn in every case" in site.sentence
    unknown = column_shifts(guard, np.column_stack([new[:, 0] / 1000, np.full(200, -1.0)]))[1]
    assert unknown.interval.mean == 1.0
    usual = column_shifts(guard, training[:200])
    assert all(figure.usual and "may be chance" in figure.sentence for figure in usual)
    # Clearly other cases, but not so many others that a cause is sought.
    many = learn_guard(["a"], {}, luck.normal(size=(4000, 1)))
    (little,) = column_shifts(many, luck.normal(0.3, size=(4000, 1)))
    assert "more than chance, but little" in little.sentence
    assert [one.usual for one in (dose, site, unknown, little)] == [False] * 4
