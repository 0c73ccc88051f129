"""Passes: an expert cannot tell, and the case goes to the next one, or is settled without."""

from __future__ import annotations

from sqlalchemy import Connection, update

from deferlearn.desk import audit
from deferlearn.desk.answering import check_length
from deferlearn.desk.desk import Desk
from deferlearn.desk.handing import next_reader
from deferlearn.desk.leases import LeaseLost, held_reading
from deferlearn.desk.schema import reading
from deferlearn.desk.settling import ALL_PASSED


def pass_on(
    desk: Desk,
    reading_id: int,
    token: str,
    *,
    note: str = "",
    actor: str,
    expert_id: int | None = None,
) -> None:
    """Say that the expert cannot tell: the case goes to the next one.

    Parameters
    ----------
    desk : Desk
        The desk.
    reading_id : int
        The reading.
    token : str
        The token of its lease.
    note : str, default=""
        What the expert has to say about the case.
    actor : str
        Who passes.
    expert_id : int or None, default=None
        The expert who asks; None: a program that may answer for every expert.
    """

    def job(connection: Connection) -> None:
        moment = desk.look(connection)
        row, found = held_reading(connection, reading_id, token, moment.now, expert_id)
        if row.state == "passed":
            return
        if row.state != "leased":
            raise LeaseLost("This case was answered: take the answer back first.")
        check_length(note)
        passed = {"state": "passed", "remark": note or None}
        connection.execute(update(reading).where(reading.c.id == reading_id).values(**passed))
        if row.kind == "audit" or found.state == "waiting":
            next_reader(connection, moment, found, row.kind, ALL_PASSED)
        audit.append(
            connection,
            actor=actor,
            action="case.passed",
            subject=f"case:{found.number}",
            detail={"expert": row.leased_by, "kind": row.kind},
        )

    desk.database.write(job)
