"""How the published Figure 5 was made, and the same samples used as the paper's text describes.

For budget n, the authors' program does not use the machine without the samples S(n) that were deferred at
this budget. It

1. trains a machine without the samples of the previous budget, S(n - 0.04);
2. fits logistic regression (C = 10) on this machine's absolute margin over the samples that it was trained
   on, to tell those in S(n), and ranks the test cases by it;
3. gives the top |S(n)| / |V| of the test cases to the human. The previous budget's machine answers the
   others.

The program that is published reads S(n - 0.04) from the results for step 1, as it does for step 3. The test
cases in the result files say otherwise for 0.12: there the ranking is that of a machine without one sample
less, 17 instead of 18 (Stare) and 33 instead of 34 (Aptos). Both are what `int((0.12 - 0.04) * n_train)`
gives, because 0.12 - 0.04 is 0.07999999999999999 in floating point. So the ranking must have been made
without the first `int((n - 0.04) * n_train)` samples of S(n), and that is what is done here.

The machine is scikit-learn's SVC with its tolerance, as in the program: with the exact machine, one point
(Aptos, stochastic, 0.12) differs.
"""

from collections.abc import Sequence
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC
from sklearn.utils import Bunch

from deferlearn._utils.types import Array, Bools, Index
from deferlearn.experiments.config import PUBLISHED_RATIO
from deferlearn.experiments.data import Split, published_run
from deferlearn.experiments.jobs import Row
from deferlearn.experiments.methods import (
    algorithm_rows,
    baseline_rows,
    judge,
    selection_row,
    team_rows,
)
from deferlearn.experiments.selecting import (
    ALGORITHMS,
    Selecting,
    Selection,
    machine_without,
    objective_of,
    selections,
)
from deferlearn.teams.parameters import count_of
from deferlearn.teams.threshold import first_of

# The policy of the published figure.
RECIPE = "published"
STEP = 0.04
POLICY_C = 10.0
# Numbers that were computed in another order can differ in the last bit.
SAME = 1e-12


def published_rows(split: Split, alpha: float, parameters: dict[str, Any]) -> list[Row]:
    """All methods as `method_rows` has them, on the samples that the authors' program deferred.

    At budgets that the authors did not run, the samples are our own, and there is no row of the recipe.

    Parameters
    ----------
    split : Split
        The published split with the authors' human.
    alpha : float
        Their lambda.
    parameters : dict
        The parameters of the job.

    Returns
    -------
    rows : list of dict
        Those of the recipe, and of triage, also hold the published `published_error` and
        `published_f1`; those of the recipe `same_picks`: 1 if our distorted greedy defers the same
        samples, 0 if not.
    """
    how, budgets = Selecting.of(parameters), parameters["budgets"]
    run = published_run(parameters["dataset"])
    stored = [budget for budget in budgets if budget in run.budgets]
    others = [budget for budget in budgets if budget not in run.budgets]
    rows: list[Row] = []
    for algorithm in ALGORITHMS:
        theirs = [stored_selection(split, alpha, run, algorithm, budget) for budget in stored]
        rows += team_rows(split, alpha, algorithm, theirs, how)
        rows += algorithm_rows(split, alpha, algorithm, others, how)
        ours = selections(split, alpha, algorithm, stored, how)
        for chosen, own in zip(theirs, ours, strict=True):
            row = recipe_row(split, alpha, run, algorithm, chosen)
            # The stochastic algorithm draws at random, so that its samples need not agree.
            comparable = algorithm == "distorted"
            row["same_picks"] = float(set(own.picks) == set(chosen.picks)) if comparable else None
            rows.append(row)
    for row in baseline_rows(split, alpha, budgets, parameters["seed"]):
        known = row["method"] in run.error and row["budget"] in run.budgets
        rows.append(row | (published_point(run, row["method"], row["budget"]) if known else {}))
    return rows


