"""The classes of a problem: their order, the machines that tell them apart, and what mistakes cost."""

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets, type_of_target

from deferlearn._utils.checks import plain
from deferlearn._utils.products import row_products
from deferlearn._utils.types import Array
from deferlearn._utils.votes import answers_by_votes, right_votes
from deferlearn.humans.answers import (
    NUMERIC,
    WORD_HINT,
    WORDS_FOR_MISSING,
    as_objects,
    shown,
)

Codes = NDArray[np.int64]

# How classes are told apart: one machine for two; one against the rest for each of several; for ordered
# grades, one for each step from a grade to the next.
TWO, CLASSES, GRADES = "two", "classes", "grades"


@dataclass(frozen=True)
class Coding:
    """The classes, in order, and what it costs to mistake one for another.

    Attributes
    ----------
    classes : ndarray of shape (n_classes,)
        The labels; the code of a label is its place here.
    kind : {"two", "classes", "grades"}
        How machines tell them apart.
    costs : ndarray of shape (n_classes, n_classes)
        The cost of each answer (column) to a case of each class (row), in units of one error, divided by
        the weight of the class in training.
    weights : ndarray of shape (n_classes,)
        The weight of each class that its row of a cost matrix stands for; 1 without a cost matrix.
    graded : bool
        Whether the classes were given as grades, which two can be, too.
    stakes : ndarray of shape (n_classes, n_classes)
        The costs times the mean weight of the samples of each class. A machine that knows probabilities
        chooses its answer by them.
    """

    classes: NDArray[Any]
    kind: str
    costs: Array
    weights: Array
    stakes: Array
    graded: bool = False

    @property
    def several(self) -> bool:
        """Whether there are more than two classes."""
        return len(self.classes) > 2

    @property
    def n_machines(self) -> int:
        """One for two classes, one per class for more, or one per step from a grade to the next."""
        return len(self.classes) if self.kind == CLASSES else len(self.classes) - 1

    @property
    def hinge_per_error(self) -> float:
        """The hinge losses of one error, summed over the machines that are wrong about it by 2."""
        return 4.0 if self.kind == CLASSES else 2.0

    def signs(self, codes: Codes) -> Array:
        """What each machine should say (-1, +1), as columns: (n_samples, n_machines)."""
        if self.kind == TWO:
            return np.where(codes == 1, 1.0, -1.0)[:, None]
        return np.ascontiguousarray(right_votes(codes, len(self.classes), self.kind == GRADES).T)

    def by_votes(self, decision: Array) -> Codes:
        """Answers by decision values: of one machine, of one per class, or of one per step of a grade."""
        return answers_by_votes(decision, len(self.classes))

    def by_probability(self, log_probability: Array) -> Codes:
        """Answers of least expected cost, by the logarithms of probabilities."""
        return np.asarray(self.expected(log_probability).argmin(axis=1))

    def expected(self, log_probability: Array) -> Array:
        """The expected cost of each answer: (n_samples, n_classes)."""
        return row_products(np.exp(log_probability), self.stakes)

    def weighted(self, codes: Codes, weights: Array) -> Self:
        """The same with stakes by the mean weight of the samples of each class."""
        mean = mean_weights(codes, weights, len(self.classes))
        return replace(self, stakes=self.costs * mean[:, None])


def mean_weights(codes: Codes, weights: Array, n_classes: int) -> Array:
    """The mean weight of the samples of each class; 1 for a class without a sample."""
    count = np.bincount(codes, minlength=n_classes)
    total = np.bincount(codes, weights=weights, minlength=n_classes)
    return np.where(count > 0, total / np.maximum(count, 1), 1.0)


