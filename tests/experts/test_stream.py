"""Cases one by one: limits that hold, and prices that keep up with the day."""

import numpy as np
import pytest

from deferlearn.experts import Stream
from deferlearn.experts.stream import hindsight

LIMITS = {"a": 30, "b": 20, "c": 0}
ZERO = dict.fromkeys(LIMITS, 0.0)


def day_of(luck, shift=0.0, n=400):
    own = luck.beta(1, 5, (n, 1))
    return own - np.column_stack(
        [luck.beta(1, 9 + shift, n), luck.beta(1, 9 - shift, n), luck.beta(1, 9, n)]
    )


def test_limits_are_never_exceeded_and_the_loss_is_near_the_best():
    luck = np.random.default_rng(0)
    stream = Stream(dict.fromkeys(LIMITS, 0.0), LIMITS, 400)
    won = best = machine = 0.0
    for day in range(12):
        n = int(luck.integers(320, 480))  # not as many as expected
        gains = day_of(luck, shift=6 * np.sin(day / 4), n=n)
        places = stream.assign_day(gains)
        load = np.bincount(places[places >= 0], minlength=3)
        np.testing.assert_array_equal(load, stream.load)
        assert (load <= list(LIMITS.values())).all()
        if day:  # on the first day prices are not known yet
            won += gains[places >= 0, places[places >= 0]].sum()
            best += hindsight(gains, list(LIMITS.values()))
            machine += n / 6  # the mean of the machine's losses
    assert machine - won <= 1.05 * (machine - best)
    assert won <= best + 1e-9


def test_prices_rise_where_time_is_short():
    luck = np.random.default_rng(1)
    stream = Stream(dict.fromkeys("abc", 0.0), {"a": 5, "b": 300, "c": 300}, 400)
    stream.assign_day(day_of(luck)[:300])
    assert stream.prices[0] > stream.prices[1]


@pytest.mark.parametrize(
    ("prices", "limits", "per_day", "said"),
    [
        ({"a": 0.0}, LIMITS, 10, "with the same experts"),
        ([0.0] * 3, LIMITS, 10, "with the same experts"),
        (ZERO, {"a": 0.5, "b": 1, "c": 1}, 10, "must be a whole number of cases"),
        (ZERO, LIMITS, 0, "cases_per_day=0"),
        (ZERO, {"a": 0, "b": 0, "c": 0}, 5, "leaves no time"),
    ],
)
def test_bad_input(prices, limits, per_day, said):
    with pytest.raises(ValueError, match=said):
        Stream(prices, limits, per_day)


@pytest.mark.parametrize("per_day", [25, 50, 100])
def test_days_of_any_length_begin_with_prices_for_a_day(per_day):
    luck = np.random.default_rng(2)
    limits = {"a": per_day // 10, "b": per_day // 10, "c": 0}
    stream = Stream(ZERO, limits, per_day)
    halves = []
    for _ in range(40):
        places = stream.assign_day(day_of(luck, n=per_day))
        halves.append(np.count_nonzero(places[: per_day // 2] >= 0))
    assert stream.prices[0] > 0
    # About half of the time is spent in the first half of the day.
    assert np.mean(halves[5:]) == pytest.approx(per_day / 10, rel=0.35)


def test_experts_are_matched_by_name_and_gains_are_checked():
    stream = Stream({"Ann": 0.0, "Bob": 0.0}, {"Bob": 1, "Ann": 0}, 10)
    assert stream.assign([0.9, 0.5]) == "Bob"  # Ann has no time
    for gain in ([0.5], [0.5, np.nan], 0.5):
        with pytest.raises(ValueError, match="one finite number"):
            stream.assign(gain)
