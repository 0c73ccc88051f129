"""Cases and truths from a table."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from deferlearn.desk.cases import arrive_all
from deferlearn.desk.desk import Desk
from deferlearn.desk.errors import DeskError, Invalid
from deferlearn.desk.truths import set_truth
from deferlearn.tables import TableFile
from deferlearn.tables.cells import label_of, with_points
from deferlearn.tables.columns import score_names

# So many rows are in memory at a time.
_ROWS = 1000
# So many refusals are told.
_MOST_TOLD = 10


@dataclass
class Imported:
    """What became of the rows of a table.

    Attributes
    ----------
    counts : Counter
        How many were "new", "known" before, "refused", and how many "truths" are new.
    refusals : list of str
        Why the first ones were refused, with the row.
    """

    counts: Counter[str] = field(default_factory=Counter)
    refusals: list[str] = field(default_factory=list)

    def refuse(self, row: int, error: DeskError) -> None:
        """Note a row that was refused.

        Parameters
        ----------
        row : int
            Its number, from 1.
        error : DeskError
            Why.
        """
        self.counts["refused"] += 1
        if len(self.refusals) < _MOST_TOLD:
            self.refusals.append(f"row {row}: {error}")


def import_table(
    desk: Desk,
    file: TableFile,
    *,
    identifier: str,
    truth: str | None = None,
    drop: Sequence[str] = (),
    only_truth: bool = False,
    actor: str,
) -> Imported:
    """Send the rows of a table to the desk. The same table again changes nothing.

    Parameters
    ----------
    desk : Desk
        The desk.
    file : TableFile
        The table.
    identifier : str
        Column with the ids of the cases.
    truth : str or None, default=None
        Column with the truth, where it is known; empty cells are left out.
    drop : sequence of str, default=()
        Columns that are not fields of the cases. Columns with the labels and readers of the active model
        are none either: experts must not see them.
    only_truth : bool, default=False
        Whether to report truths only, of cases that are known.
    actor : str
        Who does it.

    Returns
    -------
    Imported
    """
    named = [identifier, *([truth] if truth else []), *drop]
    file.require(named, "given by --id, --truth or --drop")
    if only_truth and truth is None:
        raise Invalid("Name the column with the truth by --truth.")
    hidden = {*named, *([] if only_truth else _hidden(desk))}
    names = [name for name in file.columns if name not in hidden]
    numbers = [] if only_truth else [name for name in _numbers(desk) if name in names]
    done = Imported()
    for first, rows in _parts(file, numbers):
        if not only_truth:
            cases = [(_id(row[identifier]), {n: row[n] for n in names}) for row in rows]
            for place, outcome in enumerate(arrive_all(desk, cases, actor=actor)):
                if isinstance(outcome, DeskError):
                    done.refuse(first + place, outcome)
                else:
                    done.counts["new" if outcome.created else "known"] += 1
        if truth is not None:
            _report(desk, done, first, rows, identifier, truth, actor)
    return done


def _hidden(desk: Desk) -> list[str]:
    """Columns of the training table that are no fields: the truth, readers, groups and names."""
    card = desk.active_judge().card
    readers = [row["reader"] for row in card.get("readers") or []]
    experts = [row["expert"] for row in card.get("experts") or []]
    single = [card.get("label"), card.get("identifier")]
    return [*readers, *experts, *(name for name in single if name)]


def _numbers(desk: Desk) -> list[str]:
    """Columns in which the active model expects numbers."""
    card = desk.active_judge().card
    kinds = card["columns"].items()
    return [*(n for n, kind in kinds if kind == "number"), *score_names(card["machine_score"])]


def _parts(file: TableFile, numbers: list[str]) -> Iterator[tuple[int, list[dict[str, Any]]]]:
    """The rows in parts, each with the number of its first row."""
    first = 1
    for chunk in file.chunks(_ROWS):
        rows = with_points(chunk, numbers, file.decimal).to_pylist()
        yield first, [{name: _plain(value) for name, value in row.items()} for row in rows]
        first += len(rows)


def _plain(value: Any) -> Any:
    """A cell as a field: an empty one is a gap."""
    if value is None or value == "":
        return None
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if isinstance(value, str | int) else str(value)


def _id(value: Any) -> str:
    """The id in a cell; a column of whole numbers with gaps holds floats."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return "" if value is None else str(value)


def _report(
    desk: Desk,
    done: Imported,
    first: int,
    rows: list[dict[str, Any]],
    identifier: str,
    truth: str,
    actor: str,
) -> None:
    for place, row in enumerate(rows):
        said = label_of(row[truth])
        if said is None:
            continue
        try:
            changed = set_truth(desk, _id(row[identifier]), said, actor=actor)
        except DeskError as error:
            done.refuse(first + place, error)
        else:
            done.counts["truths"] += changed