def code_classes(y: Any, classes: Any = "auto", cost_matrix: Any = None) -> tuple[Coding, Codes]:
    """The coding of labels, and their codes.

    Parameters
    ----------
    y : ndarray of shape (n_samples,)
        Labels.
    classes : {"auto", "grades"} or sequence of labels
        "auto": unordered. "grades": ordered as numbers are. A sequence: grades, in this order.
    cost_matrix : array-like of shape (n_classes, n_classes) or None
        What each answer (column) to a case of each class (row) costs, in units of one error.
    """
    check_classification_targets(y)
    kind = type_of_target(y, input_name="y", raise_unknown=True)
    if kind not in ("binary", "multiclass"):
        raise ValueError(f"y must hold one label per sample; its type is {kind!r}.")
    found = np.unique(y)
    graded = not (isinstance(classes, str) and classes == "auto")
    order = _order_of(classes, found) if graded else found
    if len(order) == 2:
        columns = list(getattr(cost_matrix, "columns", ()))
        if cost_matrix is not None and names_in_order(columns, found.tolist()) is None:
            _check_order_of_two(order, found)
        order = found  # two classes need no order: mistakes cost the same in either
    if len(found) < 2:
        raise ValueError(f"y has 1 class, {plain(found[0])!r}; at least two classes are needed.")
    codes = codes_among(y, order, "y")
    name = TWO if len(order) == 2 else GRADES if graded else CLASSES
    steps = np.abs(np.subtract.outer(np.arange(len(order)), np.arange(len(order)))).astype(float)
    plain_costs = steps if name == GRADES else np.minimum(steps, 1.0)
    if cost_matrix is None:
        weights = np.ones(len(order))
        return Coding(order, name, plain_costs, weights, plain_costs, graded), codes
    costs = _check_costs(cost_matrix, order)
    weights = costs.sum(axis=1) / plain_costs.sum(axis=1)
    return Coding(order, name, costs / weights[:, None], weights, costs, graded), codes


def grades_in(y: Any, classes: Any) -> Any:
    """The parameter ``classes``, with the order that an ordered pandas Categorical knows for "grades"."""
    kind = getattr(y, "dtype", None)
    if isinstance(classes, str) and classes == GRADES and getattr(kind, "ordered", False):
        there = set(as_objects(np.asarray(y)).tolist())
        return [label for label in kind.categories.tolist() if label in there]  # type: ignore[union-attr]
    return classes


def code_signs(signs: Array) -> tuple[Coding, Codes]:
    """The coding of -1 and +1, and the codes of such labels; one of them may be missing."""
    costs = 1.0 - np.eye(2)
    return Coding(np.array([-1, 1]), TWO, costs, np.ones(2), costs), (signs > 0).astype(np.int64)


def codes_among(values: NDArray[Any], classes: NDArray[Any], name: str) -> Codes:
    """The place of each label among the classes; a label that is none of them is an error."""
    labels = classes.tolist()
    if values.dtype.kind in NUMERIC and classes.dtype.kind in NUMERIC:
        at = np.searchsorted(np.sort(classes), values).clip(max=len(classes) - 1)
        codes = np.argsort(classes)[at]
        stray = classes[codes] != values
    else:
        # One by one: numpy compares numbers and strings of different kinds in surprising ways.
        place = {label: code for code, label in enumerate(labels)}
        said = [place.get(entry, -1) for entry in values.ravel().tolist()]
        codes = np.array(said, dtype=np.int64).reshape(values.shape)
        stray = codes < 0
    if stray.any():
        where = np.argwhere(stray)[0]
        entry = plain(values[tuple(where)])
        hint = WORD_HINT if entry in WORDS_FOR_MISSING else ""
        which = "neither of the two classes" if len(labels) == 2 else "none of the classes"
        raise ValueError(
            f"{name} holds {entry!r} at row {where[0]}, which is {which} {shown(labels)}{hint}"
        )
    return np.asarray(codes, dtype=np.int64)


