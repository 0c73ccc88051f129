"""What a fitted team needs to decide, as arrays: no estimator, and no compiled engine."""

from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from deferlearn._utils.types import Array, Bools
from deferlearn._utils.votes import answers_by_votes
from deferlearn.teams.budget import count_of
from deferlearn.teams.machine_arrays import Decides, machine_from, machine_values
from deferlearn.teams.odds import class_probabilities, odds_from, odds_values
from deferlearn.teams.ranking import Ranking, ranking_from, ranking_values, read_margin
from deferlearn.teams.threshold import Threshold, first_of


class Judged(NamedTuple):
    """What is known about cases that are decided one by one.

    Attributes
    ----------
    decision : ndarray of shape (n_cases,), with more than two classes (n_cases, n_columns)
        The machine's decision values.
    score : ndarray of shape (n_cases,)
        The deferral scores.
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
    classes_ : ndarray of shape (n_classes,)
        The labels; if there are two, the second is the positive class.
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
    stakes : ndarray of shape (n_classes, n_classes), or empty
        With several classes, what each answer (column) to a case of each class (row) costs: the machine
        gives the answer of least expected cost. Empty if its decision values are votes.
    odds : callable or None
        From decision values to probabilities; see `deferlearn.teams.odds.class_probabilities`.
    """

    classes_: NDArray[Any]
    machine: Decides
    ranking: Ranking
    threshold: Threshold
    budget: float
    only_gains: bool = False
    stakes: Any = ()
    odds: Any = None

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

    def answers(self, decision: Array) -> NDArray[Any]:
        """The machine's answers by its decision values; see `Team.predict`."""
        if len(self.stakes):
            said = read_margin(decision, self.stakes)[0]
        else:
            said = answers_by_votes(decision, len(self.classes_))
        return np.asarray(self.classes_[said])

    def probabilities(self, decision: Array) -> Array:
        """The probability of each class by decision values, NaN if it is not known."""
        return class_probabilities(decision, self.odds, len(self.classes_))

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
            "stakes": self.stakes,
            "odds": odds_values(self.odds),
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
            stakes=values["stakes"],
            odds=odds_from(values["odds"]),
        )
