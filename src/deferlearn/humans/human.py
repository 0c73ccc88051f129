"""The human as `fit` and `predict_assisted` are told of them: losses for the one, labels for the other."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.multiclass import check_classification_targets, type_of_target

from deferlearn.humans import loss_from_labels, loss_from_scores, majority_labels
from deferlearn.humans.answers import (
    as_array,
    check_answers,
    fill_gaps,
    find_missing,
    numbers_with_gaps,
)
from deferlearn.humans.averages import average_answers

Array = NDArray[np.float64]
Bools = NDArray[np.bool_]

Answers = ArrayLike | Callable[[NDArray[np.int64]], ArrayLike]


def losses_of(
    signs: Array,
    classes: NDArray[Any],
    *,
    human_loss: Any = None,
    human_scores: Any = None,
    human_labels: Any = None,
    human_bound: float | None = None,
) -> Array:
    """One human loss a sample from whichever of the three was given; none means always right."""
    given = {
        name: value
        for name, value in (
            ("human_loss", human_loss),
            ("human_scores", human_scores),
            ("human_labels", human_labels),
        )
        if value is not None
    }
    if len(given) > 1:
        raise ValueError(
            f"{' and '.join(given)} were given; they describe the same human, so give one of them."
        )
    if not given:
        return np.zeros(len(signs))
    ((name, value),) = given.items()
    if callable(value):
        raise ValueError(
            f"{name} is a function, but fit needs to know the human on every sample: give an array. "
            "A function is for predict_assisted, which asks it about the deferred cases."
        )
    table = as_array(value)
    _check_length(table, name, len(signs), "y has")
    if name == "human_loss":
        return _complete_losses(table, signs, classes)
    # `fit` has checked y: from here on it is -1 and +1 in floats, and whole numbers are labels.
    y = signs.astype(np.int64)
    if name == "human_scores":
        loss, truth = loss_from_scores(table, y, human_bound), y
        _warn_if_strange(fill_gaps(table), y, classes)
    else:
        truth = classes[(y + 1) // 2]
        loss = loss_from_labels(table, truth, classes=classes)
    _warn_if_copied(table, truth, name)
    return loss


def _complete_losses(table: NDArray[Any], signs: Array, classes: NDArray[Any]) -> Array:
    """Losses as given, and the average of the class where one is missing."""
    if table.ndim != 1:
        raise ValueError(
            f"human_loss must hold one number a sample, got the shape {table.shape}: average the "
            "readers' losses first, or give human_labels or human_scores."
        )
    loss = numbers_with_gaps(table, "human_loss")
    read = ~np.isnan(loss)
    bad = np.flatnonzero(read & ~((loss >= 0) & (loss < np.inf)))
    if len(bad):
        raise ValueError(
            f"human_loss must be finite and not negative, got {loss[bad[0]]:g} at row {bad[0]}."
        )
    return average_answers(
        loss[:, None], read[:, None], signs.astype(np.int64), (classes[0], classes[1]), 0.0
    )


def _warn_if_copied(table: NDArray[Any], truth: NDArray[Any], name: str) -> None:
    """Warn where nobody is ever wrong, or one reader who answered every case is not."""
    answers = check_answers(table, name)
    given = ~find_missing(answers)
    right = np.zeros(answers.shape, dtype=bool)
    right[given] = answers[given] == np.broadcast_to(truth[:, None], answers.shape)[given]
    always = np.flatnonzero(right.all(axis=0))
    everyone = bool(right[given].all())
    if len(always) or everyone:
        which = "" if everyone else f" of reader {always[0]}"
        warnings.warn(
            f"{name}{which} equals y everywhere: does y come from that very reader? Then it says "
            "nothing about how often the human errs.",
            UserWarning,
            stacklevel=4,
        )


def _warn_if_strange(scores: Array, y: NDArray[np.int64], classes: NDArray[Any]) -> None:
    """Warn of scores that mean something else: probabilities, or the other class by a plus."""
    given = ~np.isnan(scores)
    sides = np.sign(np.where(given, scores, 0.0)).reshape(len(y), -1) * y[:, None]
    plus = f"positive scores speak for {classes.tolist()[1]!r}, negative ones for {classes.tolist()[0]!r}"
    if np.sum(sides < 0) > np.sum(sides > 0):
        warnings.warn(
            f"human_scores are on the wrong side of 0 more often than on the right one: {plus}.",
            UserWarning,
            stacklevel=4,
        )
    elif given.any() and scores[given].min() >= 0 and len(np.unique(y)) > 1:
        warnings.warn(
            f"No human score is negative: {plus}. Probabilities p of {classes.tolist()[1]!r} become scores "
            "by 2 * p - 1.",
            UserWarning,
            stacklevel=4,
        )


def warn_if_reordered(X: Any, **answers: Any) -> None:
    """Warn of pandas' answers whose index holds the same names as that of X in another order.

    Positions count, as everywhere in scikit-learn, so such answers would go to the wrong cases.
    """
    cases = _pandas_index(X)
    for name, values in answers.items():
        index = _pandas_index(values)
        if cases is None or index is None or len(cases) != len(index) or cases.equals(index):
            continue
        if set(cases) == set(index):
            warnings.warn(
                f"{name} has the index of X in another order. Rows are matched by position, not by "
                f"index: give {name}.loc[X.index] if the index tells whose answer it is, or "
                f"{name}.to_numpy() if the position does.",
                UserWarning,
                stacklevel=3,
            )


def _pandas_index(values: Any) -> Any:
    """The index of a Series or DataFrame, None for all else: a list has an `index`, too."""
    index = getattr(values, "index", None)
    return index if hasattr(index, "equals") else None


def team_labels(
    machine: NDArray[Any], deferred: Bools, human_labels: Answers, classes: NDArray[Any]
) -> NDArray[Any]:
    """The machine's answers with the human's in the deferred rows.

    A function is asked once, for the positions of the deferred rows, and not at all if there are none.
    """
    if human_labels is None:
        raise ValueError(
            "human_labels is None, and a team needs its human: give the answers to these cases, or a "
            "function that is asked for those of the deferred ones. The machine alone is predict(X)."
        )
    team = machine.copy()
    positions = np.flatnonzero(deferred)
    if callable(human_labels):
        if len(positions) == 0:
            return team
        answers = as_array(human_labels(positions))
        _check_length(answers, "the answer of human_labels", len(positions), "it was asked for")
    else:
        answers = as_array(human_labels)
        _check_length(answers, "human_labels", len(machine), "X has")
        answers = answers[positions]
    if len(positions) == 0:
        return team
    table = check_answers(answers, "human_labels")
    nobody = find_missing(table).all(axis=1)
    if nobody.any():
        raise ValueError(
            f"Row {positions[nobody][0]} is deferred, but human_labels has no answer for it (nor for "
            f"{nobody.sum() - 1} other deferred rows): the team has none either. Ask a human, or put "
            "the machine's predict(X) there if it may stand in."
        )
    said = majority_labels(table)
    team[positions] = classes[_codes(said, classes, positions)]
    return team


def _codes(said: NDArray[Any], classes: NDArray[Any], positions: NDArray[np.int64]) -> Any:
    """0 or 1 for each answer."""
    values = said.tolist()
    is_first = np.array([value == classes[0] for value in values], dtype=bool)
    is_second = np.array([value == classes[1] for value in values], dtype=bool)
    stray = np.flatnonzero(~(is_first | is_second))
    if len(stray):
        raise ValueError(
            f"human_labels has {values[stray[0]]!r} at row {positions[stray[0]]}, which is neither of "
            f"the two classes {classes.tolist()}."
        )
    return is_second.astype(np.int64)


def _check_length(table: NDArray[Any], name: str, n: int, against: str) -> None:
    if table.ndim == 0 or len(table) != n:
        size = "no rows" if table.ndim == 0 else f"{len(table)} rows"
        raise ValueError(f"{name} has {size}, but {against} {n}: give one row a sample.")


def binary_labels(y: Any) -> tuple[NDArray[Any], Array]:
    """The two classes of y, and y as signs: +1 for the second."""
    check_classification_targets(y)
    kind = type_of_target(y, input_name="y", raise_unknown=True)
    classes, codes = np.unique(y, return_inverse=True)
    if len(classes) > 2 or kind != "binary":
        raise ValueError(
            "Only binary classification is supported. The type of the target is "
            f"{kind}: y has the {len(classes)} classes {classes.tolist()[:5]}."
        )
    if len(classes) < 2:
        raise ValueError(
            f"y has 1 class, {classes.tolist()[0]!r}; two classes are needed to tell apart."
        )
    return classes, np.where(codes == 1, 1.0, -1.0)


def check_truth(y: Any, classes: NDArray[Any]) -> NDArray[Any]:
    """True labels to judge by, if all are among the classes: 0 and 1 are no answers in -1 and +1."""
    truth = np.asarray(y)
    unknown = ~np.isin(truth, classes)
    if unknown.any():
        raise ValueError(
            f"y holds {truth[unknown].tolist()[0]!r}, but the model knows the classes "
            f"{classes.tolist()} only; give the labels it was fitted on."
        )
    return truth
