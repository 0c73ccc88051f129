"""A small estimator with the methods of a team, to test what only uses those methods."""

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression


class StubTeam(ClassifierMixin, BaseEstimator):
    """Defers the cases of least margin; remembers how it was fitted."""

    __metadata_request__fit = {"human_labels": True}  # noqa: RUF012

    def __init__(self, budget=0.2, C=1.0):
        self.budget = budget
        self.C = C

    def fit(self, X, y, human_labels=None, human_scores=None, human_loss=None):
        given = {"labels": human_labels, "scores": human_scores, "loss": human_loss}
        self.human_ = [name for name, value in given.items() if value is not None]
        assert all(len(value) == len(X) for value in given.values() if value is not None)
        self.machine_ = LogisticRegression(C=self.C).fit(X, y)
        self.classes_ = self.machine_.classes_
        self.rate_ = self.budget if isinstance(self.budget, float) else self.budget / len(X)
        margin = np.abs(self.machine_.decision_function(X))
        self.threshold_ = np.quantile(margin, self.rate_)
        return self

    def predict(self, X):
        return self.machine_.predict(X)

    def defer(self, X):
        return np.abs(self.machine_.decision_function(X)) < self.threshold_

    def defer_top(self, X, budget=None):
        margin = np.abs(self.machine_.decision_function(X))
        n = int(np.floor((self.rate_ if budget is None else budget) * len(X) + 1e-9))
        mask = np.zeros(len(X), dtype=bool)
        mask[np.argsort(margin, kind="stable")[:n]] = True
        return mask

    def predict_assisted(self, X, human_labels, batch=False):
        mask = self.defer_top(X) if batch else self.defer(X)
        answer = self.predict(X).copy()
        answer[mask] = np.asarray(human_labels)[mask]
        return answer
