"""Machines that are refitted without the samples that humans take, in rounds."""

from __future__ import annotations

import pickle
import warnings
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import LogisticRegression
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import SVC

import deferlearn
from brought import HUMAN, NEW, SPLITS, Counting, N, X, Y, log_odds_by_hand, platt, raw_scores
from deferlearn.teams import AdvantageTriage, AssistedSVCCV, AssistedTriage, TeamCV
from deferlearn.teams.context import HeldOutScores

BY_REGION = {"machine_error": "forest", "human_error": "forest"}


def two_rules(n, seed):
    """In one part of the space the rule is another one, and humans are at home only there."""
    rng = np.random.RandomState(seed)
    A = rng.normal(size=(n, 2))
    other = A[:, 1] > 0.8
    y = np.where(other, A[:, 0] < 1, A[:, 0] > 0)
    return A, y, np.where(rng.rand(n) < np.where(other, 0.02, 0.4), ~y, y)


def fitted(kind=AssistedTriage, X=X, y=Y, human=HUMAN, **options):
    options = {"machine": LogisticRegression(), "cv": SPLITS, "random_state": 0, **options}
    return kind(**options).fit(X, y, human_labels=human)


def test_it_helps_where_one_machine_cannot_follow_two_rules():
    gains = []
    for seed in range(3):
        A, y, human = two_rules(500, seed)
        T, truth, doctor = two_rules(3000, 100 + seed)
        options = {"X": A, "y": y, "human": human, "budget": 0.25, "cv": 4, **BY_REGION}
        plain, assisted = fitted(AdvantageTriage, **options), fitted(**options)
        kept = ~assisted.deferred_
        assert 0 < assisted.deferred_.sum() <= 125
        assert (A[assisted.deferred_, 1] > 0.8).mean() > 0.6
        # The machine is the one of the samples that are left.
        alone = LogisticRegression().fit(A[kept], y[kept])
        assert_allclose(assisted.machine_.coef_, alone.coef_, rtol=1e-9)
        gains.append(
            assisted.score_assisted(T, truth, doctor) - plain.score_assisted(T, truth, doctor)
        )
        easy = T[:, 1] <= 0.8
        assert assisted.score(T[easy], truth[easy]) > plain.score(T[easy], truth[easy])
    assert min(gains) > 0.01


def test_decision_values_by_hand():
    """The curve is learned from all samples, those that the machine was fitted without included."""
    A, y, human = two_rules(200, 5)
    y, human = y.astype(int), human.astype(int)
    splits = [(np.flatnonzero(np.arange(200) % 4 != k), np.arange(k, 200, 4)) for k in range(4)]
    clf = fitted(X=A, y=y, human=human, cv=splits, budget=0.3, **BY_REGION)
    kept = ~clf.deferred_
    assert not kept.all()
    raw = np.empty(200)
    for train, test in splits:
        train = train[kept[train]]
        raw[test] = raw_scores(LogisticRegression().fit(A[train], y[train]), A[test])
    final = raw_scores(LogisticRegression().fit(A[kept], y[kept]), NEW[:, :2])
    expected = platt(raw, y, None, final)
    assert_allclose(clf.decision_function(NEW[:, :2]), expected, rtol=1e-6, atol=1e-8)


def let_rounds_cost(monkeypatch, values):
    """Let rounds cost what a list says, and note which samples were left to the machine in each."""
    seen = []

    def held_out_scores(self, context):
        seen.append(context.samples.trained_on)
        # As many errors as the round is to cost, all on samples that are not deferred.
        said = context.samples.codes.copy()
        said[: values[len(seen) - 1]] = 1 - said[: values[len(seen) - 1]]
        score = np.full(N, -np.inf)
        score[given_away(len(seen))] = 1.0
        return HeldOutScores(said, score, 0.1)

    monkeypatch.setattr(AdvantageTriage, "held_out_scores", held_out_scores)
    return seen


def given_away(k):
    return slice(40 + 2 * k, 46 + 2 * k)


def context():
    options = {"machines": [LogisticRegression()], "cv": SPLITS, "random_state": 0}
    search = TeamCV(**options).open_search(X, Y, human_labels=1 - Y)
    samples = search.context.samples
    free = replace(samples.human, answer_loss=np.zeros(N), loss=np.zeros(N))
    found = replace(search.context, samples=replace(samples, human=free))
    return found.with_machine(search.machines[0])


@pytest.mark.parametrize(
    ("values", "best", "rounds"),
    [
        ([20, 15, 10, 5], 3, 4),  # all of them help
        ([20, 15, 16, 1], 1, 3),  # stops where the cost rises, whatever would have come
        ([20, 15, 15, 1], 1, 3),  # and where it does not fall
        ([20, 20, 1, 1], 0, 2),
        ([20, 30, 1, 1], 0, 2),
    ],
)
def test_rounds_stop_when_the_cost_stops_falling(monkeypatch, values, best, rounds):
    seen = let_rounds_cost(monkeypatch, values)
    clf = AssistedTriage(machine=LogisticRegression(), max_rounds=3, budget=0.2)
    kept = clf._rounds(context())
    assert len(seen) == rounds
    assert seen[0] is None
    for k in range(1, rounds):  # each round is fitted without what the round before gave to humans
        left = np.ones(N, dtype=bool)
        left[given_away(k)] = False
        assert_array_equal(seen[k], left)
    if best == 0:
        assert kept is None
    else:
        assert_array_equal(kept, seen[best])


