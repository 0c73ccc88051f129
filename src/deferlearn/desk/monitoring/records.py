"""What monitoring and learning need to know of the cases, read from the database into arrays."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, exists, func, select

from deferlearn._utils.types import Array, Bools
from deferlearn.desk.judging import SOMEBODY
from deferlearn.desk.rules import Moment
from deferlearn.desk.schema import answer, case, decision, expert, expert_day, reading, truth

Objects = NDArray[np.object_]


@dataclass(frozen=True)
class Records:
    """Cases in the order of their arrival, and the answers of experts.

    Attributes
    ----------
    number, received_at, model_id : ndarray of int of shape (n_cases,)
        The case, when it arrived, and the model that decided about it.
    content : list of dict
        The fields of each case; empty if they were not asked for.
    deferred, audited, unusual : ndarray of bool of shape (n_cases,)
        What was decided.
    probability : ndarray of shape (n_cases,)
        The recorded probability of an audit, which is 0 for deferred cases.
    machine_answer, answer, truth : ndarray of object of shape (n_cases,)
        The machine's answer, the final answer and the truth; None if there is none.
    expected_machine, expected_expert : ndarray of shape (n_cases,)
        Expected errors, NaN if the model expected nothing.
    by_expert, open : ndarray of bool of shape (n_cases,)
        Whether experts gave the final answer, and whether there is none yet.
    answered_at : ndarray of int of shape (n_cases,)
        When the final answer was given; 0 if there is none.
    row : ndarray of int of shape (n_answers,)
        The position of the case of each answer of an expert, arbiters' left out, in the order in which
        they were given.
    expert, value, kind : ndarray of object of shape (n_answers,)
        Her name, her answer, and whether it was a reading or an audit.
    expected : ndarray of shape (n_answers,)
        Her expected error on the case.
    """

    number: NDArray[np.int64]
    received_at: NDArray[np.int64]
    model_id: NDArray[np.int64]
    content: list[dict[str, Any]]
    deferred: Bools
    audited: Bools
    unusual: Bools
    probability: Array
    machine_answer: Objects
    answer: Objects
    truth: Objects
    expected_machine: Array
    expected_expert: Array
    by_expert: Bools
    open: Bools
    answered_at: NDArray[np.int64]
    row: NDArray[np.int64]
    expert: Objects
    value: Objects
    kind: Objects
    expected: Array

    def __len__(self) -> int:
        return len(self.number)

    @property
    def first_answer(self) -> Objects:
        """The first answer of an expert to each case, None where there is none."""
        first = np.full(len(self), None, dtype=object)
        first[self.row[::-1]] = self.value[::-1]
        return first

    @property
    def read_probability(self) -> Array:
        """The probability that an expert reads each case: 1 if it was deferred, else that of an audit."""
        return np.where(self.deferred, 1.0, self.probability)


def read_records(
    connection: Connection,
    *,
    since: int = 0,
    until: int | None = None,
    after: int = 0,
    limit: int | None = None,
    content: bool = False,
) -> Records:
    """Read cases.

    Parameters
    ----------
    connection : Connection
        A connection to the database.
    since, until : int
        Only cases that arrived from the one time on, and before the other one.
    after : int, default=0
        Only cases with larger numbers.
    limit : int or None, default=None
        Only the newest of them, up to so many.
    content : bool, default=False
        Whether to read their fields, too.

    Returns
    -------
    Records
    """
    wanted = [case.c.received_at >= since, case.c.number > after]
    if until is not None:
        wanted.append(case.c.received_at < until)
    query = (
        select(
            case.c.number,
            case.c.received_at,
            case.c.answer,
            case.c.answered_by,
            case.c.answered_at,
            *((case.c.content,) if content else ()),
            decision,
            truth.c.value.label("truth"),
        )
        .join(decision, decision.c.case_number == case.c.number)
        .outerjoin(truth, (truth.c.case_number == case.c.number) & truth.c.replaced_at.is_(None))
        .where(*wanted)
        .order_by(case.c.number.desc())
    )
    rows = connection.execute(query if limit is None else query.limit(limit)).all()[::-1]
    answers: list[Any] = []
    if rows:
        given = (
            select(answer.c.case_number, answer.c.value, expert.c.name, reading.c.kind)
            .join(reading, reading.c.id == answer.c.reading_id)
            .join(expert, expert.c.id == answer.c.expert_id)
            .where(
                answer.c.withdrawn_at.is_(None),
                reading.c.kind != "arbiter",
                answer.c.case_number.between(rows[0].number, rows[-1].number),
            )
            .order_by(answer.c.id)
        )
        answers = list(connection.execute(given).all())
    place = {row.number: i for i, row in enumerate(rows)}
    answers = [one for one in answers if one.case_number in place]
    by_expert = [row.answered_by in ("expert", "experts", "arbiter") for row in rows]
    return Records(
        number=_whole([row.number for row in rows]),
        received_at=_whole([row.received_at for row in rows]),
        model_id=_whole([row.model_id for row in rows]),
        content=[row.content for row in rows] if content else [],
        deferred=np.array([row.deferred for row in rows], dtype=bool),
        audited=np.array([row.audited for row in rows], dtype=bool),
        unusual=np.array([bool(row.unusual) for row in rows], dtype=bool),
        probability=_numbers([row.audit_probability for row in rows]),
        machine_answer=_objects([row.machine_answer for row in rows]),
        answer=_objects([row.answer for row in rows]),
        truth=_objects([row.truth for row in rows]),
        expected_machine=_numbers([row.expected_machine for row in rows]),
        expected_expert=_numbers([row.expected_expert for row in rows]),
        by_expert=np.array(by_expert, dtype=bool),
        open=np.array([row.answered_at is None for row in rows], dtype=bool),
        answered_at=_whole([row.answered_at or 0 for row in rows]),
        row=_whole([place[one.case_number] for one in answers]),
        expert=_objects([one.name for one in answers]),
        value=_objects([one.value for one in answers]),
        kind=_objects([one.kind for one in answers]),
        expected=_numbers(
            [expected_of(rows[place[one.case_number]].expected, one.name) for one in answers]
        ),
    )


def count_given_up(connection: Connection, records: Records) -> int:
    """How many audits ended without an answer, because all experts who could be asked have passed."""
    if not len(records):
        return 0
    going = exists().where(
        reading.c.case_number == decision.c.case_number,
        reading.c.kind == "audit",
        reading.c.state.in_(["waiting", "leased", "answered"]),
    )
    query = select(func.count()).where(
        decision.c.case_number.between(int(records.number[0]), int(records.number[-1])),
        decision.c.audited,
        ~going,
    )
    return int(connection.execute(query).scalar_one())


def expected_of(expected: dict[str, float] | None, name: str) -> float | None:
    """The expected error of an expert: her own if the model tells experts apart."""
    errors = expected or {}
    return errors.get(name, errors.get(SOMEBODY))


def read_loads(connection: Connection, first_day: str) -> dict[int, int]:
    """How many readings each expert was given from a day on, by the expert's id."""
    query = (
        select(expert_day.c.expert_id, func.sum(expert_day.c.taken).label("taken"))
        .where(expert_day.c.day >= first_day)
        .group_by(expert_day.c.expert_id)
    )
    return {int(row.expert_id): int(row.taken) for row in connection.execute(query)}


def days_at_work(connection: Connection, moment: Moment, days: int) -> int:
    """How many of the last days, today included, the desk has been at work: all, if it is old enough."""
    arrived = connection.execute(
        select(case.c.received_at).order_by(case.c.number).limit(1)
    ).scalar()
    # The first cases may have been purged; the days of experts are kept.
    opened = connection.execute(select(func.min(expert_day.c.day))).scalar()
    found = [opened, None if arrived is None else moment.rules.day(arrived)]
    known = [day for day in found if day is not None]
    if not known:
        return days
    age = date.fromisoformat(moment.day) - date.fromisoformat(min(known))
    return min(days, max(age.days, 0) + 1)


def _whole(values: list[int]) -> NDArray[np.int64]:
    return np.array(values, dtype=np.int64)


def _numbers(values: list[float | None]) -> Array:
    return np.array([np.nan if one is None else one for one in values], dtype=np.float64)


def _objects(values: list[Any]) -> Objects:
    found = np.empty(len(values), dtype=object)
    found[:] = values
    return found
