"""All methods of the paper on one split: wrong answers and F1 at every budget.

The two algorithms are run as `AssistedSVC(cv=None)` would, but for all budgets at once, because runs of
one objective share their states. The team's answers follow the paper's batch rule: of the test
cases, the top ones of the policy's ranking go to the human, the same share as was deferred in training.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import f1_score
from sklearn.model_selection import StratifiedKFold
from sklearn.utils import check_random_state

from deferlearn._parameters import count_of
from deferlearn._threshold import first_of
from deferlearn.baselines import FullAutomation, PredictedErrorTriage, UncertaintyTriage
from deferlearn.experiments.data import Split
from deferlearn.objective import SVMObjective
from deferlearn.policy import resolve_policy
from deferlearn.selection import (
    SelectionResult,
    States,
    distorted_greedy,
    stochastic_distorted_greedy,
    submodularity_sweep,
)

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Row = dict[str, Any]

ALGORITHMS = ("distorted", "stochastic")
BASELINES = ("uncertainty", "predicted", "full", "humans")

# The policy that ranks by the absolute margin, smallest first, and learns nothing.
NEAREST = "nearest"


@dataclass(frozen=True)
class Selecting:
    """How the algorithms select, and which policy learns from it.

    Attributes
    ----------
    ratio : the submodularity ratio, or "sweep"
    delta, epsilon : as in `Config`
    policies : "mlp", "margin", or "nearest": each of them is tried with every selection
    stop_early : whether a selection ends at the first round without a positive score, as the
        authors' program does
    seed : of random samples and of the policy
    """

    ratio: float | str
    delta: float
    epsilon: float
    policies: tuple[str, ...]
    stop_early: bool
    seed: int

    @classmethod
    def of(cls, parameters: dict[str, Any]) -> Selecting:
        """From a job's parameters."""
        return cls(
            parameters["submodularity_ratio"],
            parameters["delta"],
            parameters["epsilon"],
            tuple(parameters.get("policies", ())),
            parameters["protocol"] == "published",
            # As `AssistedSVC(random_state=seed)` has it.
            int(check_random_state(parameters["seed"]).randint(np.iinfo(np.int32).max)),
        )

    def select(
        self, algorithm: str, objective: SVMObjective, loss: Floats, n: int, states: States
    ) -> SelectionResult:
        """Select at most n samples."""
        options: dict[str, Any] = {"states": states}
        greedy: Any = distorted_greedy
        if algorithm == "stochastic":
            greedy = stochastic_distorted_greedy
            options |= {"epsilon": self.epsilon, "random_state": self.seed}
        if self.ratio == "sweep":
            options |= {"delta": self.delta, "algorithm": greedy}
            return submodularity_sweep(objective, loss, n, **options)
        return greedy(objective, loss, n, self.ratio, **options)

    def picks(self, result: SelectionResult) -> list[int]:
        """The deferred samples in their order."""
        order = [int(k) for k in result.order]
        if not self.stop_early:
            return order
        taken = [i.picked for i in result.iterations]
        return order[: taken.index(-1)] if -1 in taken else order


def objective_of(split: Split, alpha: float) -> SVMObjective:
    """The machine on all training samples."""
    return SVMObjective(split.X_train, split.y_train, alpha=alpha, **split.kernel)


def choose_alpha(split: Split, alphas: Sequence[float], folds: int, seed: int) -> float:
    """The lambda with the fewest errors under full automation, by cross-validation.

    Parameters
    ----------
    split : Split
        Of which the training part is used.
    alphas : sequence of float
        Candidates; of equally good ones the largest wins, which is the simplest machine.
    folds : int
        How many.
    seed : int
        Of the folds.

    Returns
    -------
    alpha : float
    """
    if len(alphas) == 1:
        return float(alphas[0])
    X, y = split.X_train, split.y_train
    parts = list(StratifiedKFold(folds, shuffle=True, random_state=seed).split(X, y))
    wrong = {}
    for alpha in sorted(alphas, reverse=True):
        wrong[alpha] = 0
        for train, test in parts:
            machine = SVMObjective(X[train], y[train], alpha=alpha, **split.kernel)
            wrong[alpha] += int(np.sum(signs_of(machine.decision_function(X[test])) != y[test]))
    return float(min(wrong, key=wrong.__getitem__))


