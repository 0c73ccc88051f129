"""What an expert's answer to a case is expected to cost: a model of all experts, and what each one adds.

Costs are shares of the largest: 0 is a right answer, 1 the worst mistake. A model sees the features, the
machine's probabilities of the classes, and in training the true class. There are three kinds, from
simple to elaborate:

- "class": a rate per expert and true class, drawn towards the average of all experts;
- "linear": a logistic curve in features, class and how sure the machine is for all experts, and a smaller
  one per expert on top;
- "forest": a forest for all experts, mixed with each expert's own by how many answers there are.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from scipy.special import expit, logit

from deferlearn._utils.types import Array
from deferlearn.experts.skills import shrunk_rates
from deferlearn.humans.coding import Codes
from deferlearn.teams.forest import ForestRegressor

# Rates stay this far from 0 and 1, where a logarithm has no value.
FARTHEST = 1e-4
# Experts are drawn together more than in a statement about them: an expert who is thought better than the
# truth gets cases, and one who is thought worse costs little.
PRIOR = 0.0
# Penalty of the curve for all experts, per feature of unit spread; steps of Newton's method.
POOL_PENALTY, NEWTON_STEPS = 3.0, 25


class Cases(NamedTuple):
    """Cases as models of errors see them.

    Attributes
    ----------
    X : ndarray or sparse matrix of shape (n_cases, n_features)
        Features.
    probabilities : ndarray of shape (n_cases, n_classes)
        The machine's probabilities of the classes; for training cases those of machines that had not seen
        them.
    codes : ndarray of int of shape (n_cases,) or None
        The true classes, where they are known.
    """

    X: Any
    probabilities: Array
    codes: Codes | None = None

    def part(self, rows: Any) -> "Cases":
        """Some of the cases."""
        codes = None if self.codes is None else self.codes[rows]
        return Cases(self.X[rows], self.probabilities[rows], codes)

    def surest(self) -> Array:
        """How sure the machine is, on a logarithmic scale."""
        return np.asarray(logit(np.clip(self.probabilities.max(axis=1), FARTHEST, 1 - FARTHEST)))


@dataclass
class ByClass:
    """A rate per expert and true class, drawn towards the average of all experts."""

    strengths: ClassVar[tuple[float, ...]] = (1.0,)
    strength: float = 1.0

    def fit(self, cases: Cases, cost: Array, seed: int) -> Self:
        """Learn from costs of shape (n_cases, n_experts), NaN where an expert gave no answer."""
        codes, n_classes = _known(cases), cases.probabilities.shape[1]
        answered = ~np.isnan(cost)
        rates = np.empty((cost.shape[1], n_classes))
        for k in range(n_classes):
            rows = codes == k
            count = answered[rows].sum(axis=0)
            rates[:, k] = shrunk_rates(np.nansum(cost[rows], axis=0), count, PRIOR)
        self.rates_ = rates
        return self

    def expected(self, cases: Cases, stakes: Array) -> Array:
        """The expected cost of each expert's answer: (n_cases, n_experts).

        ``stakes`` holds what the worst mistake on a case of each class costs.
        """
        return np.asarray((cases.probabilities * stakes) @ self.rates_.T)

    def on_class(self, cases: Cases) -> Array:
        """The same where the true classes are known, as a share of the worst mistake."""
        return np.asarray(self.rates_[:, _known(cases)].T)


@dataclass
class Linear:
    """A logistic curve in features and class for all experts, and a smaller one per expert on top."""

    strengths: ClassVar[tuple[float, ...]] = (3.0, 30.0, 300.0)
    strength: float = 30.0

    def fit(self, cases: Cases, cost: Array, seed: int) -> Self:
        """Learn from costs of shape (n_cases, n_experts), NaN where an expert gave no answer."""
        codes, n_classes = _known(cases), cases.probabilities.shape[1]
        dense = _dense(cases.X)
        self.mean_, spread = dense.mean(axis=0), dense.std(axis=0)
        self.spread_ = np.where(spread > 0, spread, 1.0)
        F = self._features(cases)
        design = np.hstack([np.eye(n_classes)[codes], F])
        answered = ~np.isnan(cost)
        count = answered.sum(axis=1)
        rows = count > 0
        mean = np.nansum(cost[rows], axis=1) / count[rows]
        # The classes' own terms are hardly drawn to 0, which would be a rate of one half.
        penalty = np.concatenate([np.full(n_classes, 0.1), np.full(F.shape[1], POOL_PENALTY)])
        self.pool_ = _logistic(design[rows], mean, count[rows].astype(float), 0.0, penalty)
        self.own_ = np.zeros((cost.shape[1], design.shape[1]))
        more = np.concatenate(
            [np.full(n_classes, self.strength / 3.0), np.full(F.shape[1], self.strength)]
        )
        for e in range(cost.shape[1]):
            rows = answered[:, e]
            if rows.any():
                offset = design[rows] @ self.pool_
                ones = np.ones(int(rows.sum()))
                self.own_[e] = _logistic(design[rows], cost[rows, e], ones, offset, more)
        self.n_classes_ = n_classes
        return self

    def _features(self, cases: Cases) -> Array:
        X = np.clip((_dense(cases.X) - self.mean_) / self.spread_, -4.0, 4.0)
        return np.column_stack([X, cases.surest()])

    def expected(self, cases: Cases, stakes: Array) -> Array:
        """The expected cost of each expert's answer: (n_cases, n_experts)."""
        weights = self.pool_ + self.own_
        by_features = self._features(cases) @ weights[:, self.n_classes_ :].T
        out = np.zeros(by_features.shape)
        for k in range(self.n_classes_):
            share = (cases.probabilities[:, k] * stakes[k])[:, None]
            out += share * expit(by_features + weights[:, k])
        return out

    def on_class(self, cases: Cases) -> Array:
        """The same where the true classes are known, as a share of the worst mistake."""
        weights = self.pool_ + self.own_
        by_features = self._features(cases) @ weights[:, self.n_classes_ :].T
        return np.asarray(expit(by_features + weights[:, _known(cases)].T))


