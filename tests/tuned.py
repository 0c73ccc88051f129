"""Data for `AssistedSVCCV`, and what it does written once more: plain loops around scikit-learn."""

from __future__ import annotations

import numpy as np
from sklearn.isotonic import IsotonicRegression
from sklearn.model_selection import KFold
from sklearn.svm import SVC

from deferlearn.teams import AssistedSVCCV

N = 72
RNG = np.random.RandomState(5)
X = RNG.normal(size=(N, 3))
Y = np.where(X[:, 0] + 0.5 * X[:, 1] + 0.9 * RNG.normal(size=N) > 0, 1, -1)
HUMAN = np.where(RNG.rand(N) < 0.15, -Y, Y)
READERS = np.where(RNG.rand(N, 3) < 0.25, -Y[:, None], Y[:, None]).astype(float)
READERS[RNG.rand(N, 3) < 0.3] = np.nan
READERS[:4] = np.nan  # read by nobody
SCORES = 2 * RNG.rand(N, 2) - 0.5
SCORES *= Y[:, None]
LOSS = RNG.rand(N)
NEW = np.random.RandomState(6).normal(size=(200, 3))
NEW_HUMAN = np.where(np.random.RandomState(7).rand(200) < 0.5, 1, -1)

ALPHAS = [0.03, 1.0]
SPLITS = list(KFold(3, shuffle=True, random_state=1).split(X))
# The random_state of every team of a search with random_state=0.
SEED = int(np.random.RandomState(0).randint(2**31 - 1))
# What a team seeds its models with that has this random_state; so does a search.
MODEL_SEED = int(np.random.RandomState(SEED).randint(2**31 - 1))


def tuned(**options):
    quick = {
        "policies": ["uncertainty", "advantage"],
        "alphas": ALPHAS,
        "kernels": ["linear"],
        "cv": SPLITS,
    }
    return AssistedSVCCV(**{"budget": 0.25, "random_state": 0, **quick, **options})


def reader_errors(answers, y=Y):
    """Share of wrong answers to each case; that of its class where there is none."""
    shares = []
    for row, truth in zip(answers, y, strict=True):
        given = [answer for answer in np.atleast_1d(row) if not np.isnan(answer)]
        shares.append(np.mean([a != truth for a in given]) if given else np.nan)
    shares = np.array(shares)
    for label in np.unique(y):
        own = y == label
        shares[own & np.isnan(shares)] = np.nanmean(shares[own])
    return shares


def held_out_margins(X, y, prices, alpha, splits, **kernel):
    """Of scikit-learn's SVC, with its C for this regularisation."""
    margin = np.empty(len(y))
    for train, test in splits:
        C = 1 / (2 * alpha * prices[train].sum())
        svc = SVC(C=C, tol=1e-10, **{"kernel": "linear", **kernel})
        svc.fit(X[train], y[train], sample_weight=prices[train])
        margin[test] = svc.decision_function(X[test])
    return margin


def isotonic_cost(train_margin, train_cost, margin):
    """Expected cost of the machine's answer by how sure it is, for each of its answers."""
    out = np.empty(len(margin))
    for positive in (False, True):
        rows, new = (train_margin > 0) == positive, (margin > 0) == positive
        fall = IsotonicRegression(increasing=False, out_of_bounds="clip")
        if not rows.any():  # an answer that was never given: what is known is the mean of all
            out[new] = train_cost.mean()
        elif new.any():
            fall.fit(np.abs(train_margin[rows]), train_cost[rows])
            out[new] = fall.predict(np.abs(margin[new]))
    return out


def rate_by_answer(train_margin, train_cost, margin):
    """The human's mean cost by the machine's answer, with two cases of the overall mean added."""
    out = np.empty(len(margin))
    for positive in (False, True):
        rows = (train_margin > 0) == positive
        values = [*train_cost[rows], train_cost.mean(), train_cost.mean()]
        out[(margin > 0) == positive] = np.mean(values)
    return out


def hair(margin, *costs):
    """By which the less sure of equals comes first."""
    return 1e-6 * max(cost.max() for cost in costs) * np.abs(margin) / (1 + np.abs(margin))


def held_out_advantage(margin, machine_cost, human_cost, splits, human_model=None):
    out = np.empty(len(margin))
    for train, test in splits:
        old, new = margin[train], margin[test]
        machine = isotonic_cost(old, machine_cost[train], new)
        if human_model is None:
            human = rate_by_answer(old, human_cost[train], new)
        else:
            human = human_model(train, human_cost[train], test)
        out[test] = machine - human - hair(new, machine_cost[train], human_cost[train])
    return out


def top(scores, count):
    deferred = np.zeros(len(scores), dtype=bool)
    deferred[np.argsort(-scores, kind="stable")[:count]] = True
    return deferred


def row_of(results, policy, alpha):
    """The place of a candidate in `cv_results_`."""
    (place,) = [
        i
        for i, params in enumerate(results["params"])
        if params["policy"] == policy and params["alpha"] == alpha
    ]
    return place


def assert_row(results, place, fold_scores, mean, rate=None):
    """A line of `cv_results_` equals what was computed by hand."""
    for k, score in enumerate(fold_scores):
        np.testing.assert_allclose(results[f"split{k}_test_score"][place], score, atol=1e-12)
    assert f"split{len(fold_scores)}_test_score" not in results
    np.testing.assert_allclose(results["mean_test_score"][place], mean, atol=1e-12)
    np.testing.assert_allclose(results["std_test_score"][place], np.std(fold_scores), atol=1e-12)
    if rate is not None:
        np.testing.assert_allclose(results["deferral_rate"][place], rate, atol=1e-12)
