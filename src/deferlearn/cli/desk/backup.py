"""`deferlearn desk backup` and `deferlearn desk restore`."""

from pathlib import Path
from typing import Annotated

import typer

from deferlearn._utils.words import counted
from deferlearn.cli._options import argument
from deferlearn.cli._screen import say
from deferlearn.cli.desk._opened import Config, DatabaseUrl, opened

BACKUP, RESTORE = "desk backup", "desk restore"


def back_up(
    out: Annotated[Path, argument("File for the backup; an existing one is replaced.")],
    config: Config = None,
    database: DatabaseUrl = None,
) -> None:
    """Write a consistent copy of the desk to one file, while it is in use.

    The copy holds all cases, so protect it as you protect them. The secret is not in it: keep a copy of
    desk.secret elsewhere, because a backup is of no use without it. Note the head of the audit log that is
    printed: `deferlearn desk audit verify --noted` finds whether anything before it was changed.
    """
    with opened(BACKUP, config, database, any_schema=True) as desk:
        from deferlearn.desk.backup import back_up as write

        copied = write(desk.database, out)
    say(f"Backup: {out}, {counted(copied.cases, 'case')}, schema {copied.revision}")
    say(f"Head of the audit log: {copied.head}")


def restore(
    backup: Annotated[Path, argument("File that `deferlearn desk backup` wrote.")],
    unverified: Annotated[
        bool,
        typer.Option(
            "--unverified",
            help="Restore a backup whose audit log has faults, or of which the secret is lost. Default: "
            "such a backup is refused.",
        ),
    ] = False,
    config: Config = None,
    database: DatabaseUrl = None,
) -> None:
    """Fill an empty database from a backup; the database may be of another kind than that of the backup.

    So a desk moves from SQLite to PostgreSQL: make a backup, restore it with --database, and change the
    address in desk.toml. All users have to log in again. API keys that were revoked after the backup are
    valid again: revoke them.
    """
    with opened(RESTORE, config, database, any_schema=True) as desk:
        from deferlearn.desk.backup import restore as read

        copied = read(backup, desk.database, desk.settings.secret, unverified=unverified)
    say(f"Restored: {counted(copied.cases, 'case')}. Revoke the API keys that should not be valid.")
