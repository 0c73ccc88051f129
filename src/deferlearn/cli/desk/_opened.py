"""What all commands of the desk need: its settings, its database, and plain words for what goes wrong."""

from __future__ import annotations

import getpass
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

from deferlearn.cli._errors import FAILURE, fail, reported, require
from deferlearn.cli._options import option

if TYPE_CHECKING:
    from deferlearn.desk.database import Database
    from deferlearn.desk.settings import Settings

# Where `desk init` puts the settings, and where the other commands look for them.
CONFIG_FILE = Path("desk.toml")
NEEDED = ("sqlalchemy", "alembic", "fastapi", "uvicorn", "argon2", "prometheus_client", "pyarrow")
SERVICE = "Service"

Config = Annotated[
    Path | None,
    option(
        "TOML file with the settings. Default: the one that DEFERLEARN_DESK_CONFIG names, or desk.toml in "
        "this folder if there is one.",
        panel=SERVICE,
    ),
]
DatabaseUrl = Annotated[
    str | None,
    option(
        "Address of the database, such as sqlite:///desk.db or postgresql+psycopg://user@host/name. "
        "Default: the one of the settings, or sqlite:///desk.db.",
        "--database",
        panel=SERVICE,
    ),
]


class Opened(NamedTuple):
    """The desk that a command works on.

    Attributes
    ----------
    settings : Settings
        How it runs.
    database : Database
        Its database, with the key of the audit log.
    """

    settings: Settings
    database: Database


def settings_of(config: Path | None, database: str | None, **flags: str | int | None) -> Settings:
    """The settings in force.

    Parameters
    ----------
    config : Path or None
        The option --config.
    database : str or None
        The option --database.
    **flags
        Other options that are settings.

    Returns
    -------
    Settings
    """
    from deferlearn.desk.settings import PREFIX, load_settings

    if config is None and f"{PREFIX}CONFIG" not in os.environ and CONFIG_FILE.exists():
        config = CONFIG_FILE
    return load_settings(config, flags={"database": database, **flags})


@contextmanager
def told(command: str) -> Iterator[None]:
    """Report in one line what went wrong.

    Parameters
    ----------
    command : str
        Name of the command.
    """
    require(command, *NEEDED, extra="desk")
    from sqlalchemy.exc import NoSuchModuleError

    from deferlearn.desk.database import DatabaseUnavailable
    from deferlearn.desk.errors import DeskError
    from deferlearn.desk.migrations import SchemaError
    from deferlearn.desk.settings import SettingsError

    before = os.umask(0o077)  # what is written here is for its owner only
    with reported(command):
        try:
            yield
        except (DeskError, SettingsError, SchemaError) as error:
            fail(command, str(error))
        except DatabaseUnavailable as error:
            fail(command, str(error), FAILURE)
        except (ModuleNotFoundError, NoSuchModuleError) as error:
            if "psycopg" not in str(error):
                raise
            fail(command, "PostgreSQL needs psycopg: pip install 'deferlearn[postgres]'", FAILURE)
        finally:
            os.umask(before)


@contextmanager
def opened(
    command: str,
    config: Path | None,
    database: str | None,
    *,
    any_schema: bool = False,
    **flags: str | int | None,
) -> Iterator[Opened]:
    """The desk that a command works on; what goes wrong is reported in one line.

    Parameters
    ----------
    command : str
        Name of the command.
    config, database : Path or None and str or None
        The options of these names.
    any_schema : bool, default=False
        Whether the database may have another schema than the newest, or none.
    **flags
        Other options that are settings.
    """
    with told(command):
        from deferlearn.desk.migrations import check_schema

        settings = settings_of(config, database, **flags)
        connected = connect(settings)
        try:
            if not any_schema:
                check_schema(connected)
            yield Opened(settings, connected)
        finally:
            connected.close()


def connect(settings: Settings) -> Database:
    """The database of a desk, with the key of its audit log.

    Parameters
    ----------
    settings : Settings
        How the desk runs.

    Returns
    -------
    Database
    """
    from sqlalchemy.exc import ArgumentError

    from deferlearn.desk import audit
    from deferlearn.desk.database import Database
    from deferlearn.desk.settings import SettingsError

    if not settings.secret:
        raise SettingsError(
            "The desk has no secret: run `deferlearn desk init`, or name the file that has it by "
            "DEFERLEARN_DESK_SECRET_FILE."
        )
    try:
        options = audit.key_options(settings.secret)
        return Database(settings.database, options=options)
    except (ValueError, ArgumentError) as error:
        raise SettingsError(str(error)) from error


def who() -> str:
    """Whoever uses the command line, as the audit log names them."""
    try:
        return f"shell:{getpass.getuser()}"
    except (OSError, KeyError):  # a user without a name, as in some containers
        return "shell"
