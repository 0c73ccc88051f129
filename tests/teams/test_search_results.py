"""`cv_results_` against plain loops: costs, metrics, and every way to describe the human."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from scipy.stats import rankdata
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import f1_score, recall_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from deferlearn import AssistedSVC
from deferlearn.metrics import team_cost, team_f1
from deferlearn.teams import AdvantageTriage, DeferralPolicy, PredictedErrorTriage
from deferlearn.teams.forest import ForestClassifier, ForestRegressor
from tuned import (
    ALPHAS,
    HUMAN,
    LOSS,
    MODEL_SEED,
    READERS,
    SCORES,
    SEED,
    SPLITS,
    X,
    Y,
    assert_row,
    held_out_advantage,
    held_out_margins,
    reader_errors,
    row_of,
    top,
    tuned,
)

PRICES = {-1: 1.0, 1: 3.0}
WRONG = (HUMAN != Y).astype(float)
# How `fit` is told of the human, and the same in units of errors.
HUMANS = {
    "nothing": ({}, np.zeros(len(Y))),
    "labels": ({"human_labels": HUMAN}, WRONG),
    "readers with gaps": ({"human_labels": READERS}, reader_errors(READERS)),
    "scores": (
        {"human_scores": SCORES},
        (Y[:, None] * SCORES < 0).mean(axis=1),  # a team asks for the side, not how sure it is
    ),
    "loss": ({"human_loss": LOSS}, LOSS / 2),
}


def prices_of(class_weight):
    if class_weight == "balanced":
        return np.array([len(Y) / (2 * np.sum(label == Y)) for label in Y])
    return np.ones(len(Y)) if class_weight is None else np.array([class_weight[c] for c in Y])


def cost_scores(positive, deferred, prices, human_cost):
    """Scores of the folds and of all cases, with larger as better."""
    machine = prices * (np.where(positive, 1, -1) != Y)
    gain = -np.where(deferred, human_cost, machine)
    return [gain[test].mean() for _, test in SPLITS], gain.mean()


@pytest.mark.filterwarnings("ignore:.*no answer was given for")
@pytest.mark.parametrize(
    ("human", "class_weight", "deferral_cost"),
    [
        ("nothing", None, 0.0),
        ("labels", None, 0.0),
        ("labels", PRICES, 0.3),
        ("labels", "balanced", 0.0),
        ("readers with gaps", None, 0.0),
        ("readers with gaps", PRICES, 0.1),
        ("scores", None, 0.05),
        ("loss", PRICES, 0.0),
    ],
)
def test_quick_policies_equal_loops_around_scikit_learn(human, class_weight, deferral_cost):
    told, errors = HUMANS[human]
    policies = ["uncertainty", "advantage", AdvantageTriage(use_full_budget=True), "automation"]
    clf = tuned(policies=policies, class_weight=class_weight, deferral_cost=deferral_cost)
    results = clf.fit(X, Y, **told).cv_results_
    prices = prices_of(class_weight)
    human_cost = prices * errors + deferral_cost
    for alpha in ALPHAS:
        margin = held_out_margins(X, Y, prices, alpha, SPLITS)
        machine_cost = prices * (np.where(margin > 0, 1, -1) != Y)
        advantage = held_out_advantage(margin, machine_cost, human_cost, SPLITS)
        expected = {
            "uncertainty": top(-np.abs(margin), 18),
            "advantage": top(advantage, 18) & (advantage > 0),
            policies[2]: top(advantage, 18),
            "automation": np.zeros(len(Y), dtype=bool),
        }
        for policy, deferred in expected.items():
            scores = cost_scores(margin > 0, deferred, prices, human_cost)
            assert_row(results, row_of(results, policy, alpha), *scores, deferred.mean())


@pytest.mark.parametrize(("budget", "count"), [(0.0, 0), (0.13, 9), (20, 20), (1.0, 72)])
def test_budgets_of_every_kind(budget, count):
    clf = tuned(budget=budget).fit(X, Y, human_labels=HUMAN)
    for alpha in ALPHAS:
        margin = held_out_margins(X, Y, np.ones(len(Y)), alpha, SPLITS)
        deferred = top(-np.abs(margin), count)
        scores = cost_scores(margin > 0, deferred, np.ones(len(Y)), WRONG)
        place = row_of(clf.cv_results_, "uncertainty", alpha)
        assert_row(clf.cv_results_, place, *scores, count / 72)
        assert clf.cv_results_["deferral_rate"][row_of(clf.cv_results_, "advantage", alpha)] <= (
            count / 72
        )


@pytest.mark.parametrize(
    "kernel",
    [{"kernel": "rbf", "gamma": 0.3}, {"kernel": "poly", "degree": 2, "gamma": 0.5, "coef0": 1.0}],
)
def test_kernels_equal_those_of_scikit_learn(kernel):
    clf = tuned(kernels=["linear", kernel], policies=["uncertainty"]).fit(X, Y, human_labels=HUMAN)
    results = clf.cv_results_
    for place, params in enumerate(results["params"]):
        used = {name: params[name] for name in params if name not in ("policy", "alpha")}
        assert used in ({"kernel": "linear"}, kernel)
        margin = held_out_margins(X, Y, np.ones(len(Y)), params["alpha"], SPLITS, **used)
        deferred = top(-np.abs(margin), 18)
        assert_row(results, place, *cost_scores(margin > 0, deferred, np.ones(len(Y)), WRONG))


def test_advantage_by_region_equals_a_loop_with_a_forest():
    clf = tuned(policies=["advantage_by_region"], alphas=[0.1]).fit(X, Y, human_labels=HUMAN)

    def forest(train, cost, test):
        trees = ForestRegressor(random_state=MODEL_SEED)
        return trees.fit(X[train], cost).predict(X[test])

    margin = held_out_margins(X, Y, np.ones(len(Y)), 0.1, SPLITS)
    wrong = (np.where(margin > 0, 1, -1) != Y).astype(float)
    advantage = held_out_advantage(margin, wrong, WRONG, SPLITS, forest)
    deferred = top(advantage, 18) & (advantage > 0)
    scores = cost_scores(margin > 0, deferred, np.ones(len(Y)), WRONG)
    place = row_of(clf.cv_results_, "advantage_by_region", 0.1)
    assert_row(clf.cv_results_, place, *scores, deferred.mean())


SMALL_FOREST = DeferralPolicy(RandomForestClassifier(10), features="both")


@pytest.mark.filterwarnings("ignore:.*no answer was given for")
@pytest.mark.parametrize(
    ("policy", "by_hand", "human", "options"),
    [
        ("margin", AssistedSVC(), "labels", {}),
        ("margin", AssistedSVC(), "readers with gaps", {"class_weight": PRICES}),
        (SMALL_FOREST, AssistedSVC(policy=SMALL_FOREST), "labels", {"deferral_cost": 0.1}),
        (
            "forest",
            AssistedSVC(policy=DeferralPolicy(ForestClassifier(), features="both")),
            "loss",
            {},
        ),
        (
            PredictedErrorTriage(error_model=LogisticRegression()),
            PredictedErrorTriage(error_model=LogisticRegression()),
            "labels",
            {"class_weight": "balanced"},
        ),
    ],
    ids=["margin", "margin with prices", "small forest", "forest", "predicted error"],
)
def test_slower_policies_equal_teams_fitted_by_hand(policy, by_hand, human, options):
    """The teams themselves on each fold; of their places in the folds the top is deferred.

    A forest of the features and the margin learns from margins that are held out, as `fit` has it.
    """
    told, errors = HUMANS[human]
    clf = tuned(policies=["uncertainty", policy], n_refined=1, **options).fit(X, Y, **told)
    (alpha,) = [p["alpha"] for p in clf.cv_results_["params"] if p["policy"] == policy]
    margin, score, rates = np.empty(len(Y)), np.empty(len(Y)), np.empty(len(Y))
    chosen = []
    settings = {"budget": 0.25, "alpha": alpha, "cv": None, "random_state": SEED, **options}
    by_hand = clone(by_hand).set_params(**settings)
    if isinstance(by_hand, AssistedSVC):
        ratio = clone(by_hand).fit(X, Y, **told).selection_.submodularity_ratio
        by_hand.set_params(submodularity_ratio=ratio)
    for train, test in SPLITS:
        own = {name: values[train] for name, values in told.items()}
        team = by_hand.fit(X[train], Y[train], **own)
        margin[test] = team.decision_function(X[test])
        score[test] = rankdata(team.deferral_score(X[test])) / len(test)
        rates[test] = team.deferral_rate_
        chosen.append(getattr(team, "deferred_", None))
    if getattr(getattr(by_hand, "policy", None), "features", None) == "both":
        seen = np.column_stack([X, np.abs(margin)])
        for (train, test), target in zip(SPLITS, chosen, strict=True):
            forest = clone(by_hand.policy.estimator).set_params(random_state=MODEL_SEED)
            share = forest.fit(seen[train], target).predict_proba(seen[test])[:, 1]
            score[test] = rankdata(share) / len(test)
    deferred = top(score, int(rates.mean() * len(Y) + 1e-9))
    prices = prices_of(options.get("class_weight"))
    human_cost = prices * errors + options.get("deferral_cost", 0.0)
    scores = cost_scores(margin > 0, deferred, prices, human_cost)
    place = row_of(clf.cv_results_, policy, alpha)
    assert 0 < deferred.sum() < len(Y)
    assert_row(clf.cv_results_, place, *scores, deferred.mean())


def weighted(y_true, y_pred, deferred):
    return 1.0 - np.mean(y_true != y_pred) - 0.1 * np.mean(deferred)


@pytest.mark.parametrize(
    ("scoring", "value"),
    [
        ("error", lambda t, p, d: -np.mean(t != p)),
        ("f1", lambda t, p, d: f1_score(t, p)),
        ("sensitivity", lambda t, p, d: recall_score(t, p)),
        ("specificity", lambda t, p, d: recall_score(t, p, pos_label=-1)),
        ("cost", lambda t, p, d: -np.mean(t != p)),
        (weighted, weighted),
        (partial(team_f1, pos_label=-1), lambda t, p, d: f1_score(t, p, pos_label=-1)),
    ],
    ids=["error", "f1", "sensitivity", "specificity", "cost", "own", "f1 of the other class"],
)
@pytest.mark.parametrize("human", ["nothing", "labels", "readers"])
def test_metrics_look_at_folds(scoring, value, human):
    if human == "readers":
        votes = np.where(np.random.RandomState(3).rand(len(Y), 3) < 0.3, -Y[:, None], Y[:, None])
        told, said = {"human_labels": votes}, np.where(votes.sum(axis=1) > 0, 1, -1)
    else:
        told, said = HUMANS[human][0], Y if human == "nothing" else HUMAN
    clf = tuned(policies=["uncertainty"], scoring=scoring).fit(X, Y, **told)
    for alpha in ALPHAS:
        margin = held_out_margins(X, Y, np.ones(len(Y)), alpha, SPLITS)
        deferred = top(-np.abs(margin), 18)
        team = np.where(deferred, said, np.where(margin > 0, 1, -1))
        folds = [value(Y[test], team[test], deferred[test]) for _, test in SPLITS]
        place = row_of(clf.cv_results_, "uncertainty", alpha)
        assert_row(clf.cv_results_, place, folds, np.mean(folds), 0.25)


def test_metrics_with_words_as_labels():
    words = np.where(Y > 0, "sick", "well")
    said = np.where(HUMAN > 0, "sick", "well").tolist()
    scoring = partial(team_f1, pos_label="sick")
    clf = tuned(policies=["uncertainty"], scoring=scoring).fit(X, words, human_labels=said)
    numbers = tuned(policies=["uncertainty"], scoring="f1").fit(X, Y, human_labels=HUMAN)
    for name, values in numbers.cv_results_.items():
        np.testing.assert_array_equal(clf.cv_results_[name], values)
    with pytest.raises(ValueError, match="pos_label"):
        tuned(scoring="f1").fit(X, words, human_labels=said)
    # Prices and names of classes go together.
    priced = tuned(class_weight={"sick": 3.0}).fit(X, words, human_labels=said)
    plain = tuned(class_weight={1: 3.0}).fit(X, Y, human_labels=HUMAN)
    # The order of the classes is another one, which swaps the halves of ties at most.
    np.testing.assert_allclose(
        priced.cv_results_["mean_test_score"], plain.cv_results_["mean_test_score"]
    )


def test_cost_of_a_team_is_its_metric():
    """With prices of errors and time, the mean cost is what `team_cost` says of the same answers."""
    clf = tuned(class_weight={-1: 1.0, 1: 5.0}, deferral_cost=0.1).fit(X, Y, human_labels=HUMAN)
    prices = np.where(Y > 0, 5.0, 1.0)
    for alpha in ALPHAS:
        margin = held_out_margins(X, Y, prices, alpha, SPLITS)
        deferred = top(-np.abs(margin), 18)
        team = np.where(deferred, HUMAN, np.where(margin > 0, 1, -1))
        cost = team_cost(Y, team, deferred, false_negative=5.0, deferral_cost=0.1)
        place = row_of(clf.cv_results_, "uncertainty", alpha)
        np.testing.assert_allclose(clf.cv_results_["mean_test_score"][place], -cost)


# -- which candidates, in which order ---------------------------------------------------------


def test_slower_policies_get_the_machines_that_did_best_with_quick_ones():
    alphas = [0.01, 0.1, 1.0, 10.0]
    clf = tuned(policies=["uncertainty", "margin", "advantage"], alphas=alphas, n_refined=2)
    results = clf.fit(X, Y, human_labels=HUMAN).cv_results_
    best = {}
    for params, mean in zip(results["params"], results["mean_test_score"], strict=True):
        if params["policy"] != "margin":
            best[params["alpha"]] = max(mean, best.get(params["alpha"], -np.inf))
    assert len(best) == 4
    chosen = sorted(alphas, key=lambda alpha: -best[alpha])[:2]
    tried = [p["alpha"] for p in results["params"] if p["policy"] == "margin"]
    assert tried == sorted(chosen, reverse=True)


def test_without_a_quick_policy_uncertainty_finds_the_machines():
    alphas = [0.01, 0.1, 1.0, 10.0]
    quick = tuned(policies=["uncertainty"], alphas=alphas).fit(X, Y, human_labels=HUMAN)
    team = AdvantageTriage(human_error=LinearRegression())
    slow = tuned(policies=[team], alphas=alphas, n_refined=1)
    slow.fit(X, Y, human_labels=HUMAN)
    means = {
        params["alpha"]: mean
        for params, mean in zip(
            quick.cv_results_["params"], quick.cv_results_["mean_test_score"], strict=True
        )
    }
    assert slow.cv_results_["param_alpha"].tolist() == [max(alphas, key=means.get)]
    assert slow.cv_results_["param_policy"].tolist() == [team]


def test_table_in_the_form_of_a_grid_search():
    clf = tuned(kernels=["linear", {"kernel": "rbf", "gamma": 0.5}]).fit(X, Y, human_labels=HUMAN)
    results = clf.cv_results_
    assert len(results["params"]) == 8
    assert results["param_policy"].tolist() == ["uncertainty"] * 4 + ["advantage"] * 4
    # The simpler machine first.
    assert results["param_alpha"].tolist() == [1.0, 1.0, 0.03, 0.03] * 2
    assert results["param_kernel"].tolist() == ["linear", "rbf"] * 4
    means = results["mean_test_score"]
    ranks = [1 + int(np.sum(means > mean + 1e-9)) for mean in means]
    assert results["rank_test_score"].tolist() == ranks
    assert clf.best_params_ == results["params"][clf.best_index_]
    assert clf.best_score_ == means[clf.best_index_]
    assert {p["gamma"] for p in results["params"] if p["kernel"] == "rbf"} == {0.5}


@pytest.mark.parametrize(("alphas", "expected"), [(3, [0.001, 0.1, 10.0]), (1, [0.001])])
def test_a_number_of_alphas_is_a_grid(alphas, expected):
    clf = tuned(alphas=alphas, policies=["automation"]).fit(X, Y)
    np.testing.assert_allclose(np.sort(clf.cv_results_["param_alpha"]), expected)


def long_pipeline(function):
    steps = [StandardScaler(with_std=False) for _ in range(10)]
    return make_pipeline(*steps, FunctionTransformer(function), *steps, LogisticRegression())


def test_policies_whose_long_names_are_cut_alike_are_not_mixed_up():
    """Rankings are kept by a team's parameters; scikit-learn leaves out the middle of a long name."""
    one, other = (
        AssistedSVC(policy=long_pipeline(f), submodularity_ratio=0.5)
        for f in (np.abs, np.zeros_like)
    )
    assert repr(one) == repr(other)
    both = tuned(policies=[one, other], alphas=[1.0]).fit(X, Y, human_loss=LOSS)
    for place, team in enumerate((one, other)):
        alone = tuned(policies=[team], alphas=[1.0]).fit(X, Y, human_loss=LOSS)
        assert both.cv_results_["mean_test_score"][place] == alone.best_score_
    assert len(set(both.cv_results_["mean_test_score"])) == 2
