"""Answers: an expert who holds a case says what it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, bindparam, insert, select, update

from deferlearn.desk import audit
from deferlearn.desk.database import SECOND
from deferlearn.desk.desk import Desk
from deferlearn.desk.errors import Conflict, Invalid
from deferlearn.desk.leases import LeaseLost, held_reading
from deferlearn.desk.schema import answer, reading
from deferlearn.desk.settling import settle

LONGEST_NOTE = 5000
# Statements of every answer are made once: to make one takes as long as to run it.
_READ = update(reading).where(reading.c.id == bindparam("reading")).values(state="answered")
_ADD = insert(answer).returning(answer.c.id)


@dataclass(frozen=True)
class Answered:
    """What became of an answer.

    Attributes
    ----------
    answer_id : int
        The answer.
    case_id : str
        The case.
    final : bool
        Whether the case is answered.
    """

    answer_id: int
    case_id: str
    final: bool


def give_answer(
    desk: Desk,
    reading_id: int,
    token: str,
    value: str,
    *,
    note: str = "",
    actor: str,
    expert_id: int | None = None,
) -> Answered:
    """Answer a case that is leased; the same answer with the same token again changes nothing.

    Parameters
    ----------
    desk : Desk
        The desk.
    reading_id : int
        The reading.
    token : str
        The token of its lease.
    value : str
        One of the classes.
    note : str, default=""
        What the expert adds.
    actor : str
        Who answers.
    expert_id : int or None, default=None
        The expert who asks; None: a program that may answer for every expert.

    Returns
    -------
    Answered
    """

    def job(connection: Connection) -> Answered:
        moment = desk.look(connection)
        row, found = held_reading(connection, reading_id, token, moment.now, expert_id)
        if row.state != "leased":
            return _again(connection, row, found, value)
        classes = desk.classes(connection, row.model_id)
        if value not in classes:
            raise Invalid(f"The answer must be one of {', '.join(map(repr, classes))}.")
        check_length(note)
        connection.execute(_READ, {"reading": reading_id})
        given = {
            "reading_id": reading_id,
            "case_number": found.number,
            "expert_id": row.leased_by,
            "value": value,
            "note": note,
            "at": moment.now,
            "seconds": max(moment.now - row.leased_from, 0) / SECOND,
        }
        number = connection.execute(_ADD, given).scalar_one()
        final = found.state == "answered"
        if row.kind != "audit" and not final:
            final = settle(connection, moment, found, row)
        detail = {"answer": number, "expert": row.leased_by, "kind": row.kind, "value": value}
        subject = f"case:{found.number}"
        audit.append(
            connection, actor=actor, action="case.answered", subject=subject, detail=detail
        )
        return Answered(number, found.id, final)

    return desk.database.write(job)


def check_length(note: str) -> None:
    """Refuse a note that is too long.

    Parameters
    ----------
    note : str
        What an expert adds.
    """
    if len(note) > LONGEST_NOTE:
        raise Invalid(f"The note has {len(note)} characters; the most are {LONGEST_NOTE}.")


def _again(connection: Connection, row: Any, found: Any, value: str) -> Answered:
    """The same answer once more, because the reply to the first did not arrive."""
    given = connection.execute(
        select(answer.c.id, answer.c.value).where(
            answer.c.reading_id == row.id, answer.c.withdrawn_at.is_(None)
        )
    ).first()
    if given is None:
        raise LeaseLost("This case was passed: ask for the next one.")
    if given.value != value:
        raise Conflict(
            f"This case was answered with {given.value!r} already: take that answer back first."
        )
    return Answered(given.id, found.id, found.state == "answered")
