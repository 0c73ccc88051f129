"""How fitted teams rank cases, as arrays: numpy is all that it takes.

Each ranking gives the scores of the team that it was made from, bit for bit.
"""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from deferlearn._utils.types import Array
from deferlearn.teams.forest_arrays import ForestArrays


class Ranking(Protocol):
    """Scores of cases from their features and the machine's decision values."""

    def scores(self, X: Array, margin: Array) -> Array:
        """How much each case belongs with a human."""
        ...


@dataclass(frozen=True, eq=False)
class ByUncertainty:
    """The less sure the machine is, the higher: `UncertaintyTriage`."""

    def scores(self, X: Array, margin: Array) -> Array:
        """The negative distance from the boundary."""
        return -np.abs(margin)


@dataclass(frozen=True, eq=False)
class Constant:
    """All cases are alike: `FullAutomation`, and a policy that had nothing to learn from."""

    value: float

    def scores(self, X: Array, margin: Array) -> Array:
        """The same score for every case."""
        return np.full(len(margin), self.value)


@dataclass(frozen=True, eq=False)
class ByMargin:
    """A linear function of the margin, or of its size: a `DeferralPolicy` that sees nothing else."""

    signed: bool
    centre: float
    scale: float
    slope: float
    offset: float

    def scores(self, X: Array, margin: Array) -> Array:
        """The standardised margin times the slope, plus the offset."""
        seen = margin if self.signed else np.abs(margin)
        return (seen - self.centre) / self.scale * self.slope + self.offset


@dataclass(frozen=True, eq=False)
class ByForest:
    """A forest's probability of "deferred": a `DeferralPolicy` that is a forest."""

    forest: ForestArrays
    features: str
    signed: bool

    def scores(self, X: Array, margin: Array) -> Array:
        """The mean of the trees."""
        if self.features == "x":
            return self.forest.mean(X)
        column = (margin if self.signed else np.abs(margin))[:, None]
        return self.forest.mean(column if self.features == "margin" else np.hstack([X, column]))


@dataclass(frozen=True, eq=False)
class ByAdvantage:
    """What the machine's answer is expected to cost more than the human's: `AdvantageTriage`.

    Attributes
    ----------
    hair : float
        What tells equal differences apart.
    steps : list of two pairs of ndarray
        The machine's expected cost by how sure it is, for each of its answers.
    rates : list of two floats
        The human's, for each answer of the machine.
    machine, human : ForestArrays or None
        Forests instead of steps and of rates.
    """

    hair: float
    steps: Any
    rates: Any
    machine: ForestArrays | None
    human: ForestArrays | None

    def scores(self, X: Array, margin: Array) -> Array:
        """The difference of the expected costs."""
        machine, human = self.expected(X, margin)
        sure = np.abs(margin)
        return machine - human - self.hair * sure / (1.0 + sure)

    def expected(self, X: Array, margin: Array) -> tuple[Array, Array]:
        """What the machine's answer and the human's are expected to cost."""
        positive, sure = margin > 0, np.abs(margin)
        if self.machine is not None:
            machine = self.machine.mean(np.hstack([X, margin[:, None]]))
        else:
            no, yes = (np.interp(sure, *steps) for steps in self.steps)
            machine = np.where(positive, yes, no)
        if self.human is not None:
            return machine, self.human.mean(X)
        return machine, np.where(positive, self.rates[1], self.rates[0])


KINDS = (ByUncertainty, Constant, ByMargin, ByForest, ByAdvantage)


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
    own = {
        name: ForestArrays(**value) if isinstance(value, dict) else value
        for name, value in values.items()
        if name != "kind"
    }
    ranking: Ranking = kinds[values["kind"]](**own)
    return ranking
