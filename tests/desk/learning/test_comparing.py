"""Two models on the same cases: intervals that cover what is true of all, whatever is known of them."""

import numpy as np
import pytest
from scipy import stats

from deferlearn.desk.learning.comparing import KnownCases, Policy, compare
from deferlearn.desk.learning.population import read_chance, truth_weights


def cases(luck, n):
    """How hard the cases are, whether an expert would be wrong, and what an old and a new model do."""
    hard = luck.random(n)
    human = luck.random(n) < 0.05 + 0.2 * hard
    old = Policy((luck.random(n) < 0.5 * hard).astype(float), hard > 0.8)
    new = Policy((luck.random(n) < 0.4 * hard).astype(float), (hard > 0.6) & (hard < 0.9))
    return human, old, new


def true_difference() -> float:
    """What the new model makes wrong, minus the old one, by numbers on a grid."""
    hard = (np.arange(100_000) + 0.5) / 100_000
    human = 0.05 + 0.2 * hard
    new = np.where((hard > 0.6) & (hard < 0.9), human, 0.4 * hard)
    old = np.where(hard > 0.8, human, 0.5 * hard)
    return float((new - old).mean())


def of(policy, rows):
    return Policy(policy.wrong[rows], policy.deferred[rows])


@pytest.mark.parametrize("truth", ["all", "read", "some"])
def test_intervals_cover_whatever_truths_are_known(truth) -> None:
    luck = np.random.default_rng(4)
    hits, n, found, true = 0, 800, [], true_difference()
    for _ in range(300):
        human, old, new = cases(luck, n)
        probability = np.where(old.deferred, 0.0, 0.15)
        audited = luck.random(n) < probability
        read = old.deferred | audited
        chance = {"all": np.ones(n), "read": read, "some": np.where(read, 0.9, 0.3)}[truth]
        known = luck.random(n) < chance
        rows = np.flatnonzero(known)
        drawn = (old.deferred, audited, probability)
        at_hand = KnownCases(
            rows,
            truth_weights(known, *drawn)[rows],
            np.where(read, human, np.nan)[rows],
            read_chance(known, read, *drawn)[rows],
            np.full(len(rows), 0.15),
        )
        found.append(compare(of(new, rows), of(old, rows), at_hand).difference)
        hits += found[-1].low <= true <= found[-1].high
    assert 0.9 < hits / 300 < 0.985
    error = np.std([one.mean for one in found]) / np.sqrt(300)
    assert abs(np.mean([one.mean for one in found]) - true) < 3 * error


def test_equal_weights_give_students_interval() -> None:
    luck = np.random.default_rng(5)
    _, old, new = cases(luck, 60)
    machine_only = np.zeros(60, dtype=bool)
    nothing = np.full(60, np.nan)
    at_hand = KnownCases(np.arange(60), np.full(60, 3.0), nothing, np.ones(60), np.full(60, 0.1))
    found = compare(Policy(new.wrong, machine_only), Policy(old.wrong, machine_only), at_hand)
    ends = stats.ttest_rel(new.wrong, old.wrong).confidence_interval(0.95)
    np.testing.assert_allclose((found.difference.low, found.difference.high), ends)


def test_comparison_in_words() -> None:
    policy = Policy(np.array([1.0, 1.0, 1.0, 0.0] * 20), np.zeros(80, dtype=bool))
    better = Policy(np.zeros(80), np.arange(80) < 8)
    human, ones = np.full(80, np.nan), np.ones(80)
    at_hand = KnownCases(np.arange(80), ones, human, np.zeros(80), np.full(80, 0.1))
    found = compare(better, policy, at_hand)
    assert found.is_better
    assert found.recommended
    assert found.advice == "It is better with a confidence of 80% or more: activate it."
    assert found.unseen == 8
    assert found.sentence.startswith("The candidate is better than the active model: −740 errors")
    assert "8 cases is not known" in found.sentence
    assert "times as much as another" not in found.sentence
    weighted = KnownCases(np.arange(80), np.where(np.arange(80) < 40, 1.0, 20.0), human, ones, ones)
    same = compare(policy, policy, weighted)
    assert "It is not clear whether the candidate is better" in same.sentence
    assert "up to 20 times as much as another" in same.sentence
    assert not same.recommended
    assert same.advice.startswith("Keep the active model")
    assert found.plain()["deferred"] == [0.1, 0.0]


def test_equal_models_are_recommended_in_one_of_five_comparisons() -> None:
    """With a confidence of 80%, four of five candidates that are no better are kept back."""
    luck = np.random.default_rng(6)
    machine_only, nothing = np.zeros(200, dtype=bool), np.full(200, np.nan)
    at_hand = KnownCases(np.arange(200), np.ones(200), nothing, np.ones(200), np.full(200, 0.1))
    recommended, better = 0, 0
    for _ in range(1000):
        one, other = (
            Policy((luck.random(200) < 0.3).astype(float), machine_only) for _ in range(2)
        )
        found = compare(one, other, at_hand)
        recommended += found.recommended
        better += found.is_better
    assert 0.16 < recommended / 1000 < 0.24
    assert 0.01 < better / 1000 < 0.045
