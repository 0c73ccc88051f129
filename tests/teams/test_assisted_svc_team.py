"""The human in `AssistedSVC`: losses for `fit`, answers for the team."""

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deferlearn import AssistedSVC
from deferlearn.datasets import make_linear
from deferlearn.evaluation import automation_curve
from deferlearn.metrics import make_team_scorer
from deferlearn.teams import make_assisted_pipeline

X, Y = make_linear(60, random_state=3)
RNG = np.random.RandomState(0)
WRONG = RNG.rand(60) < 0.3
LABELS = np.where(WRONG, -Y, Y)


def fitted(X=X, y=Y, **human):
    return AssistedSVC(cv=None, submodularity_ratio=0.5, random_state=0).fit(X, y, **human)


def test_none_is_a_human_who_is_always_right():
    assert (fitted().human_loss_ == 0).all()


def test_labels_cost_two_when_wrong():
    np.testing.assert_array_equal(fitted(human_labels=LABELS).human_loss_, 2.0 * WRONG)


def test_scores_cost_their_hinge():
    h = RNG.uniform(-1, 1, 60)
    np.testing.assert_allclose(fitted(human_scores=h).human_loss_, np.maximum(0, 1 - Y * h))


def test_scores_speak_for_the_second_class():
    y = np.where(Y == 1, "b", "a")
    scores = np.where(np.arange(60) < 50, 0.75 * Y, 0.75)
    loss = fitted(y=y, human_scores=scores).human_loss_
    np.testing.assert_allclose(loss, np.where((y == "b") | (np.arange(60) < 50), 0.25, 1.75))


@pytest.mark.parametrize("form", [list, np.array, pd.DataFrame])
def test_several_readers_with_gaps(form):
    table = np.column_stack([LABELS, Y, LABELS]).astype(object)
    table[3, 1] = None
    table[4, :2] = np.nan
    loss = fitted(human_labels=form(table.tolist())).human_loss_
    expected = np.where(WRONG, 4 / 3, 0.0)
    expected[3] = 2.0 * WRONG[3]
    expected[4] = 2.0 * WRONG[4]
    np.testing.assert_allclose(loss, expected)


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA])
@pytest.mark.parametrize("name", ["human_labels", "human_loss", "human_scores"])
def test_unread_cases_get_the_average_of_their_class(name, missing):
    full = {"human_labels": LABELS, "human_loss": 2.0 * WRONG, "human_scores": 1.0 * LABELS}[name]
    answers = full.astype(object)
    answers[[0, 1, 2]] = missing
    with pytest.warns(UserWarning, match="3"):
        loss = fitted(**{name: answers}).human_loss_
    read = np.arange(60) > 2
    for i in range(3):
        assert loss[i] == pytest.approx((2.0 * WRONG)[read & (Y[i] == Y)].mean())
    np.testing.assert_array_equal(loss[3:], 2.0 * WRONG[3:])


@pytest.mark.parametrize(
    "human",
    [
        {"human_labels": Y},
        {"human_scores": Y.astype(float)},
        {"human_labels": np.column_stack([LABELS, Y])},
    ],
)
def test_a_reader_who_equals_y_brings_a_warning(human):
    with pytest.warns(UserWarning, match="very reader"):
        fitted(**human)


def test_a_reader_who_read_little_and_is_right_brings_none():
    few = Y.astype(object)
    few[5:] = None
    fitted(human_labels=np.column_stack([LABELS.astype(object), few]))


def test_the_function_is_asked_once_for_the_deferred_rows_only():
    clf = fitted(human_labels=LABELS)
    calls = []

    def doctor(rows):
        calls.append(rows)
        return LABELS[rows]

    team = clf.predict_assisted(X, doctor)
    deferred = clf.defer(X)
    assert len(calls) == 1
    assert calls[0].dtype.kind == "i"
    np.testing.assert_array_equal(calls[0], np.flatnonzero(deferred))
    np.testing.assert_array_equal(team, np.where(deferred, LABELS, clf.predict(X)))
    np.testing.assert_array_equal(team, clf.predict_assisted(X, LABELS))
    assert clf.score_assisted(X, Y, doctor) == np.mean(team == Y)
    np.testing.assert_array_equal(
        clf.predict_assisted(X, LABELS, batch=True),
        np.where(clf.defer_top(X), LABELS, clf.predict(X)),
    )


