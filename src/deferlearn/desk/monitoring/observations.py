"""What is new for the alarms: cases, audits that were answered, and truths, in the order they came in.

A row that is committed late, after one with a larger number was seen, is left out: that does not depend on
what it says, so the tests stay valid.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, select

from deferlearn._utils.types import Array
from deferlearn.desk.monitoring.records import expected_of
from deferlearn.desk.schema import answer, case, decision, expert, reading, truth

# So many rows are taken into account at a time.
MOST_ROWS = 2000


@dataclass(frozen=True)
class Seen:
    """Rows that are new.

    Attributes
    ----------
    rows : sequence of Row
        The rows.
    last : int
        The mark of the last one.
    """

    rows: Sequence[Any]
    last: int

    def __len__(self) -> int:
        return len(self.rows)

    def column(self, name: str) -> NDArray[np.object_]:
        """One value per row."""
        found = np.empty(len(self.rows), dtype=object)
        found[:] = [getattr(row, name) for row in self.rows]
        return found

    @property
    def expected_machine(self) -> Array:
        """The machine's expected error in each row, NaN if it is not known."""
        return _numbers([row.expected_machine for row in self.rows])

    @property
    def expected_expert(self) -> Array:
        """The expected error of the expert of each row, NaN if it is not known."""
        return _numbers([expected_of(row.expected, row.name or "") for row in self.rows])


def new_cases(connection: Connection, model_id: int, after: int) -> Seen:
    """Cases that the model has decided, after a number."""
    query = (
        select(case.c.number, case.c.content, decision.c.unusual, decision.c.deferred)
        .join(decision, decision.c.case_number == case.c.number)
        .where(decision.c.model_id == model_id, case.c.number > after)
        .order_by(case.c.number)
        .limit(MOST_ROWS)
    )
    rows = connection.execute(query).all()
    return Seen(rows, rows[-1].number if rows else after)


def new_audits(connection: Connection, model_id: int, after: int) -> Seen:
    """Answers of experts to audited cases, after the number of an answer."""
    query = (
        select(
            answer.c.id,
            answer.c.value,
            expert.c.name,
            decision.c.machine_answer,
            decision.c.expected_machine,
            decision.c.expected,
        )
        .join(reading, reading.c.id == answer.c.reading_id)
        .join(expert, expert.c.id == answer.c.expert_id)
        .join(decision, decision.c.case_number == answer.c.case_number)
        .where(
            decision.c.model_id == model_id,
            reading.c.kind == "audit",
            answer.c.withdrawn_at.is_(None),
            answer.c.id > after,
        )
        .order_by(answer.c.id)
        .limit(MOST_ROWS)
    )
    rows = connection.execute(query).all()
    return Seen(rows, rows[-1].id if rows else after)


def new_truths(connection: Connection, model_id: int, after: int) -> Seen:
    """Truths after the number of a truth, with the answers that were given until then, one row for each."""
    marks = (
        select(truth.c.id)
        .join(decision, decision.c.case_number == truth.c.case_number)
        .where(decision.c.model_id == model_id, truth.c.replaced_at.is_(None), truth.c.id > after)
        .order_by(truth.c.id)
        .limit(MOST_ROWS)
    ).subquery()
    query = (
        select(
            truth.c.id,
            truth.c.case_number,
            truth.c.value.label("truth"),
            answer.c.value,
            expert.c.name,
            decision.c.machine_answer,
            decision.c.expected_machine,
            decision.c.expected,
        )
        .join(marks, marks.c.id == truth.c.id)
        .join(decision, decision.c.case_number == truth.c.case_number)
        .outerjoin(
            answer,
            (answer.c.case_number == truth.c.case_number) & answer.c.withdrawn_at.is_(None),
        )
        .outerjoin(expert, expert.c.id == answer.c.expert_id)
        .order_by(truth.c.id, answer.c.id)
    )
    rows = connection.execute(query).all()
    return Seen(rows, rows[-1].id if rows else after)


def _numbers(values: list[float | None]) -> Array:
    return np.array([np.nan if one is None else one for one in values], dtype=np.float64)
