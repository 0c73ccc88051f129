"""Deadlines: a case that nobody answers in time is answered by the machine and flagged, or waits."""

from __future__ import annotations

from sqlalchemy import Connection, select, update

from deferlearn.desk import audit
from deferlearn.desk.desk import Desk
from deferlearn.desk.rules import MACHINE_ANSWERS
from deferlearn.desk.schema import WAITING, case, decision
from deferlearn.desk.settling import LATE, STILL_WAITING, finish_case

# So many cases are looked after in one transaction.
BATCH = 20


def enforce_deadlines(desk: Desk) -> int:
    """Look after cases whose time is over.

    Parameters
    ----------
    desk : Desk
        The desk.

    Returns
    -------
    late : int
        How many there were; if it is not 0, there may be more.
    """
    return desk.database.write(lambda connection: _enforce(desk, connection))


def _enforce(desk: Desk, connection: Connection) -> int:
    moment = desk.look(connection)
    late = connection.execute(
        select(case)
        .where(case.c.state == WAITING, case.c.due_at < moment.now)
        .order_by(case.c.due_at)
        .limit(BATCH)
        .with_for_update(skip_locked=True, key_share=True)
    ).all()
    entries = []
    for row in late:
        # It is late once, also if it waits on.
        connection.execute(
            update(case).where(case.c.number == row.number).values(due_at=None, flag=STILL_WAITING)
        )
        if moment.rules.deadline_rule == MACHINE_ANSWERS:
            answer = connection.execute(
                select(decision.c.machine_answer).where(decision.c.case_number == row.number)
            ).scalar_one()
            finish_case(connection, moment, row, answer, "deadline", LATE)
        entries.append(audit.Entry("desk", "case.late", f"case:{row.number}"))
    audit.append_all(connection, entries)
    return len(late)
