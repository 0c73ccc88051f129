"""Readings of a case: who has it already, one more for somebody else, and those that end without an answer.

Whoever changes readings of a case holds the case, so that two of them see each other.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, bindparam, insert, select, update

from deferlearn.desk.capacity import give_back
from deferlearn.desk.errors import NotFound
from deferlearn.desk.rules import Moment
from deferlearn.desk.schema import case, reading

_LOCK_CASE = (
    select(case).where(case.c.number == bindparam("number")).with_for_update(key_share=True)
)
# Statements of every answer are made once: to make one takes as long as to run it.
_CANCEL = (
    update(reading)
    .where(
        reading.c.case_number == bindparam("case"),
        reading.c.state == "waiting",
        reading.c.kind != "audit",
    )
    .values(state="cancelled")
)


def lock_case(connection: Connection, number: int) -> Any:
    """A case that nobody else changes until the transaction ends; others may still refer to it.

    Parameters
    ----------
    connection : Connection
        A connection that writes.
    number : int
        The case.

    Returns
    -------
    row : Row

    Raises
    ------
    NotFound
        If a purge has removed it in the meantime.
    """
    row = connection.execute(_LOCK_CASE, {"number": number}).first()
    if row is None:
        raise NotFound(f"The case with the number {number} was removed.")
    return row


def readers(connection: Connection, number: int) -> set[int]:
    """Who has read a case, passed it, or is asked to read it.

    Parameters
    ----------
    connection : Connection
        A connection to the database.
    number : int
        The case.

    Returns
    -------
    places : set of int
        Ids of experts.
    """
    rows = connection.execute(
        select(reading.c.seat, reading.c.leased_by).where(
            reading.c.case_number == number, reading.c.state != "cancelled"
        )
    )
    return {place for row in rows for place in (row.seat, row.leased_by) if place}


def add_reading(connection: Connection, moment: Moment, found: Any, kind: str, seat: int) -> None:
    """Ask for one more reading of a case.

    Parameters
    ----------
    connection : Connection
        A connection that writes; the case is locked.
    moment : Moment
        Now.
    found : Row
        The case.
    kind : {"reading", "arbiter", "audit"}
        What it is for.
    seat : int
        For whom it is: the id of an expert, ANYONE or ARBITERS.
    """
    # It has the rank of the case: it has waited long enough.
    first = connection.execute(
        select(reading.c.priority).where(reading.c.case_number == found.number).limit(1)
    ).scalar_one()
    connection.execute(
        insert(reading).values(
            case_number=found.number,
            kind=kind,
            seat=seat,
            state="waiting",
            priority=first,
            created_at=moment.now,
        )
    )


def cancel_waiting(connection: Connection, number: int) -> None:
    """Cancel the readings of a case that nobody has begun, but for audits.

    Parameters
    ----------
    connection : Connection
        A connection that writes; the case is locked.
    number : int
        The case.
    """
    connection.execute(_CANCEL, {"case": number})


def take_away(connection: Connection, found: Any, row: Any, seat: int) -> bool:
    """Take a reading from the expert who has it: it waits again, and does not count as hers any more.

    A reading of a case that is answered meanwhile is cancelled, unless it is an audit.

    Parameters
    ----------
    connection : Connection
        A connection that writes; the case is locked.
    found : Row
        The case.
    row : Row
        The reading.
    seat : int
        For whom it waits from now on.

    Returns
    -------
    waits : bool
    """
    waits = row.kind == "audit" or found.state == "waiting"
    if row.counted_for is not None:
        give_back(connection, row.counted_for, row.counted_day)
    connection.execute(
        update(reading)
        .where(reading.c.id == row.id)
        .values(
            state="waiting" if waits else "cancelled",
            seat=seat,
            leased_by=None,
            token_hash=None,
            counted_for=None,
            counted_day=None,
        )
    )
    return waits
