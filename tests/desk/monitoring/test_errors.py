"""Errors with intervals, against closed forms; how often intervals hold is in `test_coverage`."""

import numpy as np
import pytest
from scipy import stats

from deferlearn.desk.monitoring.calibration import calibration
from deferlearn.desk.monitoring.dependence import both_wrong
from deferlearn.desk.monitoring.errors import expert_error, machine_error, team_error
from deferlearn.desk.monitoring.shares import (
    layered_share,
    layers,
    sampled_share,
    stands_for,
)


def test_one_layer_is_wilsons_interval() -> None:
    for hits, n in ((0, 12), (3, 40), (40, 40)):
        found = layered_share([hits], [n], [1000])
        ends = stats.binomtest(hits, n).proportion_ci(method="wilson")
        np.testing.assert_allclose((found.low, found.high), ends, atol=1e-12)


def test_weights_are_inverse_probabilities() -> None:
    luck = np.random.default_rng(0)
    probability = np.repeat([0.1, 0.5], [600, 400])
    drawn = luck.random(1000) < probability
    wrong = np.where(drawn, luck.random(1000) < 0.3, np.nan)
    found, seen = sampled_share(wrong, probability)
    # The estimator of Horvitz and Thompson with the drawn share of each layer as its probability.
    share = np.where(probability < 0.3, drawn[:600].mean(), drawn[600:].mean())
    np.testing.assert_allclose(found.mean, np.nansum(wrong / share) / 1000)
    assert seen == drawn.sum()
    # Cases that cannot be drawn say nothing.
    more, _ = sampled_share(np.append(wrong, [1.0, 1.0]), np.append(probability, [0.0, 0.0]))
    assert more == found


def test_layers_with_few_known_cases_join_their_neighbours() -> None:
    chance = np.repeat([0.1, 0.2, 0.3, 0.4], 6)

    def found(*counts: int) -> list[int]:
        known = np.concatenate([np.arange(6) < count for count in counts])
        return layers(chance, known)[::6].tolist()

    assert found(5, 6, 5, 5) == [0, 1, 2, 3]
    assert found(4, 6, 5, 0) == [0, 0, 1, 1]
    assert found(0, 2, 1, 1) == [0, 0, 0, 0]
    many = np.linspace(0.01, 0.5, 100)
    assert len(np.unique(layers(many, np.ones(100, dtype=bool)))) == 6


def test_cases_of_a_joint_layer_count_by_their_own_probabilities() -> None:
    # Four of 100 cases and two of ten are known: one layer of 110 cases.
    chance = np.repeat([0.04, 0.2], [100, 10])
    wrong = np.full(110, np.nan)
    wrong[[0, 1, 2, 3, 100, 101]] = [1, 0, 0, 0, 1, 1]
    found, seen = sampled_share(wrong, chance)
    weights = np.array([25.0] * 4 + [5.0] * 2)
    assert found.mean == pytest.approx(weights @ [1, 0, 0, 0, 1, 1] / weights.sum())
    assert seen == 6
    stand = stands_for(chance, ~np.isnan(wrong))
    np.testing.assert_allclose(stand[stand > 0], weights * 110 / weights.sum())
    effective = weights.sum() ** 2 / (weights**2).sum()
    one = layered_share([found.mean * effective], [effective], [1])
    assert (found.low, found.high) == pytest.approx((one.low, one.high))


def test_machine_error_counts_audited_cases_only_and_says_what_is_missing() -> None:
    wrong = np.array([0, 1, np.nan, 1, 0])
    figure = machine_error(wrong, [True, True, True, False, False], [0.5, 0.5, 0.5, 0.5, 0.0])
    assert figure.interval.mean == 0.5
    assert figure.count == 2
    assert "1 more case is audited" in figure.sentence
    assert "1 case that could not be audited" in figure.sentence
    passed = machine_error(wrong, [True] * 3 + [False] * 2, [0.5] * 5, given_up=1)
    assert "more case" not in passed.sentence, "it will never be known"
    assert "1 case could not be audited, because all experts passed" in passed.sentence
    nothing = machine_error([np.nan], [False], [0.1])
    assert not nothing.known
    assert nothing.plain()["value"] is None
    other = machine_error(wrong, [True] * 5, [0.5] * 5, judge="experts")
    assert "The machine and experts disagree in 50%" in other.sentence


