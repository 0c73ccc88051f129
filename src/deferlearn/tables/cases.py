"""Cases of a table: features, the truth, and what humans answered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deferlearn.humans import answers_from_table, majority_labels
from deferlearn.tables.cells import label_text
from deferlearn.tables.errors import CellError, TableError
from deferlearn.tables.frames import as_table

Labels = NDArray[Any]


@dataclass(frozen=True)
class Cases:
    """What a team is fitted on.

    Attributes
    ----------
    features : pyarrow.Table
        The columns that are neither labels, answers, identifiers nor groups.
    truth : ndarray of str of shape (n_cases,)
        True labels, as they are written in the table.
    classes : tuple of two str
        The labels.
    answers : ndarray of shape (n_cases, n_readers) or None
        What humans said; None in the gaps.
    readers : tuple of str
        Who they are.
    groups : ndarray of str or None
        Cases of one group, such as a patient, belong together.
    roles : dict
        Names of the columns that hold the label, the identifier and the group; None where there is none.
    n_unlabelled : int
        Rows of the table without a label, which are left out.
    """

    features: Any
    truth: Labels
    classes: tuple[str, str]
    answers: Labels | None
    readers: tuple[str, ...]
    groups: Labels | None
    roles: dict[str, str | None]
    n_unlabelled: int = 0

    def __len__(self) -> int:
        return len(self.truth)

    def part(self, rows: NDArray[np.int64]) -> Cases:
        """Some of the cases.

        Parameters
        ----------
        rows : ndarray of int
            Their positions.

        Returns
        -------
        Cases
        """
        return replace(
            self,
            features=self.features.take(rows),
            truth=self.truth[rows],
            answers=None if self.answers is None else self.answers[rows],
            groups=None if self.groups is None else self.groups[rows],
        )

    def human_answers(self, default: Labels) -> tuple[Labels, NDArray[np.bool_]]:
        """The readers' majority, and where there is one.

        Parameters
        ----------
        default : ndarray of str
            What stands where nobody answered.

        Returns
        -------
        answers : ndarray of str
        read : ndarray of bool
        """
        if self.answers is None:  # always right: nobody has said otherwise
            return self.truth, np.ones(len(self), dtype=bool)
        read = [any(answer is not None for answer in row) for row in self.answers]
        return majority_labels(self.answers, default=default), np.array(read, dtype=bool)

    def reader_errors(self) -> list[dict[str, Any]]:
        """How many answers each reader gave, and how many were wrong.

        Returns
        -------
        rows : list of dict
            With the keys reader, answers, wrong and error.
        """
        rows = []
        for place, reader in enumerate(self.readers):
            assert self.answers is not None
            column = self.answers[:, place]
            given = np.array([answer is not None for answer in column])
            wrong = int((column[given] != self.truth[given]).sum())
            n = int(given.sum())
            rows.append({"reader": reader, "answers": n, "wrong": wrong, "error": wrong / n})
        return rows


def select_cases(
    table: Any,
    label: str,
    *,
    humans: Sequence[str] = (),
    answers: Any = None,
    identifier: str | None = None,
    group: str | None = None,
) -> Cases:
    """Take a table apart into features, truth and answers.

    Parameters
    ----------
    table : DataFrame, dict of columns or pyarrow.Table
        One row a case.
    label : str
        Column of the true labels, two of them. Rows without one are left out.
    humans : sequence of str, default=()
        Columns of answers, one a reader; gaps are allowed.
    answers : DataFrame, dict of columns or pyarrow.Table, default=None
        One row an answer, with the columns case, reader and answer.
    identifier : str or None, default=None
        Column that names the cases, for `answers`; it is no feature.
    group : str or None, default=None
        Column that says which cases belong together; it is no feature.

    Returns
    -------
    Cases

    Examples
    --------
    >>> from deferlearn.tables import select_cases
    >>> table = {"age": [61, 48, 70], "truth": [1, 0, 1], "doctor": [1.0, 1.0, None]}
    >>> cases = select_cases(table, "truth", humans=["doctor"])
    >>> cases.truth.tolist(), cases.answers.tolist()
    (['1', '0', '1'], [['1'], ['1'], [None]])
    >>> cases.reader_errors()
    [{'reader': 'doctor', 'answers': 2, 'wrong': 1, 'error': 0.5}]
    """
    table = as_table(table)
    special = _special_columns(table, label, humans, identifier, group)
    truth = _texts(table, label)
    labelled = np.flatnonzero([value is not None for value in truth])
    classes = _two_classes([truth[row] for row in labelled], label)
    wide = {name: _texts(table, name) for name in humans}
    if answers is not None:
        if identifier is None:
            raise TableError("answers need an identifier: the column that names the cases")
        _merge(wide, _long_answers(as_table(answers), _identifiers(table, identifier), classes))
    for name, column in wide.items():
        _check_answers(name, column, classes)
    groups = None
    if group is not None:
        groups = np.array(_complete(_texts(table, group), group), dtype=object)
    everyone = np.array(list(wide.values()), dtype=object).T if wide else None
    cases = Cases(
        table.drop_columns(special),
        np.array(["" if value is None else value for value in truth]),
        classes,
        everyone,
        tuple(wide),
        groups,
        {"label": label, "identifier": identifier, "group": group},
        table.num_rows - len(labelled),
    ).part(labelled)
    _check_readers(cases)
    return cases


def _special_columns(
    table: Any, label: str, humans: Sequence[str], identifier: str | None, group: str | None
) -> list[str]:
    if isinstance(humans, str):
        raise TableError(f"humans={humans!r} must be a list of names")
    roles = [("label", label), *(("human", name) for name in humans)]
    roles += [("id", identifier)] if identifier is not None else []
    seen: dict[str, str] = {}
    for role, name in roles:
        if name not in table.column_names:
            raise TableError(f"there is no column {name!r}, named as {role}")
        if name in seen:
            raise TableError(f"column {name!r} is named as {seen[name]} and as {role}")
        seen[name] = role
    if group is not None:  # may well be the identifier's column
        if group not in table.column_names:
            raise TableError(f"there is no column {group!r}, named as group")
        if seen.get(group, "id") != "id":
            raise TableError(f"column {group!r} is named as {seen[group]} and as group")
        seen[group] = "group"
    return list(seen)


def _texts(table: Any, name: str) -> list[str | None]:
    return list(label_text(table.column(name)).to_pylist())


def _two_classes(values: list[str | None], label: str) -> tuple[str, str]:
    found = sorted({str(value) for value in values})
    if len(found) == 2:
        return found[0], found[1]
    if not found:
        raise TableError(f"the label column {label!r} is empty")
    if len(found) == 1:
        raise TableError(
            f"the label column {label!r} holds one class only, {found[0]!r}; two are needed"
        )
    shown = ", ".join(map(repr, found[:5])) + (", ..." if len(found) > 5 else "")
    raise TableError(
        f"the label column {label!r} holds {len(found)} classes ({shown}), but two are needed: join "
        "some, or leave rows out"
    )


def _complete(column: list[str | None], name: str) -> list[str]:
    if None in column:
        raise TableError(f"column {name!r} is empty in row {column.index(None) + 1}")
    return [str(value) for value in column]


def _identifiers(table: Any, identifier: str) -> list[str]:
    names = _complete(_texts(table, identifier), identifier)
    if len(set(names)) < len(names):
        seen: set[str] = set()
        twice = next(name for name in names if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise TableError(f"column {identifier!r} names more than one case {twice!r}")
    return names


def _long_answers(
    table: Any, identifiers: list[str], classes: tuple[str, str]
) -> dict[str, list[str | None]]:
    """A column for each reader of a table with one row an answer."""
    for name in ("case", "reader", "answer"):
        if name not in table.column_names:
            raise TableError(f"the answers have no column {name!r}")
    columns = {name: _texts(table, name) for name in ("case", "reader", "answer")}
    columns["case"] = _unguarded(columns["case"], set(identifiers))
    columns["answer"] = _unguarded(columns["answer"], set(classes))
    try:
        matrix, readers = answers_from_table(columns, identifiers)
    except ValueError as error:
        raise TableError(f"answers: {error}") from error
    return {str(reader): list(matrix[:, place]) for place, reader in enumerate(readers)}


def _unguarded(column: list[str | None], known: set[str]) -> list[str | None]:
    """Names without the apostrophe that `import-answers` puts before what a spreadsheet would run."""
    return [
        text[1:]
        if text is not None and text not in known and text[:1] == "'" and text[1:] in known
        else text
        for text in column
    ]


def _merge(wide: dict[str, list[str | None]], more: dict[str, list[str | None]]) -> None:
    """Add columns of answers; a reader who is there already gets the gaps filled."""
    for reader, column in more.items():
        own = wide.get(reader, [None] * len(column))
        for row, (old, new) in enumerate(zip(own, column, strict=True)):
            if old is not None and new is not None and old != new:
                raise TableError(
                    f"reader {reader!r} has two answers to the case in row {row + 1}: {old!r} and {new!r}"
                )
        wide[reader] = [new if old is None else old for old, new in zip(own, column, strict=True)]


def _check_answers(name: str, column: list[str | None], classes: tuple[str, str]) -> None:
    for row, answer in enumerate(column):
        if answer is not None and answer not in classes:
            raise CellError(
                name, row, answer, f"is neither of the classes {classes[0]!r} and {classes[1]!r}"
            )


def _check_readers(cases: Cases) -> None:
    for place, reader in enumerate(cases.readers):
        assert cases.answers is not None
        if all(answer is None for answer in cases.answers[:, place]):
            raise TableError(f"reader {reader!r} has answered none of the cases that have a label")
