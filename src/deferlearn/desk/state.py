"""The state of the desk in a few numbers, for /metrics and for those who look after it."""

from __future__ import annotations

from sqlalchemy import func, select

from deferlearn.desk.database import SECOND, Database, clock
from deferlearn.desk.monitoring.watches import KINDS
from deferlearn.desk.schema import (
    DEAD,
    LEASED,
    WAITING,
    alarm,
    audit_head,
    delivery,
    model,
    reading,
)
from deferlearn.desk.schema import case as case_table


def numbers(database: Database) -> dict[str, float]:
    """What waits, and for how long.

    Parameters
    ----------
    database : Database
        Of the desk.

    Returns
    -------
    numbers : dict
        By name. Each is found by an index, whatever the number of cases.
    """
    waiting = reading.c.state == WAITING
    oldest = func.coalesce(clock() - func.min(reading.c.created_at), 0)
    queries = {
        "cases_waiting": select(func.count()).where(case_table.c.state == WAITING),
        "readings_waiting": select(func.count()).where(waiting),
        "readings_leased": select(func.count()).where(reading.c.state == LEASED),
        "oldest_reading_seconds": select(oldest).where(waiting),
        "deliveries_waiting": select(func.count()).where(delivery.c.state == WAITING),
        "deliveries_dead": select(func.count()).where(delivery.c.state == DEAD),
        "alarms_open": select(func.count()).where(alarm.c.closed_at.is_(None)),
        "audit_entries": select(audit_head.c.sequence),
    }
    with database.reading() as connection:
        found = {name: float(connection.execute(q).scalar_one()) for name, q in queries.items()}
    found["oldest_reading_seconds"] = max(0.0, found["oldest_reading_seconds"] / SECOND)
    return found


def open_alarms(database: Database) -> dict[str, float]:
    """How many alarms of each kind are open.

    Parameters
    ----------
    database : Database
        Of the desk.

    Returns
    -------
    counts : dict
        By kind; 0 for the kinds that are quiet, so that a series never ends.
    """
    query = (
        select(alarm.c.kind, func.count().label("n"))
        .where(alarm.c.closed_at.is_(None))
        .group_by(alarm.c.kind)
    )
    with database.reading() as connection:
        found = {row.kind: float(row.n) for row in connection.execute(query)}
    return dict.fromkeys(KINDS, 0.0) | found


def has_model(database: Database) -> bool:
    """Whether a model decides about cases; it fails if the database cannot be used.

    Parameters
    ----------
    database : Database
        Of the desk.

    Returns
    -------
    active : bool
    """
    query = select(func.count()).where(model.c.state == "active")
    with database.reading() as connection:
        return connection.execute(query).scalar_one() > 0
