"""Answers that are taken back: the case waits for the same expert again."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, select, update

from deferlearn.desk import audit
from deferlearn.desk.desk import Desk
from deferlearn.desk.errors import Conflict, Forbidden, NotFound
from deferlearn.desk.handing import come_back
from deferlearn.desk.readings import lock_case
from deferlearn.desk.rules import Moment
from deferlearn.desk.schema import answer, case, reading
from deferlearn.desk.settling import DISAGREED
from deferlearn.desk.webhooks import announce


def take_back(desk: Desk, answer_id: int, *, expert_id: int | None, actor: str) -> int:
    """Take an answer back within the time that the rules allow; the case waits for the expert again.

    Parameters
    ----------
    desk : Desk
        The desk.
    answer_id : int
        The answer.
    expert_id : int or None
        The expert who asks; None: a program that may answer for every expert.
    actor : str
        Who takes it back.

    Returns
    -------
    reading_id : int
        The reading that waits again.
    """

    def job(connection: Connection) -> int:
        moment = desk.look(connection)
        given = connection.execute(select(answer).where(answer.c.id == answer_id)).first()
        if given is None:
            raise NotFound(f"There is no answer {answer_id}.")
        if expert_id is not None and given.expert_id != expert_id:
            raise Forbidden("This is the answer of another expert.")
        found = lock_case(connection, given.case_number)
        withdrawn = connection.execute(
            update(answer)
            .where(
                answer.c.id == answer_id,
                answer.c.withdrawn_at.is_(None),
                answer.c.at >= moment.after(-moment.rules.undo_seconds),
            )
            .values(withdrawn_at=moment.now)
        )
        if not withdrawn.rowcount:
            raise Conflict("The answer was taken back before, or the time for that is over.")
        row = connection.execute(select(reading).where(reading.c.id == given.reading_id)).one()
        if row.kind == "reading":
            _cancel_arbitration(connection, found.number)
        if row.kind != "audit" and found.answered_by in ("expert", "experts", "arbiter"):
            found = _reopen(connection, moment, found)
        come_back(connection, moment, found, row, given.expert_id)
        audit.append(
            connection,
            actor=actor,
            action="answer.withdrawn",
            subject=f"case:{found.number}",
            detail={"answer": answer_id, "expert": given.expert_id},
        )
        return int(row.id)

    return desk.database.write(job)


def _cancel_arbitration(connection: Connection, number: int) -> None:
    own = (reading.c.case_number == number) & (reading.c.kind == "arbiter")
    # First cancel, then look: an arbiter may take the case at the same time.
    connection.execute(
        update(reading).where(own, reading.c.state == "waiting").values(state="cancelled")
    )
    held = select(reading.c.id).where(own, reading.c.state.in_(["answered", "leased"]))
    if connection.execute(held).first() is not None:
        raise Conflict("An arbiter has the case: the answer cannot be taken back any more.")


def _reopen(connection: Connection, moment: Moment, found: Any) -> Any:
    """Let a case wait again that was answered; the case as it is then."""
    # What was said about the answer goes with it, what was said about the case stays.
    flag = None if found.flag == DISAGREED else found.flag
    facts = {"answer": None, "answered_by": None, "flag": flag}
    # The expert gets time to answer again, also if the deadline has passed meanwhile.
    due = found.due_at
    if due is not None:
        due = max(due, moment.after(moment.rules.lease_seconds))
    connection.execute(
        update(case)
        .where(case.c.number == found.number)
        .values(state="waiting", answered_at=None, version=found.version + 1, due_at=due, **facts)
    )
    announce(
        connection,
        moment,
        "case.reopened",
        found.number,
        found.id,
        facts,
        version=found.version + 1,
    )
    return lock_case(connection, found.number)