@dataclass
class Forests:
    """A forest for all experts, mixed with each expert's own by how many answers there are."""

    strengths: ClassVar[tuple[float, ...]] = (30.0, 300.0, 3000.0)
    strength: float = 300.0

    def fit(self, cases: Cases, cost: Array, seed: int) -> Self:
        """Learn from costs of shape (n_cases, n_experts), NaN where an expert gave no answer."""
        X = _with_probabilities(cases)
        answered = ~np.isnan(cost)
        count = answered.sum(axis=1)
        rows = count > 0
        mean = np.nansum(cost[rows], axis=1) / count[rows]
        self.pool_ = ForestRegressor(random_state=seed).fit(X[rows], mean)
        self.own_: list[Any] = []
        self.answers_ = answered.sum(axis=0)
        for e in range(cost.shape[1]):
            rows = answered[:, e]
            # Of fewer answers a forest makes no more than their mean.
            enough = rows.sum() >= 10
            forest = ForestRegressor(random_state=seed)
            self.own_.append(forest.fit(X[rows], cost[rows, e]) if enough else None)
        return self

    def expected(self, cases: Cases, stakes: Array) -> Array:
        """The expected cost of each expert's answer: (n_cases, n_experts)."""
        return np.asarray(self.on_class(cases) * (cases.probabilities @ stakes)[:, None])

    def on_class(self, cases: Cases) -> Array:
        """The same as a share of the worst mistake; these forests do not ask for the true class."""
        X = _with_probabilities(cases)
        pool = self.pool_.predict(X)
        columns = []
        for forest, count in zip(self.own_, self.answers_, strict=True):
            share = 0.0 if forest is None else count / (count + self.strength)
            own = pool if forest is None else forest.predict(X)
            columns.append(share * own + (1 - share) * pool)
        return np.column_stack(columns)

    def with_strength(self, strength: float) -> "Forests":
        """The same forests, mixed in another way."""
        other = Forests(strength)
        other.__dict__.update({**self.__dict__, "strength": strength})
        return other


ErrorModel = ByClass | Linear | Forests
KINDS: dict[str, type[ErrorModel]] = {
    "class": ByClass,
    "linear": Linear,
    "forest": Forests,
}


def _known(cases: Cases) -> Codes:
    if cases.codes is None:
        raise ValueError("The true classes of these cases are not known.")
    return cases.codes


def _dense(X: Any) -> Array:
    return np.asarray(X.toarray() if sp.issparse(X) else X, dtype=np.float64)


def _with_probabilities(cases: Cases) -> Any:
    seen = cases.probabilities[:, 1:]  # they add up to 1
    if sp.issparse(cases.X):
        return sp.csr_array(sp.hstack([cases.X, sp.csr_array(seen)]))
    return np.hstack([cases.X, seen])


def _logistic(F: Array, target: Array, weight: Array, offset: Any, penalty: Array) -> Array:
    """Coefficients of a logistic curve through targets in [0, 1], with a penalty on each squared one."""
    beta = np.zeros(F.shape[1])
    for _ in range(NEWTON_STEPS):
        rate = expit(F @ beta + offset)
        slope = F.T @ (weight * (target - rate)) - penalty * beta
        bend = (F.T * (weight * rate * (1 - rate))) @ F + np.diag(penalty)
        step = np.linalg.solve(bend, slope)
        # A step on the logarithmic scale of more than this leaves the part where the curve is known.
        step *= min(1.0, 5.0 / max(float(np.abs(F @ step).max(initial=0.0)), 1e-12))
        beta += step
        if np.abs(step).max() < 1e-8:
            break
    return beta
