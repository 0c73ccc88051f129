"""Intervals against the formulas they are named after, exact coverage, and what groups do to them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from deferlearn.evaluation.intervals import (
    Interval,
    gap_interval,
    joint_critical,
    mean_interval,
    share_interval,
    single_critical,
    t_interval,
)


def alone(n):
    return np.arange(n)


@pytest.mark.parametrize(("count", "n"), [(0, 1), (0, 50), (3, 20), (20, 20)])
def test_exact_interval_of_a_share(count, n):
    """At either end of the interval, the count is as extreme as it may be."""
    lower, upper = share_interval(count, n, 0.9)
    if count:
        assert stats.binom.sf(count - 1, n, lower) == pytest.approx(0.05)
    if count < n:
        assert stats.binom.cdf(count, n, upper) == pytest.approx(0.05)
    assert (lower == 0) == (count == 0)
    assert (upper == 1) == (count == n)


@given(st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=30))
def test_t_interval_is_scipys(values):
    mean, low, high = t_interval(values)
    if np.ptp(values) < 1e-6:
        assert low <= mean <= high
        assert high - low < 1e-4
        return
    expected = stats.ttest_1samp(values, 0.0).confidence_interval(0.95)
    assert low == pytest.approx(expected.low, rel=1e-9, abs=1e-9)
    assert high == pytest.approx(expected.high, rel=1e-9, abs=1e-9)


def test_t_intervals_of_several_columns():
    values = np.random.default_rng(0).standard_normal((9, 3))
    by_column = np.array([t_interval(column, 0.8) for column in values.T])
    np.testing.assert_allclose(np.array(t_interval(values, 0.8)).T, by_column, rtol=1e-12)


def test_one_value_has_no_interval():
    mean, low, high = t_interval([3.0])
    assert mean == 3.0
    assert np.isnan([low, high]).all()
    mean, low, high = t_interval([[3.0, 4.0]])
    assert mean.tolist() == [3.0, 4.0]
    assert np.isnan([low, high]).all()


@pytest.mark.parametrize(("count", "n"), [(0, 1), (0, 50), (3, 20), (20, 20)])
def test_wilsons_interval_of_a_share(count, n):
    """Its ends are the shares whose standard errors just reach the observed one."""
    lower, upper = share_interval(count, n, 0.9, method="wilson")
    z = stats.norm.ppf(0.95)
    for end in (lower, upper):
        assert abs(count / n - end) == pytest.approx(z * np.sqrt(end * (1 - end) / n), abs=1e-9)
    exact = share_interval(count, n, 0.9)
    assert exact[0] <= lower + 1e-12 <= upper <= exact[1] + 1e-12


def test_nothing_tells_nothing():
    assert np.isnan(t_interval([])).all()


@pytest.mark.parametrize(
    ("better", "worse", "n"), [(0, 0, 50), (7, 3, 100), (1, 0, 12), (20, 0, 20)]
)
def test_differences_have_the_interval_of_bonett_and_price(better, worse, n):
    values = np.zeros(n)
    values[:better] = -1
    values[better : better + worse] = 1
    found = mean_interval(values, alone(n), (-1.0, 1.0), critical=1.96)
    # Their formula, in counts of discordant pairs.
    p12, p21 = (worse + 1) / (n + 2), (better + 1) / (n + 2)
    half = 1.96 * np.sqrt((p12 + p21 - (p12 - p21) ** 2) / (n + 2))
    assert found.mean == (worse - better) / n
    assert found.low == pytest.approx(max(-1.0, p12 - p21 - half))
    assert found.high == pytest.approx(min(1.0, p12 - p21 + half))


@pytest.mark.parametrize("n", [20, 60, 200])
def test_shares_are_covered_by_exact_count(n):
    """Every possible number of errors, weighted by its probability: no simulation."""
    critical = single_critical(alone(n), 0.95)
    intervals = [
        mean_interval((np.arange(n) < k).astype(float), alone(n), (0.0, 1.0), critical)
        for k in range(n + 1)
    ]
    for p in (0.01, 0.05, 0.2, 0.5):
        weights = stats.binom.pmf(np.arange(n + 1), n, p)
        held = np.array([i.low <= p <= i.high for i in intervals])
        assert weights[held].sum() > 0.93


def test_copies_of_cases_add_nothing():
    values = np.random.default_rng(0).integers(-1, 2, size=40).astype(float)
    once = mean_interval(values, alone(40), (-1.0, 1.0), 2.0)
    copied = mean_interval(np.repeat(values, 3), np.repeat(alone(40), 3), (-1.0, 1.0), 2.0)
    assert copied.low == pytest.approx(once.low)
    assert copied.high == pytest.approx(once.high)
    ignored = mean_interval(np.repeat(values, 3), alone(120), (-1.0, 1.0), 2.0)
    assert ignored.high - ignored.low < 0.7 * (once.high - once.low)
    # No spread at all: a group counts as one case, since nothing tells otherwise.
    same = mean_interval(np.zeros(120), np.repeat(alone(40), 3), (0.0, 1.0), 2.0)
    assert same == mean_interval(np.zeros(40), alone(40), (0.0, 1.0), 2.0)


def test_widening_multiplies_the_variance():
    values = np.array([0.0, 1.0] * 50)
    plain = mean_interval(values, alone(100), (0.0, 1.0), 2.0)
    wide = mean_interval(values, alone(100), (0.0, 1.0), 2.0, widening=2.25)
    assert wide.high - wide.mean == pytest.approx(1.5 * (plain.high - plain.mean))


def test_nobody_and_a_single_group():
    empty = mean_interval(np.zeros(0), alone(0), (0.0, 1.0), 2.0)
    assert np.isnan([empty.mean, empty.low, empty.high]).all()
    group = np.zeros(5, dtype=int)
    one = mean_interval(np.ones(5), group, (0.0, 1.0), single_critical(group, 0.95))
    assert (one.mean, one.low, one.high) == (1.0, 0.0, 1.0)


def test_joint_critical_values_at_their_ends():
    n, rng = 4000, np.random.default_rng(1)
    row = rng.standard_normal(n)
    single = single_critical(alone(n), 0.95)
    assert single == pytest.approx(stats.t.ppf(0.975, n - 1))
    assert joint_critical(row[None], alone(n), 0.95) == single
    # The same thing three times is one thing; up to the draws.
    assert joint_critical(np.array([row, -row, 2 * row]), alone(n), 0.95) == pytest.approx(
        single, abs=0.03
    )
    # Independent ones: the quantile is Sidak's.
    sidak = stats.norm.ppf((1 + 0.95 ** (1 / 3)) / 2)
    rows = rng.standard_normal((3, n))
    assert joint_critical(rows, alone(n), 0.95) == pytest.approx(sidak, abs=0.03)
    assert joint_critical(rows, alone(n), 0.95) == joint_critical(rows, alone(n), 0.95)


def test_joint_intervals_hold_together():
    """Of overlapping means of few groups: simulated, against the promised level."""
    rng = np.random.default_rng(2)
    held = 0
    for _ in range(400):
        base = rng.standard_normal(25)
        rows = np.array([base + 0.7 * rng.standard_normal(25) for _ in range(4)])
        critical = joint_critical(rows, alone(25), 0.9)
        error = rows.std(axis=1, ddof=1) / 5
        held += bool((np.abs(rows.mean(axis=1)) <= critical * error).all())
    assert 0.86 < held / 400 < 0.94  # 0.9, up to 2.7 standard errors of 400 draws


def test_intervals_of_grouped_cases_hold():
    """Readers who are right or wrong about whole patients, who have one to six cases each."""
    rng = np.random.default_rng(3)
    held = {"known": 0, "ignored": 0}
    for _ in range(400):
        group = np.repeat(np.arange(40), rng.integers(1, 7, size=40))
        rate = rng.choice([0.02, 0.6], p=[0.7, 0.3], size=40)[group]
        values = (rng.uniform(size=len(group)) < rate).astype(float)
        for name, codes in (("known", group), ("ignored", alone(len(group)))):
            found = mean_interval(values, codes, (0.0, 1.0), single_critical(codes, 0.95))
            held[name] += found.low <= 0.7 * 0.02 + 0.3 * 0.6 <= found.high
    assert 0.91 < held["known"] / 400 < 0.99
    assert held["ignored"] / 400 < 0.88


@given(
    st.lists(st.tuples(st.integers(-1, 1), st.integers(0, 6)), min_size=1, max_size=30),
    st.floats(1.0, 3.0),
)
@settings(max_examples=80, deadline=None)
def test_every_interval_holds_its_mean_and_stays_between_the_ends(cases, widening):
    values = np.array([float(value) for value, _ in cases])
    group = np.array([code for _, code in cases])
    critical = single_critical(group, 0.95)
    found = mean_interval(values, group, (-1.0, 1.0), critical, widening)
    assert -1.0 <= found.low <= found.mean <= found.high <= 1.0
    assert found.high - found.low > 0  # certainty is never claimed
    rows = np.array([values, -values, values**2])
    bonferroni = single_critical(group, 1 - 0.05 / 3)
    assert critical <= joint_critical(rows, group, 0.95) <= max(1.05 * bonferroni, critical)


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ((56, 70), (48, 80), (0.0524, 0.3339)),
        ((9, 10), (3, 10), (0.1705, 0.8090)),
        ((5, 56), (0, 29), (-0.0381, 0.1926)),
        ((10, 10), (0, 10), (0.6075, 1.0)),
    ],
)
def test_gaps_are_those_that_newcombe_published(one, other, expected):
    """Table II of Newcombe (1998), method 10, with Wilson's ends."""
    found = gap_interval(
        *(
            Interval(count / n, *share_interval(count, n, method="wilson"))
            for count, n in (one, other)
        )
    )
    assert (found.low, found.high) == pytest.approx(expected, abs=5e-5)