def test_no_human_is_asked_if_no_case_is_deferred():
    clf = AssistedSVC(budget=0.0).fit(X, Y)

    def doctor(rows):
        raise AssertionError("asked")

    np.testing.assert_array_equal(clf.predict_assisted(X, doctor), clf.predict(X))


def test_majority_and_ties_to_the_first():
    with pytest.warns(UserWarning, match="Humans take|all samples were"):
        clf = AssistedSVC(budget=1.0, cv=None, submodularity_ratio=0.5, fit_intercept=False).fit(
            X, Y
        )
    assert clf.deferred_.all()
    readers = np.array([[1, -1, -1], [1, -1, np.nan], [np.nan, -1, 1]])
    np.testing.assert_array_equal(clf.predict_assisted(X[:3], readers), [-1, 1, -1])


def test_a_deferred_case_without_an_answer_is_an_error_with_its_position():
    clf = fitted(human_labels=LABELS)
    deferred = np.flatnonzero(clf.defer(X))
    answers = LABELS.astype(float)
    answers[deferred[1]] = np.nan
    with pytest.raises(ValueError, match=rf"Row {deferred[1]} is deferred.*no answer"):
        clf.predict_assisted(X, answers)
    kept = np.flatnonzero(~clf.defer(X))
    answers = LABELS.astype(float)
    answers[kept] = np.nan  # nobody needs these
    clf.predict_assisted(X, answers)


def test_bad_answers_are_named():
    clf = fitted(human_labels=LABELS)
    with pytest.raises(ValueError, match="59 rows, but X has 60"):
        clf.predict_assisted(X, LABELS[1:])
    with pytest.raises(ValueError, match="1 rows, but it was asked for"):
        clf.predict_assisted(X, lambda rows: [1])
    first = np.flatnonzero(clf.defer(X))[0]
    answers = LABELS.copy()
    answers[first] = 5
    with pytest.raises(ValueError, match=rf"5 at row {first}.*neither"):
        clf.predict_assisted(X, answers)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10_000), n=st.integers(3, 12), distinct=st.integers(1, 4))
def test_degenerate_data_never_break_the_team(seed, n, distinct):
    """Few samples, repeated and constant rows, whole classes deferred: answers all the same."""
    rng = np.random.RandomState(seed)
    Z = rng.normal(size=(distinct, 2))[rng.randint(distinct, size=n)]
    y = np.r_[0, 1, rng.randint(2, size=n - 2)]
    clf = AssistedSVC(
        budget=float(rng.uniform(0, 1)), cv=int(rng.randint(2, 6)), random_state=0, delta=0.4
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        clf.fit(Z, y, human_loss=rng.uniform(0, 2, n))
    answers = rng.randint(2, size=n)
    deferred = clf.defer(Z)
    np.testing.assert_array_equal(deferred, clf.defer(Z))
    np.testing.assert_array_equal(
        clf.predict_assisted(Z, answers), np.where(deferred, answers, clf.predict(Z))
    )
    assert clf.defer_top(Z, budget=2).sum() == (0 if np.isposinf(clf.deferral_threshold_) else 2)
    assert np.isfinite(clf.deferral_score(Z)).all()


def test_a_team_is_not_judged_in_other_labels():
    X, y = make_linear(40, random_state=0)
    clf = AssistedSVC(submodularity_ratio=0.3, cv=None).fit(X, y)
    assert clf.score_assisted(X, y, y) > 0
    for other in ((y > 0) * 1, y.astype(str), np.where(np.arange(40) < 3, np.nan, y)):
        with pytest.raises(ValueError, match="the model knows only the classes"):
            clf.score_assisted(X, other, y)
        with pytest.raises(ValueError, match="the model knows only the classes"):
            make_team_scorer("error")(clf, X, other, human_labels=y)


def test_curve_of_a_pipeline_is_that_of_its_parts():
    X, y = make_linear(60, random_state=0)
    human = np.where(np.arange(60) % 7 == 0, -y, y)
    svc = AssistedSVC(alpha=0.1, submodularity_ratio=0.3, cv=None, random_state=0)
    options = {"human_labels": human, "budgets": [0.1, 0.3], "cv": 2, "random_state": 0}
    alone = automation_curve(svc, X, y, **options)
    piped = automation_curve(make_assisted_pipeline("passthrough", svc), X, y, **options)
    np.testing.assert_array_equal(piped.values["error"], alone.values["error"])
