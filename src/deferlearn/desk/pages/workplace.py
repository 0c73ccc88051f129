"""What an expert sees besides the case: how the day goes, the last answers, and when to come back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, func, select

from deferlearn.desk.database import SECOND
from deferlearn.desk.pages.common import end_of_day, start_of_day
from deferlearn.desk.queue import shared_seats
from deferlearn.desk.rules import Expert, Moment
from deferlearn.desk.schema import LEASED, answer, case, expert_day, reading

# So many of the last readings tell how often one arrives.
_RECENT = 500
# Fewer gaps tell nothing.
_FEWEST_GAPS = 3


@dataclass(frozen=True)
class Progress:
    """How an expert's day goes.

    Attributes
    ----------
    done : int
        Answers of today.
    given : int
        Readings of today that count against the limit.
    limit : int or None
        The most readings of a day.
    """

    done: int
    given: int
    limit: int | None

    @property
    def is_full(self) -> bool:
        """Whether the expert has no time left today."""
        return self.limit is not None and self.given >= self.limit


def progress_of(connection: Connection, moment: Moment, who: Expert) -> Progress:
    """How an expert's day goes.

    Parameters
    ----------
    connection : Connection
        A connection to the database.
    moment : Moment
        Now.
    who : Expert
        The expert.

    Returns
    -------
    Progress
    """
    done = select(func.count()).where(
        answer.c.expert_id == who.id,
        answer.c.at >= start_of_day(moment),
        answer.c.withdrawn_at.is_(None),
    )
    given = select(expert_day.c.taken).where(
        expert_day.c.expert_id == who.id, expert_day.c.day == moment.day
    )
    return Progress(
        done=int(connection.execute(done).scalar_one()),
        given=int(connection.execute(given).scalar() or 0),
        limit=who.daily_limit,
    )


@dataclass(frozen=True)
class ComeBack:
    """When to come back.

    Attributes
    ----------
    tomorrow : int or None
        When the next day begins, if the time of this one is used up.
    every : float or None
        Seconds between two cases for the expert, lately; None if too few have come.
    next_end : int or None
        When the next lease of another expert ends, whose case may come back.
    """

    tomorrow: int | None
    every: float | None
    next_end: int | None


def come_back(connection: Connection, moment: Moment, who: Expert, progress: Progress) -> ComeBack:
    """When an expert for whom nothing waits should come back.

    Parameters
    ----------
    connection : Connection
        A connection to the database.
    moment : Moment
        Now.
    who : Expert
        The expert.
    progress : Progress
        How the day went.

    Returns
    -------
    ComeBack
    """
    if progress.is_full:
        return ComeBack(end_of_day(moment), None, None)
    recent = select(reading.c.seat, reading.c.created_at).order_by(reading.c.id.desc())
    shared = shared_seats(moment.configuration, who)
    times = [
        row.created_at
        for row in connection.execute(recent.limit(_RECENT))
        if row.seat in (who.id, *shared) and row.created_at > moment.after(-24 * 3600)
    ]
    every = None
    if len(times) > _FEWEST_GAPS:
        every = (moment.now - min(times)) / len(times) / SECOND
    end = select(func.min(reading.c.leased_until)).where(
        reading.c.state == LEASED,
        reading.c.leased_until > moment.now,
        reading.c.seat.in_(shared),
        reading.c.leased_by != who.id,
    )
    return ComeBack(None, every, connection.execute(end).scalar())


def last_answers(connection: Connection, expert_id: int, limit: int) -> Sequence[Any]:
    """The last answers of an expert, the newest first.

    Parameters
    ----------
    connection : Connection
        A connection to the database.
    expert_id : int
        The expert.
    limit : int
        The most answers.

    Returns
    -------
    rows : sequence of Row
    """
    query = (
        select(answer, case.c.id.label("case_id"))
        .join(case, case.c.number == answer.c.case_number)
        .where(answer.c.expert_id == expert_id)
        .order_by(answer.c.at.desc(), answer.c.id.desc())
        .limit(limit)
    )
    return connection.execute(query).all()
