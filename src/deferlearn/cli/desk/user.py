"""`deferlearn desk user`: people, their roles and their passwords."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from deferlearn.cli._options import argument, option
from deferlearn.cli._screen import print_grid, say
from deferlearn.cli.desk._opened import Config, DatabaseUrl, opened, who

if TYPE_CHECKING:
    from sqlalchemy import Connection

user = typer.Typer(help="People who use the desk.", no_args_is_help=True)
Name = Annotated[str, argument("Name of the user.")]


@user.command()
def add(
    name: Name,
    role: Annotated[str, typer.Option(help="expert, supervisor or admin.")] = "expert",
    expert: Annotated[
        str | None,
        option(
            "Name of the expert that the user is, as the model knows it; an expert that the desk does not "
            "know is added. Default: the name of the user, if the role is expert."
        ),
    ] = None,
    config: Config = None,
    database: DatabaseUrl = None,
) -> None:
    """Make a user, and print a one-time link with which the user chooses a password within a week."""
    with opened("desk user add", config, database) as desk:
        from deferlearn.desk import users

        secret = desk.settings.secret
        called = name if expert is None and role == "expert" else expert

        def create(connection: Connection) -> str:
            number = None if called is None else _expert(connection, called)
            made = users.create(connection, name=name, role=role, expert_id=number, actor=who())
            return users.invite(connection, made.id, secret=secret, actor=who())

        token = desk.database.write(create)
    typer.echo(users.link(desk.settings, token))


def _expert(connection: Connection, name: str) -> int:
    """The expert with a name, who is added if there is none."""
    from deferlearn.desk.experts import add_expert, list_experts

    known = {one.name: one.id for one in list_experts(connection)}
    return known[name] if name in known else add_expert(connection, name, actor=who()).id


@user.command("list")
def list_users(config: Config = None, database: DatabaseUrl = None) -> None:
    """Print all users."""
    with opened("desk user list", config, database) as desk:
        from deferlearn.desk import users
        from deferlearn.desk.experts import list_experts

        with desk.database.reading() as connection:
            names = {one.id: one.name for one in list_experts(connection)}
            found = users.all_of(connection)
    rows = [
        (
            one.name,
            one.role,
            names.get(one.expert_id or 0, ""),
            ("active" if one.has_password else "invited") if one.is_active else "off",
        )
        for one in found
    ]
    print_grid("Users", ["name", "role", "expert", "state"], rows)


@user.command()
def invite(name: Name, config: Config = None, database: DatabaseUrl = None) -> None:
    """Print a new one-time link for a user. The present password and sessions of the user end."""
    with opened("desk user invite", config, database) as desk:
        from deferlearn.desk import users

        secret = desk.settings.secret
        token = desk.database.write(
            lambda c: users.invite(c, _id(c, name), secret=secret, actor=who())
        )
    typer.echo(users.link(desk.settings, token))


@user.command()
def link(name: Name, config: Config = None, database: DatabaseUrl = None) -> None:
    """Print a link that signs a user in once, within ten minutes. The user's password stays as it is."""
    with opened("desk user link", config, database) as desk:
        from deferlearn.desk import sign_in_links

        token = desk.database.write(lambda c: sign_in_links.create(c, _id(c, name), actor=who()))
    typer.echo(sign_in_links.link(desk.settings, token))


@user.command()
def password(name: Name, config: Config = None, database: DatabaseUrl = None) -> None:
    """Set the password of a user: it is asked for twice, or read from the standard input."""
    with opened("desk user password", config, database) as desk:
        from deferlearn.desk import users
        from deferlearn.desk.errors import Invalid
        from deferlearn.desk.passwords import Passwords

        settings = desk.settings
        if sys.stdin.isatty():
            text = typer.prompt("Password", hide_input=True, confirmation_prompt=True)
        else:
            text = sys.stdin.readline().rstrip("\r\n")
        if not text:
            raise Invalid("The password is empty.")
        users.change_password(
            desk.database,
            name,
            text,
            passwords=Passwords(settings.password_passes, settings.password_memory),
            actor=who(),
        )
    say(f"{name} has another password, and has to log in again.")


@user.command()
def role(
    name: Name,
    role: Annotated[str, argument("expert, supervisor or admin.")],
    config: Config = None,
    database: DatabaseUrl = None,
) -> None:
    """Give a user another role, which counts at once."""
    _change("desk user role", name, config, database, role=role)
    say(f"{name} is {role} now.")


@user.command()
def off(name: Name, config: Config = None, database: DatabaseUrl = None) -> None:
    """Switch a user off: the user's sessions end at once, and the user cannot log in."""
    _change("desk user off", name, config, database, is_active=False)
    say(f"{name} cannot log in any longer.")


@user.command()
def on(name: Name, config: Config = None, database: DatabaseUrl = None) -> None:
    """Let a user who was switched off log in again."""
    _change("desk user on", name, config, database, is_active=True)
    say(f"{name} can log in again.")


def _change(command: str, name: str, config: Any, database: Any, **changes: Any) -> None:
    with opened(command, config, database) as desk:
        from deferlearn.desk import users

        desk.database.write(lambda c: users.change(c, _id(c, name), actor=who(), **changes))


def _id(connection: Connection, name: str) -> int:
    from deferlearn.desk import users
    from deferlearn.desk.errors import NotFound

    found = users.find(connection, name)
    if found is None:
        raise NotFound(f"There is no user {name[:100]!r}.")
    return found.id
