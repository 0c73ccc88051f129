"""Cases of a table: features, the truth, and what humans answered."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from deferlearn._utils.types import Bools, Labels
from deferlearn._utils.words import listed
from deferlearn.humans import answers_from_table, majority_labels
from deferlearn.tables.cells import label_text
from deferlearn.tables.errors import CellError, TableError
from deferlearn.tables.frames import as_table, missing_columns

Texts = list[str | None]


@dataclass(frozen=True)
class Cases:
    """The cases that a team is fitted on.

    Attributes
    ----------
    features : pyarrow.Table
        The columns that are neither labels, answers, identifiers nor groups. The score of a machine is one
        of them.
    truth : ndarray of str of shape (n_cases,)
        True labels, as they are written in the table.
    classes : tuple of two str
        The labels.
    answers : ndarray of shape (n_cases, n_readers) or None
        What humans answered; None where a reader gave no answer.
    readers : tuple of str
        Names of the readers.
    groups : ndarray of str or None
        Cases of one group, such as a patient, stay together in folds.
    roles : dict
        Names of the columns that hold the label, the identifier, the group and the machine's score, or
        None.
    n_unlabelled : int
        Number of rows without a label, which are left out.
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

    def part(self, rows: NDArray[np.int64]) -> Self:
        """Some of the cases.

        Parameters
        ----------
        rows : ndarray of int
            Positions of these cases.

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

    def human_answers(self, default: Labels) -> tuple[Labels, Bools]:
        """The majority of the readers, and the cases that at least one of them answered.

        Parameters
        ----------
        default : ndarray of str
            The answers to use where no reader answered.

        Returns
        -------
        answers : ndarray of str
        read : ndarray of bool
        """
        if self.answers is None:  # without answers, humans count as always right
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
        if self.answers is None:
            return []
        rows = []
        for reader, column in zip(self.readers, self.answers.T, strict=True):
            given = np.array([answer is not None for answer in column])
            wrong, n = int((column[given] != self.truth[given]).sum()), int(given.sum())
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
    machine_score: str | None = None,
) -> Cases:
    """Split a table into features, truth and answers.

    Parameters
    ----------
    table : DataFrame, dict of columns or pyarrow.Table
        One row per case.
    label : str
        Column of the true labels, which are of two classes. Rows without a label are left out.
    humans : sequence of str, default=()
        Columns of answers, one per reader; gaps are allowed.
    answers : DataFrame, dict of columns or pyarrow.Table, default=None
        A long table with one row per answer and the columns case, reader and answer.
    identifier : str or None, default=None
        Column with the names of the cases, to which `answers` refers. It is not a feature.
    group : str or None, default=None
        Column with the group of each case, such as a patient. It is not a feature.
    machine_score : str or None, default=None
        Column with the score of a machine that cannot be retrained, such as a product's.

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
    special = _special_columns(table, label, humans, identifier, group, machine_score)
    truth = _texts(table, label)
    labelled = np.flatnonzero([value is not None for value in truth])
    classes = _two_classes([str(truth[row]) for row in labelled], label)
    wide = {name: _texts(table, name) for name in humans}
    if answers is not None:
        if identifier is None:
            raise TableError("answers need an identifier: the column that names the cases")
        _merge(wide, _long_answers(as_table(answers), _identifiers(table, identifier), classes))
    for name, column in wide.items():
        _check_answers(name, column, labelled, classes)
    cases = Cases(
        features=table.drop_columns([name for name in special if name != machine_score]),
        truth=np.array(["" if value is None else value for value in truth]),
        classes=classes,
        answers=np.array(list(wide.values()), dtype=object).T if wide else None,
        readers=tuple(wide),
        groups=None if group is None else np.array(_complete(table, group), dtype=object),
        roles={
            "label": label,
            "identifier": identifier,
            "group": group,
            "machine_score": machine_score,
        },
        n_unlabelled=table.num_rows - len(labelled),
    )
    return cases.part(labelled)


