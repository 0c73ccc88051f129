"""`defer` keeps to its rate on new data, also where many cases share one score."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier

from deferlearn import AssistedSVC
from deferlearn._threshold import coins, first_of, threshold_at, translate
from deferlearn.datasets import make_linear
from deferlearn.policy import DeferralPolicy

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


def test_translation_is_exact_for_other_units():
    rng = np.random.default_rng(0)
    reference, scores = rng.normal(size=50), rng.uniform(-1, 1, 20)
    np.testing.assert_allclose(translate(scores, reference, 3 * reference - 1), 3 * scores - 1)


def test_translation_spreads_a_constant_over_the_target():
    out = translate(np.zeros(4), np.zeros(12), np.arange(12.0))
    np.testing.assert_array_equal(out, [1, 4, 7, 10])


def test_translation_lets_the_gaps_of_two_policies_meet():
    """Both know their samples by heart, but one has seen more deferred ones: weights make up for it."""
    reference = np.r_[np.zeros(12) + np.linspace(0, 0.1, 12), 0.9 + np.linspace(0, 0.1, 4)]
    target = np.r_[np.zeros(8) + np.linspace(0, 0.1, 8), 0.9 + np.linspace(0, 0.1, 8)]
    weights = np.r_[np.full(8, 12 / 8), np.full(8, 4 / 8)]
    low, high = translate(np.array([0.05, 0.95]), reference, target, weights)
    assert low < 0.2
    assert high > 0.8


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
