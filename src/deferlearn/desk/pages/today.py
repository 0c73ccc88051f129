"""The day in numbers: cases, the share deferred against the budget, the queue, and the load of experts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Integer, cast, func, select

from deferlearn.desk.capacity import limit_of_all
from deferlearn.desk.database import SECOND
from deferlearn.desk.models import active_card
from deferlearn.desk.pages.common import first_case_since, start_of_day
from deferlearn.desk.rules import Moment
from deferlearn.desk.schema import (
    ANYONE,
    ARBITERS,
    LEASED,
    WAITING,
    answer,
    case,
    decision,
    expert_day,
    reading,
)
from deferlearn.teams.budget import share_of

HOUR = 3600 * SECOND


@dataclass(frozen=True)
class Load:
    """The day of an expert.

    Attributes
    ----------
    name : str
        Of the expert.
    id : int
        Of the expert.
    given : int
        Readings of today.
    limit : int or None
        The most of a day.
    done : int
        Answers of today.
    seconds : float or None
        Mean time per answer today.
    waiting : int
        Readings that wait for this expert and nobody else.
    is_arbiter, is_active : bool
        As configured.
    """

    name: str
    id: int
    given: int
    limit: int | None
    done: int
    seconds: float | None
    waiting: int
    is_arbiter: bool
    is_active: bool


@dataclass(frozen=True)
class Today:
    """The day at a glance.

    Attributes
    ----------
    cases, deferred, unusual, audited : int
        Cases that arrived today, and how many of them were given to experts, are unlike the training
        cases, are audited.
    budget : float or None
        The share of cases that experts can take, if that is limited.
    waiting, leased, unseated : int
        Readings that wait, are being read, and wait for anybody.
    arbiters : int
        Readings that wait for an arbiter.
    oldest : int or None
        When the oldest reading that waits was asked for.
    flagged : int
        Cases of today that need a look: nobody had time, nobody could tell, readers disagreed.
    hours : list of (hour, machine, experts)
        Cases per hour of the day.
    loads : list of Load
        Experts.
    """

    cases: int
    deferred: int
    unusual: int
    audited: int
    budget: float | None
    waiting: int
    leased: int
    unseated: int
    arbiters: int
    oldest: int | None
    flagged: int
    hours: list[tuple[int, int, int]]
    loads: list[Load]


def look_at_today(connection: Connection, moment: Moment) -> Today:
    """Count what happened today.

    Parameters
    ----------
    connection : Connection
        A connection to the database.
    moment : Moment
        Now.

    Returns
    -------
    Today
        Only rows of today and rows that wait are read, whatever the number of cases.
    """
    begin = start_of_day(moment)
    first = first_case_since(connection, begin)
    hour = ((decision.c.at - begin) // HOUR).label("hour")
    rows = connection.execute(
        select(
            hour,
            decision.c.deferred,
            func.count().label("cases"),
            func.sum(cast(decision.c.unusual != "", Integer)).label("unusual"),
            func.sum(cast(decision.c.audited, Integer)).label("audited"),
        )
        .where(decision.c.case_number >= first)
        .group_by(hour, decision.c.deferred)
    ).all()
    by_hour = {(int(row.hour), bool(row.deferred)): int(row.cases) for row in rows}
    flagged = select(func.count()).where(case.c.number >= first, case.c.flag.is_not(None))
    seats = _waiting_by_seat(connection)
    return Today(
        cases=sum(row.cases for row in rows),
        deferred=sum(row.cases for row in rows if row.deferred),
        unusual=sum(row.unusual for row in rows),
        audited=sum(row.audited for row in rows),
        budget=budget(connection, moment),
        waiting=sum(count for count, _ in seats.values()),
        leased=connection.execute(
            select(func.count()).where(reading.c.state == LEASED)
        ).scalar_one(),
        unseated=seats.get(ANYONE, (0, 0))[0],
        arbiters=seats.get(ARBITERS, (0, 0))[0],
        oldest=min((oldest for _, oldest in seats.values()), default=None),
        flagged=connection.execute(flagged).scalar_one(),
        hours=[
            (number, by_hour.get((number, False), 0), by_hour.get((number, True), 0))
            for number in range(_hours(moment, begin))
        ],
        loads=_loads(connection, moment, begin, seats),
    )


def _hours(moment: Moment, begin: int) -> int:
    return int((moment.now - begin) // HOUR) + 1


def budget(connection: Connection, moment: Moment) -> float | None:
    """The share of cases that experts can take: by their limits, or else as the model was fitted.

    Parameters
    ----------
    connection : Connection
        A connection to the database.
    moment : Moment
        Now.

    Returns
    -------
    share : float or None
    """
    limit = limit_of_all(moment.configuration)
    rules = moment.rules
    if limit is not None:
        return min(1.0, limit / rules.readings / rules.cases_per_day)
    card = active_card(connection)
    if card.get("budget") is None:
        return None
    return share_of(card["budget"], card["rows"])


def _waiting_by_seat(connection: Connection) -> dict[int, tuple[int, int]]:
    rows = connection.execute(
        select(reading.c.seat, func.count(), func.min(reading.c.created_at))
        .where(reading.c.state == WAITING)
        .group_by(reading.c.seat)
    )
    return {int(seat): (int(count), int(oldest)) for seat, count, oldest in rows}


def _loads(
    connection: Connection, moment: Moment, begin: int, seats: dict[int, tuple[int, int]]
) -> list[Load]:
    taken: dict[int, Any] = {
        row.expert_id: row.taken
        for row in connection.execute(select(expert_day).where(expert_day.c.day == moment.day))
    }
    found = []
    for one in moment.configuration.experts.values():
        own = (answer.c.expert_id == one.id) & (answer.c.at >= begin)
        done, seconds = connection.execute(
            select(func.count(), func.avg(answer.c.seconds)).where(
                own, answer.c.withdrawn_at.is_(None)
            )
        ).one()
        found.append(
            Load(
                name=one.name,
                id=one.id,
                given=taken.get(one.id, 0),
                limit=one.daily_limit,
                done=done,
                seconds=seconds,
                waiting=seats.get(one.id, (0, 0))[0],
                is_arbiter=one.is_arbiter,
                is_active=one.is_active,
            )
        )
    return found
