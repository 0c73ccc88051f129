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
    """The place of each answer among the classes."""
    places = {label: code for code, label in enumerate(classes.tolist())}
    codes = np.array([places.get(value, -1) for value in said.tolist()], dtype=np.int64)
    stray = np.flatnonzero(codes < 0)
    if len(stray):
        which = "neither of the two classes" if len(classes) == 2 else "none of the classes"
        raise ValueError(
            f"human_labels has {said.tolist()[stray[0]]!r} at row {positions[stray[0]]}, which is {which} "
            f"{classes.tolist()}."
        )
    return codes