def stored_selection(
    split: Split, alpha: float, run: Bunch, algorithm: str, budget: float
) -> Selection:
    """The samples that the authors' program deferred."""
    picks = [int(k) for k in run.picks[algorithm][budget]]
    before, after = objective_of(split, alpha), machine_without(split, alpha, picks)[0]
    value = float(before.value - after.value - split.loss[picks].sum())
    n = count_of(budget, len(split.y_train))
    return Selection(budget, n, picks, value, PUBLISHED_RATIO, 0.0)


def recipe_row(split: Split, alpha: float, run: Bunch, algorithm: str, chosen: Selection) -> Row:
    """The team of a budget, as the authors' program puts it together."""
    start = perf_counter()
    n_train, n_test = len(split.y_train), len(split.y_test)
    answering, asked = svc_without(split, alpha, []), np.zeros(n_test, dtype=bool)
    if chosen.picks:
        place = run.budgets.index(chosen.budget)
        previous = run.picks[algorithm][run.budgets[place - 1]]
        # Not rounded: see the top of this file.
        first = chosen.picks[: int((chosen.budget - STEP) * n_train)]
        answering = svc_without(split, alpha, previous)
        score = ranked_by(svc_without(split, alpha, first), split, first, chosen.picks)
        asked = first_of(score, count_of(len(chosen.picks) / n_train, n_test))
    return {
        **selection_row(algorithm, RECIPE, alpha, chosen),
        **judge(split, answering.predict(split.X_test), asked),
        **published_point(run, algorithm, chosen.budget),
        "seconds": perf_counter() - start,
    }


def published_point(run: Bunch, method: str, budget: float) -> Row:
    """A point of the published figure."""
    return {"published_error": run.error[method][budget], "published_f1": run.f1[method][budget]}


def ranked_by(machine: SVC, split: Split, left_out: Any, picks: list[int]) -> Array:
    """How much each test case looks like the deferred samples, by the machine's absolute margin."""
    kept, deferred = ~_mask(split, left_out), _mask(split, picks)
    policy = LogisticRegression(C=POLICY_C)
    policy.fit(np.abs(machine.decision_function(split.X_train[kept]))[:, None], deferred[kept])
    features = np.abs(machine.decision_function(split.X_test))[:, None]
    return np.asarray(policy.decision_function(features), dtype=np.float64)


def svc_without(split: Split, alpha: float, left_out: Any) -> SVC:
    """The authors' machine without these training samples."""
    kept = ~_mask(split, left_out)
    machine = SVC(kernel="linear", C=1 / (2 * alpha * kept.sum()))
    return machine.fit(split.X_train[kept], split.y_train[kept])


def _mask(split: Split, rows: Index | list[int]) -> Bools:
    mask = np.zeros(len(split.y_train), dtype=bool)
    mask[np.asarray(rows, dtype=np.intp)] = True
    return mask


def points(rows: pd.DataFrame) -> pd.DataFrame:
    """Our points beside the published ones, without the first budget, at which nothing is deferred.

    Parameters
    ----------
    rows : DataFrame
        Rows of `published_rows`, of all data sets.

    Returns
    -------
    lines : DataFrame
        With the columns `same_point` and `same_picks`, "yes", "no" or empty.
    """
    if "published_error" not in rows:
        return pd.DataFrame()
    lines = rows[rows["published_error"].notna() & (rows["budget"] > 0)]
    away = np.maximum(
        (lines["error"] - lines["published_error"]).abs(),
        (lines["f1"] - lines["published_f1"]).abs(),
    )
    answers = {1.0: "yes", 0.0: "no"}
    lines = lines.assign(
        same_point=np.where(away < SAME, "yes", "no"),
        same_picks=[answers.get(value, "") for value in lines["same_picks"]],
    )
    names = ["error", "published_error", "f1", "published_f1", "same_point", "same_picks"]
    return lines[["dataset", "method", "budget", *names]].reset_index(drop=True)


def agreement(lines: pd.DataFrame, methods: Sequence[str], column: str) -> str:
    """How many of the points of these methods agree with the published ones, in words."""
    asked = lines[lines["method"].isin(methods) & (lines[column] != "")]
    return f"{(asked[column] == 'yes').sum()} of {len(asked)}"
