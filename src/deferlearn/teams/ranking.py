"""How fitted teams rank cases, as arrays: this needs numpy only.

Each ranking gives the scores of the team that it was made from, bit for bit.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from deferlearn._utils.products import row_products
from deferlearn._utils.types import Array
from deferlearn.teams.forest_arrays import ForestArrays, forest_from
from deferlearn.teams.odds import logistic


class Ranked(NamedTuple):
    """Scores, larger for cases that belong with a human, and the expected costs of both, if known."""

    scores: Array
    expected: tuple[Array, Array] | None = None


class Ranking(Protocol):
    """Ranks cases by their features and the machine's decision values."""

    def rank(self, X: Array, margin: Array) -> Ranked:
        """How much each case belongs with a human."""
        ...


@dataclass(frozen=True, eq=False)
class ByUncertainty:
    """The less sure the machine is, the higher the score: `UncertaintyTriage`.

    Attributes
    ----------
    stakes : ndarray of shape (n_classes, n_classes), or empty
        What each answer to a case of each class costs, if there are more than two.
    """

    stakes: Any = ()

    def rank(self, X: Array, margin: Array) -> Ranked:
        """The negative distance from the boundary; of several classes, the expected cost of the answer."""
        if margin.ndim == 2:
            return Ranked(read_margin(margin, self.stakes)[2])
        return Ranked(-np.abs(margin))


@dataclass(frozen=True, eq=False)
class Constant:
    """All cases have the same score: `FullAutomation`, and a policy that had nothing to learn from."""

    value: float

    def rank(self, X: Array, margin: Array) -> Ranked:
        """The same score for every case."""
        return Ranked(np.full(len(margin), self.value))


@dataclass(frozen=True, eq=False)
class ByMargin:
    """A linear function of the margin, or of its size: a `DeferralPolicy` that sees nothing else."""

    signed: bool
    centre: float
    scale: float
    slope: float
    offset: float

    def rank(self, X: Array, margin: Array) -> Ranked:
        """The standardised margin times the slope, plus the offset."""
        seen = margin if self.signed else np.abs(margin)
        return Ranked((seen - self.centre) / self.scale * self.slope + self.offset)


@dataclass(frozen=True, eq=False)
class ByForest:
    """A forest's probability of "deferred": a `DeferralPolicy` that is a forest."""

    forest: ForestArrays
    features: str
    signed: bool

    def rank(self, X: Array, margin: Array) -> Ranked:
        """The mean of the trees."""
        if self.features == "x":
            return Ranked(self.forest.mean(X))
        column = (margin if self.signed else np.abs(margin))[:, None]
        seen = column if self.features == "margin" else np.hstack([X, column])
        return Ranked(self.forest.mean(seen))


@dataclass(frozen=True, eq=False)
class BySureness:
    """By how sure the machine is of several classes: a `DeferralPolicy` that sees no more of them.

    Attributes
    ----------
    inner : Ranking
        Ranks by one number per case, as with two classes.
    n_classes : int
        Number of classes.
    """

    inner: Any
    n_classes: int

    def rank(self, X: Array, margin: Array) -> Ranked:
        """The inner ranking of how sure the machine is."""
        ranked: Ranked = self.inner.rank(X, sureness(margin, self.n_classes))
        return ranked


def sureness(decision: Array, n_classes: int) -> Array:
    """How far decision values of several classes are from another answer.

    Of a machine per class, the largest value less the next; of one per step of a grade, the distance from
    the nearest step.
    """
    if decision.shape[1] == n_classes:
        second, largest = np.partition(decision, -2, axis=1)[:, -2:].T
        return np.asarray(largest - second)
    return np.asarray(np.abs(decision).min(axis=1))