def selections(
    split: Split, alpha: float, algorithm: str, budgets: Sequence[float], how: Selecting
) -> Iterator[tuple[float, int, list[int], SelectionResult, float]]:
    """For each budget: the share, n, the picks, the result, and the seconds it took."""
    objective = objective_of(split, alpha)
    states = States(objective)
    for budget in budgets:
        n = count_of(float(budget), len(split.y_train))
        start = perf_counter()
        result = how.select(algorithm, objective, split.loss, n, states)
        yield budget, n, how.picks(result), result, perf_counter() - start


def algorithm_rows(
    split: Split, alpha: float, algorithm: str, budgets: Sequence[float], how: Selecting
) -> Iterator[Row]:
    """The teams that an algorithm trains, at every budget and with every policy."""
    for budget, n, picks, result, seconds in selections(split, alpha, algorithm, budgets, how):
        machine, deferred = machine_without(split, alpha, picks)
        margin = machine.decision_function(split.X_test)
        count = count_of(len(picks) / len(deferred), len(margin))
        for policy in how.policies:
            start = perf_counter()
            score = _rank(split, machine, deferred, margin, policy, how.seed)
            yield {
                "method": algorithm,
                "policy": policy,
                "budget": budget,
                "alpha": alpha,
                "n": n,
                "n_deferred": len(picks),
                "ratio": result.submodularity_ratio,
                "value": result.value,
                **judge(split, signs_of(margin), first_of(score, count)),
                "seconds": seconds + perf_counter() - start,
            }


def machine_without(split: Split, alpha: float, picks: Sequence[int]) -> tuple[SVMObjective, Bools]:
    """The machine that is left when these training samples are deferred, and their mask."""
    machine = objective_of(split, alpha)
    deferred = np.zeros(len(split.y_train), dtype=bool)
    for k in picks:
        machine.remove(k)
        deferred[k] = True
    return machine, deferred


def baseline_rows(split: Split, alpha: float, budgets: Sequence[float], seed: int) -> Iterator[Row]:
    """The paper's four baselines at every budget."""
    settings = {"alpha": alpha, **split.kernel}
    fitted: dict[str, Any] = {
        "uncertainty": UncertaintyTriage(cv=None, random_state=seed, **settings),
        "predicted": PredictedErrorTriage(cv=None, random_state=seed, **settings),
        "full": FullAutomation(**settings),
    }
    n_train, n_test = len(split.y_train), len(split.y_test)
    for name in BASELINES:
        start = perf_counter()
        team = fitted.get(name)
        machine, score = split.answers, np.zeros(n_test)
        if team is not None:
            team.fit(split.X_train, split.y_train, human_scores=split.scores)
            machine, score = team.predict(split.X_test), team.deferral_score(split.X_test)
        seconds = perf_counter() - start
        for budget in budgets:
            share = {"full": 0.0, "humans": 1.0}.get(name, float(budget))
            n = count_of(share, n_train)
            # As many as the algorithms may ask: the share that they deferred in training.
            asked = first_of(score, count_of(n / n_train, n_test))
            yield {
                "method": name,
                "policy": "",
                "budget": budget,
                "alpha": alpha,
                "n": n,
                "n_deferred": 0,
                "ratio": None,
                "value": None,
                **judge(split, machine, asked),
                "seconds": seconds,
            }


def judge(split: Split, machine: NDArray[Any], asked: Bools) -> Row:
    """Wrong answers and F1 of the team on the test cases."""
    answer = np.where(asked, split.answers, machine)
    wrong = int(np.sum(answer != split.y_test))
    return {
        "n_test": len(answer),
        "n_asked": int(asked.sum()),
        "wrong": wrong,
        "error": wrong / len(answer),
        "f1": float(f1_score(split.y_test, answer, zero_division=0.0)),
    }


def signs_of(margin: Floats) -> NDArray[np.int64]:
    """The machine's answers, -1 or +1."""
    return np.where(margin > 0, 1, -1)


def _rank(
    split: Split, machine: SVMObjective, deferred: Bools, margin: Floats, policy: str, seed: int
) -> Floats:
    """How much each test case belongs with a human."""
    if policy == NEAREST:
        return -np.abs(margin)
    model = resolve_policy(policy)
    model.fit(split.X_train, machine.decision_function(split.X_train), deferred, seed)
    return model.deferral_score(split.X_test, margin)
