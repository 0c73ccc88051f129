"""Cost matrices that users give, with the names of the classes: what each answer to each class costs."""

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from numbers import Real
from pathlib import Path
from typing import Any

from deferlearn._utils.words import listed
from deferlearn.tables.errors import TableError
from deferlearn.tables.files import open_table
from deferlearn.tables.labels import as_label

# A row per true class and a column per answer, in the order of the classes.
CostRows = tuple[tuple[float, ...], ...]

FORM = (
    'a JSON object such as {"classes": ["none", "severe"], "costs": [[0, 1], [8, 0]]}, with a row per true '
    "class and a column per answer"
)


def is_json(given: str) -> bool:
    """Whether a text is JSON itself, and no name of a file.

    A list is JSON, too, even if not in the form of a cost matrix: its error says which form that is.
    """
    return given.lstrip().startswith(("{", "["))


def read_costs(given: str, written: Mapping[str, Any]) -> dict[str, Any]:
    """A cost matrix from a file, or from the text of an option.

    Parameters
    ----------
    given : str
        The name of a file, or JSON that begins with a brace. A JSON file has the same form. In a table, the
        first column names the true classes, and the other columns are named after the answers.
    written : mapping
        The options of `open_table`.

    Returns
    -------
    costs : dict
        As `costs_of` takes it. Its cells are not checked yet.

    Examples
    --------
    >>> from deferlearn.tables.costs import read_costs
    >>> read_costs('{"classes": ["well", "ill"], "costs": [[0, 1], [5, 0]]}', {})
    {'classes': ['well', 'ill'], 'costs': [[0, 1], [5, 0]]}
    """
    if is_json(given):
        return _from_json(given, "the cost matrix")
    path = Path(given)
    if path.suffix.lower() == ".json":
        try:
            return _from_json(path.read_text(encoding="utf-8-sig"), str(path))
        except (OSError, UnicodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is not text in UTF-8"
            raise TableError(f"cannot read {path}: {why}") from error
    file = open_table(path, **written)
    if len(file.columns) < 2:
        raise TableError(
            f"{path} has only one column, {file.columns[0]!r:.60}, but a cost matrix has one for the true "
            "classes and one for each answer: give the character that separates cells with --delimiter"
        )
    table = file.read()
    answers = [as_label(name) for name in file.columns[1:]]
    truths = [as_label(cell) for cell in table.column(0).to_pylist()]
    if sorted(truths) != sorted(answers):
        one = next(
            name for name in [*truths, *answers] if truths.count(name) != answers.count(name)
        )
        raise TableError(
            f"{path} has the class {one!r} {_times(truths.count(one))} as a row and "
            f"{_times(answers.count(one))} as a column: a cost matrix has a row for each true class, named "
            "in the first column, and a column for each answer"
        )
    rows = [list(row.values())[1:] for row in table.to_pylist()]
    place = {name: k for k, name in enumerate(answers)}
    ordered = [[row[place[name]] for name in truths] for row in rows]
    return {
        "classes": truths,
        "costs": [[_number(cell, file.decimal) for cell in row] for row in ordered],
    }


def costs_of(given: Mapping[str, Any], classes: Sequence[str]) -> CostRows:
    """The rows of a cost matrix in the order of the classes.

    Parameters
    ----------
    given : mapping
        With the keys classes (all labels, in any order) and costs (a row per true class and a column per
        answer, in the order of these classes; costs are in units of one error).
    classes : sequence of str
        All classes.

    Returns
    -------
    rows : tuple of tuple of float

    Examples
    --------
    >>> from deferlearn.tables.costs import costs_of
    >>> costs_of({"classes": ["well", "ill"], "costs": [[0, 1], [5, 0]]}, ["ill", "well"])
    ((0.0, 5.0), (1.0, 0.0))
    """
    if not isinstance(given, Mapping) or set(given) != {"classes", "costs"}:
        raise TableError(f"the cost matrix must be {FORM}")
    names, rows = _listed(given["classes"]), _listed(given["costs"])
    rows = [_listed(row) for row in rows] if isinstance(rows, list | tuple) else rows
    if isinstance(names, str) or not isinstance(names, Sequence):
        raise TableError(
            f"the classes of the cost matrix must be a list of labels, got {names!r:.60}"
        )
    named = [as_label(name) for name in names]
    _check_names(named, classes)
    _check_shape(rows, named)
    cost = {
        (truth, answer): _cost(cell, truth, answer)
        for truth, row in zip(named, rows, strict=True)
        for answer, cell in zip(named, row, strict=True)
    }
    for truth in classes:
        if not any(cost[truth, answer] for answer in classes):
            raise TableError(
                f"the cost matrix has only zeros for cases of {truth!r}: if no mistake on them costs "
                "anything, leave this class out of the table, or give its mistakes a small cost"
            )
    return tuple(tuple(cost[truth, answer] for answer in classes) for truth in classes)


def _check_names(named: list[str], classes: Sequence[str]) -> None:
    shown = listed([repr(name) for name in classes])
    for name, count in Counter(named).items():
        if name not in classes:
            raise TableError(
                f"the cost matrix names the class {name!r}, but the classes of the table are {shown}"
            )
        if count > 1:
            raise TableError(
                f"the cost matrix names the class {name!r} {count} times: name it once"
            )
    for name in classes:
        if name not in named:
            raise TableError(
                f"the cost matrix lacks the class {name!r}: it needs a row and a column for each of {shown}"
            )


def _check_shape(rows: Any, named: list[str]) -> None:
    n = len(named)
    order = listed([repr(name) for name in named])
    if isinstance(rows, str) or not isinstance(rows, Sequence) or len(rows) != n:
        count = len(rows) if isinstance(rows, Sequence) and not isinstance(rows, str) else "no"
        raise TableError(
            f"the cost matrix has {count} rows, but names {n} classes: give a row for each of {order}"
        )
    for name, row in zip(named, rows, strict=True):
        if isinstance(row, str) or not isinstance(row, Sequence) or len(row) != n:
            count = len(row) if isinstance(row, Sequence) and not isinstance(row, str) else "no"
            raise TableError(
                f"the cost matrix has {count} numbers in its row for {name!r}, but there are {n} answers: "
                f"give a cost for each of {order}"
            )


def _cost(cell: Any, truth: str, answer: str) -> float:
    """One cost, checked."""
    what = f"the cost of the answer {answer!r} to a case of {truth!r}"
    if isinstance(cell, bool) or not isinstance(cell, Real):
        raise TableError(f"{what} is {cell!r:.60}: give a number, 0 or larger")
    try:
        cost = float(cell)
    except OverflowError:
        raise TableError(f"{what} is too large: give a finite number, 0 or larger") from None
    if not (math.isfinite(cost) and cost >= 0):
        raise TableError(f"{what} is {cost:g}: give a finite number, 0 or larger")
    if truth == answer and cost != 0:
        raise TableError(
            f"{what} is {cost:g}, but a right answer costs nothing: give 0 on the diagonal"
        )
    return cost


def _listed(given: Any) -> Any:
    """An array as a list; anything else as it is."""
    return given.tolist() if hasattr(given, "tolist") else given


def _number(cell: Any, decimal: str) -> Any:
    """The number in a cell of a table; what is no number stays as it is."""
    if not isinstance(cell, str):
        return cell
    if decimal != "." and "." in cell:
        raise TableError(
            f"the cost matrix has {cell!r:.60} in a cell, but its decimal mark is {decimal!r}: write its "
            "numbers without points"
        )
    try:
        return float(cell.replace(decimal, ".") if decimal != "." else cell)
    except ValueError:
        return cell


def _from_json(text: str, source: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError as error:
        raise TableError(f"{source} is not {FORM}: {error}") from None
    if not isinstance(found, dict):
        raise TableError(f"{source} is not {FORM}")
    return found


def _times(count: int) -> str:
    return {0: "never", 1: "once", 2: "twice"}.get(count, f"{count} times")
