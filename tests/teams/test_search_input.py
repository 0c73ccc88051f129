"""Bad input: every error names the parameter and the value, before anything is fitted."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Lasso, LogisticRegression, RidgeClassifier

from deferlearn import AssistedSVC
from deferlearn.teams import (
    AdvantageTriage,
    AssistedSVCCV,
    DeferralPolicy,
    FullAutomation,
    UncertaintyTriage,
)
from tuned import HUMAN, LOSS, SCORES, N, X, Y, tuned

BAD = [
    ({"budget": 1.5}, r"budget=1\.5 is a fraction"),
    ({"budget": -1}, "budget=-1 is a number of samples"),
    ({"budget": N + 1}, "budget=73"),
    ({"budget": "0.2"}, r"budget='0\.2'"),
    ({"budget": True}, "budget=True"),
    ({"budget": None}, "budget=None"),
    ({"budget": np.nan}, "budget=nan"),
    ({"alphas": []}, r"alphas=\[\] is empty"),
    ({"alphas": np.array([])}, r"alphas=array\(\[\], dtype=float64\) is empty"),
    ({"alphas": 0}, "alphas=0 must be the number of values"),
    ({"alphas": -2}, "alphas=-2 must be the number of values"),
    ({"alphas": 2.0}, r"alphas=2\.0 must be the number of values"),
    ({"alphas": True}, "alphas=True must be the number of values"),
    ({"alphas": np.bool_(True)}, "alphas=True must be the number of values"),
    ({"alphas": None}, "alphas=None must be the number of values"),
    ({"alphas": "0.1"}, r"alphas='0\.1' must be the number of values"),
    ({"alphas": {0.1: 1}}, r"alphas=\{0\.1: 1\} must be the number of values"),
    ({"alphas": [0.1, -0.1]}, r"alphas has -0\.1"),
    ({"alphas": [0.1, 0]}, "alphas has 0;"),
    ({"alphas": [np.float64("nan")]}, "alphas has nan"),
    ({"alphas": [np.inf]}, "alphas has inf"),
    ({"alphas": ["0.1"]}, r"alphas has '0\.1'"),
    ({"alphas": [[0.1, 1.0]]}, r"alphas has \[0\.1, 1\.0\]"),
    ({"policies": []}, r"policies=\[\] must be 'auto' or a list with at least one"),
    ({"policies": "margin"}, "policies='margin' must be 'auto' or a list"),
    ({"policies": None}, "policies=None must be 'auto' or a list"),
    ({"policies": {"margin"}}, "policies={'margin'} must be 'auto' or a list"),
    ({"policies": iter(["margin"])}, "policies=<list_iterator.*must be 'auto' or a list"),
    ({"policies": ["doubt"]}, r"policies has 'doubt', which is not known; use \['uncertainty'"),
    ({"policies": [3]}, "policies has 3, which is no team, none of .*'uncertainty'"),
    ({"policies": [None]}, "policies has None"),
    ({"policies": [LogisticRegression]}, "policies has <class .*LogisticRegression.*instance"),
    ({"policies": [UncertaintyTriage]}, "policies has <class .*UncertaintyTriage.*instance"),
    ({"policies": [Lasso()]}, r"policies has Lasso\(\)"),
    ({"policies": [DeferralPolicy(features="y")]}, "policies has DeferralPolicy.*features='y'"),
    ({"policies": [UncertaintyTriage(margin="hard")]}, "margin='hard'"),
    ({"policies": [AdvantageTriage(margin="hard")]}, "soft margins"),
    ({"policies": [FullAutomation(margin="hard")]}, "soft margins"),
    ({"policies": [AdvantageTriage(human_error="no")]}, "human_error='no'"),
    ({"kernels": []}, r"kernels=\[\] must be 'auto' or a list with at least one"),
    ({"kernels": "rbf"}, "kernels='rbf' must be 'auto' or a list"),
    ({"kernels": {"kernel": "rbf"}}, "kernels={'kernel': 'rbf'} must be 'auto' or a list"),
    ({"kernels": ["sigmoid"]}, "kernel='sigmoid' is not known"),
    ({"kernels": [None]}, "kernel=None is not known"),
    ({"kernels": [{"kernel": "rbf", "width": 2}]}, "kernels has .*'width' is not one of"),
    ({"kernels": [{"kernel": "rbf", "gamma": -1.0}]}, r"gamma=-1\.0"),
    ({"kernels": [{"kernel": "poly", "degree": "two"}]}, "degree='two'"),
    ({"kernels": [{"kernel": "poly", "coef0": None}]}, "coef0=None"),
    ({"kernels": ["precomputed", "linear"]}, "kernels=.*cannot be mixed"),
    ({"scoring": "accuracy"}, "scoring='accuracy'.*'error', 'f1'"),
    ({"scoring": 3}, "scoring=3"),
    ({"scoring": lambda y_true, y_pred: np.nan}, "scoring=<function.*gives nan for a fold of 24"),
    ({"cv": None}, "cv=None: candidates are compared on held-out folds"),
    ({"cv": 1}, "cv=1 "),
    ({"cv": 2.0}, r"cv=2\.0 "),
    ({"cv": "5"}, "cv='5' "),
    ({"cv": True}, "cv=True "),
    ({"n_refined": 0}, "n_refined=0 must"),
    ({"n_refined": 1.0}, r"n_refined=1\.0 must"),
    ({"n_refined": True}, "n_refined=True must"),
    ({"n_standard_errors": -0.5}, r"n_standard_errors=-0\.5 must"),
    ({"n_standard_errors": np.float64("nan")}, "n_standard_errors=nan must"),
    ({"n_standard_errors": "1"}, "n_standard_errors='1' must"),
    ({"n_standard_errors": None}, "n_standard_errors=None must"),
    ({"fit_intercept": "yes"}, "fit_intercept='yes' must"),
    ({"fit_intercept": 1}, "fit_intercept=1 must"),
    ({"class_weight": "even"}, "class_weight='even' must"),
    ({"class_weight": {2: 1.0}}, "class_weight has a weight for 2"),
    ({"class_weight": {1: 0.0}}, r"class_weight of 1 must be a positive number, got 0\.0"),
    ({"deferral_cost": -0.1}, r"deferral_cost=-0\.1 must"),
    ({"deferral_cost": "0"}, "deferral_cost='0' must"),
    ({"n_jobs": 0}, "n_jobs=0 must"),
    ({"n_jobs": 1.5}, r"n_jobs=1\.5 must"),
    ({"random_state": "seed"}, "'seed' cannot be used to seed"),
    ({"verbose": -1}, "verbose=-1 must"),
    ({"verbose": "no"}, "verbose='no' must"),
]


@pytest.mark.parametrize(
    ("options", "says"),
    BAD,
    ids=[f"{place} {next(iter(options))}" for place, (options, _) in enumerate(BAD)],
)
def test_parameters_of_the_wrong_kind_or_size(options, says):
    clf = tuned(**options)
    with pytest.raises(ValueError, match=says):
        clf.fit(X, Y, human_labels=HUMAN)
    with pytest.raises(NotFittedError):
        clf.predict(X)


def test_a_classifier_that_cannot_rank_is_refused():
    class NoScores(RidgeClassifier):
        decision_function = property()

    with pytest.raises(ValueError, match="neither decision_function nor predict_proba"):
        tuned(policies=[NoScores()]).fit(X, Y)


@pytest.mark.parametrize(
    ("human", "says"),
    [
        ({"human_loss": LOSS}, "scoring needs the human's answers, but human_loss was given"),
        ({"human_scores": SCORES}, "but human_scores was given: give human_labels"),
    ],
)
def test_metrics_need_answers(human, says):
    with pytest.raises(ValueError, match=says):
        tuned(scoring="f1").fit(X, Y, **human)


@pytest.mark.filterwarnings("ignore:.*no answer was given for")
def test_metrics_need_an_answer_to_every_case():
    some = np.column_stack([HUMAN, HUMAN]).astype(float)
    some[2] = np.nan
    some[3:9, 0] = np.nan
    with pytest.raises(ValueError, match="answer to every case, but 1 have none"):
        tuned(scoring="error").fit(X, Y, human_labels=some)
    with pytest.raises(ValueError, match="answer to every case, but 7 have none"):
        tuned(scoring="error").fit(X, Y, human_labels=some[:, 0])


@pytest.mark.parametrize(
    ("human", "says"),
    [
        ({"human_loss": LOSS, "human_labels": HUMAN}, "human_loss and human_labels were given"),
        ({"human_labels": lambda rows: rows}, "human_labels is a function"),
        ({"human_labels": HUMAN[:9]}, "human_labels has 9 rows, but y has 72"),
        (
            {"human_labels": np.where(HUMAN > 0, "a", "b")},
            "holds 'b' at row 0, which is neither of the two classes -1, 1",
        ),
        ({"human_loss": -LOSS}, "human_loss must be finite and not negative"),
        ({"human_loss": np.ones((N, 2))}, r"one number per sample, got the shape \(72, 2\)"),
    ],
)
def test_humans_that_are_none(human, says):
    with pytest.raises(ValueError, match=says):
        tuned().fit(X, Y, **human)


@pytest.mark.parametrize(
    ("y", "says"),
    [
        (np.ones(N), "y has 1 class"),
        (np.linspace(0, 1, N), "Unknown label type"),
        (Y[:9], "inconsistent numbers of samples"),
    ],
)
def test_labels_that_are_none(y, says):
    with pytest.raises(ValueError, match=says):
        tuned().fit(X, y)


@pytest.mark.parametrize(
    "ask",
    [
        lambda clf: clf.predict(X),
        lambda clf: clf.decision_function(X),
        lambda clf: clf.deferral_score(X),
        lambda clf: clf.defer(X),
        lambda clf: clf.defer_top(X),
        lambda clf: clf.predict_assisted(X, HUMAN),
        lambda clf: clf.score_assisted(X, Y, HUMAN),
        lambda clf: clf.score(X, Y),
        lambda clf: clf.deferral_rate_,
        lambda clf: clf.deferral_threshold_,
    ],
)
def test_nothing_is_known_before_the_fit(ask):
    with pytest.raises(NotFittedError, match="AssistedSVCCV instance is not fitted"):
        ask(AssistedSVCCV())
    assert not hasattr(AssistedSVCCV(), "deferral_rate_")


def test_a_fit_that_fails_leaves_nothing_to_ask():
    def fails(y_true, y_pred):
        raise ZeroDivisionError

    clf = tuned(scoring=fails)
    with pytest.raises(ZeroDivisionError):
        clf.fit(X, Y)
    with pytest.raises(NotFittedError):
        clf.predict(X)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda clf: clf.predict(X[:, :2]), "2 features, but AssistedSVCCV is expecting 3"),
        (lambda clf: clf.defer(np.full((1, 3), np.nan)), "NaN"),
        (lambda clf: clf.defer_top(X, 1.5), r"budget=1\.5"),
        (lambda clf: clf.defer_top(X, N + 1), "budget=73"),
        (lambda clf: clf.predict_assisted(X, None), "human_labels is None"),
        (lambda clf: clf.predict_assisted(X, HUMAN[:3]), "human_labels has 3 rows"),
        (lambda clf: clf.predict_assisted(X, HUMAN, batch="no"), "batch='no'"),
        (lambda clf: clf.score_assisted(X, HUMAN * 3, HUMAN), "y holds"),
    ],
)
def test_questions_that_make_no_sense(call, says):
    clf = tuned(policies=["uncertainty"], alphas=[0.1]).fit(X, Y, human_labels=HUMAN)
    with pytest.raises(ValueError, match=says):
        call(clf)


def test_answers_in_another_order_than_the_cases():
    frame = pd.DataFrame(X, columns=["a", "b", "c"], index=[f"case {i}" for i in range(N)])
    answers = pd.Series(HUMAN, index=frame.index[::-1])
    with pytest.warns(UserWarning, match="human_labels has the index of X in another order"):
        tuned(alphas=[0.1]).fit(frame, Y, human_labels=answers)


def test_frames_are_taken_and_names_are_checked():
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    clf = tuned(alphas=[0.1]).fit(frame, pd.Series(Y), human_labels=pd.Series(HUMAN))
    assert clf.feature_names_in_.tolist() == ["a", "b", "c"]
    other = tuned(alphas=[0.1]).fit(X, Y, human_labels=HUMAN)
    np.testing.assert_array_equal(clf.defer(frame), other.defer(X))
    with pytest.raises(ValueError, match="feature names should match"):
        clf.defer(frame[["b", "a", "c"]])


def test_a_hard_margin_is_for_teams_that_fit_their_own_machines():
    apart = X[:, 0] > 0
    shifted = X + np.where(apart, 0.5, -0.5)[:, None] * [1, 0, 0]
    team = AssistedSVC(margin="hard", submodularity_ratio=0.5)
    with pytest.warns(UserWarning, match="no sample was deferred"):
        clf = tuned(policies=[team], alphas=[0.1]).fit(shifted, apart, human_loss=np.full(N, 30.0))
    assert clf.best_estimator_.margin == "hard"
    assert clf.score(shifted, apart) == 1.0
