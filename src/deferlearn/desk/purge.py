"""Remove old cases for good, and note in the audit log that it was done."""

from __future__ import annotations

from sqlalchemy import ColumnElement, Connection, delete, func, select

from deferlearn.desk import audit
from deferlearn.desk.database import SECOND, Database, now
from deferlearn.desk.errors import Invalid
from deferlearn.desk.schema import answer, case, decision, event, reading, truth
from deferlearn.desk.times import iso

DAY = 24 * 3600 * SECOND
# So many cases are removed in one transaction: more would keep others waiting.
CHUNK = 200


def count_old(database: Database, days: float) -> int:
    """How many cases `purge` would remove.

    Parameters
    ----------
    database : Database
        Of the desk.
    days : float
        As in `purge`.

    Returns
    -------
    cases : int
    """
    with database.reading() as connection:
        query = select(func.count()).select_from(case).where(_is_old(_cutoff(connection, days)))
        return connection.execute(query).scalar_one()


def purge(database: Database, days: float, *, actor: str) -> int:
    """Remove cases that were answered long ago, with all that belongs to them.

    A case that is still waiting for its answer stays, whatever its age. The audit log keeps its entries,
    which have numbers of cases but not their content. Backups keep what they have.

    Parameters
    ----------
    database : Database
        Of the desk, which may be in use meanwhile.
    days : float
        Cases whose answer is older than so many days are removed.
    actor : str
        Who removes them.

    Returns
    -------
    cases : int
        How many were removed.
    """
    if not 0 < days < 100_000:
        raise Invalid(f"{days:g} is not a number of days; use a number above 0.")
    with database.reading() as connection:
        cutoff = _cutoff(connection, days)
    total = 0
    while removed := database.write(lambda connection: _remove_some(connection, cutoff, actor)):
        total += removed
    database.forget_deleted()
    return total


def _cutoff(connection: Connection, days: float) -> int:
    return now(connection) - int(days * DAY)


def _is_old(cutoff: int) -> ColumnElement[bool]:
    return (case.c.state == "answered") & (case.c.answered_at < cutoff)


def _remove_some(connection: Connection, cutoff: int, actor: str) -> int:
    query = select(case.c.number).where(_is_old(cutoff)).order_by(case.c.number).limit(CHUNK)
    numbers = list(connection.execute(query.with_for_update()).scalars())
    if not numbers:
        return 0
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql("PRAGMA secure_delete=ON")  # overwrite what is removed
    for table in (event, truth, answer, reading, decision):
        connection.execute(delete(table).where(table.c.case_number.in_(numbers)))
    connection.execute(delete(case).where(case.c.number.in_(numbers)))
    detail = {
        "cases": len(numbers),
        "first": numbers[0],
        "last": numbers[-1],
        "answered_before": iso(cutoff),
    }
    audit.append(connection, actor=actor, action="cases.purged", subject="cases", detail=detail)
    return len(numbers)
