"""A consistent copy of a desk in use, in one file, and the way back from it.

A backup is a database of SQLite, whatever the desk itself uses, so that a desk can move from SQLite to
PostgreSQL by a backup and a restore. The desk's secret is not in it: keep it elsewhere.
"""

from __future__ import annotations

import os
import secrets
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import URL, Connection, func, select, update

from deferlearn.desk import audit
from deferlearn.desk.audit import Head
from deferlearn.desk.copying import copy_rows
from deferlearn.desk.database import Database, DatabaseUnavailable, now
from deferlearn.desk.errors import Conflict, DeskError, Invalid
from deferlearn.desk.migrations import check_known, migrate, revision_of, upgrade
from deferlearn.desk.schema import audit_head, session
from deferlearn.desk.schema import case as case_table


@dataclass(frozen=True)
class Copied:
    """What a backup holds.

    Attributes
    ----------
    cases : int
        The number of cases.
    head : Head
        The newest entry of the audit log; note it outside of the desk.
    revision : str
        The schema.
    """

    cases: int
    head: Head
    revision: str


def back_up(database: Database, path: Path) -> Copied:
    """Write a consistent copy of a desk, which may be in use meanwhile.

    Parameters
    ----------
    database : Database
        Of the desk; it may have an older schema.
    path : Path
        The file. It appears when it is complete; an existing one is replaced then.

    Returns
    -------
    Copied
    """
    if revision_of(database) is None:
        raise Conflict("The database has no desk yet: run `deferlearn desk init`.")
    if path.exists() and not path.is_file():
        raise Invalid(f"{path} is not a file that could be replaced.")
    # Only its owner may read it: it holds all cases.
    partial = path.with_name(f".{path.name}.{secrets.token_hex(4)}.partial")
    os.close(os.open(partial, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    try:
        with _written():
            if database.is_sqlite:
                _vacuum_into(Path(str(database.url.database)), partial)
            else:
                _copy_into(database, partial)
            copied = examine(partial)
        _to_disk(partial)
        os.replace(partial, path)
        _to_disk(path.parent)
    finally:
        for name in (partial, *(partial.with_name(partial.name + end) for end in ("-wal", "-shm"))):
            name.unlink(missing_ok=True)
    return copied


def examine(path: Path) -> Copied:
    """What a backup holds; a damaged one is refused.

    Parameters
    ----------
    path : Path
        The file.

    Returns
    -------
    Copied
    """
    try:
        with closing(
            sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
        ) as connection:
            (state,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
            broken = connection.execute("PRAGMA foreign_key_check").fetchone()
    except sqlite3.Error as error:
        raise Invalid(f"{path} is not a backup of a desk: {error}.") from error
    if state != "ok" or broken is not None:
        raise Invalid(f"{path} is damaged: {state}.")
    with _opened(path) as database:
        revision = revision_of(database)
        if revision is None:
            raise Invalid(f"{path} is not a backup of a desk: it has no tables of one.")
        with database.snapshot() as connection:
            return _counted(connection, revision)


def _counted(connection: Connection, revision: str) -> Copied:
    cases = connection.execute(select(func.count()).select_from(case_table)).scalar_one()
    head = connection.execute(select(audit_head.c.sequence, audit_head.c.hash)).one()
    return Copied(cases, Head(*head), revision)


def restore(path: Path, database: Database, secret: str, *, unverified: bool = False) -> Copied:
    """Fill an empty database from a backup, and bring it to the newest schema.

    All users have to log in again: sessions that ended after the backup must not come back.

    Parameters
    ----------
    path : Path
        The backup.
    database : Database
        The database, in which there is no desk yet.
    secret : str
        The secret of the desk of which the backup was made.
    unverified : bool, default=False
        Whether to accept a backup whose audit log has faults, as with another secret.

    Returns
    -------
    Copied
    """
    copied = examine(path)
    check_known(copied.revision)
    if revision_of(database) is not None:
        raise Conflict(
            "The database has a desk already. Restore into an empty one, and give it to `desk serve`."
        )
    with _opened(path) as source, source.reading() as connection:
        faults = audit.verify(connection, secret).faults
        if faults and not unverified:
            raise Invalid(
                f"The audit log of the backup has faults ({faults[0]}). Is this the secret of that desk? "
                "To restore it all the same, pass --unverified."
            )

        def fill(target: Connection) -> Copied:
            upgrade(target, copied.revision)
            copy_rows(connection, target)
            upgrade(target)
            restored = _counted(target, copied.revision)
            if restored != copied:
                raise DeskError("The restored desk differs from the backup: nothing was stored.")
            _close_sessions(target, copied.head)
            return restored

        # In one step: an interruption leaves an empty database, and never one with open sessions.
        return database.write(fill)


def _close_sessions(connection: Connection, head: Head) -> None:
    still_open = session.c.revoked_at.is_(None)
    connection.execute(update(session).where(still_open).values(revoked_at=now(connection)))
    detail = {"head": str(head)}
    audit.append(connection, actor="desk", action="desk.restored", subject="desk", detail=detail)


def _vacuum_into(source: Path, target: Path) -> None:
    """Copy a database of SQLite as it is at one moment; writers go on meanwhile."""
    with closing(
        sqlite3.connect(f"{source.absolute().as_uri()}?mode=rw", uri=True, timeout=60)
    ) as connection:
        connection.execute("VACUUM INTO ?", (str(target),))


def _copy_into(database: Database, path: Path) -> None:
    """Copy the rows of a database of PostgreSQL as they are at one moment."""
    with _opened(path) as target, database.snapshot() as connection:
        migrate(target, str(revision_of(database)))
        target.write(lambda writer: copy_rows(connection, writer) and None)
    with closing(sqlite3.connect(path)) as plain:
        plain.execute(
            "PRAGMA journal_mode=DELETE"
        )  # one file, also on a disk that cannot be written


@contextmanager
def _opened(path: Path) -> Iterator[Database]:
    # Not as text: a name may hold signs that mean something in an address.
    database = Database(URL.create("sqlite", database=str(path)))
    try:
        yield database
    finally:
        database.close()


@contextmanager
def _written() -> Iterator[None]:
    """Say what happened if the copy cannot be written."""
    try:
        yield
    except (sqlite3.Error, DatabaseUnavailable) as error:
        raise DeskError(f"The backup cannot be made: {error}. Nothing was changed.") from error


def _to_disk(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
