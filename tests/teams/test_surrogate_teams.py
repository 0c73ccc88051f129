"""The field's methods as estimators: conventions, thresholds, storage, searches and degenerate samples."""

import copy
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn
from hypothesis import given, settings
from hypothesis import strategies as st
from joblib import parallel_config
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks
from threadpoolctl import threadpool_limits

import deferlearn
from conventions import expected_failures
from deferlearn import AssistedSVC, AssistedSVCCV, datasets, load, save
from deferlearn.metrics import make_team_scorer
from deferlearn.teams import (
    CompareConfidence,
    CrossEntropySurrogate,
    DifferentiableTriage,
    OneVsAllSurrogate,
    RealizableSurrogate,
    make_assisted_pipeline,
)
from deferlearn.teams.context import FoldContext, scores_by_fitting
from deferlearn.teams.folds import random_folds
from deferlearn.teams.stored_types import TRUSTED

X, Y = datasets.make_linear(80, random_state=3)
RNG = np.random.RandomState(0)
LABELS = np.where(RNG.rand(80) < 0.3, -Y, Y)
EXPERT = np.where(X[:, 0] > 0, Y, -Y)
NEW, NEW_Y = datasets.make_linear(60, random_state=9)

TEAMS = {
    "one_vs_all": OneVsAllSurrogate(random_state=0),
    "cross_entropy": CrossEntropySurrogate(random_state=0),
    "realizable": RealizableSurrogate(random_state=0),
    "compare": CompareConfidence(random_state=0),
    "triage": DifferentiableTriage(random_state=0),
}
SURROGATES = ("one_vs_all", "cross_entropy", "realizable")
GAINS = (*SURROGATES, "compare")
WITH_ERRORS = ("one_vs_all", "cross_entropy", "compare")


def fitted(name, X=X, y=Y, human=None, **options):
    human = {"human_labels": LABELS} if human is None else human
    return clone(TEAMS[name]).set_params(**options).fit(X, y, **human)


@parametrize_with_checks(
    [
        OneVsAllSurrogate(),
        CrossEntropySurrogate(cv=None, machine_weight=0.5),
        RealizableSurrogate(cv=None),
        RealizableSurrogate(cv=None, joint_weight=0.5),
        CompareConfidence(),
        CompareConfidence(machine=LogisticRegression(), class_weight="balanced", cv=None),
        DifferentiableTriage(),
    ],
    expected_failed_checks=expected_failures,
)
def test_scikit_learns_conventions(estimator, check):
    check(estimator)


# -- who is deferred --------------------------------------------------------------------------


@pytest.mark.parametrize("name", TEAMS)
def test_the_region_that_the_expert_knows_is_found(name):
    """The machine knows the label where the second feature is far from 0, the human where the first is."""
    rng = np.random.RandomState(0)
    points = rng.normal(size=(900, 2))
    truth = np.where(points[:, 1] + 0.7 * rng.normal(size=900) > 0, "sick", "well")
    other = np.where(truth == "sick", "well", "sick")
    answers = np.where((points[:, 0] > 0) | (rng.rand(900) < 0.3), truth, other)
    train, test = slice(400), slice(400, None)
    human = {"human_labels": answers[train]}
    clf = fitted(name, points[train], truth[train], human, budget=0.25)
    cases, asked = points[test], clf.defer(points[test])
    assert 0.15 < asked.mean() < 0.35
    assert (cases[asked, 0] > 0).mean() > 0.85
    alone = clf.score(cases, truth[test])
    assert clf.score_assisted(cases, truth[test], answers[test]) > alone + 0.05


@pytest.mark.parametrize("name", TEAMS)
@pytest.mark.parametrize(("budget", "rate"), [(0.29, 0.29), (20, 0.25), (np.int64(20), 0.25)])
def test_budget_is_a_fraction_or_a_number(name, budget, rate):
    full = {"use_full_budget": True} if name in GAINS else {}
    clf = fitted(name, budget=budget, **full)
    assert clf.deferral_rate_ == rate
    assert clf.defer_top(NEW).sum() == int(rate * 60 + 1e-9)
    assert clf.defer_top(NEW, 5).sum() == 5
    assert clf.defer_top(NEW, 0.5).sum() == 30


