"""The schema of the database, step by step; `deferlearn desk migrate` moves a database to the newest."""

from pathlib import Path
from typing import Any

from alembic.config import Config
from alembic.runtime.environment import EnvironmentContext
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection

from deferlearn.desk.database import Database

VERSIONS = Path(__file__).parent


class SchemaError(Exception):
    """The database has another schema than this version of deferlearn needs."""


def newest() -> str:
    """The revision that this version of deferlearn needs."""
    return str(ScriptDirectory(str(VERSIONS)).get_current_head())


def revision_of(database: Database) -> str | None:
    """The revision of a database; None if it has no tables of the desk.

    Parameters
    ----------
    database : Database
        The database.

    Returns
    -------
    revision : str or None
    """
    with database.reading() as connection:
        return MigrationContext.configure(connection).get_current_revision()


def check_schema(database: Database) -> None:
    """Refuse a database that has another schema.

    Parameters
    ----------
    database : Database
        The database.

    Raises
    ------
    SchemaError
        If it has another one; the message says what to do.
    """
    found, needed = revision_of(database), newest()
    if found == needed:
        return
    if found is None:
        raise SchemaError("The database has no desk yet: run `deferlearn desk init`.")
    check_known(found)
    raise SchemaError(
        f"The database has the schema {found}, but this version of deferlearn needs {needed}: make a "
        "backup (`deferlearn desk backup`), then run `deferlearn desk migrate`."
    )


def check_known(revision: str) -> None:
    """Refuse a schema that a newer version of deferlearn made.

    Parameters
    ----------
    revision : str
        Of a database or a backup.

    Raises
    ------
    SchemaError
        If this version does not know it.
    """
    known = {script.revision for script in ScriptDirectory(str(VERSIONS)).walk_revisions()}
    if revision not in known:
        raise SchemaError(
            f"The database has the schema {revision}, which this version of deferlearn does not know (its "
            f"newest is {newest()}): install a newer deferlearn."
        )


def migrate(database: Database, revision: str = "head") -> tuple[str | None, str]:
    """Move a database to a newer schema, completely or not at all.

    Parameters
    ----------
    database : Database
        The database; an empty one gets all tables.
    revision : str, default="head"
        Where to stop.

    Returns
    -------
    before : str or None
        The revision that the database had.
    after : str
        The one that it has now.
    """
    before = revision_of(database)
    database.write(lambda connection: upgrade(connection, revision))
    return before, str(revision_of(database))


def upgrade(connection: Connection, revision: str = "head") -> None:
    """Move a database to a newer schema, as a part of a transaction.

    Parameters
    ----------
    connection : Connection
        In a transaction that writes.
    revision : str, default="head"
        Where to stop.
    """
    script = ScriptDirectory(str(VERSIONS))

    def steps(current: Any, context: Any) -> Any:
        return script._upgrade_revs(revision, current)

    with EnvironmentContext(Config(), script, fn=steps) as environment:
        environment.configure(connection=connection, transactional_ddl=True)
        environment.run_migrations()
