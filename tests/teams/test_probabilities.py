"""Probabilities from scores: against scikit-learn, against known truth, and where little is known."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import expit, log_softmax, logit, softmax
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

from deferlearn.humans.coding import code_classes
from deferlearn.teams.automation import FullAutomation
from deferlearn.teams.probabilities import calibrate_classes, calibrate_log_odds, calibrate_sides


def drawn(n=4000, n_classes=3, seed=0, slope=2.0, offsets=(0.5, -0.5, 0.0)):
    """Scores, and classes with the probabilities that these stand for."""
    rng = np.random.RandomState(seed)
    scores = rng.normal(size=(n, n_classes))
    p = softmax(slope * scores + np.asarray(offsets), axis=1)
    codes = (rng.uniform(size=n)[:, None] > p.cumsum(axis=1)).sum(axis=1)
    return scores, codes, p


def test_a_known_curve_is_found():
    scores, codes, p = drawn(20_000)
    coding, _ = code_classes(np.arange(3))
    found = calibrate_classes(scores, codes, coding)
    assert found.slope == pytest.approx(2.0, abs=0.1)
    np.testing.assert_allclose(np.exp(found(scores)), p, atol=0.02)


def test_the_likelihood_is_the_largest():
    """Against scipy's Nelder-Mead, which knows no gradient."""
    scores, codes, _ = drawn(300)
    coding, _ = code_classes(np.arange(3))
    found = calibrate_classes(scores, codes, coding)
    rows = np.arange(300)

    def loss(beta):
        return -log_softmax(beta[0] * scores + np.append(beta[1:], 0.0), axis=1)[rows, codes].mean()

    best = minimize(loss, np.array([1.0, 0.0, 0.0]), method="Nelder-Mead", options={"xatol": 1e-8})
    ours = -found(scores)[rows, codes].mean()
    assert ours <= best.fun + 2e-3  # it is drawn a little to doubt
    np.testing.assert_allclose(found.slope, best.x[0], rtol=0.05)
    # The mean probability of each class is its share.
    np.testing.assert_allclose(
        np.exp(found(scores)).mean(axis=0), np.bincount(codes) / 300, atol=0.01
    )


@given(st.integers(0, 10**6), st.integers(3, 6))
def test_votes_stay_votes(seed, n_classes):
    rng = np.random.RandomState(seed)
    scores, codes = rng.normal(size=(60, n_classes)), rng.randint(n_classes, size=60)
    coding, _ = code_classes(np.arange(n_classes))
    log_p = calibrate_classes(scores, codes, coding, votes=True)(scores)
    best = log_p[np.arange(60), scores.argmax(axis=1)]
    np.testing.assert_allclose(best, log_p.max(axis=1), atol=1e-9)
    np.testing.assert_allclose(np.exp(log_p).sum(axis=1), 1.0)


def test_steps_of_grades_are_logistic_curves():
    """Against scikit-learn's logistic regression, step by step; the curves of these scores cannot cross."""
    rng = np.random.RandomState(0)
    x = rng.normal(size=5000)
    codes = np.digitize(x + 0.5 * rng.logistic(size=5000), [-0.5, 0.7])
    coding, _ = code_classes(np.arange(3), "grades")
    scores = np.column_stack([x + 0.5, x - 0.7])
    p = np.exp(calibrate_classes(scores, codes, coding)(scores))
    above = [
        LogisticRegression(C=1e6).fit(scores[:, [k]], codes > k).predict_proba(scores[:, [k]])[:, 1]
        for k in range(2)
    ]
    theirs = np.column_stack([1 - above[0], above[0] - above[1], above[1]])
    np.testing.assert_allclose(p, theirs, atol=2e-3)


@given(st.integers(0, 10**6), st.integers(3, 6))
def test_the_grade_that_steps_vote_for_costs_least(seed, n_classes):
    """By its own probabilities, also where steps contradict each other: no grade is off by less."""
    rng = np.random.RandomState(seed)
    codes = rng.randint(n_classes, size=60)
    coding, _ = code_classes(np.arange(n_classes), "grades")
    scores = coding.signs(codes) * rng.uniform(0, 2) + rng.normal(size=(60, n_classes - 1))
    log_p = calibrate_classes(scores, codes, coding, votes=True)(scores)
    np.testing.assert_allclose(np.exp(log_p).sum(axis=1), 1.0)
    grades = np.arange(n_classes)
    off = np.exp(log_p) @ np.abs(grades[:, None] - grades)
    # No probability is 0, which moves the median by a hair where two grades are equally good.
    own = off[np.arange(60), coding.by_votes(scores)]
    np.testing.assert_allclose(own, off.min(axis=1), atol=1e-4)


