"""Guessing passwords is slowed down: after a few wrong ones, each further one must wait twice as long.

An attempt is counted before the password is looked at, so that many at the same time gain nothing. Attempts
are counted for the pair of user and address, so that a few from elsewhere do not lock a user out; for the
address, which may try many users; and for the user, whom many addresses may try.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from sqlalchemy import Connection, delete, insert, select, update
from sqlalchemy.exc import IntegrityError

from deferlearn.desk.addresses import network_of
from deferlearn.desk.database import SECOND, now
from deferlearn.desk.schema import throttle

# Attempts without waiting.
FREE = {"pair": 5, "address": 20, "user": 50}
# The longest wait, and the time after which old attempts are forgotten.
LONGEST_SECONDS, FORGET_SECONDS = 900, 3600


@dataclass(frozen=True)
class Counters:
    """The names of the counters of one attempt.

    Attributes
    ----------
    pair, address, user : str
        The names.
    """

    pair: str
    address: str
    user: str

    @classmethod
    def of(cls, user: str, address: str) -> Counters:
        """The counters of an attempt to log in.

        Parameters
        ----------
        user : str
            The name that was entered; it may be anything.
        address : str
            Where the attempt comes from.

        Returns
        -------
        Counters
        """
        client = network_of(address)
        return cls(
            _name("pair", f"{user}\n{client}"), _name("address", client), _name("user", user)
        )


def _name(kind: str, text: str) -> str:
    return f"{kind}:{hashlib.sha256(text.encode(errors='surrogatepass')).hexdigest()[:32]}"


def attempt(connection: Connection, counters: Counters) -> float:
    """Count an attempt, unless it must wait.

    Parameters
    ----------
    connection : Connection
        In a transaction that writes.
    counters : Counters
        Whose attempt it is.

    Returns
    -------
    seconds : float
        0 if the password may be looked at; otherwise the time to wait. Then nothing is counted.
    """
    moment = now(connection)
    names = sorted(
        vars(counters).values()
    )  # in one order, so that two attempts cannot wait in a ring
    found = {name: _locked(connection, name) for name in names}
    blocked_until = max((until for _, until in found.values()), default=0)
    # A clock that was put back must not lock anyone out for longer than the longest wait.
    if moment < blocked_until <= moment + LONGEST_SECONDS * SECOND:
        return (blocked_until - moment) / SECOND
    for name, (failures, until) in found.items():
        failures = 1 if abs(moment - until) > FORGET_SECONDS * SECOND else failures + 1
        beyond = failures - FREE[name.partition(":")[0]]
        wait = 0 if beyond < 0 else min(2 ** min(beyond, 20), LONGEST_SECONDS)
        _store(connection, name, failures, moment + wait * SECOND)
    return 0.0


def succeeded(connection: Connection, counters: Counters) -> None:
    """Forget the attempts of a user who knew the password, and those of others that are too old to count.

    The address gets back this attempt only: otherwise one account of their own would let attackers go on.

    Parameters
    ----------
    connection : Connection
        In a transaction that writes.
    counters : Counters
        Whose attempt it was.
    """
    old = throttle.c.blocked_until < now(connection) - FORGET_SECONDS * SECOND
    own = throttle.c.key.in_([counters.pair, counters.user])
    connection.execute(delete(throttle).where(own | old))
    connection.execute(
        update(throttle)
        .where(throttle.c.key == counters.address, throttle.c.failures > 0)
        .values(failures=throttle.c.failures - 1)
    )


def _locked(connection: Connection, name: str) -> tuple[int, int]:
    """The failures of a counter and until when it waits; no other transaction changes it meanwhile."""
    query = select(throttle.c.failures, throttle.c.blocked_until).where(throttle.c.key == name)
    row = connection.execute(query.with_for_update()).one_or_none()
    if row is None:
        try:
            with connection.begin_nested():
                connection.execute(insert(throttle).values(key=name, failures=0, blocked_until=0))
        except IntegrityError:  # another attempt was first
            pass
        row = connection.execute(query.with_for_update()).one()
    return row.failures, row.blocked_until


def _store(connection: Connection, name: str, failures: int, until: int) -> None:
    query = update(throttle).where(throttle.c.key == name)
    connection.execute(query.values(failures=failures, blocked_until=until))
