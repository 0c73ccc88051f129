"""`deferlearn desk key`: API keys for programs."""

from typing import Annotated

import typer

from deferlearn.cli._options import argument, option
from deferlearn.cli._screen import print_grid, say
from deferlearn.cli.desk._opened import Config, DatabaseUrl, opened, who

key = typer.Typer(
    help="API keys, with which programs send cases and read answers.", no_args_is_help=True
)


@key.command()
def add(
    name: Annotated[str, argument("Which program uses the key.")],
    scope: Annotated[
        list[str],
        option(
            "What the key allows: cases:write, cases:read, answers:write, truth:write, experts:write, "
            "models:write, audit:read, webhooks:write or metrics:read; can be repeated."
        ),
    ],
    config: Config = None,
    database: DatabaseUrl = None,
) -> None:
    """Make a key and print it. It is shown only now: the desk stores a digest."""
    with opened("desk key add", config, database) as desk:
        from deferlearn.desk import keys

        _, text = desk.database.write(
            lambda connection: keys.create(connection, name=name, scopes=scope, actor=who())
        )
    typer.echo(text)


@key.command("list")
def list_keys(config: Config = None, database: DatabaseUrl = None) -> None:
    """Print all keys, without their secrets."""
    with opened("desk key list", config, database) as desk:
        from deferlearn.desk import keys
        from deferlearn.desk.times import iso

        with desk.database.reading() as connection:
            found = keys.all_of(connection)
        rows = [
            (
                key.name,
                key.id,
                ", ".join(sorted(key.scopes)),
                "never" if key.last_used_at is None else iso(key.last_used_at)[:16],
                "revoked" if key.revoked_at is not None else "valid",
            )
            for key in found
        ]
    print_grid("Keys", ["name", "number", "scopes", "last used", "state"], rows)


@key.command()
def revoke(
    number: Annotated[int, argument("Number of the key, as `deferlearn desk key list` prints it.")],
    config: Config = None,
    database: DatabaseUrl = None,
) -> None:
    """Make a key invalid from now on."""
    with opened("desk key revoke", config, database) as desk:
        from deferlearn.desk import keys

        desk.database.write(lambda connection: keys.revoke(connection, number, actor=who()))
    say(f"Key {number} is not valid any longer.")
