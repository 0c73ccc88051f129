"""The samples that the two algorithms defer on one split, at every budget.

The algorithms run as in `AssistedSVC`, but for all budgets at once, because runs on one objective share
their states.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Self

import numpy as np
from sklearn.utils import check_random_state

from deferlearn._utils.types import Array, Bools
from deferlearn.experiments.data import Split
from deferlearn.objective import SVMObjective
from deferlearn.selection import (
    SelectionResult,
    States,
    distorted_greedy,
    stochastic_distorted_greedy,
    submodularity_sweep,
)
from deferlearn.teams.parameters import count_of

ALGORITHMS = ("distorted", "stochastic")


@dataclass(frozen=True)
class Selecting:
    """How the algorithms select, and which policies learn from the selection.

    Attributes
    ----------
    ratio : float or "sweep"
        The submodularity ratio, or the search for one.
    delta, epsilon : float
        As in `Config`.
    policies : tuple of {"mlp", "margin", "signed", "nearest"}
        Policies, each of which is tried with every selection.
    stop_early : bool
        Whether a selection ends at the first round without a positive score, as the authors' program
        does.
    seed : int
        Seed of the stochastic algorithm and of the policy.
    """

    ratio: float | str
    delta: float = 0.1
    epsilon: float = 0.01
    policies: tuple[str, ...] = ()
    stop_early: bool = False
    seed: int = 0

    @classmethod
    def of(cls, parameters: dict[str, Any]) -> Self:
        """The settings in the parameters of a job."""
        return cls(
            parameters["submodularity_ratio"],
            parameters["delta"],
            parameters["epsilon"],
            tuple(parameters.get("policies", ())),
            parameters["protocol"] == "published",
            # The seed that `AssistedSVC(random_state=seed)` uses.
            int(check_random_state(parameters["seed"]).randint(np.iinfo(np.int32).max)),
        )

    def select(
        self,
        algorithm: str,
        objective: SVMObjective,
        loss: Array,
        n: int,
        states: States | None = None,
    ) -> SelectionResult:
        """Select at most n samples; runs with the same states share their work."""
        options: dict[str, Any] = {"states": states}
        greedy: Any = distorted_greedy
        if algorithm == "stochastic":
            greedy = stochastic_distorted_greedy
            options |= {"epsilon": self.epsilon, "random_state": self.seed}
        if self.ratio == "sweep":
            options |= {"delta": self.delta, "algorithm": greedy}
            return submodularity_sweep(objective, loss, n, **options)
        return greedy(objective, loss, n, self.ratio, **options)

    def n_picks(self, result: SelectionResult) -> int:
        """How many of the selected samples are deferred: all, unless the selection ends early."""
        taken = [i.picked for i in result.iterations]
        return taken.index(-1) if self.stop_early and -1 in taken else len(result.order)


@dataclass(frozen=True)
class Selection:
    """The samples that an algorithm defers at one budget.

    Attributes
    ----------
    budget : float
        The share n/|V|.
    n : int
        Largest number of samples that may be deferred.
    picks : list of int
        The deferred training samples, in the order of the selection.
    value : float
        Decrease of the loss of machine and human together.
    ratio : float
        The submodularity ratio that was used.
    seconds : float
        Time of the selection; it is shorter if an earlier budget has visited the same states.
    """

    budget: float
    n: int
    picks: list[int]
    value: float
    ratio: float
    seconds: float


def objective_of(split: Split, alpha: float) -> SVMObjective:
    """The machine on all training samples."""
    return SVMObjective(split.X_train, split.y_train, alpha=alpha, **split.kernel)


def selections(
    split: Split, alpha: float, algorithm: str, budgets: Sequence[float], how: Selecting
) -> Iterator[Selection]:
    """The samples that the algorithm defers, at each budget."""
    objective = objective_of(split, alpha)
    states = States(objective)
    for budget in budgets:
        n = count_of(float(budget), len(split.y_train))
        start = perf_counter()
        result = how.select(algorithm, objective, split.loss, n, states)
        count = how.n_picks(result)
        picks = [int(k) for k in result.order[:count]]
        value = result.value
        if count < len(result.order):
            value = float(result.gains[:count].sum() - split.loss[picks].sum())
        seconds = perf_counter() - start
        yield Selection(budget, n, picks, value, result.submodularity_ratio, seconds)


def machine_without(split: Split, alpha: float, picks: Sequence[int]) -> tuple[SVMObjective, Bools]:
    """The machine without these deferred training samples, and their mask."""
    machine = objective_of(split, alpha)
    deferred = np.zeros(len(split.y_train), dtype=bool)
    for k in picks:
        machine.remove(k)
        deferred[k] = True
    return machine, deferred
