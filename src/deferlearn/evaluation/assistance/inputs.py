"""The inputs of the report, checked before anything is fitted, because fitting takes long."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import column_or_1d

from deferlearn._utils.checks import is_number
from deferlearn._utils.types import Array, Bools, Index
from deferlearn.evaluation.checks import check_budgets
from deferlearn.humans import majority_labels
from deferlearn.humans.answers import as_array, check_answers, find_missing, match
from deferlearn.humans.coding import (
    GRADES,
    check_cost_matrix,
    code_classes,
    codes_among,
    grades_in,
)
from deferlearn.humans.labels import binary_labels
from deferlearn.metrics.counts import check_costs

# A column with more values than that is a measurement, and few cases would share a value.
MAX_SUBGROUPS = 20
NO_VALUE = "(missing)"


@dataclass(frozen=True)
class Costs:
    """Costs of errors and of the human's time, by the names of `deferlearn.metrics.team_cost`."""

    false_positive: float = 1.0
    false_negative: float = 1.0
    deferral_cost: float = 0.0
    cost_matrix: tuple[tuple[float, ...], ...] | None = None

    def __post_init__(self) -> None:
        check_costs(
            false_positive=self.false_positive,
            false_negative=self.false_negative,
            deferral_cost=self.deferral_cost,
        )
        if self.largest == 0:
            raise ValueError(
                "all errors cost 0, so there is nothing to gain: give at least one kind of error a cost"
            )

    @classmethod
    def of(cls, given: "Costs", cost_matrix: Any, answers: "Answers") -> "Costs":
        """The costs with a cost matrix; of two classes it is the costs of their two errors."""
        given.check_for(len(answers.classes))
        if cost_matrix is None:
            return given
        if (given.false_positive, given.false_negative) != (1, 1):
            raise ValueError("give either cost_matrix, or false_positive and false_negative")
        costs = check_cost_matrix(cost_matrix, answers.classes.tolist())
        if np.diag(costs).any():
            raise ValueError(
                "cost_matrix must have zeros on its diagonal: a right answer costs nothing, and the cost "
                "of human time is deferral_cost"
            )
        if len(costs) > 2:
            rows = tuple(tuple(row) for row in costs.tolist())
            return replace(given, cost_matrix=rows)
        positive = answers.classes.tolist().index(answers.pos_label)
        return replace(
            given,
            false_negative=float(costs[positive, 1 - positive]),
            false_positive=float(costs[1 - positive, positive]),
        )

    def check_for(self, n_classes: int) -> None:
        """Refuse costs that tell two kinds of errors apart where there are more."""
        if n_classes > 2 and self.false_positive != self.false_negative:
            raise ValueError(
                f"false_positive={self.false_positive:g} and false_negative={self.false_negative:g} are "
                f"costs for two classes, but y has {n_classes}: give the same number for both, which is "
                "then the cost of any error"
            )

    @property
    def largest(self) -> float:
        """The largest cost of an error."""
        if self.cost_matrix is not None:
            return max(max(row) for row in self.cost_matrix)
        return max(self.false_positive, self.false_negative)

    def of_errors(self, positive: Bools) -> Array:
        """The cost of a wrong answer to each case."""
        return np.where(positive, float(self.false_negative), float(self.false_positive))


@dataclass(frozen=True, kw_only=True)
class Answers:
    """Truth and human, for every row of the data.

    Attributes
    ----------
    y : ndarray
        True labels.
    classes : ndarray of shape (n_classes,)
        The labels, in their order.
    graded : bool
        Whether there are more than two, which are grades.
    pos_label : label
        The positive one of two; None if there are more.
    truth, human : ndarray of int
        The place of the true label, and of the human's answer, among the classes. Of two classes, the
        positive one is 1 and the other 0.
    read : ndarray of bool
        Whether at least one human answered.
    labels : ndarray
        The human's answers as labels; the true label where there is no answer.
    n_readers : int
        Number of humans.
    group : ndarray of int
        Cases with the same number belong together.
    """

    y: NDArray[Any]
    classes: NDArray[Any]
    graded: bool
    pos_label: Any
    truth: Index
    human: Index
    read: Bools
    labels: NDArray[Any]
    n_readers: int
    group: Index


