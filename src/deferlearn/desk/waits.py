"""How long cases would wait: the last cases come again as they came, and go to whom a forecast sends them.

Experts are there when they were there lately, take as long per reading as they did, and take the reading
first that comes first in the queue. Nothing is drawn at random.
"""

from __future__ import annotations

import heapq
import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sqlalchemy import Connection, select

from deferlearn.desk.database import SECOND
from deferlearn.desk.rules import Configuration, Expert
from deferlearn.desk.schema import ANYONE, answer

# An expert who answered within a slot was there for all of it.
SLOT = 900.0
DAY = 86400.0
# So many of the last answers of an expert tell when she is there.
MOST_ANSWERS = 2000
# A reading takes at least so many seconds.
SHORTEST = 0.1


@dataclass(frozen=True)
class Reader:
    """When an expert is there, and how long she takes.

    Attributes
    ----------
    seconds : float
        Per reading.
    slots : list of int
        Numbers of slots in which she is there, in order, from the beginning of the time that is repeated.
    days : int
        After so many days the slots come again.
    limit : int or None
        The most readings per day.
    """

    seconds: float
    slots: list[int]
    days: int = 1
    limit: int | None = None

    def next_moment(self, time: float) -> float:
        """When she is there at a time or later."""
        period = self.days * DAY
        turn, inside = divmod(time, period)
        place = bisect_left(self.slots, int(inside // SLOT))
        if place < len(self.slots):
            return turn * period + max(inside, self.slots[place] * SLOT)
        return (turn + 1) * period + self.slots[0] * SLOT


@dataclass(frozen=True)
class Arrival:
    """A case that goes to experts.

    Attributes
    ----------
    at : float
        When it arrives, in seconds.
    rank : float
        Its place in the queue; smaller comes first.
    seats : tuple of int
        Who reads it: ids of experts, or ANYONE.
    """

    at: float
    rank: float
    seats: tuple[int, ...]


def waiting_times(arrivals: Sequence[Arrival], readers: Mapping[int, Reader]) -> list[float]:
    """Seconds from the arrival of each case until its last reading is done.

    Parameters
    ----------
    arrivals : sequence of Arrival
        Cases by the time of their arrival.
    readers : mapping
        Experts by their ids.

    Returns
    -------
    seconds : list of float
        Infinite for a case that nobody finishes.
    """
    desk = _Desk(arrivals, readers)
    turns = [(0.0, number) for number in readers]
    heapq.heapify(turns)
    while turns:
        time, number = heapq.heappop(turns)
        later = desk.turn(time, number)
        if later is not None:
            heapq.heappush(turns, (later, number))
    return [
        max(ends) - one.at if len(ends) == len(one.seats) else math.inf
        for one, ends in zip(arrivals, desk.ends, strict=True)
    ]


@dataclass
class _Desk:
    """The queue while time goes on."""

    arrivals: Sequence[Arrival]
    readers: Mapping[int, Reader]
    came: int = 0
    queues: dict[int, list[tuple[float, int]]] = field(default_factory=dict)
    taken: Counter[tuple[int, int]] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.ends: list[list[float]] = [[] for _ in self.arrivals]
        self.had: list[set[int]] = [set() for _ in self.arrivals]

    def turn(self, time: float, number: int) -> float | None:
        """Let an expert who is free take the next reading; when to ask her again, if at all."""
        reader = self.readers[number]
        if not reader.slots:
            return None
        there = reader.next_moment(time)
        if there > time:
            return there
        day = int(time // DAY)
        if reader.limit is not None and self.taken[number, day] >= reader.limit:
            return (day + 1) * DAY if reader.limit else None
        self._arrive_until(time)
        place = self._take(number)
        if place is None:
            return self.arrivals[self.came].at if self.came < len(self.arrivals) else None
        self.taken[number, day] += 1
        end = time + reader.seconds
        self.ends[place].append(end)
        return end

    def _arrive_until(self, time: float) -> None:
        while self.came < len(self.arrivals) and self.arrivals[self.came].at <= time:
            one = self.arrivals[self.came]
            for seat in one.seats:
                heapq.heappush(self.queues.setdefault(seat, []), (one.rank, self.came))
            self.came += 1

    def _take(self, number: int) -> int | None:
        """The first reading that the expert may take; she reads no case twice."""
        first = [(*one, seat) for seat in (number, ANYONE) if (one := self._first(seat, number))]
        if not first:
            return None
        best = min(first)
        for rank, place, seat in first:
            if (rank, place, seat) != best:
                heapq.heappush(self.queues[seat], (rank, place))
        self.had[best[1]].add(number)
        return best[1]

    def _first(self, seat: int, number: int) -> tuple[float, int] | None:
        """Take out the first reading of a queue that the expert may take."""
        queue = self.queues.get(seat, [])
        skipped, found = [], None
        while queue and found is None:
            one = heapq.heappop(queue)
            if number in self.had[one[1]]:
                skipped.append(one)
            else:
                found = one
        for one in skipped:
            heapq.heappush(queue, one)
        return found


def known_readers(
    connection: Connection, configuration: Configuration, since: int
) -> dict[int, Reader] | None:
    """When experts were there since a time, and how long they took.

    An expert who has not answered since is taken to be there whenever one of the others was.

    Parameters
    ----------
    connection : Connection
        A connection to the database.
    configuration : Configuration
        What is, or would be, configured.
    since : int
        A time.

    Returns
    -------
    readers : dict or None
        By expert's id; None if nobody has answered since.
    """
    answers = {
        one.id: connection.execute(
            select(answer.c.at, answer.c.seconds)
            .where(answer.c.expert_id == one.id, answer.c.at >= since)
            .order_by(answer.c.at.desc())
            .limit(MOST_ANSWERS)
        ).all()
        for one in configuration.experts.values()
    }
    rows = [row for found in answers.values() for row in found]
    if not rows:
        return None
    begin = _first_day(since)
    days = int((max(row.at for row in rows) / SECOND - begin) // DAY) + 1

    def reader(one: Expert) -> Reader:
        own = answers[one.id] or rows
        slots = sorted({int((row.at / SECOND - begin) // SLOT) for row in own})
        seconds = sum(row.seconds for row in own) / len(own)
        return Reader(max(seconds, SHORTEST), slots, days, one.daily_limit)

    return {one.id: reader(one) for one in configuration.active_experts}


def seconds_since(since: int, time: int) -> float:
    """A time as `waiting_times` counts: from the beginning of the day of another one."""
    return time / SECOND - _first_day(since)


def _first_day(time: int) -> float:
    return (time / SECOND) // DAY * DAY
