"""The queue: an expert gets the next case under a lease, which nobody else has until it ends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, bindparam, exists, select, update

from deferlearn.desk.capacity import give_back, take
from deferlearn.desk.desk import Desk
from deferlearn.desk.errors import Conflict, NotFound
from deferlearn.desk.leases import end_expired
from deferlearn.desk.rules import Configuration, Expert, Moment
from deferlearn.desk.schema import (
    ANYONE,
    ARBITERS,
    HELD,
    LEASED,
    WAITING,
    case,
    decision,
    expert,
    reading,
)
from deferlearn.desk.tokens import new_token, stored_form

# So often an expert tries again if others were quicker.
TRIES = 10
# Statements that experts need all the time are made once: to make one takes as long as to run it.
_before = reading.alias("before")
_HELD = (
    select(reading.c.id)
    .where(reading.c.state == LEASED, reading.c.leased_by == bindparam("expert"))
    .order_by(reading.c.leased_until)
    .limit(1)
)
# Readings at a seat that an expert may take: of no case that she has had before.
_OPEN = (
    select(reading.c.id, reading.c.priority)
    .where(
        reading.c.state == WAITING,
        reading.c.seat == bindparam("at_seat"),
        ~exists().where(
            _before.c.case_number == reading.c.case_number,
            _before.c.leased_by == bindparam("expert"),
            _before.c.state.in_(HELD),
            _before.c.id != reading.c.id,
        ),
    )
    .order_by(reading.c.priority)
    .limit(1)
)
_LEASE = (
    update(reading)
    .where(reading.c.state == "waiting")
    .values(
        state="leased",
        leased_by=bindparam("expert"),
        leased_from=bindparam("now"),
        leased_until=bindparam("until"),
        token_hash=bindparam("hash"),
        counted_for=bindparam("expert"),
        counted_day=bindparam("today"),
    )
    .returning(reading.c.id)
)
_CLAIM = _LEASE.where(
    reading.c.id
    == _OPEN.with_only_columns(reading.c.id).with_for_update(skip_locked=True).scalar_subquery()
)
_CLAIM_OWN = _LEASE.where(
    reading.c.id == bindparam("number"), reading.c.seat == bindparam("expert")
)
_GIVE_TOKEN = (
    update(reading)
    .where(reading.c.id == bindparam("number"))
    .values(token_hash=bindparam("hash"), leased_until=bindparam("until"))
)
_CONTENT = (
    select(
        case.c.number,
        case.c.id,
        case.c.content,
        decision.c.model_id,
        decision.c.machine_answer,
    )
    .select_from(reading)
    .join(case, case.c.number == reading.c.case_number)
    .join(decision, decision.c.case_number == case.c.number)
    .where(reading.c.id == bindparam("number"))
)
_LOCK_EXPERT = (
    # Rows that refer to the expert may be added meanwhile.
    select(expert).where(expert.c.id == bindparam("expert")).with_for_update(key_share=True)
)


@dataclass(frozen=True)
class Lease:
    """A case in an expert's hands.

    Attributes
    ----------
    reading_id : int
        The reading.
    token : str
        Proves who holds it.
    until : int
        When it ends.
    case_number : int
        The case.
    case_id : str
        The id that the source has for it.
    seen : dict
        The fields that experts see.
    classes : list of str
        The answers that there are.
    machine_answer : str or None
        The machine's answer; None if experts are blind to it.
    """

    reading_id: int
    token: str
    until: int
    case_number: int
    case_id: str
    seen: dict[str, Any]
    classes: list[str]
    machine_answer: str | None


def lease_next(desk: Desk, expert_id: int, *, first: int | None = None) -> Lease | None:
    """Lease the next case to an expert.

    An expert has one case at a time: who holds one already gets the same one again with a new token, so
    that a reply of the desk that got lost on its way does no harm.

    Parameters
    ----------
    desk : Desk
        The desk.
    expert_id : int
        The expert.
    first : int or None, default=None
        A reading that waits for the expert, and is to be the next one, whatever else waits.

    Returns
    -------
    lease : Lease or None
        None if there is nothing to do for the expert.
    """
    return desk.database.write(lambda connection: _lease_next(desk, connection, expert_id, first))


def _lease_next(
    desk: Desk, connection: Connection, expert_id: int, first: int | None
) -> Lease | None:
    moment = desk.look(connection)
    who = _locked_expert(connection, expert_id)
    end_expired(connection, moment)
    number = connection.execute(_HELD, {"expert": who.id}).scalar()
    seats = [who.id, *shared_seats(moment.configuration, who)]
    token = new_token()
    if number is not None:
        until = moment.after(moment.rules.lease_seconds)
        values = {"number": number, "hash": stored_form(token), "until": until}
        connection.execute(_GIVE_TOKEN, values)
        return _leased(desk, connection, moment, number, token)
    for _ in range(TRIES):
        ahead = _first_seat(connection, who, seats)
        if ahead is None or not take(connection, who.id, moment.day, who.daily_limit):
            return None
        number = _claim(connection, moment, who, ahead, first, token)
        if number is not None:
            return _leased(desk, connection, moment, number, token)
        # Others were quicker.
        first = None
        give_back(connection, who.id, moment.day)
    return None


def _locked_expert(connection: Connection, expert_id: int) -> Expert:
    row = connection.execute(_LOCK_EXPERT, {"expert": expert_id}).first()
    if row is None:
        raise NotFound(f"There is no expert {expert_id}.")
    who = Expert(*row)
    if not who.is_active:
        raise Conflict(f"The expert {who.name!r} takes no cases at present.")
    return who


def _first_seat(connection: Connection, who: Expert, seats: list[int]) -> int | None:
    """The seat at which the most urgent case waits."""
    best: tuple[int, int] | None = None
    for seat in seats:
        head = connection.execute(_OPEN, {"expert": who.id, "at_seat": seat}).first()
        if head is not None and (best is None or head.priority < best[0]):
            best = (head.priority, seat)
    return None if best is None else best[1]


def _claim(
    connection: Connection, moment: Moment, who: Expert, seat: int, wanted: int | None, token: str
) -> int | None:
    """Take a reading of one's own, or the first one at a seat, unless others hold all of them now."""
    values = {
        "expert": who.id,
        "at_seat": seat,
        "now": moment.now,
        "until": moment.after(moment.rules.lease_seconds),
        "hash": stored_form(token),
        "today": moment.day,
    }
    if wanted is not None:
        return connection.execute(_CLAIM_OWN, {**values, "number": wanted}).scalar()
    return connection.execute(_CLAIM, values).scalar()


def _leased(desk: Desk, connection: Connection, moment: Moment, number: int, token: str) -> Lease:
    """What an expert needs of a reading that she has now."""
    row = connection.execute(_CONTENT, {"number": number}).one()
    return Lease(
        reading_id=number,
        token=token,
        until=moment.after(moment.rules.lease_seconds),
        case_number=row.number,
        case_id=row.id,
        seen=desk.display(connection, moment).seen(row.content),
        classes=desk.classes(connection, row.model_id),
        machine_answer=None if moment.rules.blind else row.machine_answer,
    )


def shared_seats(configuration: Configuration, who: Expert) -> list[int]:
    """The seats of readings that are for nobody in particular, and that an expert may take.

    Parameters
    ----------
    configuration : Configuration
        What is configured.
    who : Expert
        The expert.

    Returns
    -------
    seats : list of int
    """
    first = any(one.id == who.id for one in configuration.first_readers)
    return [*([ANYONE] if first else []), *([ARBITERS] if who.is_arbiter else [])]
