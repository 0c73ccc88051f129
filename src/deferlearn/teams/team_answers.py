"""The team's answers: the human's where a case is deferred, else the machine's."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deferlearn._utils.types import Bools
from deferlearn.humans.answers import as_array, check_answers, find_missing
from deferlearn.humans.human import check_length
from deferlearn.humans.losses import majority_labels

Answers = ArrayLike | Callable[[NDArray[np.int64]], ArrayLike]


def team_labels(
    machine: NDArray[Any],
    deferred: Bools,
    human_labels: Answers,
    classes: NDArray[Any],
) -> NDArray[Any]:
    """The machine's answers with the human's in the deferred rows.

    A function is asked once, for the positions of the deferred rows, and not at all if there are none.
    """
    if human_labels is None:
        raise ValueError(
            "human_labels is None, but a team needs the human's answers: give the answers to these cases, "
            "or a function that is asked about the deferred ones. The machine alone is predict(X)."
        )
    team = machine.copy()
    positions = np.flatnonzero(deferred)
    if callable(human_labels):
        if len(positions) == 0:
            return team
        answers = as_array(human_labels(positions))
        check_length(answers, "the answer of human_labels", len(positions), "it was asked for")
    else:
        answers = as_array(human_labels)
        check_length(answers, "human_labels", len(machine), "X has")
        answers = answers[positions]
    if len(positions) == 0:
        return team
    table = check_answers(answers, "human_labels")
    unanswered = find_missing(table).all(axis=1)
    if unanswered.any():
        raise ValueError(
            f"Row {positions[unanswered][0]} is deferred, but human_labels has no answer for it (nor for "
            f"{unanswered.sum() - 1} other deferred rows): the team has none either. Ask a human, or put "
            "the machine's predict(X) there if it may stand in."
        )
    team[positions] = classes[_codes(majority_labels(table), classes, positions)]
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
