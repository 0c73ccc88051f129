"""Cases of a table: features, the truth, and what humans answered."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from deferlearn._utils.types import Bools, Labels
from deferlearn._utils.words import counted, listed
from deferlearn.humans import answers_from_table, majority_labels
from deferlearn.tables.cells import NotPlain, label_of, label_text
from deferlearn.tables.columns import score_names
from deferlearn.tables.errors import CellError, TableError
from deferlearn.tables.frames import as_table, missing_columns

Texts = list[str | None]

# Each class has a machine of its own; a column with more labels is rather a measurement or a name.
MAX_CLASSES = 50


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
    classes : tuple of str
        The labels, two or more: grades in their order, other labels in alphabetical order.
    answers : ndarray of shape (n_cases, n_readers) or None
        What humans answered; None where a reader gave no answer.
    readers : tuple of str
        Names of the readers.
    groups : ndarray of str or None
        Cases of one group, such as a patient, stay together in folds.
    roles : dict
        Names of the columns that hold the label, the identifier, the group and the machine's score, or
        None. With more than two classes there is a list of columns with scores.
    n_unlabelled : int
        Number of rows without a label, which are left out.
    graded : bool
        Whether the classes are grades, so that being off by two is worse than being off by one.
    """

    features: Any
    truth: Labels
    classes: tuple[str, ...]
    answers: Labels | None
    readers: tuple[str, ...]
    groups: Labels | None
    roles: dict[str, Any]
    n_unlabelled: int = 0
    graded: bool = False

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
    machine_score: str | Sequence[str] | None = None,
    grades: Sequence[str] | None = None,
    classes: Sequence[str] | None = None,
    ignore_unknown: bool = False,
) -> Cases:
    """Split a table into features, truth and answers.

    Parameters
    ----------
    table : DataFrame, dict of columns or pyarrow.Table
        One row per case.
    label : str
        Column of the true labels, which are of two or more classes. Rows without a label are left out.
    humans : sequence of str, default=()
        Columns of answers, one per reader; gaps are allowed.
    answers : DataFrame, dict of columns or pyarrow.Table, default=None
        A long table with one row per answer and the columns case, reader and answer.
    identifier : str or None, default=None
        Column with the names of the cases, to which `answers` refers. It is not a feature.
    group : str or None, default=None
        Column with the group of each case, such as a patient. It is not a feature.
    machine_score : str, sequence of str or None, default=None
        Column with the score of a machine that cannot be retrained, such as a product's. With more than
        two classes, a column for each class, in their order.
    grades : sequence of str or None, default=None
        All labels from the lowest grade to the highest; None for classes without an order.
    classes : sequence of str or None, default=None
        All labels, if a model knows them already: then some may have no case here. None takes them from
        the table.
    ignore_unknown : bool, default=False
        Whether to leave out answers to cases that are not in the table. Otherwise they are an error.

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
    >>> table = {"age": [61, 48, 70], "truth": ["mild", "none", "severe"]}
    >>> select_cases(table, "truth", grades=["none", "mild", "severe"]).classes
    ('none', 'mild', 'severe')
    """
    table = as_table(table)
    scores = score_names(machine_score)
    special = _special_columns(table, label, humans, identifier, group, scores)
    truth = _texts(table, label)
    labelled = np.flatnonzero([value is not None for value in truth])
    if classes is not None:
        known = _known_classes(truth, label, tuple(classes))
    else:
        known = _grades(truth, label, grades) if grades is not None else _classes(truth, label)
    _check_scores(scores, known)
    wide = {name: _texts(table, name) for name in humans}
    if answers is not None:
        if identifier is None:
            raise TableError("answers need an identifier: the column that names the cases")
        names = _identifiers(table, identifier)
        _merge(wide, _long_answers(as_table(answers), names, known, identifier, ignore_unknown))
    for name, column in wide.items():
        _check_answers(name, column, labelled, known)
    cases = Cases(
        features=table.drop_columns([name for name in special if name not in scores]),
        truth=np.array(["" if value is None else value for value in truth]),
        classes=known,
        answers=np.array(list(wide.values()), dtype=object).T if wide else None,
        readers=tuple(wide),
        groups=None if group is None else np.array(_complete(table, group), dtype=object),
        roles={
            "label": label,
            "identifier": identifier,
            "group": group,
            "machine_score": None if not scores else scores[0] if len(scores) == 1 else scores,
        },
        n_unlabelled=table.num_rows - len(labelled),
        graded=grades is not None,
    )
    return cases.part(labelled)