def _special_columns(
    table: Any,
    label: str,
    humans: Sequence[str],
    identifier: str | None,
    group: str | None,
    machine_score: str | None,
) -> list[str]:
    if isinstance(humans, str):
        raise TableError(f"humans={humans!r} must be a list of names")
    roles = [("label", label), *(("human", name) for name in humans)]
    seen: dict[str, str] = {}
    others = [("id", identifier), ("group", group), ("machine score", machine_score)]
    for role, name in [*roles, *others]:
        if name is None:
            continue
        if name not in table.column_names:
            raise TableError(f"there is no column {name!r}, given as {role}")
        # The identifier, such as a patient's number, may be the group as well.
        if name in seen and (seen[name], role) != ("id", "group"):
            raise TableError(f"column {name!r} is given as {seen[name]} and as {role}")
        seen[name] = role
    return list(seen)


def _texts(table: Any, name: str) -> Texts:
    return list(label_text(table.column(name)).to_pylist())


def _two_classes(values: list[str], label: str) -> tuple[str, str]:
    found = sorted(set(values))
    if len(found) == 2:
        return found[0], found[1]
    if not found:
        raise TableError(f"the label column {label!r} is empty")
    if len(found) == 1:
        raise TableError(
            f"the label column {label!r} holds only one class, {found[0]!r}; two are needed"
        )
    raise TableError(
        f"the label column {label!r} holds {len(found)} classes "
        f"({listed([repr(name) for name in found], most=5)}), but two are needed: merge classes, or "
        "leave out rows"
    )


def _complete(table: Any, name: str) -> list[str]:
    column = _texts(table, name)
    if None in column:
        raise TableError(f"column {name!r} is empty in row {column.index(None) + 1}")
    return [str(value) for value in column]


def _identifiers(table: Any, identifier: str) -> list[str]:
    names = _complete(table, identifier)
    for name, count in Counter(names).items():
        if count > 1:
            raise TableError(f"column {identifier!r} names more than one case {name!r}")
    return names


def _long_answers(table: Any, identifiers: list[str], classes: tuple[str, str]) -> dict[str, Texts]:
    """One column per reader, from a table with one row per answer."""
    names = ("case", "reader", "answer")
    missing = missing_columns(names, table.column_names)
    if missing:
        raise TableError(f"the answers have no column {missing}")
    columns = {name: _texts(table, name) for name in names}
    columns["case"] = _unguarded(columns["case"], set(identifiers))
    columns["answer"] = _unguarded(columns["answer"], set(classes))
    try:
        matrix, readers = answers_from_table(columns, identifiers)
    except ValueError as error:
        raise TableError(f"answers: {error}") from error
    return {str(reader): list(matrix[:, place]) for place, reader in enumerate(readers)}


def _unguarded(column: Texts, known: set[str]) -> Texts:
    """Names without the apostrophe that `import-answers` puts before a formula of a spreadsheet."""
    guarded = {f"'{name}": name for name in known if f"'{name}" not in known}
    return [None if text is None else guarded.get(text, text) for text in column]


def _merge(wide: dict[str, Texts], more: dict[str, Texts]) -> None:
    """Add columns of answers; they fill the gaps of a reader who has a column already."""
    for reader, column in more.items():
        own = wide.get(reader, [None] * len(column))
        for row, (old, new) in enumerate(zip(own, column, strict=True), start=1):
            if None not in (old, new) and old != new:
                raise TableError(
                    f"reader {reader!r} has two answers to the case in row {row}: {old!r} and {new!r}"
                )
        wide[reader] = [new if old is None else old for old, new in zip(own, column, strict=True)]


def _check_answers(
    name: str, column: Texts, labelled: NDArray[np.int64], classes: tuple[str, str]
) -> None:
    for row, answer in enumerate(column):
        if answer is not None and answer not in classes:
            raise CellError(
                name, row, answer, f"is neither of the classes {classes[0]!r} and {classes[1]!r}"
            )
    if all(column[row] is None for row in labelled):
        raise TableError(f"reader {name!r} answered none of the cases that have a label")
