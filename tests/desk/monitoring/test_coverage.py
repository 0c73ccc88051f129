"""How often the intervals of audits hold: added up for one share of audits, simulated for several."""

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import brentq

from deferlearn.desk.monitoring.errors import machine_error
from deferlearn.desk.monitoring.shares import layered_share, sampled_share


@pytest.mark.parametrize("audits", [8, 16, 80])
@pytest.mark.parametrize("error", [0.05, 0.2])
def test_one_share_of_audits_covers_in_93_to_97_percent(audits: int, error: float) -> None:
    # The number of audits is random, then that of wrong answers among them. Both are added up.
    sizes = np.arange(1, 3 * audits + 10)
    probability = stats.binom.pmf(sizes, 50 * audits, 1 / 50)
    covered = 0.0
    for n, chance in zip(sizes, probability, strict=True):
        if chance < 1e-5:
            continue
        hits = np.arange(stats.binom.ppf(1 - 1e-6, n, error) + 1)
        ends = [layered_share([hit], [n], [50 * audits]) for hit in hits]
        holds = np.array([one.low <= error <= one.high for one in ends])
        covered += chance * float(stats.binom.pmf(hits, n, error) @ holds)
    assert 0.93 < covered < 0.97


# Cases per week, probabilities of an audit, the machine's error at each, and their shares of the cases.
WEEKS = {
    "share raised": (1000, [0.02, 0.1], [0.05, 0.05], [0.5, 0.5]),
    "share raised, error lowered": (2000, [0.02, 0.1], [0.1, 0.02], [0.5, 0.5]),
    "share and error raised": (2000, [0.02, 0.1], [0.02, 0.1], [0.5, 0.5]),
    "three shares": (3000, [0.02, 0.05, 0.2], [0.05, 0.05, 0.05], [0.3, 0.4, 0.3]),
}


def test_layers_with_few_audits_cover_too() -> None:
    # Three to 33 audits are expected in each of six layers of 167 cases.
    luck, hits, weeks = np.random.default_rng(8), 0, 1500
    shares = np.array([0.02, 0.03, 0.05, 0.08, 0.13, 0.2])
    for _ in range(weeks):
        chance = shares[luck.integers(0, 6, 1000)]
        audited, wrong = luck.random(1000) < chance, luck.random(1000) < 0.05
        found, _ = sampled_share(np.where(audited, wrong, np.nan), chance)
        hits += found.low <= 0.05 <= found.high
    assert 0.93 < hits / weeks < 0.97


@pytest.mark.parametrize("name", WEEKS)
def test_several_shares_of_audits_cover_in_93_to_97_percent(name: str) -> None:
    n, probabilities, errors, mix = WEEKS[name]
    luck, weeks = np.random.default_rng(list(WEEKS).index(name)), 2000
    sizes = luck.multinomial(n, mix, weeks)
    seen = luck.binomial(sizes, probabilities)
    wrong = luck.binomial(seen, errors)
    true = float(np.dot(errors, mix))
    ends = [layered_share(*counts) for counts in zip(wrong, seen, sizes, strict=True)]
    covered = np.mean([one.low <= true <= one.high for one in ends])
    # By chance alone, the share over 2,000 weeks has a standard deviation of half a percent.
    assert 0.93 < covered < 0.97


def test_the_level_of_layers_solves_its_equation() -> None:
    hits, seen, sizes = np.array([0, 3, 2]), np.array([7, 60, 9]), np.array([400, 500, 100])
    weight, share, z = sizes / 1000, hits / seen, stats.norm.isf(0.025)

    def half(level: float) -> np.ndarray:
        """Half the length of Wilson's interval in each layer."""
        confidence = 1 - 2 * stats.norm.sf(level)
        ends = [
            stats.binomtest(int(k), int(n)).proportion_ci(confidence, method="wilson")
            for k, n in zip(hits, seen, strict=True)
        ]
        return np.array([(end.high - end.low) / 2 for end in ends])

    def excess(level: float) -> float:
        return level * weight @ half(level) - z * np.sqrt((weight**2) @ half(level) ** 2)

    level = brentq(excess, 0.3, z)
    found = layered_share(hits, seen, sizes)
    centre = weight @ ((hits + level**2 / 2) / (seen + level**2))
    np.testing.assert_allclose(found.mean, weight @ share)
    np.testing.assert_allclose(found.low, max(0.0, centre - weight @ half(level)), atol=1e-9)
    np.testing.assert_allclose(found.high, centre + weight @ half(level), atol=1e-9)


def test_counts_of_cases_reach_the_interval() -> None:
    luck = np.random.default_rng(7)
    chance = np.repeat([0.1, 0.3], [500, 700])
    audited, wrong = luck.random(1200) < chance, luck.random(1200) < 0.2
    seen = [int(audited[:500].sum()), int(audited[500:].sum())]
    hits = [int(wrong[:500][audited[:500]].sum()), int(wrong[500:][audited[500:]].sum())]
    found = machine_error(wrong, audited, chance).interval
    one = layered_share(hits, seen, [500, 700])
    assert (found.mean, found.low, found.high) == pytest.approx((one.mean, one.low, one.high))
