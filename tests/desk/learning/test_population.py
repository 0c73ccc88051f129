"""Weights against what is true of all cases."""

import numpy as np
import pytest

from deferlearn.desk.learning.population import (
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
