"""The database: SQLite in one file, or PostgreSQL; all that differs between them is here.

A transaction that writes is a function of a connection: `Database.write` runs it and returns when it is
committed. It may run more than once if the database asks for that, so it changes nothing but the database.
On SQLite, which has one writer at a time, requests that wait for each other share one commit.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from typing import Any, Generic, TypeVar

from sqlalchemy import URL, BigInteger, Connection, create_engine, event, make_url, select
from sqlalchemy.exc import (
    ArgumentError,
    InterfaceError,
    InternalError,
    NoSuchModuleError,
    OperationalError,
    SQLAlchemyError,
)
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement

T = TypeVar("T")

SECOND = 1_000_000  # in units of time
# What SQLite and PostgreSQL wait for a lock of another process.
LOCK_SECONDS = 10
# So many requests share one commit, at most.
MAX_GROUP = 32
# So often a transaction begins again after a deadlock or a conflict.
ATTEMPTS = 5
# PostgreSQL's codes of a conflict and of a deadlock.
CONFLICTS = ("40001", "40P01")
# Errors that say nothing about the request, only about the database.
OUTAGES = (OperationalError, InterfaceError, InternalError)


class DatabaseUnavailable(Exception):
    """The database cannot be reached or written at the moment; nothing was changed."""


class clock(FunctionElement[int]):
    """The time of the database, in microseconds since 1970."""

    type = BigInteger()
    inherit_cache = True


@compiles(clock, "sqlite")
def _sqlite_clock(element: Any, compiler: Any, **options: Any) -> str:
    return "CAST((julianday('now') - 2440587.5) * 86400000.0 + 0.5 AS INTEGER) * 1000"


@compiles(clock, "postgresql")
def _postgresql_clock(element: Any, compiler: Any, **options: Any) -> str:
    return "CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000 AS BIGINT)"


_NOW = select(clock())


def now(connection: Connection) -> int:
    """The time of the database, in microseconds since 1970.

    Parameters
    ----------
    connection : Connection
        A connection to the database.

    Returns
    -------
    time : int
    """
    return int(connection.execute(_NOW).scalar_one())


class _Job(Generic[T]):
    """A function that waits for its transaction, and what became of it."""

    def __init__(self, function: Callable[[Connection], T]) -> None:
        self.function = function
        self.done = False
        self.result: T
        self.error: BaseException | None = None

    def run(self, connection: Connection) -> None:
        self.result = self.function(connection)

    def outcome(self) -> T:
        if self.error is not None:
            raise self.error
        return self.result


class Database:
    """A database of the desk.

    Parameters
    ----------
    url : str or URL
        Such as ``sqlite:///desk.db`` or ``postgresql+psycopg://user@host/name``.
    options : mapping or None, default=None
        Execution options of the connections that write, such as the key of the audit log.
    pool_size : int, default=8
        Connections that are kept open.

    Examples
    --------
    >>> import tempfile
    >>> from sqlalchemy import text
    >>> from deferlearn.desk.database import Database
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     database = Database(f"sqlite:///{folder}/desk.db")
    ...     create = text("CREATE TABLE a (b INT)")
    ...     created = database.write(lambda connection: connection.execute(create))
    ...     with database.reading() as connection:
    ...         print(connection.execute(text("SELECT count(*) FROM a")).scalar_one())
    ...     database.close()
    0
    """

    def __init__(
        self, url: str | URL, *, options: Mapping[str, Any] | None = None, pool_size: int = 8
    ) -> None:
        try:
            parsed = make_url(url)
            name = parsed.get_backend_name()
        except (ArgumentError, NoSuchModuleError) as error:
            # The address is not repeated: it may hold a password.
            raise ValueError(
                "The setting of the database is not an address; use sqlite:///FILE or "
                "postgresql+psycopg://USER@HOST/NAME"
            ) from error
        self.is_sqlite = name == "sqlite"
        if name not in ("sqlite", "postgresql"):
            raise ValueError(
                f"The database is {name!r}; use sqlite:///FILE or postgresql+psycopg://"
            )
        if self.is_sqlite and parsed.database in (None, "", ":memory:"):
            raise ValueError(f"The database {url!r} is in memory; name a file: sqlite:///desk.db")
        self.url = parsed
        common: dict[str, Any] = {
            "hide_parameters": True,
            "pool_timeout": LOCK_SECONDS,
            "execution_options": dict(options or {}),
        }
        if self.is_sqlite:
            wait = {"timeout": LOCK_SECONDS, "isolation_level": None, "check_same_thread": False}
            self.reader = create_engine(parsed, connect_args=wait, pool_size=pool_size, **common)
            self.writer = create_engine(
                parsed, connect_args=wait, pool_size=1, max_overflow=0, **common
            )
            for engine in (self.reader, self.writer):
                event.listen(engine, "connect", _prepare_sqlite)
        else:
            self.reader = create_engine(
                parsed.set(drivername="postgresql+psycopg"),
                pool_size=pool_size,
                max_overflow=2 * pool_size,
                connect_args={
                    "connect_timeout": LOCK_SECONDS,
                    "options": f"-c lock_timeout={LOCK_SECONDS}s",
                },
                **common,
            )
            self.writer = self.reader
        self._file: tuple[int, int] | None = None
        self._lock = threading.Lock()
        self._waiting: deque[_Job[Any]] = deque()

    def _check_file(self) -> None:
        """Refuse to go on with a file of SQLite that was moved away: what is written to it would be lost.

        A file that was put in its place is used from now on.
        """
        if not self.is_sqlite:
            return
        try:
            status = os.stat(str(self.url.database))
        except FileNotFoundError:
            if self._file is None:
                return  # it is about to be made
            raise DatabaseUnavailable(
                f"The database cannot be used now: there is no file {self.url.database}"
            ) from None
        found = (status.st_dev, status.st_ino)
        if self._file is not None and self._file != found:
            self.close()
        self._file = found

    def close(self) -> None:
        """Close all connections."""
        self.reader.dispose()
        self.writer.dispose()

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A connection that writes nothing; on SQLite it sees one state of the database.

        On PostgreSQL each statement would see its own in a transaction, too, so there is none: to begin and
        end it would take as long as a statement.
        """
        self._check_file()
        with _outages(), self.reader.connect() as connection:
            if self.is_sqlite:
                connection.exec_driver_sql("BEGIN")
            else:
                connection = connection.execution_options(isolation_level="AUTOCOMMIT")
            yield connection

    @contextmanager
    def snapshot(self) -> Iterator[Connection]:
        """Like `reading`, but several queries see the same state, whatever others write meanwhile."""
        with _outages(), self.reader.connect() as connection:
            if not self.is_sqlite:  # which has no other transactions
                connection = connection.execution_options(isolation_level="REPEATABLE READ")
            self._begin(connection, "BEGIN")
            yield connection

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        """A connection in a transaction that writes."""
        with self.writer.begin() as connection:
            self._begin(connection, "BEGIN IMMEDIATE")
            yield connection

    def _begin(self, connection: Connection, words: str) -> None:
        """Begin a transaction of SQLite, whose driver does not.

        A listener to the event "begin" would do the same, but an engine with listeners asks them about
        every statement, which takes as long as many statements do.
        """
        if self.is_sqlite:
            connection.exec_driver_sql(words)

    def forget_deleted(self) -> None:
        """Let the database clear the space of rows that were deleted."""
        if self.is_sqlite:
            with closing(self.reader.raw_connection()) as raw:  # outside of any transaction
                raw.cursor().execute("PRAGMA wal_checkpoint(TRUNCATE)")
            return
        with _outages(), self.reader.connect() as connection:
            connection.execution_options(isolation_level="AUTOCOMMIT").exec_driver_sql("VACUUM")

    def write(self, function: Callable[[Connection], T]) -> T:
        """Run a function in a transaction that writes, and return its result after the commit.

        Parameters
        ----------
        function : callable
            Gets a connection. If it raises an error, its changes are undone.

        Returns
        -------
        result : object
            What the function returned.

        Raises
        ------
        DatabaseUnavailable
            If the database cannot be reached or written; then nothing was changed, unless the connection
            was lost during the commit.
        """
        job = _Job(function)
        if not self.is_sqlite:
            self._alone(job)
            return job.outcome()
        self._check_file()
        self._waiting.append(job)
        with self._lock:
            while not job.done:
                self._together()
        return job.outcome()

    def _alone(self, job: _Job[Any]) -> None:
        """Run a job in its own transaction."""
        for attempt in range(ATTEMPTS):
            try:
                with _outages(), self._writing() as connection:
                    job.run(connection)
            except DatabaseUnavailable as error:
                cause = getattr(getattr(error.__cause__, "orig", None), "sqlstate", None)
                if cause in CONFLICTS and attempt + 1 < ATTEMPTS:
                    continue
                job.error = error
            except BaseException as error:
                job.error = error
            job.done = True
            return

    def _together(self) -> None:
        """Run jobs that wait in one transaction; the lock is held."""
        group = [self._waiting.popleft() for _ in range(min(len(self._waiting), MAX_GROUP))]
        try:
            if len(group) > 1 and self._at_once(group):
                return
            for job in group:
                job.error = None
                self._alone(job)
        except BaseException:
            # This thread is to end. The others must not wait for it.
            for job in group:
                job.error = job.error or DatabaseUnavailable("The server is stopping")
            raise
        finally:
            for job in group:
                job.done = True

    def _at_once(self, group: list[_Job[Any]]) -> bool:
        """Run jobs in one transaction; False if that failed, and nothing was changed."""
        try:
            with self._writing() as connection:
                for job in group:
                    job.run(connection)
        except OUTAGES:
            return False
        except Exception:
            return self._step_by_step(group)
        return True

    def _step_by_step(self, group: list[_Job[Any]]) -> bool:
        """The same if a job raises an error. To note where each job begins takes time, so it is rare."""
        try:
            with self._writing() as connection:
                for job in group:
                    point = connection.begin_nested()
                    try:
                        job.run(connection)
                    except OUTAGES:
                        raise  # it may have undone the whole transaction
                    except Exception as error:
                        point.rollback()
                        job.error = error
                    else:
                        point.commit()
        except SQLAlchemyError:
            return False
        return True


def _prepare_sqlite(connection: sqlite3.Connection, record: Any) -> None:
    """Set what each new connection of SQLite needs, such as the write-ahead log."""
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON"):
        connection.execute(f"PRAGMA {pragma}")


@contextmanager
def _outages() -> Iterator[None]:
    """Turn errors of the database into one that tells what happened, without the content of cases."""
    try:
        yield
    except OUTAGES as error:
        reason = str(error.orig).strip().partition("\n")[0]
        raise DatabaseUnavailable(f"The database cannot be used now: {reason}") from error
    except PoolTimeout as error:
        raise DatabaseUnavailable(
            "The database cannot be used now: all of its connections are busy"
        ) from error