def test_expert_error() -> None:
    figure = expert_error("Ann", [1, 0, 0, np.nan], [0.1, 0.3, np.nan, 0.9])
    assert figure.interval.mean == pytest.approx(1 / 3)
    assert figure.expected == pytest.approx(0.2)
    assert figure.about == "Ann"
    assert "The model expected 20%" in figure.sentence
    assert not expert_error("Bob", [np.nan]).known


def test_team_error_counts_each_kind_of_case_by_its_size() -> None:
    # Truth is known of all experts' cases, which are hard, and of a tenth of the machine's.
    luck = np.random.default_rng(1)
    by_expert = np.arange(5000) < 1000
    wrong = luck.random(5000) < np.where(by_expert, 0.3, 0.05)
    known = by_expert | (luck.random(5000) < 0.1)
    figure = team_error(np.where(known, wrong, np.nan), by_expert)
    assert figure.interval.low < 0.1 < figure.interval.high
    assert wrong[known].mean() > 0.2  # what the known cases alone would say
    assert "complaints" in figure.sentence
    assert "Nothing is known of the 1 case that the machine answered" in (
        team_error([1.0, np.nan], [True, False]).sentence
    )


def test_both_wrong_against_independence() -> None:
    luck = np.random.default_rng(2)
    covered, together, holds = 0, 0, 0
    for _ in range(300):
        chance = np.where(luck.random(500) < 0.3, 1.0, 0.4)
        unread = luck.random(500) >= chance
        machine = (luck.random(500) < 0.2).astype(float)
        expert = np.where(unread, np.nan, luck.random(500) < np.where(machine, 0.5, 0.1))
        figure, excess = both_wrong(machine, expert, chance)
        holds += figure.interval.low <= 0.2 * 0.5 <= figure.interval.high
        covered += excess.low <= 0.2 * 0.5 - 0.2 * 0.18 <= excess.high
        alone = np.where(unread, np.nan, luck.random(500) < 0.18)
        _, nothing = both_wrong(machine, alone, chance)
        together += nothing.low <= 0 <= nothing.high
    for hits in (holds, covered, together):
        assert 0.9 < hits / 300 < 0.99
    figure, _ = both_wrong([1, 1, 0, 0], [1, 1, 0, 0], [1, 1, 1, 1])
    assert figure.interval.mean == 0.5
    assert figure.expected == 0.25
    assert not both_wrong([1], [1], [1])[0].known


def test_weighted_both_wrong_stands_for_all_cases() -> None:
    # Deferred cases: both are often wrong; of 90 others 9 are audited, and neither is wrong there. One case
    # could not be read.
    machine = [1.0] * 10 + [0.0] * 9 + [np.nan] * 81 + [1.0]
    expert = [1.0] * 10 + [0.0] * 9 + [np.nan] * 82
    figure, _ = both_wrong(machine, expert, [1.0] * 10 + [0.1] * 90 + [0.0])
    assert figure.interval.mean == pytest.approx(0.1)
    assert figure.count == 19


def test_calibration_finds_expectations_that_are_too_low() -> None:
    luck = np.random.default_rng(3)
    expected = luck.beta(2, 8, 2000)
    right, groups = calibration("the machine", luck.random(2000) < expected, expected)
    assert right.interval.low < 0 < right.interval.high
    assert [group.count for group in groups] == [400] * 5
    assert all(
        group.found.low - 0.03 < group.expected < group.found.high + 0.03 for group in groups
    )
    bad, _ = calibration("the machine", luck.random(2000) < 1.5 * expected, expected)
    assert bad.interval.low > 0
    assert "more frequent" in bad.sentence
    assert not calibration("Ann", [np.nan], [0.1])[0].known
