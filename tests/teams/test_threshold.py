"""`defer` keeps to its rate on new data, also where many cases share one score."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier

from deferlearn import AssistedSVC
from deferlearn.datasets import make_linear
from deferlearn.teams import AdvantageTriage, DeferralPolicy
from deferlearn.teams.threshold import (
    coins,
    first_of,
    ranks_among,
    threshold_at,
    threshold_from_folds,
)

# A mean of draws further from 0 than this many standard errors is no accident (p < 3e-4 for 3.6).
SIGMAS = 3.6


def assert_unbiased(differences):
    mean, error = np.mean(differences), np.std(differences, ddof=1) / np.sqrt(len(differences))
    assert abs(mean) <= SIGMAS * error, f"bias {mean:+.4f} +- {error:.4f}"


@pytest.mark.parametrize(
    "draw",
    [
        lambda rng, n: rng.standard_normal(n),
        lambda rng, n: rng.standard_exponential(n),
        lambda rng, n: np.floor(rng.uniform(0, 6, n)),
        lambda rng, n: rng.integers(0, 2, n) * 1.0,
        lambda rng, n: np.maximum(0.0, rng.standard_normal(n)),
        lambda rng, n: np.full(n, 0.3),
    ],
    ids=["normal", "exponential", "six values", "two values", "half zeros", "constant"],
)
@pytest.mark.parametrize("rate", [0.2, 0.55])
def test_a_new_score_exceeds_the_threshold_at_the_rate(draw, rate):
    rng = np.random.default_rng(0)
    differences = []
    for _ in range(400):
        threshold = threshold_at(draw(rng, 40), rate, seed=0)
        new = draw(rng, 500)
        tied = np.abs(new - threshold.value) <= threshold.width
        differences.append(
            np.mean((new > threshold.value) & ~tied) + threshold.share * tied.mean() - rate
        )
    if np.ptp(differences) < 1e-12:
        assert differences[0] == pytest.approx(0.0, abs=1e-12)
    else:
        assert_unbiased(differences)


def test_rates_zero_and_one():
    X = np.zeros((3, 1))
    assert not threshold_at(np.arange(3.0), 0.0, 0).apply(np.array([5.0, 9.0, np.inf]), X).any()
    assert threshold_at(np.arange(3.0), 1.0, 0).apply(np.array([-5.0, 0.0, -1e300]), X).all()


@settings(max_examples=100, deadline=None)
@given(share=st.floats(0.0, 1.0), copies=st.integers(1, 300), seed=st.integers(0, 2**31 - 1))
def test_equal_rows_are_split_in_proportion(share, copies, seed):
    values = coins(np.ones((copies, 2)), seed)
    # The golden rotation leaves an interval by at most a few points, whatever its length.
    assert abs((values < share).sum() - share * copies) <= 4
    assert ((values >= 0) & (values < 1)).all()


def test_coins_depend_on_content_alone():
    X = np.random.default_rng(0).normal(size=(2000, 3))
    X[5, 1] = 0.0
    values = coins(X, 7)
    order = np.random.default_rng(1).permutation(2000)
    np.testing.assert_array_equal(coins(X[order], 7), values[order])
    np.testing.assert_array_equal(coins(X[17:18], 7), values[17:18])
    np.testing.assert_array_equal(coins(sp.csr_array(X), 7), values)
    np.testing.assert_array_equal(coins(np.where(X == 0, -0.0, X), 7), values)
    assert (coins(X, 8) != values).all()
    # Uniform: the Kolmogorov distance of 2000 draws.
    assert np.abs(np.sort(values) - (np.arange(2000) + 0.5) / 2000).max() < 2.0 / np.sqrt(2000)


def test_ranks_do_not_depend_on_units():
    rng = np.random.default_rng(0)
    reference, scores = rng.normal(size=50), rng.uniform(-4, 4, 20)
    ranks = ranks_among(scores, reference)
    np.testing.assert_allclose(ranks_among(3 * scores - 1, 3 * reference - 1), ranks)
    np.testing.assert_allclose(
        np.clip(ranks, 0, 1), [np.mean(reference < s) for s in scores], atol=1 / 50
    )
    np.testing.assert_allclose(
        ranks_among(reference, reference)[np.argsort(reference)], (np.arange(50) + 0.5) / 50
    )


def test_ranks_spread_a_constant_and_go_on_beyond_the_ends():
    np.testing.assert_allclose(ranks_among(np.zeros(4), np.zeros(12)), [0.125, 0.375, 0.625, 0.875])
    np.testing.assert_allclose(
        ranks_among(np.array([-3.0, 0.0, 5.0]), np.array([-1.0, 1.0])), [-1.0, 0.5, 3.0]
    )


@settings(max_examples=200, deadline=None)
@given(
    own=st.lists(st.integers(-5, 5), min_size=2, max_size=40),
    new=st.lists(st.integers(-7, 7), min_size=1, max_size=40),
)
def test_ranks_keep_the_order(own, new):
    ranks = ranks_among(np.array(new, dtype=float), np.array(own, dtype=float))
    for i, j in itertools.combinations(range(len(new)), 2):
        if new[i] < new[j]:
            assert ranks[i] < ranks[j] + 1e-12


@settings(max_examples=200, deadline=None)
@given(own=st.lists(st.integers(0, 6), min_size=4, max_size=60), rate=st.floats(0.02, 0.98))
def test_where_new_cases_rank_like_own_ones_the_threshold_takes_the_rate(own, rate):
    scores = np.array(own, dtype=float)
    ranks = ranks_among(scores, scores)
    threshold = threshold_from_folds(ranks, scores, rate, 5, seed=0)
    tied = np.abs(scores - threshold.value) <= threshold.width
    taken = np.mean((scores > threshold.value) & ~tied) + threshold.share * tied.mean()
    assert abs(taken - rate) <= 1.5 / len(own)


def test_top_is_exact_and_ties_go_to_the_first():
    scores = np.array([0.3, 0.1 + 0.2, 0.3, 0.5, -1.0])  # 0.1 + 0.2 is 0.3 and one bit
    np.testing.assert_array_equal(first_of(scores, 3), [True, True, False, True, False])
    assert first_of(scores, 0).sum() == 0
    assert first_of(np.zeros(5), 2).tolist() == [True, True, False, False, False]


def nine_rows(n, random_state):
    """Only nine different rows, with unequal frequencies."""
    rng = np.random.RandomState(random_state)
    rows = np.array([[i, j] for i in range(3) for j in range(3)], dtype=float)
    weight = np.array([3, 1, 2, 1, 4, 1, 2, 1, 3]) / 18
    X = rows[rng.choice(9, n, p=weight)]
    return X, np.where(rng.rand(n) < 1 / (1 + np.exp(2 - X.sum(axis=1))), 1, -1)


FOREST = DeferralPolicy(RandomForestClassifier(30), features="both")
TREE = DecisionTreeClassifier(max_depth=2)
CONSTANT = DummyClassifier(strategy="prior")

SETTINGS = {
    "margin": ({"alpha": 1.0}, make_linear, 60),
    "margin, rbf": ({"kernel": "rbf", "alpha": 0.05}, make_linear, 60),
    "constant": ({"policy": CONSTANT}, make_linear, 60),
    "nine rows": ({"alpha": 0.05}, nine_rows, 80),
    "tree": ({"policy": TREE}, make_linear, 60),
    "mlp": ({"policy": "mlp"}, make_linear, 100),
    "forest": ({"policy": FOREST}, make_linear, 100),
    "margin, larger": ({"alpha": 1.0}, make_linear, 300),
}


def rate_differences(name, draws):
    options, source, n = SETTINGS[name]
    for seed in range(1000, 1000 + draws):
        X, y = source(n + 1500, random_state=seed)
        loss = np.random.RandomState(seed).uniform(0.2, 1.2, n)
        clf = AssistedSVC(random_state=seed, submodularity_ratio=0.3, **options)
        clf.fit(X[:n], y[:n], human_loss=loss)
        yield clf.defer(X[n:]).mean() - clf.deferred_.mean()


@pytest.mark.parametrize("name", ["margin", "constant", "nine rows"])
def test_rate_on_new_data(name):
    assert_unbiased(list(rate_differences(name, 8)))


@pytest.mark.slow
@pytest.mark.parametrize("name", SETTINGS)
def test_rate_on_new_data_over_200_draws(name):
    assert_unbiased(list(rate_differences(name, 200)))


def test_a_constant_policy_defers_the_right_share_and_always_the_same_cases():
    X, y = make_linear(80, random_state=0)
    clf = AssistedSVC(policy=CONSTANT, random_state=0, submodularity_ratio=0.3).fit(X, y)
    new, _ = make_linear(2000, random_state=1)
    mask = clf.defer(new)
    assert abs(mask.mean() - 0.2) < 4 * np.sqrt(0.16 / 2000)
    alone = np.array([clf.defer(row[None, :])[0] for row in new[:50]])
    np.testing.assert_array_equal(alone, mask[:50])
    same = clf.defer(np.tile(new[:1], (500, 1)))
    assert abs(same.sum() - 100) <= 4


def test_in_sample_threshold_defers_the_training_rate():
    X, y = make_linear(100, random_state=0)
    clf = AssistedSVC(cv=None, random_state=0, submodularity_ratio=0.3).fit(X, y)
    assert abs(clf.defer(X).sum() - clf.deferred_.sum()) <= 1


def test_advantage_triage_keeps_its_rate():
    differences = []
    for seed in range(30):
        X, y = make_linear(80 + 1000, random_state=seed)
        team = AdvantageTriage(0.2, use_full_budget=True, random_state=seed)
        team.fit(X[:80], y[:80], human_loss=np.zeros(80))
        differences.append(team.defer(X[80:]).mean() - 0.2)
    assert_unbiased(differences)
