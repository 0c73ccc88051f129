"""What the labels of a table are: plain text, the classes among them, and grades in their order."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from deferlearn._utils.words import counted, listed
from deferlearn.tables.cells import NotPlain, label_of, label_text
from deferlearn.tables.errors import CellError, TableError

Texts = list[str | None]

# Each class has a machine of its own; a column with more labels is rather a measurement or a name.
MAX_CLASSES = 50


def texts(table: Any, name: str) -> Texts:
    """The cells of a column as labels; None where there is none."""
    return list(label_text(table.column(name)).to_pylist())


def check_scores(scores: list[str], classes: tuple[str, ...]) -> None:
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


def classes_of(truth: Texts, label: str) -> tuple[str, ...]:
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


def known_classes(truth: Texts, label: str, classes: tuple[str, ...]) -> tuple[str, ...]:
    """Classes that are known already; no other one is in the table."""
    if all(value is None for value in truth):
        raise TableError(f"the label column {label!r} is empty")
    for row, value in enumerate(truth):
        if value is not None and value not in classes:
            shown = listed([repr(name) for name in classes])
            raise CellError(label, row, value, f"is none of the model's classes {shown}")
    return classes


def grades_of(truth: Texts, label: str, grades: Sequence[str]) -> tuple[str, ...]:
    """The grades in the order given; all of them, and no others, are in the table."""
    if isinstance(grades, str):
        raise TableError(f"grades={grades!r} must be a list of labels")
    order = tuple(as_label(grade) for grade in grades)
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


def as_label(grade: Any) -> str:
    """A grade as `label_text` reads it from a cell, so that 1.0 is 1."""
    try:
        return label_of(grade) or ""
    except NotPlain:
        return str(grade)
