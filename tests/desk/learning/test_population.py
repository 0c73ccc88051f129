"""Weights and lent answers against what is true of all cases."""

import numpy as np
import pytest

from deferlearn.desk.learning.population import (
    copies,
    cut_weights,
    lend_answers,
    read_chance,
    truth_chance,
    truth_weights,
)


def test_known_cases_stand_for_all_of_them() -> None:
    luck = np.random.default_rng(0)
    n = 20_000
    hard = luck.random(n)
    deferred = hard > 0.8
    probability = np.where(deferred, 0.0, np.where(np.arange(n) < n // 2, 0.1, 0.3))
    audited = luck.random(n) < probability
    # Truth is known of nine tenths of the cases that were read, and of a twentieth of the others.
    known = luck.random(n) < np.where(deferred | audited, 0.9, 0.05)
    weights = truth_weights(known, deferred, audited, probability)
    assert (weights[~known] == 0).all()
    assert weights.sum() == pytest.approx(n, rel=0.03)
    assert np.average(hard, weights=weights) == pytest.approx(hard.mean(), abs=0.01)
    assert hard[known].mean() > 0.65  # what the known cases say alone


def test_weights_are_one_if_all_truths_are_known() -> None:
    known = np.ones(50, dtype=bool)
    deferred = np.arange(50) < 10
    weights = truth_weights(known, deferred, np.zeros(50, dtype=bool), np.full(50, 0.02))
    np.testing.assert_allclose(weights[deferred], 1.0)
    assert np.ptp(weights[~deferred]) < 1e-12


def test_large_weights_are_cut_to_keep_half_of_the_information() -> None:
    weights = np.concatenate([np.ones(200), np.full(16, 50.0)])
    cut = cut_weights(weights)
    effective = cut.sum() ** 2 / (cut**2).sum()
    assert effective == pytest.approx(108, abs=0.1)
    assert (cut[:200] == 1).all()
    np.testing.assert_allclose(cut_weights(np.array([3.0, 6.0])), [1.0, 2.0])


def test_copies_follow_the_weights() -> None:
    luck = np.random.default_rng(1)
    weights = np.array([1.0, 2.3, 1.0, 4.5])
    counts = np.array([np.bincount(copies(weights, luck), minlength=4) for _ in range(2000)])
    np.testing.assert_allclose(counts.mean(axis=0), weights, atol=0.05)
    assert set(counts[:, 1]) == {2, 3}
    assert (counts[:, 0] == 1).all()


def test_lent_answers_are_right_as_often_as_experts_would_be() -> None:
    luck = np.random.default_rng(2)
    n = 6000
    truth = np.array(["a", "b"], dtype=object)[luck.integers(0, 2, n)]
    hard = luck.random(n)
    deferred = hard > 0.7
    # Experts are good at deferred cases and worse at the others, at those of class b above all.
    error = np.where(deferred, 0.02, np.where(truth == "b", 0.4, 0.1))
    said = np.where(luck.random(n) < error, np.where(truth == "a", "b", "a"), truth)
    probability = np.where(deferred, 0.0, np.where(np.arange(n) < 3000, 0.05, 0.2))
    read = deferred | (luck.random(n) < probability)
    answers = np.where(read, said, None)
    filled = lend_answers(answers, truth, hard, deferred, probability, luck)
    assert all(one is not None for one in filled)
    assert (filled[read] == said[read]).all()
    for label, expected in (("a", 0.1), ("b", 0.4)):
        lent = ~read & (truth == label)
        assert np.mean(filled[lent] != truth[lent]) == pytest.approx(expected, abs=0.06)
    # As if the cases that were read were all: far off.
    assert np.mean(said[read] != truth[read]) < 0.12


def test_without_enough_audits_deferred_cases_lend_their_answers() -> None:
    truth = np.array(["a"] * 8, dtype=object)
    answers = np.array(["b"] * 4 + [None] * 4, dtype=object)
    deferred = np.array([True] * 4 + [False] * 3 + [True])
    luck = np.random.default_rng(3)
    filled = lend_answers(answers, truth, np.full(8, np.nan), deferred, np.full(8, 0.1), luck)
    assert filled.tolist() == ["b"] * 7 + [None]
    nobody = np.full(2, None, dtype=object)
    alone = lend_answers(nobody, truth[:2], np.zeros(2), np.zeros(2, dtype=bool), np.ones(2), luck)
    assert alone.tolist() == [None, None]


def test_chances_are_those_of_a_simulated_desk() -> None:
    luck = np.random.default_rng(5)
    n = 200_000
    deferred = luck.random(n) < 0.2
    probability = np.where(deferred, 0.0, np.where(luck.random(n) < 0.5, 0.1, 0.3))
    audited = luck.random(n) < probability
    # Some readings were passed on and never answered; truth is known rather where somebody answered.
    read = (deferred & (luck.random(n) < 0.9)) | (audited & (luck.random(n) < 0.8))
    known = luck.random(n) < np.where(deferred, 0.7, np.where(audited, 0.6, 0.05))
    known_chance = truth_chance(known, deferred, audited, probability)
    given = read_chance(known, read, deferred, audited, probability)
    for kind in (deferred, probability == 0.1, probability == 0.3):
        assert known_chance[kind].mean() == pytest.approx(known[kind].mean(), abs=0.01)
        assert given[kind].mean() == pytest.approx(read[kind & known].mean(), abs=0.02)


def test_whoever_is_known_was_read_if_truth_is_known_of_read_cases_only() -> None:
    luck = np.random.default_rng(6)
    deferred = np.arange(400) < 80
    probability = np.where(deferred, 0.0, 0.2)
    audited = luck.random(400) < probability
    read = deferred | audited
    np.testing.assert_allclose(read_chance(read, read, deferred, audited, probability)[read], 1.0)
    everything = np.ones(400, dtype=bool)
    all_known = read_chance(everything, read, deferred, audited, probability)
    np.testing.assert_allclose(all_known, np.where(deferred, 1.0, 0.2))