@pytest.mark.parametrize("name", TEAMS)
def test_the_answers_to_a_batch(name):
    clf = fitted(name, human={"human_labels": EXPERT}, budget=0.3)
    deferred = clf.defer_top(NEW)
    expected = np.where(deferred, -clf.predict(NEW), clf.predict(NEW))
    assert deferred.any()
    answers = clf.predict_assisted(NEW, -clf.predict(NEW), batch=True)
    np.testing.assert_array_equal(answers, expected)
    with pytest.raises(ValueError, match="machine_scores"):
        clf.defer_top(NEW, machine_scores=np.zeros(60))


@pytest.mark.parametrize("name", TEAMS)
def test_budgets_at_the_ends(name):
    full = {"use_full_budget": True} if name in GAINS else {}
    assert not fitted(name, budget=0.0).defer(NEW).any()
    assert fitted(name, budget=0).deferral_threshold_ == np.inf
    assert fitted(name, human={}, budget=1.0, **full).defer(NEW).all()


@pytest.mark.parametrize("name", TEAMS)
def test_defer_keeps_the_expected_rate(name):
    """Over many training sets, with a weak penalty."""
    full = {"use_full_budget": True} if name in GAINS else {}
    cases, _ = datasets.make_linear(1000, random_state=100)
    rates = []
    for seed in range(20):
        Z, y = datasets.make_linear(60, random_state=seed)
        expert = np.where(Z[:, 0] > 0, y, -y)
        clf = fitted(name, Z, y, {"human_labels": expert}, budget=0.25, alpha=1e-3, **full)
        rates.append(clf.defer(cases).mean())
    # Four standard errors; each rate varies with its training set.
    assert abs(np.mean(rates) - 0.25) < 4 * np.std(rates, ddof=1) / np.sqrt(20)


@pytest.mark.parametrize("name", GAINS)
def test_a_human_who_does_not_help_is_not_asked(name):
    human = {"human_labels": -Y}
    clf = fitted(name, human=human)
    assert clf.deferral_threshold_ == 0.0
    assert clf.deferral_rate_ == 0.0
    assert not clf.defer(NEW).any()
    assert not clf.defer_top(NEW, 0.5).any()
    full = fitted(name, human=human, use_full_budget=True)
    assert full.deferral_rate_ == 0.2
    assert full.defer_top(NEW).sum() == 12


@pytest.mark.parametrize("name", GAINS)
def test_the_cost_of_human_time_lowers_the_scores(name):
    free, costly = fitted(name), fitted(name, deferral_cost=0.1)
    np.testing.assert_allclose(costly.deferral_score(NEW), free.deferral_score(NEW) - 0.1)
    assert costly.defer_top(NEW, 1.0).sum() < free.defer_top(NEW, 1.0).sum()
    assert not fitted(name, deferral_cost=2.0).defer(NEW).any()


@pytest.mark.parametrize("name", WITH_ERRORS)
def test_scores_are_differences_of_expected_errors(name):
    for options in ({}, {"deferral_cost": 0.05, "class_weight": {-1: 1.0, 1: 4.0}}):
        clf = fitted(name, **options)
        machine, human = clf.expected_errors(NEW)
        np.testing.assert_allclose(clf.deferral_score(NEW), machine - human, atol=1e-12)
    for name in ("realizable", "triage"):
        assert not hasattr(TEAMS[name], "expected_errors")