def _order_of(classes: Any, found: NDArray[Any]) -> NDArray[Any]:
    """The grades in their order."""
    if isinstance(classes, str):
        if classes != GRADES:
            raise ValueError(
                f"classes={classes!r} must be 'auto', 'grades', or the grades in their order."
            )
        if found.dtype.kind not in NUMERIC and len(found) > 2:
            raise ValueError(
                f"classes='grades', but the labels {shown(found.tolist())} are words, whose order is not "
                "known: give the grades in their order, as in classes=['none', 'mild', 'severe']."
            )
        return found
    try:
        order = [plain(label) for label in classes]
        hash(tuple(order))
    except TypeError:
        raise ValueError(
            f"classes={classes!r} must be 'auto', 'grades', or the grades in their order."
        ) from None
    if len(set(order)) != len(order) or len(order) < 2:
        raise ValueError(f"classes={order!r} must be at least two different grades in their order.")
    missing = [plain(label) for label in found.tolist() if label not in order]
    if missing:
        raise ValueError(
            f"y holds {missing[0]!r}, which is none of the grades classes={order!r}; name all grades."
        )
    absent = [label for label in order if label not in found.tolist()]
    if absent:
        raise ValueError(
            f"classes={order!r}, but y has no sample of {absent[0]!r}: a grade that was never seen cannot "
            "be learned; leave it out."
        )
    return np.array(order, dtype=found.dtype if found.dtype.kind in "OUS" else None)


def _check_order_of_two(order: NDArray[Any], found: NDArray[Any]) -> None:
    """Refuse two grades whose costs would be taken in another order than the grades are given in."""
    if order.tolist() != found.tolist():
        raise ValueError(
            f"classes={order.tolist()!r} has two classes, which are sorted, so the rows and columns of "
            f"cost_matrix belong to {shown(found.tolist())}: give classes and cost_matrix in this order."
        )


def _check_costs(given: Any, order: NDArray[Any]) -> Array:
    costs = check_cost_matrix(given, order.tolist())
    if np.diag(costs).any():
        at = int(np.flatnonzero(np.diag(costs))[0])
        raise ValueError(
            f"cost_matrix has {costs[at, at]:g} on its diagonal, for class {plain(order[at])!r}: a right "
            "answer costs nothing. The cost of human time is deferral_cost."
        )
    empty = np.flatnonzero(costs.sum(axis=1) == 0)
    if len(empty):
        raise ValueError(
            f"cost_matrix has only zeros for class {plain(order[empty[0]])!r}: if no mistake on a class "
            "costs anything, it need not be told apart; leave it out, or give it a small cost."
        )
    return costs


def names_in_order(names: list[Any], classes: list[Any]) -> list[Any] | None:
    """The names of rows or columns in the order of the classes; None if the classes have other names.

    A table that was read from a file has numbers as text, so names are compared as text.
    """
    if names == classes:
        return names
    said, known = [str(name) for name in names], [str(label) for label in classes]
    if len(said) != len(known) or set(said) != set(known):
        return None
    return [names[said.index(label)] for label in known]


def check_cost_matrix(given: Any, classes: list[Any]) -> Array:
    """Costs as a matrix of finite numbers, 0 or larger, with a row and a column per class."""
    n = len(classes)
    for axis in ("index", "columns"):
        names = list(getattr(given, axis, ())) if hasattr(given, "columns") else []
        ordered = names_in_order(names, classes)
        if ordered is not None and ordered != names:
            where = f".loc[{ordered!r}]" if axis == "index" else f"[{ordered!r}]"
            raise ValueError(
                f"cost_matrix has the {axis} {shown(names)}, but the order of the classes is "
                f"{shown(classes)}: give cost_matrix{where}."
            )
        # Names that are only the numbers of the rows say nothing.
        if len(names) == n and ordered is None and names != list(range(n)):
            raise ValueError(
                f"cost_matrix has the {axis} {shown(names)}, but the classes are {shown(classes)}: name "
                "its rows and columns after the classes, or give an array in their order."
            )
    try:
        costs = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"cost_matrix must hold numbers: {error}") from None
    if costs.shape != (n, n):
        raise ValueError(
            f"cost_matrix has the shape {costs.shape}, but there are {n} classes: give ({n}, {n}), a row "
            f"per true class and a column per answer, in the order {shown(classes)}."
        )
    bad = np.argwhere(~(np.isfinite(costs) & (costs >= 0)))
    if len(bad):
        raise ValueError(
            f"cost_matrix must be finite and not negative, got {costs[tuple(bad[0])]:g} in row "
            f"{bad[0][0]}, column {bad[0][1]}."
        )
    return costs
