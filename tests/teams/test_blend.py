"""The mean of several machines, against the mean written by hand."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.utils.estimator_checks import check_estimator

import deferlearn
from brought import HUMAN, NEW, SPLITS, Counting, X, Y, held_out_log_odds, log_odds_by_hand
from deferlearn.teams import AdvantageTriage, FullAutomation, TeamCV, UncertaintyTriage
from deferlearn.teams.blend import Blend, BlendSettings

BAYES, LOGISTIC = GaussianNB(), LogisticRegression(C=0.5)
FOREST = RandomForestClassifier(10, random_state=1)
SVM = FullAutomation(alpha=0.05, kernel="rbf", gamma=0.4)
MEMBERS = [BAYES, LOGISTIC, FOREST]


def mean_by_hand(members, new=NEW):
    return np.mean([log_odds_by_hand(m, X, Y, SPLITS, new) for m in members], axis=0)


def test_log_odds_are_the_mean_of_the_members():
    blend = Blend(MEMBERS, cv=SPLITS, random_state=0).fit(X, Y)
    expected = mean_by_hand(MEMBERS)
    assert_allclose(blend.decision_function(NEW), expected, rtol=1e-6, atol=1e-8)
    assert_allclose(blend.predict_proba(NEW)[:, 1], 1 / (1 + np.exp(-expected)), rtol=1e-6)
    assert_allclose(blend.predict_proba(NEW).sum(axis=1), 1.0)
    assert_array_equal(blend.predict(NEW), (expected > 0).astype(int))
    assert blend.score(X, Y) == np.mean(blend.predict(X) == Y)


def test_of_one_member_and_of_twice_the_same():
    alone = Blend([BAYES], cv=SPLITS).fit(X, Y).decision_function(NEW)
    assert_allclose(alone, log_odds_by_hand(BAYES, X, Y, SPLITS, NEW), rtol=1e-6)
    twice = Blend([BAYES, clone(BAYES)], cv=SPLITS).fit(X, Y).decision_function(NEW)
    assert_allclose(twice, alone, rtol=1e-12)


def test_a_member_may_be_our_svm():
    """Its margins are calibrated as any other scores are."""
    blend = Blend([SVM, BAYES], cv=SPLITS).fit(X, Y)
    assert_allclose(blend.decision_function(NEW), mean_by_hand([SVM, BAYES]), rtol=1e-5, atol=1e-7)


def test_a_blend_of_blends():
    blend = Blend([Blend([BAYES, LOGISTIC]), FOREST], cv=SPLITS).fit(X, Y)
    inner = mean_by_hand([BAYES, LOGISTIC])
    expected = (inner + log_odds_by_hand(FOREST, X, Y, SPLITS, NEW)) / 2
    assert_allclose(blend.decision_function(NEW), expected, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("team", [UncertaintyTriage(), AdvantageTriage()], ids=str)
def test_as_the_machine_of_a_team(team, tmp_path):
    team.set_params(machine=Blend(MEMBERS), cv=SPLITS, random_state=0)
    team.fit(X, Y, human_labels=HUMAN)
    assert_allclose(team.decision_function(NEW), mean_by_hand(MEMBERS), rtol=1e-6, atol=1e-8)
    deferlearn.save(team, tmp_path / "team.skops")
    for other in (pickle.loads(pickle.dumps(team)), deferlearn.load(tmp_path / "team.skops")):
        assert_array_equal(other.defer(NEW), team.defer(NEW))
        assert_array_equal(other.decision_function(NEW), team.decision_function(NEW))


def test_held_out_values():
    search = TeamCV(machines=[Blend(MEMBERS)], cv=SPLITS, random_state=0).open_search(
        X, Y, human_labels=HUMAN
    )
    assert isinstance(search.machines[0], BlendSettings)
    margin, _ = search.context.with_machine(search.machines[0]).margins()
    expected = np.mean([held_out_log_odds(m, X, Y, SPLITS) for m in MEMBERS], axis=0)
    assert_allclose(margin, expected, rtol=1e-6, atol=1e-8)


def test_in_a_search_members_are_not_fitted_again():
    Counting.fits.clear()
    clf = TeamCV(
        machines=[Counting(C=0.1), BAYES, SVM],
        policies=["uncertainty", "advantage", "automation"],
        cv=SPLITS,
        random_state=0,
    ).fit(X, Y, human_labels=HUMAN)
    assert "blend" in clf.cv_results_["param_machine"]
    # Without each fold, and once on all samples if it is in the winner.
    assert sorted(size for size, _ in Counting.fits)[:3] == [60, 60, 60]
    assert len(Counting.fits) <= 4


def test_alone_it_equals_the_one_in_a_search():
    """The winner, written down and fitted on the same folds by itself."""
    options = {"policies": ["uncertainty"], "cv": SPLITS, "random_state": 0}
    for winner in (True, False):
        clf = TeamCV(machines=[LOGISTIC, BAYES, FOREST], **options)
        clf.fit(X, Y, human_labels=HUMAN)
        if clf.best_params_["machine"] == "blend" or not winner:
            break
    search = clf.open_search(X, Y, human_labels=HUMAN)
    blend = BlendSettings(tuple(search.machines))
    inside, _ = search.context.with_machine(blend).final()
    alone = clone(blend.team_parameters()["machine"]).set_params(cv=SPLITS, random_state=0)
    assert_allclose(
        alone.fit(X, Y).decision_function(NEW), inside.decision_function(NEW), rtol=1e-9
    )


def test_names_of_features():
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    blend = Blend([BAYES, LOGISTIC], cv=3, random_state=0).fit(frame, Y)
    new = pd.DataFrame(NEW, columns=["a", "b", "c"])
    assert blend.feature_names_in_.tolist() == ["a", "b", "c"]
    assert blend.predict(new).shape == (150,)
    with pytest.raises(ValueError, match="feature names should match"):
        blend.predict(new[["c", "b", "a"]])
    assert not hasattr(blend.fit(X, Y), "feature_names_in_")


def test_labels_sparse_cases_and_parameters():
    names = np.array(["no", "yes"])
    blend = Blend([LOGISTIC, clone(LOGISTIC).set_params(C=2.0)], cv=SPLITS, random_state=0)
    assert blend.__sklearn_tags__().input_tags.sparse
    said = blend.fit(sp.csr_array(X), names[Y]).predict(sp.csr_array(NEW))
    assert_array_equal(said, clone(blend).fit(X, names[Y]).predict(NEW))
    assert set(said) == {"no", "yes"}
    assert not Blend([LOGISTIC, BAYES]).__sklearn_tags__().input_tags.sparse
    assert clone(blend).machines[0] is not blend.machines[0]
    with pytest.raises(
        ValueError, match=r"machines\[0\] of Blend.*must be a scikit-learn classifier"
    ):
        Blend([LinearRegression()]).fit(X, Y)


@pytest.mark.slow
def test_scikit_learns_conventions():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        check_estimator(Blend([BAYES, LOGISTIC], cv=2, random_state=0), on_skip=None)
