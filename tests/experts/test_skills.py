"""How often experts err: intervals that cover the truth, and words that do not overstate."""

import numpy as np
import pytest
from scipy.special import betaln, logsumexp

from deferlearn.experts import estimate_skills
from deferlearn.experts.skills import (
    ALIKE,
    BETTER,
    MEANS,
    PRIOR,
    STRENGTHS,
    UNKNOWN,
    WORSE,
    shrunk_rates,
)


def estimate(wrong, answered):
    wrong, answered = np.array(wrong, dtype=float)[:, None], np.array(answered)[:, None]
    names = tuple(f"e{k}" for k in range(len(wrong)))
    return estimate_skills(wrong, answered, np.ones(1), names, np.array(["x"]))


def test_rates_are_means_of_the_posterior():
    wrong, answered = np.array([1.0, 9.0, 0.0]), np.array([10, 12, 3])
    # The ratio of two normalising constants, summed over the grid: not the mean of betas.
    grid = [(m * s, (1 - m) * s, s) for m in MEANS for s in STRENGTHS]
    for e in range(3):
        logs = []
        for more in (0, 1):
            w = wrong + more * np.eye(3)[e]
            n = answered + more * np.eye(3)[e]
            each = [
                sum(betaln(a + w, b + n - w) - betaln(a, b)) - PRIOR * np.log(s) for a, b, s in grid
            ]
            logs.append(logsumexp(each))
        assert shrunk_rates(wrong, answered)[e] == pytest.approx(
            np.exp(logs[1] - logs[0]), rel=1e-9
        )


def test_few_answers_are_drawn_to_the_average_and_many_are_not():
    # Six experts near 10%, one who erred in 3 of 5 cases, one who erred in 3,000 of 5,000.
    skills = estimate([20, 22, 18, 21, 19, 20, 3, 3000], [200] * 6 + [5, 5000])
    assert 0.1 < skills.error[6] < 0.6
    assert skills.error[7] == pytest.approx(0.6, abs=0.005)
    assert skills.high[6] - skills.low[6] > 5 * (skills.high[7] - skills.low[7])


def test_five_wrong_answers_are_not_called_bad():
    skills = estimate([5, 5, 5, 5], [5, 400, 400, 400])
    assert skills.verdict[0] == UNKNOWN


def test_clear_differences_have_words_and_others_do_not():
    assert set(estimate([40, 42, 38], [400] * 3).verdict) == {ALIKE}
    skills = estimate([20, 100, 60, 60], [400] * 4)
    assert skills.verdict[:2] == (BETTER, WORSE)


@pytest.mark.parametrize("draw", ["beta", "wide", "adverse"])
def test_intervals_cover_the_truth(draw):
    luck = np.random.default_rng(0)
    truths = {
        "beta": lambda: luck.beta(2, 18, 6),
        "wide": lambda: luck.beta(1, 3, 6),
        "adverse": lambda: np.array([*luck.uniform(0.02, 0.2, 4), 0.5, 0.9]),
    }
    covered = []
    for _ in range(150):
        truth, answered = truths[draw](), luck.integers(5, 400, 6)
        skills = estimate(luck.binomial(answered, truth), answered)
        covered += list((skills.low <= truth) & (truth <= skills.high))
    assert 0.93 <= np.mean(covered) <= 0.97


@pytest.mark.parametrize("answers", [20, 300])
def test_intervals_of_equal_experts_are_rather_too_wide(answers):
    luck, covered = np.random.default_rng(3), []
    for _ in range(60):
        skills = estimate(luck.binomial(answers, 0.1, 5), [answers] * 5)
        covered += list((skills.low <= 0.1) & (skills.high >= 0.1))
    assert np.mean(covered) >= 0.95


def test_equal_experts_are_rarely_told_apart():
    luck, told = np.random.default_rng(1), []
    for _ in range(150):
        skills = estimate(luck.binomial(300, 0.1, 5), [300] * 5)
        told.append(any(word in (BETTER, WORSE) for word in skills.verdict))
    assert np.mean(told) <= 0.05


def test_experts_with_harder_cases_are_not_blamed():
    # Both err on 5% of the easy and on 40% of the hard class; one of them gets the hard cases.
    wrong = np.array([[45.0, 40.0], [5.0, 360.0]])
    answered = np.array([[900, 100], [100, 900]])
    skills = estimate_skills(wrong, answered, np.array([0.5, 0.5]), ("a", "b"), np.array([0, 1]))
    assert skills.error[0] == pytest.approx(skills.error[1], abs=0.03)
    assert set(skills.verdict) == {ALIKE}
