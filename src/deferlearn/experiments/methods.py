"""All methods of the paper on one split: wrong answers and F1 at every budget.

The team's answers follow the batch rule of the authors' program, which the paper does not mention: the test
cases at the top of the policy's ranking go to the human, the same share as was deferred in training.
"""

from collections.abc import Iterable, Iterator, Sequence
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.model_selection import StratifiedKFold

from deferlearn._utils.types import Array, Bools
from deferlearn.experiments.data import Split, retina
from deferlearn.experiments.jobs import Row
from deferlearn.experiments.selecting import (
    ALGORITHMS,
    Selecting,
    Selection,
    machine_without,
    objective_of,
    selections,
)
from deferlearn.objective import SVMObjective
from deferlearn.teams.parameters import count_of
from deferlearn.teams.policy import DeferralPolicy, resolve_policy
from deferlearn.teams.predicted_error import fit_error_model, probability_of_error
from deferlearn.teams.threshold import first_of

BASELINES = ("uncertainty", "predicted", "full", "humans")

# The policy that ranks by the absolute margin, smallest first, and learns nothing.
NEAREST = "nearest"
# The policy of the paper's appendix: one slope, no intercept, on the margin with its sign.
SIGNED = "signed"


def choose_alpha(split: Split, alphas: Sequence[float], folds: int, seed: int) -> float:
    """The lambda with the fewest errors under full automation, by cross-validation.

    Parameters
    ----------
    split : Split
        The split, of which only the training part is used.
    alphas : sequence of float
        Candidates; the largest of equally good ones wins, which is the simplest machine.
    folds : int
        Number of folds.
    seed : int
        Seed of the folds.

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


def alpha_of(split: Split, parameters: dict[str, Any]) -> float:
    """Lambda for a job on medical data: the authors' program's under "published", otherwise chosen."""
    p = parameters
    if p["protocol"] == "published":
        return float(retina(p["dataset"]).alpha)
    return choose_alpha(split, p["alphas"], p["folds"], p["seed"])


def method_rows(split: Split, alpha: float, parameters: dict[str, Any]) -> list[Row]:
    """Both algorithms and all baselines at every budget of a job."""
    how, budgets = Selecting.of(parameters), parameters["budgets"]
    rows: list[Row] = []
    for algorithm in ALGORITHMS:
        rows += algorithm_rows(split, alpha, algorithm, budgets, how)
    return [*rows, *baseline_rows(split, alpha, budgets, parameters["seed"])]


def algorithm_rows(
    split: Split, alpha: float, algorithm: str, budgets: Sequence[float], how: Selecting
) -> Iterator[Row]:
    """The teams that an algorithm trains, at every budget and with every policy."""
    chosen = selections(split, alpha, algorithm, budgets, how)
    return team_rows(split, alpha, algorithm, chosen, how)


def team_rows(
    split: Split, alpha: float, algorithm: str, selected: Iterable[Selection], how: Selecting
) -> Iterator[Row]:
    """The teams of these selections, with every policy."""
    for chosen in selected:
        machine, deferred = machine_without(split, alpha, chosen.picks)
        margin = machine.decision_function(split.X_test)
        count = count_of(len(chosen.picks) / len(deferred), len(margin))
        for policy in how.policies:
            start = perf_counter()
            score = _rank(split, machine, deferred, margin, policy, how.seed)
            yield {
                **selection_row(algorithm, policy, alpha, chosen),
                **judge(split, signs_of(margin), first_of(score, count)),
                "seconds": chosen.seconds + perf_counter() - start,
            }


def selection_row(algorithm: str, policy: str, alpha: float, chosen: Selection) -> Row:
    """What a row says of the selection behind a team."""
    return {
        "method": algorithm,
        "policy": policy,
        "budget": chosen.budget,
        "alpha": alpha,
        "n": chosen.n,
        "n_deferred": len(chosen.picks),
        "ratio": chosen.ratio,
        "value": chosen.value,
    }


def baseline_rows(split: Split, alpha: float, budgets: Sequence[float], seed: int) -> Iterator[Row]:
    """The paper's four baselines at every budget."""
    n_train, n_test = len(split.y_train), len(split.y_test)
    for name in BASELINES:
        start = perf_counter()
        machine = objective_of(split, alpha)
        margin = machine.decision_function(split.X_test)
        score = np.zeros(n_test)
        if name == "uncertainty":
            score = -np.abs(margin)
        elif name == "predicted":
            score = predicted_error_scores(split, machine, seed)
        seconds = perf_counter() - start
        for budget in budgets:
            share = {"full": 0.0, "humans": 1.0}.get(name, float(budget))
            n = count_of(share, n_train)
            # As many as for an algorithm that has used its full budget in training.
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
                **judge(split, signs_of(margin), asked),
                "seconds": seconds,
            }


def predicted_error_scores(split: Split, machine: SVMObjective, seed: int) -> Array:
    """Predicted error of the machine minus that of the human, by the labels of the paper's appendix.

    The machine errs where it differs from the human's answer, the human where two pairs of readers differ.

    Parameters
    ----------
    split : Split
        The split.
    machine : SVMObjective
        The machine on all training samples.
    seed : int
        Seed of the two perceptrons.

    Returns
    -------
    score : ndarray of shape (n_test,)
        Cases with the largest go to the human first.
    """
    said = signs_of(machine.decision_function(split.X_train))
    predicted = [
        probability_of_error(fit_error_model(split.X_train, errs, seed), split.X_test)
        for errs in (said != split.train_answers, split.readers_differ)
    ]
    return predicted[0] - predicted[1]


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


def signs_of(margin: Array) -> NDArray[np.int64]:
    """The machine's answers, -1 or +1; at 0 it is +1, as in the paper."""
    return np.where(margin >= 0, 1, -1)


def _rank(
    split: Split, machine: SVMObjective, deferred: Bools, margin: Array, policy: str, seed: int
) -> Array:
    """How much each test case should go to a human."""
    if policy == NEAREST:
        return -np.abs(margin)
    slope_only = DeferralPolicy(LogisticRegression(fit_intercept=False), signed=True)
    model = resolve_policy(slope_only if policy == SIGNED else policy)
    model.fit(split.X_train, machine.decision_function(split.X_train), deferred, seed)
    return model.deferral_score(split.X_test, margin)
