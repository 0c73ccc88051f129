"""How many readings experts are given per day: hard limits, which hold whoever asks at the same time.

A reading counts on the day on which an expert opens it, whenever its case arrived: so nobody reads more per
day than the limit. A case is given to an expert only if her limit leaves room for it beside what she has
taken today and what still waits for her.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from sqlalchemy import BindParameter, Connection, bindparam, func, select, union_all, update
from sqlalchemy.dialects import postgresql, sqlite

from deferlearn.desk.rules import Configuration, Moment
from deferlearn.desk.schema import ANYONE, WAITING, expert_day, reading

# No expert takes so many.
LARGEST = 2**31 - 1


def _taking(words: Any) -> Any:
    """The statement that counts one more; both dialects have the same words for it."""
    row = words.insert(expert_day)
    return row.on_conflict_do_update(
        index_elements=[expert_day.c.expert_id, expert_day.c.day],
        set_={"taken": expert_day.c.taken + 1},
        where=expert_day.c.taken < bindparam("most"),
    ).returning(expert_day.c.taken)


# Statements of every case are made once: to make one takes as long as to run it.
_places: BindParameter[Any] = bindparam("places", expanding=True)
_USED = union_all(
    select(expert_day.c.expert_id.label("place"), expert_day.c.taken.label("number")).where(
        expert_day.c.day == bindparam("today"), expert_day.c.expert_id.in_(_places)
    ),
    select(reading.c.seat, func.count())
    .where(reading.c.state == WAITING, reading.c.seat.in_(_places))
    .group_by(reading.c.seat),
)
_HOLD = postgresql.insert(expert_day).on_conflict_do_update(
    index_elements=[expert_day.c.expert_id, expert_day.c.day],
    set_={"taken": expert_day.c.taken},
)
_TAKE = {"sqlite": _taking(sqlite), "postgresql": _taking(postgresql)}


def take(connection: Connection, expert_id: int, day: str, limit: int | None) -> bool:
    """Count one more reading of a day, unless the limit is reached.

    Parameters
    ----------
    connection : Connection
        A connection that writes.
    expert_id : int
        Whose reading it is.
    day : str
        The date.
    limit : int or None
        The most readings of the day; None: there is no limit.

    Returns
    -------
    taken : bool
        Whether there was time left.
    """
    if limit is not None and limit < 1:
        return False
    values = {
        "expert_id": expert_id,
        "day": day,
        "taken": 1,
        "most": LARGEST if limit is None else limit,
    }
    return connection.execute(_TAKE[connection.dialect.name], values).first() is not None


def give_back(connection: Connection, expert_id: int, day: str) -> None:
    """Count one reading less.

    Parameters
    ----------
    connection : Connection
        A connection that writes.
    expert_id : int
        Whose reading it was.
    day : str
        The day on which it was counted.
    """
    connection.execute(
        update(expert_day)
        .where(expert_day.c.expert_id == expert_id, expert_day.c.day == day)
        .values(taken=expert_day.c.taken - 1)
    )


def time_left(
    connection: Connection, moment: Moment, places: Iterable[int], *, hold: bool = True
) -> dict[int, int | None]:
    """How many readings more experts can be given today.

    What an expert took today counts, and what waits for her, since whenever: so the queue never holds more
    than a day's work, and what was left yesterday is read before what arrives today.

    Parameters
    ----------
    connection : Connection
        A connection to the database.
    moment : Moment
        Now.
    places : iterable of int
        Ids of experts, or ANYONE for all of them together.
    hold : bool, default=True
        Whether others who ask about the same experts wait until the transaction ends, which then writes.

    Returns
    -------
    left : dict
        By place; None: there is no limit.
    """
    configuration = moment.configuration
    limits = {place: limit_of(configuration, place) for place in places}
    limited = sorted(place for place, limit in limits.items() if limit is not None)
    if not limited:
        return limits
    if hold:
        _hold(connection, moment.day, limited)
    everyone = {one.id for one in configuration.first_readers} if ANYONE in limited else set()
    used = _used(connection, moment.day, {*limited, *everyone})
    used[ANYONE] += sum(used[place] for place in everyone)
    return {
        place: None if limit is None else max(limit - used[place], 0)
        for place, limit in limits.items()
    }


class TimeLeft:
    """How many readings more experts can be given, while a transaction gives them some.

    The database is asked once, when somebody first wants to know; after that, what is given counts at once.

    Parameters
    ----------
    connection : Connection
        A connection that writes.
    moment : Moment
        Now.
    places : iterable of int
        Ids of the experts who may be given readings, or ANYONE for all of them together.
    """

    def __init__(self, connection: Connection, moment: Moment, places: Iterable[int]) -> None:
        self._connection, self._moment, self.places = connection, moment, list(places)
        self._left: dict[int, int | None] | None = None

    def at(self, place: int) -> int | None:
        """How many are left for an expert, or ANYONE.

        Parameters
        ----------
        place : int
            One of the places.

        Returns
        -------
        left : int or None
            None: there is no limit.
        """
        if self._left is None:
            self._left = time_left(self._connection, self._moment, self.places)
        return self._left[place]

    def give(self, place: int) -> None:
        """Count a reading that waits from now on.

        Parameters
        ----------
        place : int
            One of the places.
        """
        left = self.at(place)
        if left is not None and self._left is not None:
            self._left[place] = max(left - 1, 0)


def _hold(connection: Connection, day: str, places: list[int]) -> None:
    """Hold the counts of experts, in one order: else two cases could wait for each other."""
    if connection.dialect.name == "sqlite":  # which has one writer at a time
        return
    connection.execute(_HOLD, [{"expert_id": one, "day": day, "taken": 0} for one in places])


def _used(connection: Connection, day: str, places: set[int]) -> Counter[int]:
    """What experts took on a day, and what waits for them, as of one moment."""
    used: Counter[int] = Counter()
    for row in connection.execute(_USED, {"places": sorted(places), "today": day}):
        used[row.place] += row.number
    return used


def limit_of_all(configuration: Configuration) -> int | None:
    """How many readings all experts take per day; None if one of them has no limit, or there is none.

    Without experts, cases wait for the first one.

    Parameters
    ----------
    configuration : Configuration
        What is configured.

    Returns
    -------
    limit : int or None
    """
    limits = [one.daily_limit for one in configuration.first_readers]
    if not limits or None in limits:
        return None
    return sum(limit for limit in limits if limit is not None)


def limit_of(configuration: Configuration, expert_id: int) -> int | None:
    """How many readings an expert, or ANYONE, takes per day.

    Parameters
    ----------
    configuration : Configuration
        What is configured.
    expert_id : int
        Who.

    Returns
    -------
    limit : int or None
    """
    if expert_id == ANYONE:
        return limit_of_all(configuration)
    return configuration.experts[expert_id].daily_limit
