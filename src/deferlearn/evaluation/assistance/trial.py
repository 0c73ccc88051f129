"""What happened to each case when a team was fitted without it: who answered, and how often wrongly."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from deferlearn._utils.types import Array, Bools, Index
from deferlearn.evaluation.assistance.inputs import Answers
from deferlearn.humans.coding import codes_among
from deferlearn.metrics.counts import check_deferred
from deferlearn.teams.held_out import Split, splitter_of
from deferlearn.teams.refits import SplitData, budget_name, refit

# Number of folds and of their repetitions if no `cv` is given. Repetitions reduce the luck of the folds.
FOLDS = 5
REPEATS = 2


@dataclass(frozen=True, kw_only=True)
class Kinds:
    """The classes of the cases and of the answers to them, as positions among the classes.

    Attributes
    ----------
    labels : list
        The classes; from the lowest to the highest if they are grades.
    graded : bool
        Whether they are grades.
    truth, human : ndarray of int of shape (n_cases,)
        The true class of each case, and the human's answer.
    tested : ndarray of int of shape (n_tests,)
        The true class in each test; a case may be tested several times.
    answers : ndarray of int of shape (n_budgets, n_tests)
        The team's answers in these tests.
    off : ndarray of shape (n_budgets, n_cases)
        By how many grades the team is off, as a mean over the tests of a case.
    place : ndarray of int of shape (n_tests,)
        The place of the tested case among all cases that were judged.
    """

    labels: list[Any]
    graded: bool
    truth: Index
    human: Index
    tested: Index
    answers: NDArray[np.int64]
    off: Array
    place: Index


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
        Whether the case is positive, which none is if there are more than two classes; and whether the
        human errs.
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
    kinds : Kinds or None
        The classes of cases and answers, if there are more than two.
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
    kinds: Kinds | None = None

    @property
    def classes(self) -> Index:
        """The class of each case as a number: of two, 1 is the positive one."""
        return self.positive.astype(np.int64) if self.kinds is None else self.kinds.truth

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return 2 if self.kinds is None else len(self.kinds.labels)

    def costs_by(self, matrix: Array) -> Array:
        """What the team's answers cost by a cost matrix, as a mean over the tests of each case.

        Parameters
        ----------
        matrix : ndarray of shape (n_classes, n_classes)
            A row per true class and a column per answer.

        Returns
        -------
        costs : ndarray of shape (n_budgets, n_cases)
        """
        kinds, n = self.kinds, len(self.rows)
        assert kinds is not None  # of two classes there are costs of two kinds of errors
        times = np.bincount(kinds.place, minlength=n)
        sums = [np.bincount(kinds.place, matrix[kinds.tested, said], n) for said in kinds.answers]
        return np.array(sums) / times

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
    said = []
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
        said.append([part.answers for part in row])
    rows = np.flatnonzero(times)
    several = len(answers.classes) > 2
    wrong, deferred, machine_wrong = counts[:, :, rows] / times[rows]
    return Trial(
        budgets=levels,
        rows=rows,
        positive=np.zeros(len(rows), dtype=bool) if several else answers.truth[rows] == 1,
        human_wrong=(answers.human != answers.truth)[rows],
        wrong=wrong,
        deferred=deferred,
        machine_wrong=machine_wrong,
        group=answers.group[rows],
        n_train=float(np.mean([len(train) for train, _ in judged])),
        n_splits=len(judged),
        kinds=_kinds(answers, [test for _, test in judged], said, rows) if several else None,
    )


def _kinds(answers: Answers, tests: list[Index], said: list[Any], rows: Index) -> Kinds:
    """The classes of the cases and of all answers to them."""
    tested = np.concatenate(tests)
    codes = np.array(
        [
            np.concatenate([codes_among(np.asarray(a), answers.classes, "predict") for a in level])
            for level in zip(*said, strict=True)
        ]
    )
    times = np.bincount(tested, minlength=len(answers.y))[rows]
    off = [np.bincount(tested, np.abs(a - answers.truth[tested]), len(answers.y)) for a in codes]
    return Kinds(
        labels=answers.classes.tolist(),
        graded=answers.graded,
        truth=answers.truth[rows],
        human=answers.human[rows],
        tested=answers.truth[tested],
        answers=codes,
        off=np.array(off)[:, rows] / times,
        place=np.searchsorted(rows, tested),
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


def class_order(estimator: Any) -> Any:
    """The team's parameter ``classes``, which says whether classes are grades; "auto" without one."""
    name = str(budget_name(estimator)).removesuffix("budget") + "classes"
    return estimator.get_params().get(name, "auto")
