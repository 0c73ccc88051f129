"""Handing on: a reading that an expert does not do comes back, goes to another one, or is given up."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from sqlalchemy import Connection, func, or_, select, update

from deferlearn.desk import audit
from deferlearn.desk.capacity import time_left
from deferlearn.desk.cases import decision_row
from deferlearn.desk.deciding import NO_TIME
from deferlearn.desk.desk import Desk
from deferlearn.desk.errors import NotFound
from deferlearn.desk.readings import add_reading, lock_case, readers, take_away
from deferlearn.desk.rules import MACHINE_ANSWERS, WAIT, Expert, Moment
from deferlearn.desk.schema import ANYONE, ARBITERS, WAITING, case, reading
from deferlearn.desk.settling import finish_case, finish_disagreement, settle

# So many readings are handed on in the transaction that changes an expert, and so many at a time after it.
# More would keep others waiting.
AT_ONCE, CHUNK = 100, 20


def come_back(
    connection: Connection, moment: Moment, found: Any, row: Any, seat: int | None = None
) -> None:
    """Let a reading come back that its expert gives up, loses or takes back.

    It waits again, unless the case is answered; if nobody is left at its seat, it goes to another expert.

    Parameters
    ----------
    connection : Connection
        A connection that writes; the case is locked.
    moment : Moment
        Now.
    found, row : Row
        The case and the reading.
    seat : int or None, default=None
        For whom it waits from now on; None: as before.
    """
    place = row.seat if seat is None else seat
    waits = take_away(connection, found, row, place)
    if waits and not _can_be_taken(connection, moment, found.number, place):
        _hand_on(connection, moment, found, row)


def hand_on_unread(connection: Connection, moment: Moment) -> int:
    """Hand on readings that no expert can take, such as those of an expert who was switched off.

    If they are very many, the first ones are handed on, and `look_after_unread` goes on with the others.

    Parameters
    ----------
    connection : Connection
        A connection that writes.
    moment : Moment
        Now.

    Returns
    -------
    number : int
        How many there were.
    """
    return _hand_on_those(connection, moment, list(islice(_unread(connection, moment), AT_ONCE)))


def look_after_unread(desk: Desk) -> int:
    """Hand on readings that no expert can take; see `hand_on_unread`.

    An expert may be switched off while a case arrives, which another server still gives to her.

    Parameters
    ----------
    desk : Desk
        The desk.

    Returns
    -------
    number : int
        How many there were.
    """
    # Found without a lock, because nearly always there are none, and looked at again under one.
    with desk.database.reading() as connection:
        unread = list(_unread(connection, desk.look(connection)))
    return sum(
        desk.database.write(
            lambda connection, part=unread[first : first + CHUNK]: _hand_on_those(  # type: ignore[misc]
                connection, desk.look(connection), part
            )
        )
        for first in range(0, len(unread), CHUNK)
    )


def _unread(connection: Connection, moment: Moment) -> Iterator[Any]:
    """Readings that wait, and that no expert can take."""
    configuration = moment.configuration
    away = [one.id for one in configuration.experts.values() if not one.takes_cases]
    other = reading.alias("other")
    # A case with no more readings than there are experts has an expert for each, whoever has had it.
    of_case = (
        select(func.count())
        .where(other.c.case_number == reading.c.case_number, other.c.state != "cancelled")
        .scalar_subquery()
    )
    able = sum(one.takes_cases for one in configuration.first_readers)
    query = select(reading.c.id, reading.c.case_number, reading.c.seat).where(
        reading.c.state == WAITING,
        or_(
            reading.c.seat.in_([*away, ARBITERS]),
            (reading.c.seat == ANYONE) & (of_case > able),
        ),
    )
    doubtful = connection.execute(query.order_by(reading.c.case_number, reading.c.id)).all()
    return (
        one for one in doubtful if not _can_be_taken(connection, moment, one.case_number, one.seat)
    )


def _hand_on_those(connection: Connection, moment: Moment, unread: Sequence[Any]) -> int:
    entries = []
    for one in unread:
        try:
            found = lock_case(connection, one.case_number)
        except NotFound:
            continue
        row = connection.execute(
            select(reading).where(reading.c.id == one.id).with_for_update(key_share=True)
        ).one()
        if row.state == "waiting" and not _can_be_taken(connection, moment, found.number, row.seat):
            _hand_on(connection, moment, found, row)
            detail = {"kind": row.kind, "seat": row.seat}
            entries.append(audit.Entry("desk", "case.handed_on", f"case:{found.number}", detail))
    audit.append_all(connection, entries)
    return len(entries)


def next_reader(connection: Connection, moment: Moment, found: Any, kind: str, flag: str) -> None:
    """Find another expert for a reading that one has not done.

    Parameters
    ----------
    connection : Connection
        A connection that writes; the case is locked.
    moment : Moment
        Now.
    found : Row
        The case.
    kind : {"reading", "arbiter", "audit"}
        What the reading is for.
    flag : str
        What is said of the case if nobody is left.
    """
    decided = decision_row(connection, found.number)
    others = _others(connection, moment, found.number)
    if kind == "arbiter":
        if any(one.is_arbiter for one in others):
            add_reading(connection, moment, found, kind, ARBITERS)
        else:
            finish_disagreement(connection, moment, found, decided)
        return
    gains = {int(place): gain for place, gain in decided.gains.items()}
    first = {one.id for one in moment.configuration.first_readers}
    if ANYONE in gains:
        free = sum(one.id in first for one in others)
        if free > _waiting_at(connection, found.number, ANYONE):
            add_reading(connection, moment, found, kind, ANYONE)
            return
        others = [one for one in others if one.id not in first]
    price = moment.configuration.price
    # Arbiters come last: they are needed if readers disagree.
    ranked = sorted(
        (one.id for one in others),
        key=lambda place: (place not in first, price(place) - gains.get(place, 0.0)),
    )
    left = time_left(connection, moment, ranked)
    for place in ranked:
        if left[place] != 0:
            add_reading(connection, moment, found, kind, place)
            return
    if kind != "audit":
        _give_up(connection, moment, found, decided, flag)


def _hand_on(connection: Connection, moment: Moment, found: Any, row: Any) -> None:
    """Give a reading that waits in vain to another expert."""
    connection.execute(update(reading).where(reading.c.id == row.id).values(state="cancelled"))
    if row.kind == "audit" or found.state == "waiting":
        next_reader(connection, moment, found, row.kind, NO_TIME)


def _others(connection: Connection, moment: Moment, number: int) -> list[Expert]:
    """Experts who take cases and have not had this one."""
    had = readers(connection, number)
    return [
        one for one in moment.configuration.active_experts if one.takes_cases and one.id not in had
    ]


def _can_be_taken(connection: Connection, moment: Moment, number: int, seat: int) -> bool:
    """Whether there is somebody for each reading of a case that waits at a seat."""
    configuration = moment.configuration
    if seat not in (ANYONE, ARBITERS):
        return configuration.experts[seat].takes_cases
    # Without experts cases wait for the first one, and by that rule for somebody new.
    if seat == ANYONE and (
        not configuration.active_experts or configuration.rules.deadline_rule == WAIT
    ):
        return True
    others = _others(connection, moment, number)
    first = configuration.first_readers
    able = [one for one in others if (one.is_arbiter if seat == ARBITERS else one in first)]
    return len(able) >= _waiting_at(connection, number, seat)


def _waiting_at(connection: Connection, number: int, seat: int) -> int:
    """How many readings of a case wait at a seat."""
    waiting = select(func.count()).where(
        reading.c.case_number == number, reading.c.seat == seat, reading.c.state == "waiting"
    )
    return int(connection.execute(waiting).scalar_one())


def _give_up(connection: Connection, moment: Moment, found: Any, decided: Any, flag: str) -> None:
    """Nobody is left today: other readings decide, or the machine, or the case waits for somebody new."""
    # One reading fewer will have to do.
    connection.execute(
        update(case)
        .where(case.c.number == found.number)
        .values(required=max(found.required - 1, 1), flag=flag)
    )
    found = lock_case(connection, found.number)
    open_readings = select(reading.c.id).where(
        reading.c.case_number == found.number,
        reading.c.state.in_(["waiting", "leased"]),
        reading.c.kind != "audit",
    )
    if connection.execute(open_readings).first() is not None:
        return
    if settle(connection, moment, found, decided):
        return
    if connection.execute(open_readings).first() is not None:
        return  # an arbiter is asked
    if moment.rules.deadline_rule == MACHINE_ANSWERS:
        finish_case(connection, moment, found, decided.machine_answer, "machine", flag)
    else:
        add_reading(connection, moment, found, "reading", ANYONE)
