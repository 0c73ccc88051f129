"""The answers of the experts to whom cases were given."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deferlearn.experts.answers import NO_ANSWER, ExpertAnswers, read_answers
from deferlearn.experts.groups import Groups, settle
from deferlearn.experts.transport import MACHINE, Places
from deferlearn.humans.coding import Codes

# A function that is given rows and an expert's name.
Asked = Callable[[NDArray[np.int64], str], ArrayLike]


def team_codes(
    places: Places,
    machine: Codes,
    answers: Any,
    groups: Groups,
    experts: tuple[str, ...],
    classes: NDArray[Any],
    cases: Any = None,
) -> Codes:
    """The team's answers: those of the experts who take a case, else the machine's.

    Parameters
    ----------
    places : ndarray of int of shape (n_cases,)
        The option that takes each case, -1 for the machine.
    machine : ndarray of int of shape (n_cases,)
        The machine's answers.
    answers : callable, DataFrame, dict of columns or array-like
        As in `ExpertTeam.predict_assisted`.
    groups : Groups
        The options.
    experts : tuple of str
        Names.
    classes : ndarray of shape (n_classes,)
        Labels.
    cases : array-like or None, default=None
        Names of the cases in a long table; None: 0, 1, ....

    Returns
    -------
    codes : ndarray of int of shape (n_cases,)
    """
    table = None
    if not callable(answers):
        table = read_answers(answers, len(machine), experts, cases).codes(classes)

    def ask(rows: NDArray[np.int64], e: int) -> Codes:
        said = _told(answers, rows, experts[e], classes) if table is None else table[rows, e]
        missing = np.flatnonzero(said == NO_ANSWER)
        if len(missing):
            raise ValueError(
                f"Row {rows[missing[0]]} goes to {experts[e]!r}, but answers has no answer of this expert "
                f"for it ({len(missing)} such rows): ask for it, or give a function that does."
            )
        return said

    team = machine.copy()
    rows = np.flatnonzero(places != MACHINE)
    readers = groups.members[places[rows]]
    said = np.empty(readers.shape, dtype=np.int64)
    for e in np.unique(readers):
        where = readers == e
        said[where] = ask(rows[where.any(axis=1)], int(e))
    last = machine[rows]
    team[rows], needed = settle(said, last)
    asked = needed > 0
    if groups.arbiter >= 0 and asked.any():
        team[rows[asked]] = ask(rows[asked], groups.arbiter)
    return team


def _told(answers: Asked, rows: NDArray[np.int64], name: str, classes: NDArray[Any]) -> Codes:
    given = np.asarray(answers(rows, name))
    if given.shape != rows.shape:
        raise ValueError(
            f"answers gave an array of the shape {given.shape} for {len(rows)} cases of {name!r}: return "
            "one answer per row."
        )
    # As part of a whole column, so that an error names the row.
    column: NDArray[Any] = np.full((int(rows.max(initial=-1)) + 1, 1), None, dtype=object)
    column[rows, 0] = given
    return ExpertAnswers((name,), column).codes(classes)[rows, 0]
