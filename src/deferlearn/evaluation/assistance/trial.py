"""What happened to each case when a team was fitted without it: who answered, and how often wrongly."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from deferlearn._utils.types import Array, Bools, Index
from deferlearn.evaluation.assistance.inputs import Answers
from deferlearn.metrics.counts import check_deferred
from deferlearn.teams.held_out import Split, splitter_of
from deferlearn.teams.refits import SplitData, budget_name, refit

# Number of folds and of their repetitions if no `cv` is given. Repetitions reduce the luck of the folds.
FOLDS = 5
REPEATS = 2


@dataclass(frozen=True, kw_only=True)
class Trial:
    """One column per case that was judged, one row per budget; the first row is the machine alone.

    Repeated folds may test a case several times: numbers are means over its tests.

    Attributes
    ----------
    budgets : list
        The budgets, of which the first is 0.
    rows : ndarray of int
        Row of the data that each column is about.
    positive, human_wrong : ndarray of bool
        Whether the case is positive, and whether the human errs.
    wrong, deferred : ndarray of shape (n_budgets, n_cases)
        Share of its tests in which the team was wrong, and in which the human took the case.
    machine_wrong : ndarray of shape (n_budgets, n_cases)
        Share of its tests in which the human took a case that the machine alone gets wrong.
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
    wrong: Array
    deferred: Array
    machine_wrong: Array
    group: Index
    n_train: float
    n_splits: int

    @property
    def widening(self) -> float:
        """Factor of the variance if a fitted machine is involved; see `deferlearn.evaluation.intervals`."""
        return 1.0 + len(self.rows) / self.n_train


def run_trial(
    estimator: Any,
    data: SplitData,
    answers: Answers,
    splits: Sequence[Split],
    budgets: Sequence[float | int],
    *,
    batch: bool,
    n_jobs: int | None,
) -> Trial:
    """Fit the estimator on every split at every budget, and count what happens to each test case."""
    # If a case without a human's answer is deferred, nothing answers it: such cases only train.
    judged = [(train, test[answers.read[test]]) for train, test in splits]
    judged = [(train, test) for train, test in judged if len(test)]
    if not judged:
        raise ValueError(
            f"there is no case to judge: of {len(splits)} test parts none has a case with a human's "
            "answer. Give another cv, or more answers"
        )
    levels = [0.0 if isinstance(budgets[0], float) else 0, *budgets]
    parts = refit(estimator, data, judged, levels, batch, n_jobs, stacklevel=4)
    n = len(answers.y)
    times = np.zeros(n)
    counts = np.zeros((3, len(levels), n))
    for (_, test), row in zip(judged, parts, strict=True):
        times[test] += 1
        errors = np.array([part.answers != data.y[test] for part in row], dtype=bool)
        taken = np.array([check_deferred(part.deferred, len(test)) for part in row])
        if taken[0].any():
            raise ValueError(
                f"at a budget of 0 {type(estimator).__name__} still defers {taken[0].sum()} of "
                f"{len(test)} cases, so the answers of the machine alone are unknown"
            )
        counts[:, :, test] += [errors, taken, taken & errors[0]]
    rows = np.flatnonzero(times)
    wrong, deferred, machine_wrong = counts[:, :, rows] / times[rows]
    return Trial(
        budgets=levels,
        rows=rows,
        positive=answers.truth[rows],
        human_wrong=(answers.human != answers.truth)[rows],
        wrong=wrong,
        deferred=deferred,
        machine_wrong=machine_wrong,
        group=answers.group[rows],
        n_train=float(np.mean([len(train) for train, _ in judged])),
        n_splits=len(judged),
    )


def make_splits(cv: Any, X: Any, y: NDArray[Any], groups: Any, random_state: Any) -> list[Split]:
    """Training and test rows; every training part has both classes."""
    labels, counts = np.unique(y, return_counts=True)
    few = int(counts.argmin())
    n_folds = FOLDS if cv is None else cv
    if isinstance(n_folds, int | np.integer) and counts[few] < n_folds:
        raise ValueError(
            f"the class {labels[few].item()!r} has {counts[few]} cases, fewer than the {n_folds} folds: "
            "give a smaller cv, or gather more cases"
        )
    seeds = [random_state]
    if cv is None:
        rng = check_random_state(random_state)
        seeds = rng.randint(np.iinfo(np.int32).max, size=REPEATS).tolist()
    splits = [
        (np.asarray(train), np.asarray(test))
        for seed in seeds
        for train, test in splitter_of(n_folds, y, groups, seed).split(X, y, groups)
    ]
    for number, (train, _) in enumerate(splits):
        present = np.unique(y[train]).tolist()
        if len(present) < 2:
            raise ValueError(
                f"in split {number} all {len(train)} training cases have the class "
                f"{present[0] if present else None!r}, so nothing can be learned: use fewer folds, a "
                "stratified splitter, or groups that hold both classes"
            )
    return splits


def check_estimator(estimator: Any) -> None:
    """Refuse what is no team, or a team without a budget."""
    if isinstance(estimator, type) or not hasattr(estimator, "get_params"):
        raise TypeError(
            f"give an estimator such as AssistedSVC(), an instance, not a class; got {estimator!r}"
        )
    if budget_name(estimator) is None:
        raise ValueError(
            f"{type(estimator).__name__} has no parameter 'budget', so there are no amounts of "
            "assistance to compare: give AssistedSVC, UncertaintyTriage or another team with a budget"
        )