@pytest.mark.parametrize("name", WITH_ERRORS)
def test_expected_errors_are_those_that_happen(name):
    Z, y = datasets.make_linear(3000, random_state=5)
    answers = np.where(np.random.RandomState(1).rand(3000) < 0.2, -y, y)
    costs = {-1: 1.0, 1: 3.0}
    for options in ({}, {"class_weight": costs}):
        clf = fitted(name, Z, y, {"human_labels": answers}, cv=None, **options)
        weights = np.where(y == 1, 3.0, 1.0) if options else np.ones(3000)
        machine, human = clf.expected_errors(Z)
        assert np.mean(weights * (answers != y)) == pytest.approx(human.mean(), rel=0.1)
        assert np.mean(weights * (clf.predict(Z) != y)) == pytest.approx(machine.mean(), rel=0.2)


@pytest.mark.parametrize("name", TEAMS)
def test_class_weights_move_the_machine(name):
    plain, wary = (fitted(name, class_weight=w) for w in (None, {-1: 1.0, 1: 10.0}))
    assert (wary.predict(NEW) == 1).sum() > (plain.predict(NEW) == 1).sum()
    even = fitted(name, class_weight={-1: 1.0, 1: 1.0})
    np.testing.assert_allclose(even.deferral_score(NEW), plain.deferral_score(NEW), atol=1e-9)


@pytest.mark.parametrize("name", TEAMS)
def test_the_human_by_losses_scores_and_repeated_readers(name):
    plain = fitted(name, cv=None)
    right = LABELS == Y
    for human in (
        {"human_loss": np.where(right, 0.3, 1.4)},
        {"human_scores": 0.5 * LABELS},
        {"human_labels": np.column_stack([LABELS, LABELS])},
    ):
        other = fitted(name, human=human, cv=None)
        np.testing.assert_allclose(other.deferral_score(NEW), plain.deferral_score(NEW), atol=1e-9)


@pytest.mark.parametrize("name", TEAMS)
def test_unread_samples_train_the_machine(name):
    answers = LABELS.astype(object)
    answers[:30] = None
    with pytest.warns(UserWarning, match="30 of 80 cases have no answer and are left out"):
        clf = fitted(name, human={"human_labels": answers}, cv=None)
    flipped = Y.copy()
    flipped[:30] = -flipped[:30]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        other = fitted(name, y=flipped, human={"human_labels": answers}, cv=None)
    assert not np.allclose(clf.decision_function(NEW), other.decision_function(NEW))


@pytest.fixture
def one_thread():
    """Threads of tiny trees wait for each other, the more the busier the processors are."""
    with threadpool_limits(1):
        yield


# -- any machine ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "machine",
    [
        HistGradientBoostingClassifier(max_iter=10, min_samples_leaf=5),
        RandomForestClassifier(10),
        CalibratedClassifierCV(RandomForestClassifier(5), cv=2),
        KNeighborsClassifier(3),
    ],
    ids=lambda machine: type(machine).__name__,
)
@pytest.mark.usefixtures("one_thread")
def test_compare_confidence_with_any_machine(machine, tmp_path):
    readers = np.column_stack([LABELS, np.where(RNG.rand(80) < 0.2, -Y, Y)])
    clf = fitted("compare", human={"human_labels": readers}, machine=machine, cv=3)
    again = fitted("compare", human={"human_labels": readers}, machine=machine, cv=3)
    np.testing.assert_array_equal(clf.deferral_score(NEW), again.deferral_score(NEW))
    assert type(clf.machine_) is type(clf.human_model_) is type(machine)
    machine, human = clf.expected_errors(NEW)
    assert ((machine >= 0) & (machine <= 0.5) & (human >= 0) & (human <= 1)).all()
    expected = clf.classes_[clf.machine_.predict_proba(NEW).argmax(axis=1)]
    np.testing.assert_array_equal(clf.predict(NEW), expected)
    save(clf, tmp_path / "team.skops")
    stored = load(tmp_path / "team.skops")
    np.testing.assert_array_equal(stored.deferral_score(NEW), clf.deferral_score(NEW))


