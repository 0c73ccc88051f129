"""Metrics of the team, alone and as scorers inside scikit-learn's model selection."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import config_context, metrics
from sklearn.base import clone
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from deferlearn.datasets import make_shifted
from deferlearn.humans import UniformHuman
from deferlearn.metrics import (
    evaluate_team,
    find_member,
    find_metric,
    make_team_scorer,
    team_cost,
    team_error,
    team_f1,
    team_sensitivity,
    team_specificity,
)
from stub_team import StubTeam

X, Y = make_shifted(150, n_features=4, random_state=0)
Y = np.where(Y == 1, "sick", "healthy")
HUMAN = UniformHuman(0.1).labels(Y, random_state=0)
NAMES = ["error", "f1", "sensitivity", "specificity", "cost"]
CV = StratifiedKFold(3)


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.booleans(), st.booleans(), st.booleans()), min_size=1, max_size=30),
    st.sampled_from([(-1, 1), (0, 1), ("a", "b"), ("b", "a")]),
    st.floats(0, 10),
    st.floats(0, 10),
    st.floats(0, 10),
)
def test_metrics_against_scikit_learn(rows, classes, price_fp, price_fn, time):
    truth, answer = (np.array([classes[row[i]] for row in rows]) for i in (0, 1))
    deferred = np.array([row[2] for row in rows])
    negative, positive = classes
    options = {"pos_label": positive, "zero_division": 0}
    assert team_error(truth, answer) == pytest.approx(1 - metrics.accuracy_score(truth, answer))
    matrix = metrics.confusion_matrix(truth, answer, labels=[negative, positive])
    (_, fp), (fn, _) = matrix
    report = metrics.precision_recall_fscore_support(
        truth, answer, labels=[negative, positive], zero_division=0
    )
    assert team_f1(truth, answer, **options) == pytest.approx(report[2][1])
    assert team_sensitivity(truth, answer, **options) == pytest.approx(report[1][1])
    assert team_specificity(truth, answer, **options) == pytest.approx(report[1][0])
    cost = team_cost(
        truth,
        answer,
        deferred,
        false_positive=price_fp,
        false_negative=price_fn,
        deferral_cost=time,
        pos_label=positive,
    )
    by_hand = (price_fp * fp + price_fn * fn + time * deferred.sum()) / len(truth)
    assert cost == pytest.approx(by_hand)
    assert team_cost(truth, answer, pos_label=positive) == pytest.approx(team_error(truth, answer))


@pytest.mark.parametrize(
    ("metric", "label"), [(team_f1, -1), (team_sensitivity, -1), (team_specificity, 1)]
)
def test_undefined_metrics_warn_and_are_zero(metric, label):
    with pytest.warns(UndefinedMetricWarning, match="set to 0"):
        assert metric([label], [label]) == 0
    assert metric([label], [label], zero_division=1) == 1
    assert np.isnan(metric([label], [label], zero_division=np.nan))
    with pytest.raises(ValueError, match="'never'"):
        metric([label], [label], zero_division="never")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: team_error([1, 1], [1]), r"shapes \(2,\) and \(1,\)"),
        (lambda: team_error([], []), "empty"),
        (lambda: team_f1([0, 1], [1, 2]), r"found the labels \[0, 1, 2\]"),
        (lambda: team_f1([0, 1], ["a", "b"]), "different types"),
        (lambda: team_f1([0, 1], [1, 1], pos_label=3), "pos_label=3 is none of"),
        (lambda: team_f1(["a"], ["a"]), "give pos_label"),
        (lambda: team_cost([1], [1], deferral_cost=1), "give deferred"),
        (lambda: team_cost([1], [1], [1], deferral_cost=1), "boolean mask"),
        (lambda: team_cost([1], [1], [True, True], deferral_cost=1), r"shape \(2,\)"),
        (
            lambda: team_cost([1], [1], false_negative=-1),
            "false_negative must be a finite number >= 0",
        ),
        (
            lambda: team_cost([1], [1], false_positive=np.nan),
            "false_positive must be a finite number >= 0",
        ),
        (lambda: team_cost([1], [1], false_positive=np.float64(-1)), r"got -1\.0$"),
        (lambda: team_f1(["a", "b"], ["b", "a"], pos_label=np.str_("c")), "pos_label='c' is none"),
        (lambda: make_team_scorer(batch="no"), "batch='no' must be True or False"),
        (lambda: make_team_scorer("kappa"), "metric='kappa' is not known; use 'error', 'f1'"),
    ],
)
def test_errors_say_what_was_wrong(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_words_never_equal_numbers():
    assert team_error(["1", "0"], [1, 0]) == 1


@pytest.mark.parametrize("batch", [False, True])
def test_scorer_is_the_metric_with_greater_is_better(batch):
    team = StubTeam().fit(X, Y, HUMAN)
    answer = team.predict_assisted(X, HUMAN, batch=batch)
    deferred = team.defer_top(X) if batch else team.defer(X)

    def score(metric, **options):
        return make_team_scorer(metric, batch=batch, **options)(team, X, Y, human_labels=HUMAN)

    assert score("error") == -team_error(Y, answer)
    for label in ("sick", "healthy"):
        assert score("f1", pos_label=label) == team_f1(Y, answer, pos_label=label)
        assert score("sensitivity", pos_label=label) == team_sensitivity(Y, answer, pos_label=label)
        assert score("specificity", pos_label=label) == team_specificity(Y, answer, pos_label=label)
    prices = {
        "false_positive": 2.0,
        "false_negative": 7.0,
        "deferral_cost": 0.25,
        "pos_label": "sick",
    }
    assert score("cost", **prices) == -team_cost(Y, answer, deferred, **prices)
    assert score(partial(team_cost, deferral_cost=1, pos_label="healthy")) == -team_cost(
        Y, answer, deferred, deferral_cost=1, pos_label="healthy"
    )
    assert score(team_error) == -team_error(Y, answer)
    assert score(metrics.accuracy_score) == pytest.approx(1 - team_error(Y, answer))
    assert score(metrics.zero_one_loss, greater_is_better=False) == pytest.approx(
        -team_error(Y, answer)
    )


def test_unknown_option_is_refused_early():
    with pytest.raises(TypeError, match="'error' has no option 'deferral_cost'"):
        make_team_scorer("error", deferral_cost=1)


def test_positive_class_is_the_estimators_even_where_a_test_set_lacks_it():
    y, human = np.where(Y == "sick", 4, 3), np.where(HUMAN == "sick", 4, 3)
    team = StubTeam().fit(X, y, human)
    healthy = (y == 3) & (team.predict(X) == 3) & (human == 3)
    scorer = make_team_scorer("specificity")
    assert scorer(team, X[healthy], y[healthy], human_labels=human[healthy]) == 1


@pytest.mark.parametrize("classes", [(-1, 1), (0, 1), (False, True), (-1.0, 1.0), (3, 4)])
def test_of_numbers_the_larger_one_is_positive(classes):
    truth, answer = (
        np.array([classes[i] for i in codes]) for codes in ([0, 0, 1, 1], [0, 0, 0, 1])
    )
    assert team_sensitivity(truth, answer) == 0.5
    assert team_specificity(truth, answer) == 1.0
    assert team_cost(truth, answer, false_negative=5.0) == 1.25


@pytest.mark.parametrize("metric", ["f1", "sensitivity", "specificity", "cost"])
def test_of_words_no_one_is_positive(metric):
    """The alphabet would make "well" the positive class, and "sick" the negative one."""
    words, human = (np.where(labels == "sick", "sick", "well") for labels in (Y, HUMAN))
    team = StubTeam().fit(X, words, human)
    answer = team.predict_assisted(X, human)
    options = {"false_negative": 5.0} if metric == "cost" else {}
    function, better = find_metric(metric)
    scorer = make_team_scorer(metric, **options)
    for call in (
        lambda: function(words, answer, **options),
        lambda: function(list(words), list(answer), **options),
        lambda: function(words.astype(object), answer, **options),
        lambda: scorer(team, X, words, human_labels=human),
        lambda: evaluate_team(function, words, answer, list, team.classes_, **options),
    ):
        with pytest.raises(ValueError, match=r"'sick' and 'well' is positive.*pos_label='sick'"):
            call()
    named = make_team_scorer(metric, pos_label="sick", **options)
    value = function(words, answer, pos_label="sick", **options)
    assert named(team, X, words, human_labels=human) == (value if better else -value)


def test_where_prices_are_equal_nobody_asks_which_class_is_positive():
    team = StubTeam().fit(X, Y, HUMAN)
    answer = team.predict_assisted(X, HUMAN)
    assert team_cost(Y, answer) == team_error(Y, answer)
    scorer = make_team_scorer("cost", false_positive=3.0, false_negative=3.0)
    assert scorer(team, X, Y, human_labels=HUMAN) == pytest.approx(-3 * team_error(Y, answer))


def hand_written(estimators, score, X=X):
    """Mean test score of each estimator over the folds, in a plain loop."""
    means = []
    for make in estimators:
        scores = []
        for train, test in CV.split(X, Y):
            scaler = StandardScaler().fit(X[train])
            team = make().fit(scaler.transform(X[train]), Y[train], human_labels=HUMAN[train])
            answer = team.predict_assisted(scaler.transform(X[test]), HUMAN[test])
            deferred = team.defer(scaler.transform(X[test]))
            scores.append(score(Y[test], answer, deferred))
        means.append(np.mean(scores))
    return means


@pytest.mark.parametrize("metric", NAMES)
def test_grid_search_over_a_plain_pipeline_equals_a_loop(metric):
    options = {} if metric == "error" else {"pos_label": "sick"}
    if metric == "cost":
        options |= {"deferral_cost": 0.3, "false_negative": 4.0}
    by_hand = {
        "error": lambda y, p, d: -np.mean(y != p),
        "f1": lambda y, p, d: metrics.f1_score(y, p, pos_label="sick"),
        "sensitivity": lambda y, p, d: metrics.recall_score(y, p, pos_label="sick"),
        "specificity": lambda y, p, d: metrics.recall_score(y, p, pos_label="healthy"),
        "cost": lambda y, p, d: (
            -np.mean(4.0 * ((y == "sick") & (p != y)) + ((y != "sick") & (p != y)) + 0.3 * d)
        ),
    }[metric]
    grid = {"stubteam__C": [1e-3], "stubteam__budget": [0.1, 0.5]}
    with config_context(enable_metadata_routing=True):
        search = GridSearchCV(
            make_pipeline(StandardScaler(), StubTeam()),
            grid,
            scoring=make_team_scorer(metric, **options),
            cv=CV,
            error_score="raise",
        ).fit(X, Y, human_labels=HUMAN)
    teams = [partial(StubTeam, C=1e-3, budget=budget) for budget in (0.1, 0.5)]
    np.testing.assert_allclose(
        search.cv_results_["mean_test_score"], hand_written(teams, by_hand), rtol=1e-12
    )


def test_several_scorers_and_nested_search_in_cross_validate():
    scoring = {name: make_team_scorer(name, pos_label="sick") for name in NAMES if name != "error"}
    scoring["error"] = make_team_scorer("error")
    with config_context(enable_metadata_routing=True):
        search = GridSearchCV(
            make_pipeline(StandardScaler(), StubTeam()),
            {"stubteam__C": [1.0]},
            scoring=make_team_scorer("error"),
            cv=2,
        )
        result = cross_validate(
            search,
            X,
            Y,
            scoring=scoring,
            cv=CV,
            params={"human_labels": HUMAN},
            error_score="raise",
        )
    (expected,) = hand_written([StubTeam], lambda y, p, d: -np.mean(y != p))
    assert result["test_error"].mean() == pytest.approx(expected)
    np.testing.assert_allclose(result["test_error"], result["test_cost"])


def test_without_routing_the_scorer_says_so():
    team = StubTeam().fit(X, Y, HUMAN)
    scorer = make_team_scorer("error")
    advice = r"metadata routing is off.*sklearn.set_config\(enable_metadata_routing=True\)"
    with pytest.raises(ValueError, match=advice):
        scorer(team, X, Y)
    assert scorer(team, X, Y, human_labels=HUMAN) <= 0  # by hand it needs none
    options = {"scoring": scorer, "cv": CV}
    human = {"human_labels": HUMAN}
    with pytest.raises(ValueError, match=advice):
        cross_validate(StubTeam(), X, Y, error_score="raise", params=human, **options)
    grid = {"budget": [0.1, 0.2]}
    with pytest.raises(ValueError, match=advice):
        GridSearchCV(StubTeam(), grid, error_score="raise", **options).fit(X, Y, **human)


@pytest.mark.parametrize("several", [False, True])
def test_where_scikit_learn_swallows_the_error_its_warning_says_it(several):
    """By default searches turn the errors of scorers into NaN."""
    scorer = make_team_scorer("error")
    options = {"scoring": {"team": scorer} if several else scorer, "cv": CV}
    human = {"human_labels": HUMAN}
    with pytest.warns(UserWarning, match="metadata routing is off") as told:
        result = cross_validate(StubTeam(), X, Y, params=human, **options)
    assert np.isnan(result["test_team" if several else "test_score"]).all()
    assert len(told) == CV.n_splits
    search = GridSearchCV(
        StubTeam(), {"budget": [0.1, 0.2]}, refit="team" if several else True, **options
    )
    with (
        pytest.warns(UserWarning, match="metadata routing is off"),
        pytest.warns(UserWarning, match="test scores are non-finite"),
    ):
        search.fit(X, Y, **human)
    assert np.isnan(search.best_score_)


def test_with_routing_the_scorer_says_what_is_missing():
    team = StubTeam().fit(X, Y, HUMAN)
    with config_context(enable_metadata_routing=True):
        with pytest.raises(ValueError, match="did not reach the team's scorer"):
            make_team_scorer("error")(team, X, Y)
        with pytest.raises(ValueError, match="give them to the search's fit"):
            GridSearchCV(
                StubTeam(),
                {"budget": [0.1]},
                scoring=make_team_scorer("error"),
                error_score="raise",
            ).fit(X, Y)


def test_estimators_without_a_team():
    for lonely in (StandardScaler().fit(X), make_pipeline(StandardScaler()).fit(X)):
        with pytest.raises(TypeError, match="StandardScaler has none"):
            make_team_scorer()(lonely, X, Y, human_labels=HUMAN)


def test_member_of_pipelines():
    single = make_pipeline(StubTeam()).fit(X, Y)
    member, given = find_member(single, X)
    assert isinstance(member, StubTeam)
    assert given is X
    nested = make_pipeline(StandardScaler(), make_pipeline(StandardScaler(), StubTeam())).fit(X, Y)
    member, given = find_member(nested, X)
    np.testing.assert_allclose(given, StandardScaler().fit_transform(X), atol=1e-12)


def test_scorer_can_be_cloned_and_shown():
    scorer = make_team_scorer("cost", batch=True, deferral_cost=2.0)
    again = clone(scorer)
    assert again.get_params() == scorer.get_params()
    assert "deferral_cost" in repr(scorer)
    assert again.get_metadata_routing().score.requests == {"human_labels": True}
