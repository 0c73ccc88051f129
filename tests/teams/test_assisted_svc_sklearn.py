"""`AssistedSVC` among scikit-learn's tools, with metadata routing on and off."""

import warnings

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score, cross_validate
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from conventions import WEIGHTS
from deferlearn import AssistedSVC
from deferlearn.datasets import make_linear
from deferlearn.metrics import make_team_scorer
from deferlearn.teams import make_assisted_pipeline

X, Y = make_linear(80, random_state=0)
HUMAN = np.where(np.random.RandomState(0).rand(80) < 0.2, -Y, Y)
READERS = np.column_stack([HUMAN, np.where(np.arange(80) % 7, Y, -Y)])


def svc(**options):
    return AssistedSVC(**{"cv": None, "random_state": 0, "submodularity_ratio": 0.5, **options})


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


# Of a Gram matrix it cuts off the digits after the point, which makes it truly indefinite.
CUTS = {"check_estimators_dtypes": "a Gram matrix rounded to whole numbers is none"}


def run_checks(options):
    expected = WEIGHTS | (CUTS if options.get("kernel") == "precomputed" else {})
    with warnings.catch_warnings():
        # What the checks' tiny data bring about (whole classes deferred) has tests of its own.
        warnings.simplefilter("ignore", UserWarning)
        check_estimator(svc(**options), on_skip=None, expected_failed_checks=expected)


@pytest.mark.parametrize(
    "options",
    [{}, {"kernel": "rbf", "selection": "stochastic"}, {"kernel": "precomputed"}],
    ids=str,
)
def test_check_estimator(options):
    run_checks(options)


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        {"submodularity_ratio": "sweep", "cv": 5},  # the default
        {"policy": "mlp", "cv": 2},
        {"kernel": "precomputed", "submodularity_ratio": "sweep", "cv": 2},
        {"budget": 1.0, "selection": "unconstrained", "delta": 0.5, "cv": 2},
        {"kernel": "poly", "degree": 2, "fit_intercept": False, "class_weight": "balanced"},
    ],
    ids=str,
)
def test_check_estimator_of_the_costly_ones(options):
    run_checks(options)


def test_clone_keeps_parameters_and_forgets_the_fit():
    clf = svc(budget=5).fit(X, Y)
    other = clone(clf)
    assert other.get_params() == clf.get_params()
    assert not hasattr(other, "deferred_")


def test_cross_validation_cuts_the_human_by_rows_without_routing():
    cv = KFold(4)
    done = cross_validate(
        svc(), X, Y, cv=cv, params={"human_labels": READERS}, return_estimator=True
    )
    for (train, test), clf, score in zip(
        cv.split(X), done["estimator"], done["test_score"], strict=True
    ):
        by_hand = svc().fit(X[train], Y[train], human_labels=READERS[train])
        np.testing.assert_array_equal(clf.deferred_indices_, by_hand.deferred_indices_)
        np.testing.assert_array_equal(clf.human_loss_, by_hand.human_loss_)
        assert score == by_hand.score(X[test], Y[test])


def test_search_over_a_pipeline_without_routing():
    pipe = Pipeline([("scale", StandardScaler()), ("svc", svc())])
    search = GridSearchCV(pipe, {"svc__budget": [0.1, 0.2]}, cv=KFold(2))
    search.fit(X, Y, svc__human_labels=HUMAN)
    by_hand = svc(budget=search.best_params_["svc__budget"])
    by_hand.fit(StandardScaler().fit_transform(X), Y, human_labels=HUMAN)
    np.testing.assert_array_equal(
        search.best_estimator_[-1].deferred_indices_, by_hand.deferred_indices_
    )


@pytest.mark.parametrize("name", ["human_labels", "human_loss", "human_scores"])
@pytest.mark.usefixtures("routing")
def test_fit_requests_the_human_by_itself(name):
    human = {
        name: {"human_labels": HUMAN, "human_loss": HUMAN + 1.0, "human_scores": HUMAN * 0.5}[name]
    }
    pipe = Pipeline([("scale", StandardScaler()), ("svc", svc())]).fit(X, Y, **human)
    by_hand = svc().fit(StandardScaler().fit_transform(X), Y, **human)
    np.testing.assert_array_equal(pipe[-1].human_loss_, by_hand.human_loss_)
    np.testing.assert_array_equal(pipe[-1].deferred_indices_, by_hand.deferred_indices_)
    scores = cross_val_score(svc(), X, Y, cv=KFold(3), params=human)
    for (train, test), score in zip(KFold(3).split(X), scores, strict=True):
        part = {key: value[train] for key, value in human.items()}
        assert score == svc().fit(X[train], Y[train], **part).score(X[test], Y[test])


@pytest.mark.parametrize("batch", [False, True])
@pytest.mark.usefixtures("routing")
def test_search_for_the_best_team_equals_a_loop(batch):
    """A plain `Pipeline`, routed answers, and the team scorer, against everything done by hand."""
    grid = {"svc__alpha": [0.1, 1.0], "svc__budget": [0.1, 0.3]}
    pipe = Pipeline([("scale", StandardScaler()), ("svc", svc())])
    cv = KFold(3)
    search = GridSearchCV(pipe, grid, cv=cv, scoring=make_team_scorer("error", batch=batch))
    search.fit(X, Y, human_labels=HUMAN)
    expected = []
    for parameters in search.cv_results_["params"]:
        errors = []
        for train, test in cv.split(X):
            scaler = StandardScaler().fit(X[train])
            clf = svc(alpha=parameters["svc__alpha"], budget=parameters["svc__budget"])
            clf.fit(scaler.transform(X[train]), Y[train], human_labels=HUMAN[train])
            Z = scaler.transform(X[test])
            deferred = clf.defer_top(Z) if batch else clf.defer(Z)
            team = np.where(deferred, HUMAN[test], clf.predict(Z))
            errors.append(np.mean(team != Y[test]))
        expected.append(-np.mean(errors))
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], expected, atol=1e-12)
    assert len(set(expected)) > 1


@pytest.mark.usefixtures("routing")
def test_search_returns_a_pipeline_that_defers():
    pipe = make_assisted_pipeline(StandardScaler(), svc())
    search = GridSearchCV(
        pipe, {"assistedsvc__budget": [0.1, 0.2]}, cv=KFold(2), scoring=make_team_scorer("error")
    ).fit(X, Y, human_labels=HUMAN)
    assert search.best_estimator_.defer(X).shape == (80,)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_precomputed_kernels_of_both_precisions(dtype):
    """What is left of the check that is expected to fail."""
    Z = X.astype(dtype)
    # Nobody is deferred: close scores may swap their ranks when they are rounded.
    clf = svc(kernel="precomputed", budget=0).fit(Z @ Z.T, Y)
    decision = svc(budget=0).fit(X, Y).decision_function(X)
    close = 1e-4 if dtype == np.float32 else 1e-9
    np.testing.assert_allclose(clf.decision_function(Z @ Z.T), decision, rtol=close, atol=close)


def test_precomputed_kernels_are_cut_on_both_sides():
    K = X @ X.T
    scores = cross_val_score(svc(kernel="precomputed"), K, Y, cv=KFold(3))
    np.testing.assert_allclose(scores, cross_val_score(svc(), X, Y, cv=KFold(3)))