def _special_columns(
    table: Any,
    label: str,
    humans: Sequence[str],
    identifier: str | None,
    group: str | None,
    scores: Sequence[str],
) -> list[str]:
    if isinstance(humans, str):
        raise TableError(f"humans={humans!r} must be a list of names")
    roles = [("label", label), *(("human", name) for name in humans)]
    seen: dict[str, str] = {}
    others = [("id", identifier), ("group", group), *(("machine score", name) for name in scores)]
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


def _check_scores(scores: list[str], classes: tuple[str, ...]) -> None:
    """One column of scores for two classes, otherwise one per class."""
    needed = 1 if len(classes) == 2 else len(classes)
    if not scores or len(scores) == needed:
        return
    order = listed([repr(name) for name in classes])
    if needed == 1:
        raise TableError(
            f"{len(scores)} columns of machine scores are given, but for the two classes {order} one is "
            f"needed: the score of {classes[1]!r}"
        )
    raise TableError(
        f"{counted(len(scores), 'column')} of machine scores {'is' if len(scores) == 1 else 'are'} given, "
        f"but there are {len(classes)} classes: give one column for each, in the order {order}"
    )


def _classes(truth: Texts, label: str) -> tuple[str, ...]:
    """The classes of a column of labels, in the order of the alphabet."""
    found = sorted({value for value in truth if value is not None})
    if not found:
        raise TableError(f"the label column {label!r} is empty")
    if len(found) == 1:
        raise TableError(
            f"the label column {label!r} holds only one class, {found[0]!r}; two are needed"
        )
    if len(found) > MAX_CLASSES:
        raise TableError(
            f"the label column {label!r} holds {len(found)} classes "
            f"({listed([repr(name) for name in found], most=5)}), more than {MAX_CLASSES}: merge classes, "
            "or name another column"
        )
    return tuple(found)


def _known_classes(truth: Texts, label: str, classes: tuple[str, ...]) -> tuple[str, ...]:
    """Classes that are known already; no other one is in the table."""
    if all(value is None for value in truth):
        raise TableError(f"the label column {label!r} is empty")
    for row, value in enumerate(truth):
        if value is not None and value not in classes:
            shown = listed([repr(name) for name in classes])
            raise CellError(label, row, value, f"is none of the model's classes {shown}")
    return classes


def _grades(truth: Texts, label: str, grades: Sequence[str]) -> tuple[str, ...]:
    """The grades in the order given; all of them, and no others, are in the table."""
    if isinstance(grades, str):
        raise TableError(f"grades={grades!r} must be a list of labels")
    order = tuple(_as_label(grade) for grade in grades)
    shown = listed([repr(grade) for grade in order])
    if all(value is None for value in truth):
        raise TableError(f"the label column {label!r} is empty")
    if len(order) < 2 or "" in order:
        raise TableError(f"the grades {shown} must be two labels or more, and none may be empty")
    for grade, count in Counter(order).items():
        if count > 1:
            raise TableError(f"the grade {grade!r} is named {count} times: name each grade once")
    for row, value in enumerate(truth):
        if value is not None and value not in order:
            problem = (
                f"is none of the grades {shown}: name all of them, from the lowest to the highest"
            )
            raise CellError(label, row, value, problem)
    for grade in order:
        if grade not in truth:
            raise TableError(
                f"no case in the label column {label!r} has the grade {grade!r}, so it cannot be learned: "
                "leave it out"
            )
    return order


def _as_label(grade: Any) -> str:
    """A grade as `label_text` reads it from a cell, so that 1.0 is 1."""
    try:
        return label_of(grade) or ""
    except NotPlain:
        return str(grade)


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


def _long_answers(
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
    columns = {name: _texts(table, name) for name in names}
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
    name: str, column: Texts, labelled: NDArray[np.int64], classes: tuple[str, ...]
) -> None:
    for row, answer in enumerate(column):
        if answer is not None and answer not in classes:
            problem = f"is neither of the classes {classes[0]!r} and {classes[1]!r}"
            if len(classes) > 2:
                problem = f"is none of the classes {listed([repr(label) for label in classes])}"
            raise CellError(name, row, answer, problem)
    if all(column[row] is None for row in labelled):
        raise TableError(f"reader {name!r} answered none of the cases that have a label")
