"""Leases: who holds a case proves it with a token, may keep it, give it back, or lose it.

A lease has a token that only its holder knows. It ends with an answer, a pass or a release, and by itself
when its holder is not heard of in time: then the case comes back, without anybody's help.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, bindparam, or_, select, update

from deferlearn.desk.database import SECOND
from deferlearn.desk.desk import Desk
from deferlearn.desk.errors import Conflict, NotFound
from deferlearn.desk.handing import come_back
from deferlearn.desk.rules import Moment
from deferlearn.desk.schema import LEASED, case, decision, reading
from deferlearn.desk.signing import same
from deferlearn.desk.tokens import stored_form

# A lease that began so much later than now was given before the clock was set back: it has ended.
CLOCK_SLACK = 60 * SECOND
# So many leases that have ended come back at a time.
EXPIRED = 20
# Statements that experts need all the time are made once: to make one takes as long as to run it.
_OVER = (
    select(reading.c.id, reading.c.case_number)
    .where(
        reading.c.state == LEASED,
        or_(
            reading.c.leased_until < bindparam("now"),
            reading.c.leased_from > bindparam("now") + CLOCK_SLACK,
        ),
    )
    .order_by(reading.c.leased_until)
    .limit(EXPIRED)
)
_FREE_CASES = (
    select(case)
    .where(case.c.number.in_(bindparam("numbers", expanding=True)))
    .order_by(case.c.number)
    .with_for_update(skip_locked=True, key_share=True)
)
_LOCK_CASE = (
    select(case)
    .where(
        case.c.number
        == select(reading.c.case_number)
        .where(reading.c.id == bindparam("number"))
        .scalar_subquery()
    )
    .with_for_update(key_share=True)
)
_LOCK_READING = (
    select(reading, decision.c.model_id, decision.c.machine_answer)
    .join(decision, decision.c.case_number == reading.c.case_number)
    .where(reading.c.id == bindparam("number"))
    .with_for_update(of=reading, key_share=True)
)


class LeaseLost(Conflict):
    """The lease has ended, or another one has taken its place."""


def end_expired(connection: Connection, moment: Moment) -> int:
    """Let cases come back whose leases have ended.

    Parameters
    ----------
    connection : Connection
        A connection that writes.
    moment : Moment
        Now.

    Returns
    -------
    ended : int
        How many there were.
    """
    over = connection.execute(_OVER, {"now": moment.now}).all()
    if not over:
        return 0
    ended = 0
    cases = {"numbers": sorted({row.case_number for row in over})}
    # A case that somebody else holds comes back later.
    free = {row.number: row for row in connection.execute(_FREE_CASES, cases)}
    for number in [row.id for row in over if row.case_number in free]:
        row = connection.execute(_LOCK_READING, {"number": number}).one()
        if row.state == "leased" and _is_over(row, moment.now):
            come_back(connection, moment, free[row.case_number], row)
            ended += 1
    return ended


def _is_over(row: Any, now: int) -> bool:
    return bool(now > row.leased_until or row.leased_from > now + CLOCK_SLACK)


def held_reading(
    connection: Connection, reading_id: int, token: str, now: int, expert_id: int | None = None
) -> tuple[Any, Any]:
    """The reading that a token belongs to, and its case, locked until the transaction ends.

    Parameters
    ----------
    connection : Connection
        A connection that writes.
    reading_id : int
        The reading.
    token : str
        The token of its lease.
    now : int
        The time.
    expert_id : int or None, default=None
        The expert who asks; None: a program that may answer for every expert.

    Returns
    -------
    row : Row
        The columns of the reading, and `model_id` and `machine_answer` of the decision. A reading that was
        answered or passed with the same token is given too: it is for the caller to say that this is done
        already.
    found : Row
        The columns of the case.

    Raises
    ------
    LeaseLost
        If the token is not that of the present lease, or the lease has ended.
    """
    found = connection.execute(_LOCK_CASE, {"number": reading_id}).first()
    if found is None:
        raise NotFound(f"There is no reading {reading_id}.")
    row = connection.execute(_LOCK_READING, {"number": reading_id}).one()
    lost = LeaseLost(
        "The lease of this case has ended, or has a newer token: ask for the next case."
    )
    if row.token_hash is None or not same(row.token_hash.encode(), stored_form(token).encode()):
        raise lost
    if expert_id is not None and row.leased_by != expert_id:
        raise lost
    if row.state == "leased" and _is_over(row, now):
        raise lost
    if row.state not in ("leased", "answered", "passed"):
        raise lost
    return row, found


def _leased_reading(
    connection: Connection, reading_id: int, token: str, now: int, expert_id: int | None
) -> tuple[Any, Any]:
    """The same, if the reading is neither answered nor passed."""
    row, found = held_reading(connection, reading_id, token, now, expert_id)
    if row.state != "leased":
        raise LeaseLost("This case is done: ask for the next one.")
    return row, found


def renew(desk: Desk, reading_id: int, token: str, *, expert_id: int | None = None) -> int:
    """Keep a case for another while.

    Parameters
    ----------
    desk : Desk
        The desk.
    reading_id : int
        The reading.
    token : str
        The token of its lease.
    expert_id : int or None, default=None
        The expert who asks; None: a program that may answer for every expert.

    Returns
    -------
    until : int
        When the lease ends now.
    """

    def job(connection: Connection) -> int:
        moment = desk.look(connection)
        _leased_reading(connection, reading_id, token, moment.now, expert_id)
        until = moment.after(moment.rules.lease_seconds)
        connection.execute(
            update(reading).where(reading.c.id == reading_id).values(leased_until=until)
        )
        return until

    return desk.database.write(job)


def release(desk: Desk, reading_id: int, token: str, *, expert_id: int | None = None) -> None:
    """Give a case back without an answer; anybody may take it again, also the same expert.

    Parameters
    ----------
    desk : Desk
        The desk.
    reading_id : int
        The reading.
    token : str
        The token of its lease.
    expert_id : int or None, default=None
        The expert who asks; None: a program that may answer for every expert.
    """

    def job(connection: Connection) -> None:
        moment = desk.look(connection)
        row, found = _leased_reading(connection, reading_id, token, moment.now, expert_id)
        come_back(connection, moment, found, row)

    desk.database.write(job)