@dataclass(frozen=True, eq=False)
class ByAdvantage:
    """By how much the machine is expected to cost more than the human: `AdvantageTriage`.

    Attributes
    ----------
    hair : float
        Size of the tie-break between equal differences.
    steps : list of two pairs of ndarray
        The machine's expected cost by how sure it is, for each of its answers.
    rates : list of two floats
        The human's expected cost, for each answer of the machine, or for each true class.
    machine, human : ForestArrays or None
        Forests instead of steps and of rates.
    weights : list of two floats
        What an error on each class costs, where the machine's expected cost comes from probabilities.
    curve : list of two floats
        Slope and offset of the log-odds of the second class, as a function of the margin.
    by_truth : bool
        Whether the rates are those of the true classes.
    """

    hair: float
    steps: Any
    rates: Any
    machine: ForestArrays | None
    human: ForestArrays | None
    weights: Any = ()
    curve: Any = ()
    by_truth: bool = False

    def rank(self, X: Array, margin: Array) -> Ranked:
        """The difference of the expected costs."""
        _, sure, _ = read_margin(margin, self.weights)
        if self.machine is None:
            machine = expected_machine(margin, self.steps, self.weights, self.curve)
        else:
            machine = self.machine.mean(np.hstack([X, margin.reshape(len(X), -1)]))
        if self.human is None:
            curve = self.curve if self.by_truth else ()
            human = expected_human(margin, self.rates, curve, self.weights)
        else:
            human = self.human.mean(X)
        scores = machine - human - self.hair * sure / (1.0 + sure)
        return Ranked(scores, (machine, human))


def _second_class(margin: Array, curve: Any) -> Array:
    """The probability of the second class, by its log-odds."""
    slope, offset = curve
    return logistic(slope * margin + offset)


def expected_machine(margin: Array, steps: Any, weights: Any, curve: Any) -> Array:
    """What the machine's answer is expected to cost: by probabilities if there are weights, or by steps.

    With several classes ``margin`` are logarithms of probabilities, and ``weights`` are stakes.
    """
    if margin.ndim == 2:
        said, sure, least = read_margin(margin, weights)
        if not len(steps):
            return least
        by_answer = np.stack([np.interp(sure, *part) for part in steps], axis=1)
        return np.asarray(by_answer[np.arange(len(said)), said])
    positive = margin > 0
    if len(weights):
        second = _second_class(margin, curve)
        return np.where(positive, (1.0 - second) * weights[0], second * weights[1])
    no, yes = (np.interp(np.abs(margin), *part) for part in steps)
    return np.where(positive, yes, no)


def read_margin(margin: Array, stakes: Any = ()) -> tuple[NDArray[np.int64], Array, Array]:
    """The machine's answers, how sure it is of them, and what they are expected to cost.

    With several classes, by the logarithms of their probabilities and the ``stakes``: what each answer
    (column) to a case of each class (row) costs. Of two classes no cost is known.
    """
    if margin.ndim == 1:
        return (margin > 0).astype(np.int64), np.abs(margin), np.zeros(0)
    expected = row_products(np.exp(margin), stakes)
    said = expected.argmin(axis=1)
    low, second = np.partition(expected, 1, axis=1)[:, :2].T
    return said, second - low, low


def expected_human(margin: Array, rates: Any, curve: Any, stakes: Any = ()) -> Array:
    """What the human's answer is expected to cost: by true class if there is a curve, or by the answer."""
    if margin.ndim == 2:
        if len(curve):
            return row_products(np.exp(margin), np.asarray(rates)[:, None])[:, 0]
        return np.asarray(np.asarray(rates)[read_margin(margin, stakes)[0]])
    if len(curve):
        second = _second_class(margin, curve)
        return np.asarray((1.0 - second) * rates[0] + second * rates[1])
    return np.where(margin > 0, rates[1], rates[0])


KINDS = (ByUncertainty, Constant, ByMargin, ByForest, BySureness, ByAdvantage)


def ranking_values(ranking: Ranking) -> dict[str, Any]:
    """A ranking as plain values and arrays.

    Parameters
    ----------
    ranking : Ranking
        One of this file.

    Returns
    -------
    values : dict
    """
    values = {
        name: vars(value) if isinstance(value, ForestArrays) else value
        for name, value in vars(ranking).items()
    }
    if isinstance(ranking, BySureness):
        values["inner"] = ranking_values(ranking.inner)
    return {"kind": type(ranking).__name__, **values}


def ranking_from(values: dict[str, Any]) -> Ranking:
    """The ranking with these values.

    Parameters
    ----------
    values : dict
        From `ranking_values`.

    Returns
    -------
    ranking : Ranking
    """
    kinds: dict[str, Any] = {kind.__name__: kind for kind in KINDS}
    own: dict[str, Any] = {}
    for name, value in values.items():
        if name == "inner":
            own[name] = ranking_from(value)
        elif name != "kind":
            own[name] = forest_from(value) if isinstance(value, dict) else value
    ranking: Ranking = kinds[values["kind"]](**own)
    return ranking
