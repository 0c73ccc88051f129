"""Cases of a table: features, the truth, and what humans answered."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from deferlearn._utils.types import Bools, Labels
from deferlearn.humans import majority_labels
from deferlearn.tables.answers import check_answers, long_answers, merge_answers
from deferlearn.tables.columns import score_names
from deferlearn.tables.costs import CostRows, costs_of
from deferlearn.tables.errors import TableError
from deferlearn.tables.frames import as_table
from deferlearn.tables.labels import check_scores, classes_of, grades_of, known_classes, texts


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
    costs : tuple of tuple of float or None
        What each answer (column) to a case of each class (row) costs, in the order of the classes; None if
        no cost matrix was given.
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
    costs: CostRows | None = None

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

    @property
    def n_groups(self) -> int | None:
        """Number of groups; None if the cases have none."""
        return None if self.groups is None else len(set(self.groups.tolist()))

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
            With the keys reader, answers, wrong and error, which is None without an answer.
        """
        if self.answers is None:
            return []
        rows = []
        for reader, column in zip(self.readers, self.answers.T, strict=True):
            given = np.array([answer is not None for answer in column])
            wrong, n = int((column[given] != self.truth[given]).sum()), int(given.sum())
            error = wrong / n if n else None
            rows.append({"reader": reader, "answers": n, "wrong": wrong, "error": error})
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
    cost_matrix: Mapping[str, Any] | None = None,
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
    cost_matrix : mapping or None, default=None
        What mistakes cost, in units of one error: ``{"classes": labels, "costs": rows}`` with a row per
        true class and a column per answer, in the order of these labels. None: a wrong answer costs 1,
        and for grades 1 for each grade that it is off.
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
    truth = texts(table, label)
    labelled = np.flatnonzero([value is not None for value in truth])
    if classes is not None:
        known = known_classes(truth, label, tuple(classes))
    else:
        known = grades_of(truth, label, grades) if grades is not None else classes_of(truth, label)
    check_scores(scores, known)
    costs = None if cost_matrix is None else costs_of(cost_matrix, known)
    wide = {name: texts(table, name) for name in humans}
    if answers is not None:
        if identifier is None:
            raise TableError("answers need an identifier: the column that names the cases")
        names = _identifiers(table, identifier)
        merge_answers(
            wide, long_answers(as_table(answers), names, known, identifier, ignore_unknown)
        )
    for name, column in wide.items():
        check_answers(name, column, labelled, known)
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
        costs=costs,
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


def _complete(table: Any, name: str) -> list[str]:
    column = texts(table, name)
    if None in column:
        raise TableError(f"column {name!r} is empty in row {column.index(None) + 1}")
    return [str(value) for value in column]


def _identifiers(table: Any, identifier: str) -> list[str]:
    names = _complete(table, identifier)
    for name, count in Counter(names).items():
        if count > 1:
            raise TableError(f"column {identifier!r} names more than one case {name!r}")
    return names
