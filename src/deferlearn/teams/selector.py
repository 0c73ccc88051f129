"""Which algorithm selects, with which options, once for all samples and once for each fold."""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

from deferlearn._utils.types import Array
from deferlearn.objective import Objective
from deferlearn.selection import (
    Iteration,
    SelectionResult,
    States,
    distorted_greedy,
    stochastic_distorted_greedy,
    submodularity_sweep,
    unconstrained_distorted_greedy,
)

SELECTIONS = ("distorted", "stochastic", "unconstrained")


@dataclass(frozen=True)
class Selector:
    """A selection algorithm with its options.

    Attributes
    ----------
    selection : {"distorted", "stochastic", "unconstrained"}
    ratio : the submodularity ratio, or "sweep"
    epsilon, delta, tol, min_kept_per_class : as in `AssistedSVC`
    seed : random seed; all runs of a sweep draw the same samples and so share states
    verbose : whether to print a line for every tenth of the rounds
    """

    selection: str
    ratio: float | str
    epsilon: float
    delta: float
    tol: float
    min_kept_per_class: int
    seed: int
    verbose: int = 0

    def run(
        self, objective: Objective, loss: Array, n: int, states: States | None = None
    ) -> tuple[SelectionResult, Any]:
        """Select at most n samples; returns the selection, and the objective without them.

        With ``states``, selections by other losses share what they find out about the objective.
        """
        options: dict[str, Any] = {"min_kept_per_class": self.min_kept_per_class}
        algorithm: Any = distorted_greedy
        if self.selection != "unconstrained":
            options["tol"] = self.tol
        if self.selection == "stochastic":
            algorithm = stochastic_distorted_greedy
            options |= {"epsilon": self.epsilon, "random_state": self.seed}
        elif self.selection == "unconstrained":
            algorithm = _unconstrained
            options["random_state"] = self.seed
        if self.verbose:
            options["callback"] = partial(_report, every=max(1, n // 10))
        states = States(objective, keep=self.ratio == "sweep") if states is None else states
        options["states"] = states
        if self.ratio == "sweep":
            result = submodularity_sweep(
                objective, loss, n, delta=self.delta, algorithm=algorithm, **options
            )
        else:
            result = algorithm(objective, loss, n, self.ratio, **options)
        return result, states.objective_after(result.order)

    def for_part(self, ratio: float, share: float) -> Self:
        """The same for a part of the samples: at the ratio found on all, with its share of the floor."""
        floor = round(self.min_kept_per_class * share)
        return replace(self, ratio=ratio, min_kept_per_class=floor, verbose=0)


def _unconstrained(
    objective: Objective,
    loss: Array,
    n: int,
    ratio: float,
    *,
    states: States | None = None,
    **options: Any,
) -> SelectionResult:
    """The unconstrained algorithm with the signature of the others; its budget is all samples."""
    return unconstrained_distorted_greedy(objective, loss, ratio, states=states, **options)


def _report(iteration: Iteration, every: int) -> None:
    if (iteration.index + 1) % every == 0:
        picked = f"sample {iteration.picked}" if iteration.picked >= 0 else "no sample"
        print(
            f"[AssistedSVC] round {iteration.index + 1}: deferred {picked}; {iteration.n_exact} of "
            f"{iteration.n_candidates} gains solved"
        )
