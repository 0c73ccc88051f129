"""Second readings: what becomes of several answers, and what they cost."""

import numpy as np
import pytest

from deferlearn.experts.groups import make_groups, settle


def test_majority_and_arbiter():
    answers = np.array([[0, 0], [0, 1], [2, 1]])
    said, needed = settle(answers, np.array([1, 1, 1]))
    np.testing.assert_array_equal(said, [0, 1, 1])
    np.testing.assert_array_equal(needed, [0, 1, 1])
    three = np.array([[0, 1, 1], [0, 1, 2]])
    said, needed = settle(three, np.array([0, 0]))
    np.testing.assert_array_equal(said, [1, 0])
    np.testing.assert_array_equal(needed, [0, 1])


def draw(n, rates, seed=0, together=False):
    luck = np.random.default_rng(seed)
    codes = luck.integers(0, 2, n)
    chance = luck.random((n, 1)) if together else luck.random((n, len(rates)))
    return codes, np.where(chance < rates, 1 - codes[:, None], codes[:, None])


COSTS = 1.0 - np.eye(2)
ALL = np.ones(20_000, dtype=bool)


@pytest.mark.parametrize("readings", [2, 3])
def test_independent_readers_reach_what_probability_says(readings):
    # Three err in 2 of 10 cases each, and the machine in 1 of 10.
    codes, said = draw(20_000, [0.2, 0.2, 0.2])
    machine = np.where(np.random.default_rng(9).random(20_000) < 0.1, 1 - codes, codes)
    groups = make_groups(readings, -1, said, codes, machine, COSTS, ALL[: len(codes)])
    # Two: both wrong, or one and the machine. Three: at least two.
    wrong = 0.04 + 0.32 * 0.1 if readings == 2 else 3 * 0.04 * 0.8 + 0.008
    np.testing.assert_allclose(groups.ratio, wrong / 0.2, atol=0.02)
    if readings == 2:
        np.testing.assert_allclose(groups.disagree, 0.32, atol=0.02)


def test_readers_who_fail_on_the_same_cases_gain_nothing():
    codes, said = draw(5000, [0.2, 0.2, 0.2], together=True)
    groups = make_groups(3, -1, said, codes, codes, COSTS, ALL[: len(codes)])
    np.testing.assert_allclose(groups.ratio, 1.0, atol=0.02)


def test_without_common_cases_readers_are_taken_as_independent():
    codes, said = draw(300, [0.2, 0.2])
    said[::2, 0] = -1
    said[1::2, 1] = -1
    groups = make_groups(2, -1, said, codes, codes, COSTS, ALL[: len(codes)])
    assert (groups.ratio > 0).all()
    assert (groups.ratio < 1).all()


def test_an_arbiter_is_no_reader_and_uses_time():
    codes, said = draw(4000, [0.2, 0.2, 0.05])
    groups = make_groups(2, 2, said, codes, codes, COSTS, ALL[: len(codes)])
    np.testing.assert_array_equal(groups.members, [[0, 1]])
    usage = groups.usage(3, np.array([0.5, 0.5]))
    np.testing.assert_allclose(usage, [[1.0, 1.0, 0.32]], atol=0.02)
