"""`deferlearn desk migrate`: bring the database to the schema of this version."""

from deferlearn.cli._screen import say
from deferlearn.cli.desk._opened import Config, DatabaseUrl, opened

COMMAND = "desk migrate"


def migrate(config: Config = None, database: DatabaseUrl = None) -> None:
    """Bring the database to the schema of this version of deferlearn, completely or not at all.

    Stop all servers and make a backup first (`deferlearn desk backup`). Only the backup leads back.
    """
    with opened(COMMAND, config, database, any_schema=True) as desk:
        from deferlearn.desk import migrations
        from deferlearn.desk.errors import Conflict

        before = migrations.revision_of(desk.database)
        if before is None:
            raise Conflict("The database has no desk yet: run `deferlearn desk init`.")
        migrations.check_known(before)
        _, after = migrations.migrate(desk.database)
    say(
        f"The schema is {after}." if before == after else f"The schema is {after}; it was {before}."
    )