def test_machine_and_human_may_have_different_models():
    clf = fitted("compare", human_model=RandomForestClassifier(10), cv=None)
    assert type(clf.human_model_) is RandomForestClassifier
    np.testing.assert_array_equal(
        clf.decision_function(NEW), fitted("compare").decision_function(NEW)
    )
    always = fitted("compare", human={}, machine=LogisticRegression())
    assert type(always.human_model_) is DummyClassifier
    assert (always.expected_errors(NEW)[1] == 0).all()


@pytest.mark.parametrize("parameter", ["machine", "human_model"])
@pytest.mark.parametrize(
    ("model", "options", "said"),
    [
        (LogisticRegression, {}, "is a class"),
        (StandardScaler(), {}, "must be a scikit-learn classifier"),
        ("svm", {}, "must be a scikit-learn classifier"),
        (RidgeClassifier(), {}, "no predict_proba"),
        (KNeighborsClassifier(), {"class_weight": "balanced"}, "takes no sample_weight"),
    ],
)
def test_models_that_cannot_be_compared_are_refused(parameter, model, options, said):
    with pytest.raises(ValueError, match=said):
        fitted("compare", **{parameter: model}, **options)


# -- the same conventions as the other teams --------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {"alpha": 0.0}, {"alpha": "1"}, {"class_weight": {5: 1.0}}, {"class_weight": "even"},
        {"budget": 1.5}, {"budget": 81}, {"budget": "all"}, {"budget": True}, {"cv": 1}, {"cv": "x"},
        {"n_jobs": 0}, {"deferral_cost": -1.0},
    ],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize("name", TEAMS)
def test_bad_parameters_are_refused_as_by_the_assisted_machine(name, options):
    with pytest.raises(ValueError, match=r".") as expected:
        AssistedSVC(**options).fit(X, Y)
    with pytest.raises(ValueError, match=r".") as said:
        fitted(name, **options)
    assert str(said.value) == str(expected.value)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("cross_entropy", {"machine_weight": 1.5}),
        ("cross_entropy", {"machine_weight": "1"}),
        ("realizable", {"joint_weight": -0.1}),
        ("one_vs_all", {"use_full_budget": "no"}),
        ("triage", {"max_iter": 0}),
        ("triage", {"max_iter": 2.5}),
    ],
)
def test_bad_parameters_are_named(name, options):
    ((parameter, value),) = options.items()
    with pytest.raises(ValueError, match=f"{parameter}={value!r}"):
        fitted(name, **options)


@pytest.mark.parametrize("name", TEAMS)
def test_any_labels_and_frames(name):
    frame = pd.DataFrame(X, columns=["a", "b"])
    human = {"human_labels": np.where(LABELS == 1, "yes", "no")}
    clf = fitted(name, frame, pd.Series(np.where(Y == 1, "yes", "no")), human)
    assert clf.feature_names_in_.tolist() == ["a", "b"]
    assert clf.classes_.tolist() == ["no", "yes"]
    cases = pd.DataFrame(NEW, columns=["a", "b"])
    np.testing.assert_array_equal(clf.defer(cases), fitted(name).defer(NEW))
    said = clf.predict_assisted(cases, lambda rows: ["yes"] * len(rows))
    np.testing.assert_array_equal(said, np.where(clf.defer(cases), "yes", clf.predict(cases)))


@pytest.mark.parametrize("name", TEAMS)
def test_a_human_who_is_given_as_y_brings_a_warning(name):
    with pytest.warns(UserWarning, match="very reader"):
        fitted(name, human={"human_labels": Y})


@pytest.mark.parametrize("name", TEAMS)
def test_n_jobs_changes_nothing(name):
    one = fitted(name)
    with parallel_config(backend="threading"):  # starts faster than processes
        two = fitted(name, n_jobs=2)
    assert one.deferral_threshold_ == two.deferral_threshold_


@pytest.mark.parametrize("name", TEAMS)
@pytest.mark.parametrize("copied", [copy.deepcopy, lambda clf: pickle.loads(pickle.dumps(clf))])
def test_copies(name, copied):
    clf = fitted(name)
    other = copied(clf)
    np.testing.assert_array_equal(other.deferral_score(NEW), clf.deferral_score(NEW))
    np.testing.assert_array_equal(other.defer(NEW), clf.defer(NEW))


