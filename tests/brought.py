"""Data for machines that users bring, and what a team makes of one written once more with scikit-learn."""

from __future__ import annotations

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import StandardScaler

N = 90
RNG = np.random.RandomState(11)
X = RNG.normal(size=(N, 3))
Y = np.where(X[:, 0] - 0.7 * X[:, 1] ** 2 + 0.4 + 0.8 * RNG.normal(size=N) > 0, 1, 0)
HUMAN = np.where(RNG.rand(N) < 0.15, 1 - Y, Y)
NEW = np.random.RandomState(12).normal(size=(150, 3))
SPLITS = list(StratifiedKFold(3, shuffle=True, random_state=4).split(X, Y))


def raw_scores(model, X):
    """One number per case that grows with the second class; probabilities as log-odds."""
    if hasattr(model, "decision_function"):
        return model.decision_function(X)
    p = np.clip(model.predict_proba(X)[:, 1], 0.005, 0.995)
    return np.log(p) - np.log1p(-p)


def platt(scores, y, weights, new):
    """Log-odds of new scores by a logistic curve through known ones; the unit of weights does not count."""
    weights = None if weights is None else weights / np.mean(weights)
    scaler = StandardScaler().fit(scores[:, None])
    curve = LogisticRegression(C=100.0, solver="newton-cholesky", tol=1e-10)
    curve.fit(scaler.transform(scores[:, None]), y, sample_weight=weights)
    return curve.decision_function(scaler.transform(new[:, None]))


def held_out_raw(machine, X, y, splits, weights=None):
    """Scores of samples by clones that have not seen them."""
    raw = np.empty(len(y))
    for train, test in splits:
        more = {} if weights is None else {"sample_weight": weights[train]}
        raw[test] = raw_scores(clone(machine).fit(X[train], y[train], **more), X[test])
    return raw


def held_out_log_odds(machine, X, y, splits):
    """Calibrated scores of samples, where no curve has seen them either."""
    raw, out = held_out_raw(machine, X, y, splits), np.empty(len(y))
    for train, test in splits:
        out[test] = platt(raw[train], y[train], None, raw[test])
    return out


def log_odds_by_hand(machine, X, y, splits, new, weights=None, fit_weights=None):
    """What a team with this machine says of new cases."""
    raw = held_out_raw(machine, X, y, splits, fit_weights)
    more = {} if fit_weights is None else {"sample_weight": fit_weights}
    final = clone(machine).fit(X, y, **more)
    return platt(raw, y, weights, raw_scores(final, new))


class Counting(ClassifierMixin, BaseEstimator):
    """A logistic regression that notes on how many samples it was fitted, and with which weights."""

    fits: list = []  # noqa: RUF012  every clone writes into the same list

    def __init__(self, C=1.0):
        self.C = C

    def fit(self, X, y):
        Counting.fits.append((len(y), None))
        self.model_ = LogisticRegression(C=self.C).fit(X, y)
        self.classes_ = self.model_.classes_
        return self

    def decision_function(self, X):
        return self.model_.decision_function(X)


class CountingWeights(Counting):
    """The same, which takes weights."""

    def fit(self, X, y, sample_weight=None):
        Counting.fits.append((len(y), sample_weight))
        self.model_ = LogisticRegression(C=self.C).fit(X, y, sample_weight=sample_weight)
        self.classes_ = self.model_.classes_
        return self