def test_the_number_of_rounds():
    A, y, human = two_rules(200, 1)
    options = {"X": A, "y": y, "human": human, "cv": 4, "budget": 0.3, **BY_REGION}
    Counting.fits.clear()
    fitted(machine=Counting(), max_rounds=1, **options)
    # Four folds twice, and the final machine; no fold is fitted again for the winner.
    assert len(Counting.fits) == 9


@pytest.mark.parametrize("machine", [LogisticRegression(), GaussianNB(), None], ids=str)
def test_where_no_round_helps_it_is_triage_by_advantage(machine):
    """A human who is always wrong takes no sample."""
    for human, budget in ((1 - Y, 0.3), (HUMAN, 0.0)):
        plain = fitted(AdvantageTriage, machine=machine, human=human, budget=budget)
        clf = fitted(machine=machine, human=human, budget=budget)
        assert not clf.deferred_.any()
        assert_array_equal(clf.decision_function(NEW), plain.decision_function(NEW))
        assert_array_equal(clf.deferral_score(NEW), plain.deferral_score(NEW))
        assert_array_equal(clf.defer(NEW), plain.defer(NEW))
        assert clf.deferral_threshold_ == plain.deferral_threshold_


def test_with_our_svm_and_with_a_gram_matrix():
    """Rows and columns of the samples that are left, wherever they are."""
    kept = np.arange(N) % 3 != 0

    def trained_on(X, **kernel):
        clf = AssistedSVCCV(alphas=[0.05], kernels=[kernel], cv=SPLITS, random_state=0)
        return clf.open_search(X, Y, human_labels=HUMAN).context.trained_on(kept)

    direct = trained_on(X, kernel="rbf", gamma=0.3)
    gram = trained_on(rbf_kernel(X, gamma=0.3), kernel="precomputed")
    for mine, other in zip(gram.margins()[1], direct.margins()[1], strict=True):
        assert_allclose(mine, other, atol=1e-8)
    assert_allclose(gram.margins()[0], direct.margins()[0], atol=1e-8)
    (machine, own), (other, expected) = gram.final(), direct.final()
    assert_allclose(own, expected, atol=1e-8)
    assert_array_equal(machine.support, other.support)
    assert kept[machine.support].all()
    assert_array_equal(other.vectors, X[other.support])
    assert_allclose(
        machine.decision_function(rbf_kernel(NEW, X, gamma=0.3)),
        other.decision_function(NEW),
        atol=1e-8,
    )
    # Against another solver.
    C = 1 / (2 * 0.05 * kept.sum())
    svc = SVC(C=C, gamma=0.3, tol=1e-10).fit(X[kept], Y[kept])
    assert_allclose(other.decision_function(NEW), svc.decision_function(NEW), atol=1e-5)


def test_deferred_is_stored(tmp_path):
    A, y, human = two_rules(200, 1)
    clf = fitted(X=A, y=y, human=human, cv=4, budget=0.3, **BY_REGION)
    assert clf.deferred_.dtype == bool
    assert clf.deferred_.shape == (200,)
    deferlearn.save(clf, tmp_path / "team.skops")
    for other in (pickle.loads(pickle.dumps(clf)), deferlearn.load(tmp_path / "team.skops")):
        assert_array_equal(other.deferred_, clf.deferred_)
        assert_array_equal(other.defer(A), clf.defer(A))


@pytest.mark.parametrize("rounds", [0, -1, 1.5, "two", None, True])
def test_max_rounds_is_checked(rounds):
    with pytest.raises(ValueError, match=r"max_rounds=.* must be a whole number, 1 or larger"):
        fitted(max_rounds=rounds)


@settings(max_examples=10, deadline=None)
@given(
    st.integers(1, 12),
    st.integers(4, 30),
    st.floats(0.1, 1.0),
    st.integers(2, 4),
    st.integers(0, 3),
)
def test_both_classes_stay(few, more, budget, cv, seed):
    """However small one of them is, and however much humans may take."""
    rng = np.random.RandomState(seed)
    y = np.r_[np.zeros(more, int), np.ones(few, int)]
    A = np.column_stack([y + rng.normal(size=len(y)), rng.normal(size=len(y))])
    human = y.copy()
    human[0] = 1 - human[0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        clf = fitted(X=A, y=y, human=human, cv=cv, budget=budget)
    left = y[~clf.deferred_]
    assert set(left) == {0, 1}
    assert clf.deferred_.sum() <= int(budget * len(y) + 1e-9)
    if clf.deferred_.any():
        assert min((left == 0).sum(), (left == 1).sum()) > cv
    assert np.isfinite(clf.decision_function(A)).all()


def test_the_curve_of_all_samples_where_nothing_is_deferred():
    clf = fitted(human=1 - Y)
    expected = log_odds_by_hand(LogisticRegression(), X, Y, SPLITS, NEW)
    assert_allclose(clf.decision_function(NEW), expected, rtol=1e-6, atol=1e-8)
