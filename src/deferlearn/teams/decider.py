"""What a fitted team needs to decide, as arrays: no estimator, and no compiled engine."""

from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from deferlearn._utils.types import Array, Bools
from deferlearn.teams.budget import count_of
from deferlearn.teams.machine_arrays import Decides, machine_from, machine_values
from deferlearn.teams.ranking import Ranking, ranking_from, ranking_values
from deferlearn.teams.threshold import Threshold, first_of


class Judged(NamedTuple):
    """What is known about cases that are decided one by one.

    Attributes
    ----------
    decision, score : ndarray of shape (n_cases,)
        The machine's decision values, and the deferral scores.
    deferred : ndarray of bool of shape (n_cases,)
        Whether a human takes the case.
    expected : pair of ndarray or None
        How likely machine and human are to err, if the team has learned it.
    """

    decision: Array
    score: Array
    deferred: Bools
    expected: tuple[Array, Array] | None = None


@dataclass(frozen=True, eq=False)
class Decider:
    """A fitted team that can decide, and do nothing else.

    `Team.decider` makes it. Its methods are those of the team and give the same results, up to rounding.
    They take checked features: a two-dimensional array of finite numbers.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
        The labels; the second is the positive class.
    machine : Decides
        The machine.
    ranking : Ranking
        How it ranks cases.
    threshold : Threshold
        Which scores are deferred.
    budget : float
        The share of a batch that `defer_top` defers.
    only_gains : bool
        Whether `defer_top` leaves out cases that humans are not expected to decide better.
    """

    classes_: NDArray[Any]
    machine: Decides
    ranking: Ranking
    threshold: Threshold
    budget: float
    only_gains: bool = False

    @property
    def deferral_threshold_(self) -> float:
        """`defer` defers cases with a score above it."""
        return self.threshold.value

    def judge(self, X: Array) -> Judged:
        """All that is known about cases, in one pass."""
        decision = self.machine.decision_function(X)
        score, expected = self.ranking.rank(X, decision)
        return Judged(decision, score, self.threshold.apply(score, X), expected)

    def decision_function(self, X: Array) -> Array:
        """The machine's decision values; see `Team.decision_function`."""
        return self.machine.decision_function(X)

    def deferral_score(self, X: Array) -> Array:
        """How much each case belongs with a human; see `Team.deferral_score`."""
        return self.ranking.rank(X, self.machine.decision_function(X)).scores

    def defer(self, X: Array) -> Bools:
        """Whether a human should take each case; see `Team.defer`."""
        return self.judge(X).deferred

    def defer_top(self, X: Array, budget: float | int | None = None) -> Bools:
        """The cases of this batch that belong most with a human; see `Team.defer_top`."""
        count = count_of(self.budget if budget is None else budget, len(X), "cases")
        score = self.deferral_score(X)
        top = first_of(score, 0 if self.threshold.value == np.inf else count)
        return top & (score > 0) if self.only_gains else top

    def expected_errors(self, X: Array) -> tuple[Array, Array] | None:
        """How likely machine and human are to err; None if the team has not learned it."""
        return self.ranking.rank(X, self.machine.decision_function(X)).expected

    def values(self) -> dict[str, Any]:
        """All of it as plain values and arrays, for `from_values`."""
        return {
            "classes": self.classes_.tolist(),
            "machine": machine_values(self.machine),
            "ranking": ranking_values(self.ranking),
            "threshold": vars(self.threshold),
            "budget": self.budget,
            "only_gains": self.only_gains,
        }

    @classmethod
    def from_values(cls, values: dict[str, Any]) -> Self:
        """The decider with these values."""
        return cls(
            classes_=np.array(values["classes"]),
            machine=machine_from(values["machine"]),
            ranking=ranking_from(values["ranking"]),
            threshold=Threshold(**values["threshold"]),
            budget=float(values["budget"]),
            only_gains=bool(values["only_gains"]),
        )