@pytest.mark.parametrize("name", TEAMS)
def test_stored_and_loaded(name, tmp_path):
    clf = fitted(name)
    assert f"{type(clf).__module__}.{type(clf).__name__}" in TRUSTED
    save(clf, tmp_path / "team.skops")
    other = load(tmp_path / "team.skops")
    np.testing.assert_array_equal(other.deferral_score(NEW), clf.deferral_score(NEW))
    np.testing.assert_array_equal(other.defer(NEW), clf.defer(NEW))
    np.testing.assert_array_equal(other.predict(NEW), clf.predict(NEW))


@pytest.mark.parametrize("name", TEAMS)
def test_names_of_the_front_door(name):
    kind = type(TEAMS[name])
    assert getattr(deferlearn, kind.__name__) is kind


def test_a_failed_fit_leaves_nothing():
    clf = fitted("one_vs_all")
    with pytest.raises(ValueError, match="budget"):
        clf.set_params(budget=2.0).fit(X, Y, human_labels=LABELS)
    with pytest.raises(sklearn.exceptions.NotFittedError):
        clf.defer(NEW)
    for attribute in ("coef_", "intercept_"):
        with pytest.raises(sklearn.exceptions.NotFittedError):
            getattr(clf, attribute)


# -- among other tools ------------------------------------------------------------------------


def folds_of(clf, n_folds=4):
    samples = clf.read_samples(X, Y, {"human_labels": LABELS})
    return FoldContext(samples, random_folds(n_folds, X, Y, 0), 7)


@pytest.mark.parametrize("name", TEAMS)
def test_held_out_scores_are_those_of_fits_without_each_fold(name):
    full = {"use_full_budget": True} if name in GAINS else {}
    clf = clone(TEAMS[name]).set_params(cv=None, **full)
    context = folds_of(clf)
    found, plain = clf.held_out_scores(context), scores_by_fitting(clf, context)
    np.testing.assert_array_equal(found.said, plain.said)
    assert found.rate == pytest.approx(plain.rate)
    for fold in context.folds:
        np.testing.assert_array_equal(np.argsort(found.score[fold]), np.argsort(plain.score[fold]))
    before = len(context._made)
    clf.set_params(budget=0.4).held_out_scores(context)
    # What does not depend on the budget is made once; the names of what was asked for are kept aside.
    assert len(context._made) == before + (0 if name in GAINS else 1)


@pytest.mark.parametrize("name", GAINS)
def test_held_out_samples_without_a_gain_are_never_deferred(name):
    clf = clone(TEAMS[name])
    context = folds_of(clf)
    scores = clf.held_out_scores(context).score
    full = clf.set_params(use_full_budget=True).held_out_scores(context).score
    np.testing.assert_array_equal(scores, np.where(full > 0, full, -np.inf))
    assert np.isinf(scores).any()


@pytest.mark.parametrize("name", TEAMS)
def test_a_search_can_choose_it(name):
    search = AssistedSVCCV(
        policies=["uncertainty", TEAMS[name]], alphas=[0.01, 0.1], cv=3, random_state=0
    )
    search.fit(X, Y, human_labels=EXPERT)
    tried = [str(policy) for policy in search.cv_results_["param_policy"]]
    assert str(TEAMS[name]) in tried
    # A fit on the same folds with the search's context is a fit.
    alone = AssistedSVCCV(policies=[TEAMS[name]], alphas=[0.01], cv=3, random_state=0)
    alone.fit(X, Y, human_labels=EXPERT)
    assert alone.score_assisted(X, Y, EXPERT) > alone.score(X, Y)


def test_a_search_with_sparse_samples_says_what_it_cannot_try():
    search = AssistedSVCCV(policies=[TEAMS["compare"]], alphas=[0.01], cv=3, random_state=0)
    with pytest.raises(TypeError, match="CompareConfidence standardises features"):
        search.fit(sp.csr_array(X), Y, human_labels=EXPERT)
    with pytest.raises(TypeError, match=r"[Ss]parse"):
        fitted("compare", sp.csr_array(X))


