"""`machine_scores`: a team around the scores of a machine that cannot be retrained."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

import deferlearn
from brought import HUMAN, NEW, SPLITS, N, X, Y, platt
from deferlearn import AssistedSVC
from deferlearn.teams import (
    AdvantageTriage,
    AssistedSVCCV,
    AssistedTriage,
    FullAutomation,
    NoAutomation,
    PredictedErrorTriage,
    TeamCV,
    UncertaintyTriage,
    make_assisted_pipeline,
)
from deferlearn.teams.brought import ScoreColumn

RNG = np.random.RandomState(21)
SCORE = X[:, 0] - 0.7 * X[:, 1] ** 2 + 0.5 * RNG.normal(size=N)
NEW_SCORE = NEW[:, 0] - 0.7 * NEW[:, 1] ** 2 + 0.5 * RNG.normal(size=len(NEW))
NEW_Y = np.where(NEW_SCORE > -0.4, 1, 0)

TEAMS = {
    "full": FullAutomation(),
    "uncertainty": UncertaintyTriage(),
    "advantage": AdvantageTriage(),
    "by region": AdvantageTriage(machine_error="forest", human_error="forest"),
    "predicted": PredictedErrorTriage(error_model=LogisticRegression()),
    "search": TeamCV(policies=["uncertainty", "advantage", "automation"], n_repeats=1),
}


def probability(score):
    return 1 / (1 + np.exp(-score))


def fitted(name="uncertainty", scores=SCORE, X=X, **options):
    clf = clone(TEAMS[name]).set_params(**{"cv": SPLITS, "random_state": 0, **options})
    return clf.fit(X, Y, human_labels=HUMAN, machine_scores=scores)


def answers(clf, X=NEW, scores=NEW_SCORE):
    """All that a team says."""
    given = {"machine_scores": scores}
    return [
        clf.decision_function(X, **given),
        clf.deferral_score(X, **given),
        clf.defer(X, **given),
        clf.defer_top(X, 20, **given),
        clf.predict(X, **given),
        clf.predict_assisted(X, NEW_Y, **given),
        np.array(clf.score(X, NEW_Y, **given)),
        np.array(clf.score_assisted(X, NEW_Y, NEW_Y, batch=True, **given)),
    ]


def assert_same(one, other, **options):
    for mine, theirs in zip(one, other, strict=True):
        if mine.dtype == float:
            assert_allclose(mine, theirs, **{"rtol": 1e-9, **options})
        else:
            assert_array_equal(mine, theirs)


# -- what it says -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", TEAMS)
def test_the_scores_are_calibrated_and_nothing_else_is_learned_of_the_machine(name):
    clf = fitted(name)
    expected = platt(SCORE, Y, None, NEW_SCORE)
    assert_allclose(clf.decision_function(NEW, machine_scores=NEW_SCORE), expected, rtol=1e-6)
    assert_array_equal(clf.predict(NEW, machine_scores=NEW_SCORE), (expected > 0).astype(int))
    assert clf.n_features_in_ == 3
    # The machine has nothing to do with x.
    other = np.roll(NEW, 1, axis=0)
    assert_array_equal(
        clf.decision_function(other, machine_scores=NEW_SCORE),
        clf.decision_function(NEW, machine_scores=NEW_SCORE),
    )


def test_no_classifier_is_fitted_but_the_curve(monkeypatch):
    fits = []
    fit = ScoreColumn.fit
    monkeypatch.setattr(
        ScoreColumn, "fit", lambda self, X, y: fits.append(len(y)) or fit(self, X, y)
    )
    fitted("advantage")
    assert set(fits) == {N}  # it looks at all scores, and never at a part of them


def test_class_weights():
    weights = np.where(Y == 1, 4.0, 1.0)
    clf = fitted("full", class_weight={0: 1.0, 1: 4.0})
    expected = platt(SCORE, Y, weights, NEW_SCORE)
    assert_allclose(clf.decision_function(NEW, machine_scores=NEW_SCORE), expected, rtol=1e-5)


def test_probabilities_become_log_odds():
    p = probability(SCORE)
    log_odds = np.log(p / (1 - p))
    assert_same(
        answers(fitted("advantage", p), scores=probability(NEW_SCORE)),
        answers(fitted("advantage", log_odds)),
        rtol=1e-6,
    )


def test_two_columns_are_the_probabilities_of_both_classes():
    def both(score):
        return np.column_stack([1 - probability(score), probability(score)])

    one = answers(fitted("advantage", probability(SCORE)), scores=probability(NEW_SCORE))
    assert_same(one, answers(fitted("advantage", both(SCORE)), scores=both(NEW_SCORE)))
    frame = pd.DataFrame(both(SCORE), columns=["no", "yes"])
    assert_same(one, answers(fitted("advantage", frame), scores=both(NEW_SCORE)))


def test_probabilities_of_zero_and_one():
    p = np.where(SCORE > 0.5, 1.0, np.where(SCORE < -1.0, 0.0, 0.5))
    clf = fitted("uncertainty", p)
    decision = clf.decision_function(NEW, machine_scores=np.linspace(0, 1, 150))
    assert np.isfinite(decision).all()
    assert (np.diff(decision) >= 0).all()
    # What cannot be a probability is not taken for one.
    with pytest.raises(
        ValueError, match=r"score is 1\.2 in row 1, but all scores in fit were between"
    ):
        clf.decision_function(NEW[:2], machine_scores=[0.3, 1.2])


def test_one_score_beyond_one_makes_all_of_them_scores():
    """Whatever fold it is in: each must read the scores in the same way."""
    scores = probability(SCORE)
    scores[np.argmax(scores)] = 1.5
    clf = fitted("uncertainty", scores)
    expected = platt(scores, Y, None, probability(NEW_SCORE))
    decision = clf.decision_function(NEW, machine_scores=probability(NEW_SCORE))
    assert_allclose(decision, expected, rtol=1e-6)
    given = TeamCV(cv=SPLITS, random_state=0).open_search(
        X, Y, human_labels=HUMAN, machine_scores=scores
    )
    column = TeamCV(machines=[ScoreColumn()], cv=SPLITS, random_state=0).open_search(
        np.column_stack([X, scores]), Y, human_labels=HUMAN
    )
    for search in (given, column):
        margin, _ = search.context.with_machine(search.machines[0]).margins()
        for train, test in SPLITS:
            by_hand = platt(scores[train], Y[train], None, scores[test])
            assert_allclose(margin[test], by_hand, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("name", ["uncertainty", "advantage", "by region", "predicted"])
@pytest.mark.parametrize(("slope", "offset"), [(250.0, -3.0), (1e-6, 40.0), (-2.0, 1.0)])
def test_an_affine_transform_changes_nothing(name, slope, offset):
    """Not even its direction: a score that falls with the second class is turned round."""
    if name in ("by region", "predicted") and slope != 250.0:
        pytest.skip("once is enough")
    plain = answers(fitted(name))
    other = answers(fitted(name, slope * SCORE + offset), scores=slope * NEW_SCORE + offset)
    if name == "predicted":  # the models of errors see the score as a feature, in its own unit
        plain, other = plain[:1] + plain[4:5], other[:1] + other[4:5]
    assert_same(plain, other, rtol=1e-4, atol=1e-6)


def test_a_monotone_transform_changes_little():
    plain = fitted()
    other = fitted("uncertainty", np.sinh(SCORE))
    same = plain.defer_top(NEW, 40, machine_scores=NEW_SCORE) == other.defer_top(
        NEW, 40, machine_scores=np.sinh(NEW_SCORE)
    )
    assert same.mean() > 0.9


def test_humans_are_modelled_given_the_score():
    """A human who errs where the score is large is not asked there."""
    rng = np.random.RandomState(0)
    A, score = rng.normal(size=(800, 1)), rng.normal(size=800)
    y = (score + rng.normal(size=800) > 0).astype(int)
    human = np.where(np.abs(score) > 0.5, 1 - y, y)
    clf = AdvantageTriage(0.5, human_error="forest", random_state=0)
    clf.fit(A, y, human_labels=human, machine_scores=score)
    asked = clf.defer(A, machine_scores=score)
    assert (np.abs(score[asked]) < 0.6).mean() > 0.95
    assert asked.mean() > 0.2


def test_as_good_as_the_forest_itself():
    """Scores of a forest trained elsewhere, as a column, or such a forest as the machine."""
    errors = []
    forest = RandomForestClassifier(30, random_state=0)
    for seed in range(4, 7):
        rng = np.random.RandomState(seed)
        A = rng.normal(size=(2400, 4))
        y = (A[:, 0] + A[:, 1] * A[:, 2] + 0.5 * rng.normal(size=2400) > 0).astype(int)
        human = np.where(rng.rand(2400) < 0.1, 1 - y, y)
        first, second, new = slice(400), slice(400, 800), slice(800, None)
        p = clone(forest).fit(A[first], y[first]).predict_proba(A)[:, 1]
        column = AdvantageTriage(0.2, random_state=0)
        column.fit(A[second], y[second], human_labels=human[second], machine_scores=p[second])
        brought = AdvantageTriage(0.2, machine=forest, random_state=0)
        brought.fit(A[second], y[second], human_labels=human[second])
        errors.append(
            [
                1 - column.score_assisted(A[new], y[new], human[new], machine_scores=p[new]),
                1 - brought.score_assisted(A[new], y[new], human[new]),
                np.mean((p[new] > 0.5) != y[new]),
            ]
        )
        # Its curve, by hand.
        log_odds = np.log(np.clip(p, 1e-6, 1) / np.clip(1 - p, 1e-6, 1))
        by_hand = platt(log_odds[second], y[second], None, log_odds[new])
        said = column.decision_function(A[new], machine_scores=p[new])
        assert_allclose(said, by_hand, rtol=1e-3, atol=1e-3)
    team, with_forest, alone = np.mean(errors, axis=0)
    assert team == pytest.approx(with_forest, abs=0.015)
    assert team < alone - 0.03


def test_the_column_alone():
    """The classifier behind it: its last column, and nothing else."""
    column = ScoreColumn()
    with pytest.raises(NotFittedError):
        column.predict(X)
    column.fit(np.column_stack([X, SCORE]), Y)
    new = np.column_stack([NEW, NEW_SCORE])
    assert_array_equal(column.decision_function(new), NEW_SCORE)
    assert_array_equal(column.predict(new), (NEW_SCORE > 0).astype(int))
    column.fit(probability(SCORE)[:, None], np.where(Y, "yes", "no"))
    said = np.where(NEW_SCORE > 0, "yes", "no")
    assert_array_equal(column.predict(sp.csr_array(probability(NEW_SCORE)[:, None])), said)


# -- around it --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["uncertainty", "by region", "search"])
def test_sparse_cases(name):
    few, new = np.round(X), np.round(NEW)
    dense = fitted(name, X=few)
    sparse = fitted(name, X=sp.csr_array(few))
    one, other = answers(dense, new), answers(sparse, sp.csr_array(new))
    if name == "by region":  # forests split sparse features in another order
        one, other = one[:1], other[:1]
    assert_same(one, other)


@pytest.mark.parametrize("name", TEAMS)
def test_copies(name, tmp_path):
    clf = fitted(name)
    deferlearn.save(clf, tmp_path / "team.skops")
    for copy in (pickle.loads(pickle.dumps(clf)), deferlearn.load(tmp_path / "team.skops")):
        assert_same(answers(clf), answers(copy))
    other = clone(clf)
    assert not other._given_scores
    other.set_params(**({} if name == "search" else {"alpha": 0.1})).fit(X, Y, human_labels=HUMAN)
    assert other.predict(NEW).shape == (150,)
    # The same object, first with scores and then without.
    clf.fit(X, Y, human_labels=HUMAN)
    assert clf.defer(NEW).shape == (150,)


def test_pipelines():
    pipeline = make_assisted_pipeline(StandardScaler(), AdvantageTriage(cv=SPLITS, random_state=0))
    pipeline.fit(X, Y, advantagetriage__human_labels=HUMAN, advantagetriage__machine_scores=SCORE)
    scaler = StandardScaler().fit(X)
    alone = fitted("advantage", X=scaler.transform(X))
    given = {"machine_scores": NEW_SCORE}
    Z = scaler.transform(NEW)
    for method in ("deferral_score", "defer", "defer_top", "predict"):
        assert_array_equal(
            getattr(pipeline, method)(NEW, **given), getattr(alone, method)(Z, **given)
        )
    for batch in (False, True):
        assert_array_equal(
            pipeline.predict_assisted(NEW, NEW_Y, batch, **given),
            alone.predict_assisted(Z, NEW_Y, batch, **given),
        )
        assert pipeline.score_assisted(NEW, NEW_Y, NEW_Y, batch, **given) == alone.score_assisted(
            Z, NEW_Y, NEW_Y, batch, **given
        )
    with pytest.raises(ValueError, match="fitted with machine_scores: give the scores"):
        pipeline.defer(NEW)


def test_pipelines_with_metadata_routing():
    with sklearn.config_context(enable_metadata_routing=True):
        pipeline = make_assisted_pipeline(
            StandardScaler(), AdvantageTriage(cv=SPLITS, random_state=0)
        )
        pipeline.fit(X, Y, human_labels=HUMAN, machine_scores=SCORE)
        alone = fitted("advantage", X=StandardScaler().fit_transform(X))
        Z = StandardScaler().fit(X).transform(NEW)
        assert_array_equal(
            pipeline.predict(NEW, machine_scores=NEW_SCORE),
            alone.predict(Z, machine_scores=NEW_SCORE),
        )
        assert_array_equal(
            pipeline.decision_function(NEW, machine_scores=NEW_SCORE),
            alone.decision_function(Z, machine_scores=NEW_SCORE),
        )
        assert pipeline.score(NEW, NEW_Y, machine_scores=NEW_SCORE) == alone.score(
            Z, NEW_Y, machine_scores=NEW_SCORE
        )


def test_a_search_tries_policies_with_these_scores_alone():
    clf = TeamCV(cv=3, n_repeats=1, random_state=0)
    clf.fit(X, Y, human_labels=HUMAN, machine_scores=SCORE)
    assert set(clf.cv_results_["param_machine"]) == {"given scores"}
    assert not {"margin", "forest", "assisted"} & set(clf.cv_results_["param_policy"])
    assert {"uncertainty", "advantage", "automation"} <= set(clf.cv_results_["param_policy"])
    assert clf.best_estimator_.machine is None


# -- bad input --------------------------------------------------------------------------------


def hole(value):
    scores = SCORE.copy()
    scores[5] = value
    return scores


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        (SCORE[:-1], "machine_scores has 89 rows, but X has 90"),
        (SCORE[0], r"machine_scores has the shape \(\)"),
        (np.zeros((N, 3)), r"machine_scores has the shape \(90, 3\)"),
        (np.zeros((N, 1)), r"machine_scores has the shape \(90, 1\)"),
        (np.zeros((N, 2, 1)), r"machine_scores has the shape \(90, 2, 1\)"),
        (hole(np.nan), r"machine_scores has nan at row 5 \(and 0 more"),
        (hole(np.inf), "machine_scores has inf at row 5"),
        (["high"] * N, "machine_scores must hold numbers"),
        ([None, *SCORE[1:]], "machine_scores has nan at row 0"),
    ],
    ids=["short", "one", "three", "column", "deep", "nan", "inf", "words", "none"],
)
@pytest.mark.parametrize("name", ["advantage", "search"])
def test_scores_that_are_none(scores, message, name):
    with pytest.raises(ValueError, match=message):
        fitted(name, scores)


@pytest.mark.parametrize("name", ["full", "uncertainty", "search"])
def test_new_cases_need_them_too(name):
    clf = fitted(name)
    for method in ("predict", "decision_function", "deferral_score", "defer", "defer_top"):
        with pytest.raises(ValueError, match="fitted with machine_scores: give the scores"):
            getattr(clf, method)(NEW)
    with pytest.raises(ValueError, match="fitted with machine_scores: give the scores"):
        clf.score_assisted(NEW, NEW_Y, NEW_Y)
    with pytest.raises(ValueError, match="machine_scores has 149 rows, but X has 150"):
        clf.defer(NEW, machine_scores=NEW_SCORE[1:])
    with pytest.raises(ValueError, match=r"has 4 features, but .* is expecting 3"):
        clf.defer(np.column_stack([NEW, NEW_SCORE]), machine_scores=NEW_SCORE)
    other = clone(clf).fit(X, Y, human_labels=HUMAN)
    with pytest.raises(ValueError, match="fitted without them"):
        other.predict(NEW, machine_scores=NEW_SCORE)


@pytest.mark.parametrize(
    ("clf", "message"),
    [
        (AssistedSVC(), "AssistedSVC trains its own machine, so it takes no machine_scores"),
        (AssistedSVCCV(), "AssistedSVCCV trains its own machine"),
        (NoAutomation(), "NoAutomation .*takes no machine_scores"),
        (AssistedTriage(), "AssistedTriage trains its own machine, so it takes no machine_scores"),
        (AdvantageTriage(machine=LogisticRegression()), "and machine_scores were given"),
        (UncertaintyTriage(cv=None), "cv=None: the machine's scores are calibrated"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_who_takes_none(clf, message):
    with pytest.raises(ValueError, match=message):
        clf.fit(X, Y, machine_scores=SCORE)


def test_policies_that_need_a_machine_of_their_own():
    with pytest.raises(ValueError, match=r"None of policies=\['margin', 'assisted'\] can have any"):
        fitted("search", policies=["margin", "assisted"])


# -- odd scores -------------------------------------------------------------------------------


@settings(max_examples=15, deadline=None)
@given(
    st.sampled_from([0.0, 0.1, 1.0, -3.3, 1e200]),
    st.sampled_from(["uncertainty", "advantage"]),
    st.integers(0, 5),
)
def test_scores_that_say_nothing(value, name, different):
    """All equal, or all but a few: the decision is about the log-odds of the classes."""
    scores = np.full(N, value)
    scores[:different] = value + 1.0 if abs(value) < 1e100 else 0.0
    clf = fitted(name, scores)
    decision = clf.decision_function(NEW, machine_scores=np.full(150, value))
    assert np.isfinite(decision).all()
    assert_allclose(decision, np.log(Y.sum() / (N - Y.sum())), atol=0.3)
    assert 0.0 <= clf.defer(NEW, machine_scores=np.full(150, value)).mean() <= 0.45
