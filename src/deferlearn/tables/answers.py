"""Answers of readers from a table with one row per answer: matched with the cases, and checked."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from deferlearn._utils.words import counted, listed
from deferlearn.humans import answers_from_table
from deferlearn.tables.errors import CellError, TableError
from deferlearn.tables.frames import missing_columns
from deferlearn.tables.labels import Texts, texts


def long_answers(
    table: Any,
    identifiers: list[str],
    classes: tuple[str, ...],
    identifier: str,
    ignore_unknown: bool,
) -> dict[str, Texts]:
    """One column per reader, from a table with one row per answer."""
    names = ("case", "reader", "answer")
    missing = missing_columns(names, table.column_names)
    if missing:
        raise TableError(f"the answers have no column {missing}")
    columns = {name: texts(table, name) for name in names}
    known = set(identifiers)
    columns["case"] = _unguarded(columns["case"], known)
    columns["answer"] = _unguarded(columns["answer"], set(classes))
    strangers = [name for name in columns["case"] if name is not None and name not in known]
    if strangers and not ignore_unknown:
        raise TableError(
            f"{counted(len(strangers), 'answer')} of {len(columns['case'])} "
            f"{'is' if len(strangers) == 1 else 'are'} to cases that column {identifier!r} does not have, "
            f"such as {strangers[0]!r}: pass the column with these names by --id, or leave such answers "
            "out by --ignore-unknown"
        )
    if len(strangers) == len(columns["case"]):
        raise TableError(
            f"no answer is to a case that column {identifier!r} has: pass the column with names such as "
            f"{strangers[0]!r} by --id"
        )
    kept = [name is None or name in known for name in columns["case"]]
    columns = {
        name: [cell for cell, keep in zip(cells, kept, strict=True) if keep]
        for name, cells in columns.items()
    }
    try:
        matrix, readers = answers_from_table(columns, identifiers)
    except ValueError as error:
        raise TableError(f"answers: {error}") from error
    return {str(reader): list(matrix[:, place]) for place, reader in enumerate(readers)}


def _unguarded(column: Texts, known: set[str]) -> Texts:
    """Names without the apostrophe that `import-answers` puts before a formula of a spreadsheet."""
    guarded = {f"'{name}": name for name in known if f"'{name}" not in known}
    return [None if text is None else guarded.get(text, text) for text in column]


def merge_answers(wide: dict[str, Texts], more: dict[str, Texts]) -> None:
    """Add columns of answers; they fill the gaps of a reader who has a column already."""
    for reader, column in more.items():
        own = wide.get(reader, [None] * len(column))
        for row, (old, new) in enumerate(zip(own, column, strict=True), start=1):
            if None not in (old, new) and old != new:
                raise TableError(
                    f"reader {reader!r} has two answers to the case in row {row}: {old!r} and {new!r}"
                )
        wide[reader] = [new if old is None else old for old, new in zip(own, column, strict=True)]


def check_answers(
    name: str, column: Texts, labelled: NDArray[np.int64], classes: tuple[str, ...]
) -> None:
    """Refuse answers that are no class, and a reader without any answer that counts."""
    for row, answer in enumerate(column):
        if answer is not None and answer not in classes:
            problem = f"is neither of the classes {classes[0]!r} and {classes[1]!r}"
            if len(classes) > 2:
                problem = f"is none of the classes {listed([repr(label) for label in classes])}"
            raise CellError(name, row, answer, problem)
    if all(column[row] is None for row in labelled):
        raise TableError(f"reader {name!r} answered none of the cases that have a label")