def test_sided_steps_are_the_curves_of_two_classes():
    rng = np.random.RandomState(0)
    codes = rng.randint(3, size=500)
    coding, _ = code_classes(np.arange(3), "grades")
    scores = coding.signs(codes) + rng.normal(size=(500, 2))
    scores[:, 1] = np.minimum(scores[:, 1], scores[:, 0])
    p = np.exp(calibrate_classes(scores, codes, coding, votes=True)(scores))
    alone = [expit(calibrate_sides(scores[:, k], codes > k)(scores[:, k])) for k in (0, 1)]
    falling = alone[0] > alone[1]
    assert falling.mean() > 0.7
    for k in (0, 1):
        reached = p[falling, k + 1 :].sum(axis=1)
        np.testing.assert_allclose(reached, alone[k][falling], atol=1e-5)


def test_steps_that_contradict_each_other_are_made_to_fall():
    coding, _ = code_classes(np.arange(3), "grades")
    rng = np.random.RandomState(1)
    codes = rng.randint(3, size=200)
    scores = rng.normal(size=(200, 2)) + np.column_stack([codes >= 1, codes >= 2])
    p = np.exp(calibrate_classes(scores, codes, coding)(scores))
    assert (p > 0).all()
    np.testing.assert_allclose(p.sum(axis=1), 1.0)


def test_a_grade_that_was_not_seen_is_unlikely():
    coding, _ = code_classes(np.arange(3), "grades")
    rng = np.random.RandomState(0)
    codes = rng.randint(2, size=100)
    scores = rng.normal(size=(100, 2))
    p = np.exp(calibrate_classes(scores, codes, coding)(scores))
    np.testing.assert_allclose(p[:, 2], 1 / 102, rtol=0.01)


def test_sides_are_logistic_curves_where_these_agree_with_the_answers():
    """Against scikit-learn on the cases of each answer."""
    rng = np.random.RandomState(0)
    scores = rng.normal(size=20_000)
    second = rng.uniform(size=20_000) < expit(1.5 * scores + 0.3 * np.sign(scores))
    p = expit(calibrate_sides(scores, second)(scores))
    for side in (False, True):
        rows = (scores > 0) == side
        theirs = LogisticRegression(C=1e6).fit(scores[rows, None], second[rows])
        np.testing.assert_allclose(
            p[rows], theirs.predict_proba(scores[rows, None])[:, 1], atol=5e-3
        )


def test_log_odds_are_stretched_to_what_happens():
    """Against scikit-learn's logistic regression without an offset."""
    rng = np.random.RandomState(0)
    scores = rng.normal(size=20_000)
    second = rng.uniform(size=20_000) < expit(1.7 * scores)
    found = calibrate_log_odds(scores, second)
    theirs = LogisticRegression(C=1e6, fit_intercept=False).fit(scores[:, None], second)
    np.testing.assert_allclose(found(scores), theirs.coef_[0, 0] * scores, atol=5e-3)
    # Where the scores say the opposite of what happens, nothing is known; the answer stays.
    assert not calibrate_log_odds(scores, ~second)(scores).any()


def test_a_forest_is_not_bent_twice():
    """Its margins are log-odds already, so the probabilities are those up to a factor near 1."""
    rng = np.random.RandomState(0)
    X = rng.normal(size=(300, 3))
    y = rng.uniform(size=300) < expit(2 * X[:, 0])
    team = FullAutomation(machine=RandomForestClassifier(30), random_state=0).fit(X, y)
    margin, p = team.decision_function(X), team.predict_proba(X)[:, 1]
    factor = logit(p) / margin
    np.testing.assert_allclose(factor, factor[0], rtol=1e-9)
    assert 0.7 < factor[0] < 1.3


@given(st.integers(0, 10**6), st.floats(0.0, 1.0))
def test_the_answer_is_never_the_less_likely_one(seed, noise):
    rng = np.random.RandomState(seed)
    scores = rng.normal(size=40) * 10.0 ** rng.randint(-8, 8)
    second = np.where(rng.uniform(size=40) < noise, rng.uniform(size=40) < 0.5, scores > 0)
    log_odds = calibrate_sides(scores, second)(scores)
    assert np.isfinite(log_odds).all()
    assert ((log_odds > 0) <= (scores > 0)).all()
    assert ((log_odds < 0) <= (scores <= 0)).all()
    # The surer, the likelier.
    for side in (scores > 0, scores <= 0):
        order = np.argsort(np.abs(scores[side]))
        assert (np.diff(np.abs(log_odds[side])[order]) >= -1e-12).all()


@pytest.mark.parametrize(
    ("scores", "codes"),
    [
        (np.zeros((10, 3)), np.arange(10) % 3),
        (np.eye(3)[np.arange(9) % 3], np.arange(9) % 3),
        (np.full((6, 3), 1e300), np.arange(6) % 3),
        (np.random.RandomState(0).normal(size=(8, 3)), np.zeros(8, dtype=int)),
    ],
    ids=["equal scores", "always right", "huge", "one class"],
)
@pytest.mark.parametrize("votes", [False, True])
def test_little_to_learn_from(scores, codes, votes):
    coding, _ = code_classes(np.arange(3))
    p = np.exp(calibrate_classes(scores, codes, coding, votes)(scores))
    assert np.isfinite(p).all()
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    assert (p < 1.0).all()