@pytest.mark.parametrize("name", TEAMS)
def test_pipelines_and_routing(name):
    team = make_assisted_pipeline(StandardScaler(), clone(TEAMS[name]))
    with sklearn.config_context(enable_metadata_routing=True):
        grid = {f"{team.steps[-1][0]}__alpha": [0.01, 0.1]}
        search = GridSearchCV(team, grid, cv=KFold(3), scoring=make_team_scorer("error"))
        search.fit(X, Y, human_labels=LABELS)
        by_hand = clone(team).set_params(**search.best_params_).fit(X, Y, human_labels=LABELS)
    np.testing.assert_array_equal(search.best_estimator_.defer(NEW), by_hand.defer(NEW))


# -- degenerate samples -----------------------------------------------------------------------


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    n=st.integers(2, 12),
    distinct=st.integers(1, 4),
    kind=st.sampled_from(["some", "always", "never", "gaps"]),
)
def test_degenerate_samples_never_break_the_team(seed, n, distinct, kind):
    """Few samples, repeated rows, constant columns, folds with a single class: answers all the same."""
    rng = np.random.RandomState(seed)
    Z = np.column_stack([rng.normal(size=(distinct, 2))[rng.randint(distinct, size=n)], np.ones(n)])
    y = np.r_[0, 1, rng.randint(2, size=n - 2)]
    answers = {
        "some": rng.randint(2, size=(n, 2)).astype(float),
        "always": y[:, None].astype(float),
        "never": 1.0 - y[:, None],
        "gaps": np.where(rng.rand(n, 3) < 0.7, np.nan, rng.randint(2, size=(n, 3))),
    }[kind]
    answers[0, 0] = 1 if kind == "gaps" else answers[0, 0]
    for team in (*TEAMS.values(), CompareConfidence(machine=RandomForestClassifier(3))):
        clf = clone(team)
        clf.set_params(budget=float(rng.uniform(0, 1)), cv=int(rng.randint(2, 6)), random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            clf.fit(Z, y, human_labels=answers)
        said = rng.randint(2, size=n)
        deferred = clf.defer(Z)
        np.testing.assert_array_equal(deferred, clf.defer(Z))
        expected = np.where(deferred, said, clf.predict(Z))
        np.testing.assert_array_equal(clf.predict_assisted(Z, said), expected)
        assert np.isfinite(clf.deferral_score(Z)).all()
        assert 0.0 <= clf.deferral_rate_ <= 1.0
        assert clf.defer_top(Z, budget=2).sum() <= 2


@pytest.mark.parametrize("name", TEAMS)
def test_two_samples_and_a_class_of_one(name):
    for Z, y in (([[0.0], [1.0]], [0, 1]), (np.arange(8.0)[:, None], [0] * 7 + [1])):
        clf = fitted(name, Z, y, {}, cv=5)
        assert clf.predict(Z).tolist() == y or name in ("triage", "realizable", "cross_entropy")
        assert clf.defer(Z).shape == (len(y),)


@pytest.mark.parametrize("name", TEAMS)
def test_a_constant_column_and_duplicated_rows_change_nothing(name):
    plain = fitted(name, cv=None)
    wide = fitted(name, np.column_stack([X, np.full(80, 0.1)]), cv=None)
    cases = np.column_stack([NEW, np.full(60, 0.1)])
    np.testing.assert_allclose(wide.deferral_score(cases), plain.deferral_score(NEW), atol=1e-4)
    if name != "triage":  # its samples are chosen one by one
        twice = fitted(
            name, np.vstack([X, X]), np.tile(Y, 2), {"human_labels": np.tile(LABELS, 2)}, cv=None
        )
        np.testing.assert_allclose(twice.deferral_score(NEW), plain.deferral_score(NEW), atol=1e-4)
