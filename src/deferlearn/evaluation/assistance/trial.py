"""What happened to each case when a team was fitted without it: who answered, and how often wrong."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from deferlearn.evaluation.intervals import Floats, Index
from deferlearn.teams.held_out import Split, splitter_of
from deferlearn.teams.refits import SplitData, TestPart, budget_name, refit

Bools = NDArray[np.bool_]

# Folds and their repeats if no `cv` is given. Repeats take out some of the luck of the folds.
FOLDS = 5
REPEATS = 2


@dataclass(frozen=True)
class Trial:
    """One column a case that was judged, one row a budget; the first row is the machine alone.

    A case may have been tested several times, by repeated folds: numbers are means over its tests.

    Attributes
    ----------
    budgets : list
        The first is 0.
    rows : ndarray of int
        Of which row of the data a column tells.
    positive, human_wrong : ndarray of bool
        The truth, and whether the human errs.
    wrong, deferred : ndarray of shape (n_budgets, n_cases)
        Share of its tests in which the team was wrong, and in which the human took the case.
    machine_wrong : ndarray of shape (n_budgets, n_cases)
        Share in which the human took a case that the machine alone gets wrong.
    group : ndarray of int
        Cases with the same number belong together.
    n_train : float
        Mean number of training cases.
    n_splits : int
        Number of splits.
    """

    budgets: list[float | int]
    rows: Index
    positive: Bools
    human_wrong: Bools
    wrong: Floats
    deferred: Floats
    machine_wrong: Floats
    group: Index
    n_train: float
    n_splits: int

    @property
    def widening(self) -> float:
        """Of the variance of what a fitted machine is part of; see `_intervals`."""
        return 1.0 + len(self.rows) / self.n_train


def run_trial(
    estimator: Any,
    data: SplitData,
    truth: Bools,
    human: Bools,
    read: Bools,
    group: Index,
    splits: Sequence[Split],
    budgets: Sequence[float | int],
    *,
    batch: bool,
    n_jobs: int | None,
) -> Trial:
    """Fit on every split at every budget; `truth` and `human` say whether the label is positive."""
    # A deferred case that nobody has read has no answer: such cases are there to learn from only.
    judged = [(train, test[read[test]]) for train, test in splits]
    judged = [(train, test) for train, test in judged if len(test)]
    if not judged:
        raise ValueError(
            f"there is no case to judge by: of {len(splits)} test parts none has a case that a human "
            "answered. Give another cv=, or more answers"
        )
    levels = [0.0 if isinstance(budgets[0], float) else 0, *budgets]
    parts = refit(estimator, data, judged, levels, batch, n_jobs, stacklevel=4)
    n = len(truth)
    times = np.zeros(n)
    wrong, deferred, machine_wrong = (np.zeros((len(levels), n)) for _ in range(3))
    human_wrong = human != truth
    for (_, test), row in zip(judged, parts, strict=True):
        times[test] += 1
        errors = np.array([_is_wrong(part, data.y[test]) for part in row])
        taken = np.array([_mask(part, len(test)) for part in row])
        if taken[0].any():
            raise ValueError(
                f"at a budget of 0 {type(estimator).__name__} still defers {taken[0].sum()} of "
                f"{len(test)} cases, so it is unknown what the machine would do alone"
            )
        wrong[:, test] += errors
        deferred[:, test] += taken
        machine_wrong[:, test] += taken & errors[0]
    rows = np.flatnonzero(times)
    return Trial(
        levels,
        rows,
        truth[rows],
        human_wrong[rows],
        wrong[:, rows] / times[rows],
        deferred[:, rows] / times[rows],
        machine_wrong[:, rows] / times[rows],
        group[rows],
        float(np.mean([len(train) for train, _ in judged])),
        len(judged),
    )


def make_splits(
    cv: Any, X: Any, y: NDArray[Any], groups: Any, classes: NDArray[Any], random_state: Any
) -> list[Split]:
    """Training and test rows; every training part has both classes."""
    counts = {label: int(np.sum(y == label)) for label in classes.tolist()}
    few = min(counts, key=lambda label: counts[label])
    n_folds = FOLDS if cv is None else cv
    if isinstance(n_folds, int | np.integer) and counts[few] < n_folds:
        raise ValueError(
            f"the class {few!r} has {counts[few]} cases, fewer than the {n_folds} folds: give a smaller "
            "cv=, or gather more cases"
        )
    if cv is None:
        rng = check_random_state(random_state)
        seeds = rng.randint(np.iinfo(np.int32).max, size=REPEATS)
        splitters = [splitter_of(FOLDS, y, groups, int(seed)) for seed in seeds]
    else:
        splitters = [splitter_of(cv, y, groups, random_state)]
    splits = [
        (np.asarray(train), np.asarray(test))
        for splitter in splitters
        for train, test in splitter.split(X, y, groups)
    ]
    for number, (train, _) in enumerate(splits):
        present = np.unique(y[train]).tolist()
        if len(present) < 2:
            raise ValueError(
                f"in split {number} all {len(train)} training cases have the class "
                f"{present[0] if present else None!r}, and nothing can be learned: use fewer folds, a "
                "stratified splitter, or groups that hold both classes"
            )
    return splits


def check_estimator(estimator: Any) -> None:
    """Refuse what is no team, or a team for which a budget means nothing."""
    if isinstance(estimator, type) or not hasattr(estimator, "get_params"):
        raise TypeError(
            f"give an estimator such as AssistedSVC(), got {estimator!r}; an instance, not a class"
        )
    if budget_name(estimator) is None:
        raise ValueError(
            f"{type(estimator).__name__} has no parameter 'budget', so there is no more or less of "
            "assistance to compare: give AssistedSVC, UncertaintyTriage or another team that has one"
        )


def _is_wrong(part: TestPart, truth: NDArray[Any]) -> Bools:
    return np.asarray(part.answers != truth, dtype=bool)


def _mask(part: TestPart, n: int) -> Bools:
    if part.deferred.shape != (n,) or part.deferred.dtype != bool:
        raise ValueError(
            f"defer and defer_top must give a boolean mask of {n} cases, got the shape "
            f"{part.deferred.shape} of type {part.deferred.dtype}"
        )
    return part.deferred
