"""`AssistedSVCCV` among scikit-learn's tools and deferlearn's own: pipelines, searches, curves, reports."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold, cross_validate
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from conventions import WEIGHTS
from deferlearn import assistance_report
from deferlearn.evaluation import automation_curve
from deferlearn.metrics import make_team_scorer
from deferlearn.teams import AssistedSVCCV, UncertaintyTriage, make_assisted_pipeline
from tuned import HUMAN, NEW, NEW_HUMAN, SCORES, N, X, Y, tuned

QUICK = {"alphas": [0.1, 1.0], "policies": ("uncertainty", "advantage"), "cv": 3}


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


# Of a Gram matrix it cuts off the digits after the point, which makes it truly indefinite.
CUTS = {"check_estimators_dtypes": "a Gram matrix rounded to whole numbers is none"}


def run_checks(**options):
    expected = WEIGHTS | (CUTS if options.get("kernels") == ("precomputed",) else {})
    with warnings.catch_warnings():
        # What the checks' tiny data bring about (whole classes deferred) has tests of its own.
        warnings.simplefilter("ignore", UserWarning)
        clf = AssistedSVCCV(random_state=0, **options)
        check_estimator(clf, on_skip=None, expected_failed_checks=expected)


def test_scikit_learns_conventions():
    run_checks(**{**QUICK, "cv": 2})


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        {},  # the default
        {**QUICK, "kernels": ("linear", "rbf")},
        {**QUICK, "kernels": ("precomputed",)},
        {"alphas": [1.0], "policies": ("margin",), "cv": 2},
    ],
    ids=str,
)
def test_scikit_learns_conventions_of_the_costly_ones(options):
    run_checks(**options)


def test_parameters_are_kept_and_the_fit_forgotten():
    clf = AssistedSVCCV(
        0.3, policies=[UncertaintyTriage(), "margin"], alphas=[1.0], n_standard_errors=2.0
    )
    other = clone(clf)
    assert repr(other) == repr(clf)
    assert other.policies[0] is not clf.policies[0]
    assert set(clf.get_params()) == set(other.get_params())
    other.set_params(budget=7, policies=["automation"], kernels=["rbf"])
    assert (other.budget, other.policies, clf.budget) == (7, ["automation"], 0.3)
    other.fit(X, Y)
    assert other.best_params_["kernel"] == "rbf"
    assert not hasattr(clone(other), "best_estimator_")
    with pytest.raises(ValueError, match="Invalid parameter 'alpha'"):
        clf.set_params(alpha=1.0)


def test_parameters_are_not_changed_by_the_fit():
    clf = tuned(policies=["uncertainty", UncertaintyTriage()], kernels=["linear", {"gamma": 0.5}])
    before = repr(clf.get_params())
    clf.fit(X, Y, human_labels=HUMAN)
    assert repr(clf.get_params()) == before


@pytest.mark.parametrize("routed", [False, True])
def test_pipelines_pass_on_human_and_groups(routed):
    groups = np.arange(N) // 3
    scaled = StandardScaler().fit(X)
    alone = tuned(**QUICK).fit(scaled.transform(X), Y, human_labels=HUMAN, groups=groups)
    name = "" if routed else "assistedsvccv__"
    given = {f"{name}human_labels": HUMAN, f"{name}groups": groups}
    with sklearn.config_context(enable_metadata_routing=routed):
        team = make_assisted_pipeline(StandardScaler(), tuned(**QUICK)).fit(X, Y, **given)
    assert team[-1].cv_results_["mean_test_score"].tolist() == (
        alone.cv_results_["mean_test_score"].tolist()
    )
    new = scaled.transform(NEW)
    np.testing.assert_array_equal(team.defer(NEW), alone.defer(new))
    np.testing.assert_array_equal(team.defer_top(NEW, 5), alone.defer_top(new, 5))
    np.testing.assert_array_equal(team.deferral_score(NEW), alone.deferral_score(new))
    np.testing.assert_array_equal(
        team.predict_assisted(NEW, NEW_HUMAN, batch=True),
        alone.predict_assisted(new, NEW_HUMAN, batch=True),
    )


@pytest.mark.usefixtures("routing")
def test_a_search_over_budgets_equals_a_loop():
    cv = KFold(2)
    pipe = Pipeline([("scale", StandardScaler()), ("team", tuned(**QUICK))])
    grid = {"team__budget": [0.1, 0.3]}
    search = GridSearchCV(pipe, grid, cv=cv, scoring=make_team_scorer("error"))
    search.fit(X, Y, human_labels=HUMAN)
    expected = []
    for budget in grid["team__budget"]:
        errors = []
        for train, test in cv.split(X):
            scaler = StandardScaler().fit(X[train])
            team = tuned(**QUICK, budget=budget)
            team.fit(scaler.transform(X[train]), Y[train], human_labels=HUMAN[train])
            answers = team.predict_assisted(scaler.transform(X[test]), HUMAN[test])
            errors.append(np.mean(answers != Y[test]))
        expected.append(-np.mean(errors))
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], expected, atol=1e-12)


@pytest.mark.usefixtures("routing")
def test_cross_validation_hands_over_scores_and_groups():
    groups = np.arange(N) // 3
    given = {"human_scores": SCORES, "groups": groups}
    cv = KFold(2)
    done = cross_validate(tuned(**QUICK), X, Y, cv=cv, params=given, return_estimator=True)
    for (train, _), clf in zip(cv.split(X), done["estimator"], strict=True):
        own = {name: values[train] for name, values in given.items()}
        alone = tuned(**QUICK).fit(X[train], Y[train], **own)
        np.testing.assert_array_equal(clf.defer(NEW), alone.defer(NEW))
        assert clf.best_score_ == alone.best_score_


def test_automation_curve_equals_a_loop():
    budgets = [0.0, 0.2]
    cv = KFold(2)
    curve = automation_curve(
        tuned(**QUICK), X, Y, human_labels=HUMAN, budgets=budgets, metrics="error", cv=cv
    )
    for i, (train, test) in enumerate(cv.split(X)):
        for j, budget in enumerate(budgets):
            team = tuned(**QUICK, budget=budget)
            team.fit(X[train], Y[train], human_labels=HUMAN[train])
            answers = team.predict_assisted(X[test], HUMAN[test], batch=True)
            assert curve.values["error"][i, j] == np.mean(answers != Y[test])
            assert curve.deferred[i, j] == team.defer_top(X[test]).mean()


def test_assistance_report_measures_the_whole_procedure():
    groups = np.arange(N) // 3
    report = assistance_report(
        tuned(**QUICK), X, Y, HUMAN, budgets=[0.2], cv=2, groups=groups, random_state=0
    )
    assert [row["budget"] for row in report.teams] == [0.0, 0.2, None]
    assert report.settings["n_groups"] == 24
    assert report.pays in ("yes", "no", "unclear")
    machine, team, human = (row["error"] for row in report.teams)
    assert human == pytest.approx(np.mean(HUMAN != Y))
    assert 0 <= team <= 0.5
    assert machine > 0


def test_team_scorers_find_it_inside_a_search():
    grid = GridSearchCV(tuned(**QUICK), {"budget": [0.1, 0.2]}, cv=KFold(2))
    grid.fit(X, Y, human_labels=HUMAN)
    scorer = make_team_scorer("error")
    assert scorer(grid, X, Y, human_labels=HUMAN) == pytest.approx(
        grid.best_estimator_.score_assisted(X, Y, HUMAN) - 1
    )
