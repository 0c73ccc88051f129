"""What the report is given, checked before anything is fitted: that takes long, and mistakes do not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import column_or_1d

from deferlearn._utils.checks import is_number
from deferlearn.evaluation.intervals import Floats, Index
from deferlearn.humans import majority_labels
from deferlearn.humans.answers import as_array, check_answers, find_missing, match
from deferlearn.humans.labels import binary_labels
from deferlearn.metrics import team_cost
from deferlearn.teams.refits import check_budgets

Bools = NDArray[np.bool_]

# More values than that are a measurement, and hardly any of them would have cases enough.
MAX_SUBGROUPS = 20
NO_VALUE = "(missing)"


@dataclass(frozen=True)
class Prices:
    """What errors and the human's time cost, by the names of `deferlearn.metrics.team_cost`."""

    false_positive: float
    false_negative: float
    deferral_cost: float

    @property
    def plain(self) -> bool:
        """Whether the cost is the error."""
        return (self.false_positive, self.false_negative, self.deferral_cost) == (1.0, 1.0, 0.0)

    @property
    def largest(self) -> float:
        """Of one error."""
        return max(self.false_positive, self.false_negative)

    def of_errors(self, positive: Bools) -> Floats:
        """Price of a wrong answer to each case."""
        return np.where(positive, float(self.false_negative), float(self.false_positive))


@dataclass(frozen=True)
class Answers:
    """Truth and human, for every row of the data.

    Attributes
    ----------
    y : ndarray
        True labels.
    classes : ndarray of shape (2,)
        The labels, in their order.
    pos_label : label
        The positive one.
    truth, human : ndarray of bool
        Whether the label is the positive one; of the human where there is an answer.
    read : ndarray of bool
        Whether anybody answered.
    labels : ndarray
        The human's answers as labels; where nobody answered, the truth holds the place.
    n_readers : int
        How many humans.
    """

    y: NDArray[Any]
    classes: NDArray[Any]
    pos_label: Any
    truth: Bools
    human: Bools
    read: Bools
    labels: NDArray[Any]
    n_readers: int


def check_labels(y: Any, human_labels: Any, pos_label: Any) -> Answers:
    """Two classes, and one answer a case: the majority of the readers."""
    array = as_array(y)
    if array.ndim == 1 and find_missing(array).any():
        row = np.flatnonzero(find_missing(array))[0]
        raise ValueError(f"y must be complete, row {row} has no label: leave such cases out")
    labels = column_or_1d(array)
    if labels.dtype.kind == "O":
        labels = np.array(labels.tolist())
    classes, signs = binary_labels(labels)
    positive = _positive_class(classes, pos_label)
    table = check_answers(human_labels, "human_labels", len(labels))
    read = np.asarray(~find_missing(table).all(axis=1))
    if not read.any():
        raise ValueError("human_labels holds no answer at all: there is no human to judge")
    said = majority_labels(table, default=labels)
    second = match(said, (classes[0].item(), classes[1].item()), "human_labels")
    is_second = positive == classes.tolist()[1]
    return Answers(
        labels,
        classes,
        positive,
        (signs > 0) == is_second,
        second == is_second,
        read,
        classes[second.astype(np.intp)],
        table.shape[1],
    )


def _positive_class(classes: NDArray[Any], pos_label: Any) -> Any:
    known = classes.tolist()
    if pos_label is None:
        if classes.dtype.kind not in "biuf":
            raise ValueError(
                f"which of the classes {known} is the positive one, that sensitivity and false "
                f"negatives speak of? Say pos_label={known[0]!r} or pos_label={known[1]!r}"
            )
        return known[1]
    if pos_label not in known:
        raise ValueError(f"pos_label={pos_label!r} is none of the classes {known}")
    return known[known.index(pos_label)]


def check_prices(
    answers: Answers, false_positive: float, false_negative: float, deferral_cost: float
) -> Prices:
    """Prices that `team_cost` takes, and that do not make every answer free."""
    prices = Prices(false_positive, false_negative, deferral_cost)
    for name, price in asdict(prices).items():
        if not is_number(price):
            raise ValueError(f"{name} is a price: give a number >= 0, got {price!r}")
    everybody = np.ones(len(answers.truth), dtype=bool)
    codes = answers.truth.astype(np.int64), answers.human.astype(np.int64)
    team_cost(*codes, everybody, pos_label=1, **asdict(prices))
    if prices.largest == 0:
        raise ValueError("if no error costs anything, there is nothing to gain: raise a price")
    return prices


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
                f"human_error_factors must be finite numbers >= 0, got {factor!r}: 2 asks what if "
                "humans err twice as often"
            )
    return sorted({float(factor) for factor in array.tolist()} | {1.0})


def check_gain(min_gain: float) -> float:
    """The least gain that is worth the name."""
    if not is_number(min_gain) or min_gain < 0:
        raise ValueError(f"min_gain must be a number >= 0, got {min_gain!r}")
    return float(min_gain)


def group_codes(groups: Any, n: int) -> Index:
    """A number for each group; every case its own without groups."""
    if groups is None:
        return np.arange(n)
    array = as_array(groups)
    if array.shape != (n,):
        raise ValueError(f"groups must name a group for each of the {n} cases, got {array.shape}")
    missing = find_missing(array)
    if missing.any():
        raise ValueError(f"groups must be complete, row {np.flatnonzero(missing)[0]} has no group")
    codes = {name: code for code, name in enumerate(dict.fromkeys(array.tolist()))}
    if len(codes) < 2:
        raise ValueError("all cases belong to one group: nothing can be learned without it")
    return np.array([codes[name] for name in array.tolist()])


def subgroup_values(subgroup: Any, X: Any, n: int) -> tuple[str, list[Any]] | None:
    """Name of the column, and a value for each case."""
    if subgroup is None:
        return None
    name = "subgroup"
    if isinstance(subgroup, str):
        columns = list(getattr(X, "columns", []))
        if subgroup not in columns:
            found = f"the columns are {columns[:10]}" if columns else "X is no table with columns"
            raise ValueError(
                f"subgroup={subgroup!r} names no column of X ({found}): give a column's name, or an "
                "array with a value for each case"
            )
        name, subgroup = subgroup, X[subgroup]
    array = as_array(subgroup)
    if array.shape != (n,):
        raise ValueError(
            f"subgroup must hold a value for each of the {n} cases, got the shape {array.shape}"
        )
    missing = find_missing(array)
    values = [
        NO_VALUE if gap else value for value, gap in zip(array.tolist(), missing, strict=True)
    ]
    if len(set(values)) > MAX_SUBGROUPS:
        raise ValueError(
            f"subgroup has {len(set(values))} values, more than {MAX_SUBGROUPS}: few cases would have "
            "the same one. Put them into classes first, as numpy.digitize or pandas.cut do"
        )
    return name, values