def check_labels(
    y: Any, human_labels: Any, pos_label: Any, groups: Any, order: Any = "auto"
) -> Answers:
    """The classes, and one answer per case: that of the majority of the readers.

    ``order`` is the estimator's parameter ``classes``, by which labels are grades.
    """
    order = grades_in(y, order)
    array = as_array(y)
    if array.ndim == 1:
        check_complete("y", array, "label")
    labels = column_or_1d(array)
    if labels.dtype.kind == "O":
        labels = np.array(labels.tolist())
    several = len(np.unique(labels)) > 2
    if several:
        coding, truth = code_classes(labels, order)
        classes, graded = coding.classes, coding.kind == GRADES
        if pos_label is not None:
            raise ValueError(
                f"pos_label={pos_label!r} is for two classes, but y has {len(classes)}: leave it out"
            )
        positive = None
    else:
        classes, signs = binary_labels(labels)
        graded, positive = False, _positive_class(classes, pos_label)
    table = check_answers(human_labels, "human_labels", len(labels))
    read = np.asarray(~find_missing(table).all(axis=1))
    if not read.any():
        raise ValueError("human_labels holds no answer at all, so there is no human to judge")
    answers = majority_labels(table, default=labels)
    if several:
        human = codes_among(as_array(answers), classes, "human_labels")
        said = classes[human]
    else:
        second = match(answers, (classes[0].item(), classes[1].item()), "human_labels")
        is_second = positive == classes.tolist()[1]
        truth = ((signs > 0) == is_second).astype(np.int64)
        human = (second == is_second).astype(np.int64)
        said = classes[second.astype(np.intp)]
    return Answers(
        y=labels,
        classes=classes,
        graded=graded,
        pos_label=positive,
        truth=truth,
        human=human,
        read=read,
        labels=said,
        n_readers=table.shape[1],
        group=group_codes(groups, len(labels)),
    )


def check_complete(name: str, values: NDArray[Any], what: str) -> None:
    """Refuse gaps."""
    missing = np.flatnonzero(find_missing(values))
    if len(missing):
        raise ValueError(
            f"{name} must be complete, but row {missing[0]} has no {what}: leave such cases out"
        )


def _positive_class(classes: NDArray[Any], pos_label: Any) -> Any:
    known = classes.tolist()
    if pos_label is None:
        if classes.dtype.kind not in "biuf":
            raise ValueError(
                f"which of the classes {known} is the positive one, to which sensitivity and false "
                f"negatives refer? Give pos_label={known[0]!r} or pos_label={known[1]!r}"
            )
        return known[1]
    if pos_label not in known:
        raise ValueError(f"pos_label={pos_label!r} is none of the classes {known}")
    return known[known.index(pos_label)]


def check_levels(budgets: ArrayLike) -> list[float | int]:
    """The budgets above 0, each once, from small to large; 0 is always measured."""
    levels = sorted({budget for budget in check_budgets(budgets) if budget > 0})
    if not levels:
        raise ValueError(f"give at least one budget above 0, got {budgets!r}")
    return levels


def check_factors(factors: Sequence[float]) -> list[float]:
    """Factors of the human error, each once, from small to large; 1 is always among them."""
    array = np.asarray(factors, dtype=object)
    if array.ndim != 1:
        raise ValueError(f"human_error_factors must be a sequence of numbers, got {factors!r}")
    for factor in array.tolist():
        if not is_number(factor) or factor < 0:
            raise ValueError(
                f"human_error_factors must be finite numbers >= 0, got {factor!r}; with 2, for "
                "example, humans err twice as often"
            )
    return sorted({float(factor) for factor in array.tolist()} | {1.0})


def group_codes(groups: Any, n: int) -> Index:
    """A number for each group; without groups every case is a group of its own."""
    if groups is None:
        return np.arange(n)
    array = as_array(groups)
    if array.shape != (n,):
        raise ValueError(f"groups must hold one group for each of the {n} cases, got {array.shape}")
    check_complete("groups", array, "group")
    codes = {name: code for code, name in enumerate(dict.fromkeys(array.tolist()))}
    if len(codes) < 2:
        raise ValueError("all cases belong to one group, so no group can be held out")
    return np.array([codes[name] for name in array.tolist()])


def subgroup_values(subgroup: Any, X: Any, n: int) -> tuple[str | None, list[Any]]:
    """Name of the column, and a value for each case; no name and no values without subgroups."""
    if subgroup is None:
        return None, []
    name = "subgroup"
    if isinstance(subgroup, str):
        columns = list(getattr(X, "columns", []))
        if subgroup not in columns:
            found = f"the columns are {columns[:10]}" if columns else "X is no table with columns"
            raise ValueError(
                f"subgroup={subgroup!r} names no column of X ({found}): give the name of a column, or "
                "an array with a value for each case"
            )
        name, subgroup = subgroup, X[subgroup]
    array = as_array(subgroup)
    if array.shape != (n,):
        raise ValueError(
            f"subgroup must hold a value for each of the {n} cases, got the shape {array.shape}"
        )
    gaps = find_missing(array)
    values = [NO_VALUE if gap else value for value, gap in zip(array.tolist(), gaps, strict=True)]
    if len(set(values)) > MAX_SUBGROUPS:
        raise ValueError(
            f"subgroup has {len(set(values))} values, more than {MAX_SUBGROUPS}, so few cases share "
            "one: put the values into classes first, for example with numpy.digitize or pandas.cut"
        )
    return name, values
