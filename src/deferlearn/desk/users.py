"""Users: made by an invitation, with which they choose a password; their roles; and who is switched off."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, insert, select, update
from sqlalchemy.exc import IntegrityError

from deferlearn.desk import audit, sessions
from deferlearn.desk.database import SECOND, Database, now
from deferlearn.desk.errors import Conflict, Invalid, NotFound, Stale
from deferlearn.desk.passwords import PasswordError, Passwords, check_password
from deferlearn.desk.permissions import ROLES, Role
from deferlearn.desk.schema import expert as expert_table
from deferlearn.desk.schema import user as user_table
from deferlearn.desk.settings import Settings
from deferlearn.desk.signing import derive
from deferlearn.desk.tokens import new_token, signed, stored_form, unsigned

NAME = re.compile(r"[\w][\w.@ -]{0,99}")
# Begins the mark of a user who has chosen no password yet.
INVITED = "!"
INVITATION_SECONDS = 7 * 24 * 3600


@dataclass(frozen=True)
class User:
    """A user.

    Attributes
    ----------
    id : int
        The number.
    name : str
        What the user logs in with.
    role : {"expert", "supervisor", "admin"}
        What the user may do.
    expert_id : int or None
        The expert that the user is; None if the user answers no cases.
    is_active : bool
        Whether the user may log in.
    has_password : bool
        Whether the invitation was accepted.
    version : int
        Counts the changes.
    """

    id: int
    name: str
    role: Role
    expert_id: int | None
    is_active: bool
    has_password: bool
    version: int


def create(
    connection: Connection, *, name: str, role: str, expert_id: int | None = None, actor: str
) -> User:
    """Make a user, who cannot log in before accepting an invitation.

    Parameters
    ----------
    connection : Connection
        In a transaction that writes.
    name : str
        What the user will log in with.
    role : {"expert", "supervisor", "admin"}
        What the user may do.
    expert_id : int or None, default=None
        The expert that the user is.
    actor : str
        Who makes the user.

    Returns
    -------
    User
    """
    if not NAME.fullmatch(name):
        raise Invalid(
            "The name of a user has 1 to 100 letters, digits, spaces and . @ _ -, and begins with a "
            "letter or a digit."
        )
    _check(connection, role, expert_id)
    values = {
        "name": name,
        "password_hash": INVITED + new_token(),
        "role": role,
        "expert_id": expert_id,
        "is_active": True,
        "created_at": now(connection),
        "version": 1,
    }
    query = insert(user_table).values(values).returning(user_table)
    try:
        user = _user(connection.execute(query).one())
    except IntegrityError as error:
        raise Conflict(f"There is a user {name!r} already.") from error
    detail = {"name": name, "role": role, "expert_id": expert_id}
    audit.append(
        connection, actor=actor, action="user.created", subject=f"user:{user.id}", detail=detail
    )
    return user


def _check(connection: Connection, role: str, expert_id: int | None) -> None:
    if role not in ROLES:
        raise Invalid(f"{role[:50]!r} is not a role; use {', '.join(ROLES)}.")
    if expert_id is None:
        if role == "expert":
            raise Invalid("A user with the role expert needs an expert.")
        return
    query = select(expert_table.c.id).where(expert_table.c.id == expert_id)
    if connection.execute(query).first() is None:
        raise Invalid(f"There is no expert {expert_id}.")


def invite(connection: Connection, number: int, *, secret: str, actor: str) -> str:
    """A text with which a user can choose a password, once and within a week.

    Earlier invitations and sessions of the user end. The user's present password works no longer.

    Parameters
    ----------
    connection : Connection
        In a transaction that writes.
    number : int
        The user.
    secret : str
        The desk's secret.
    actor : str
        Who invites.

    Returns
    -------
    token : str
    """
    mark = INVITED + new_token()
    query = update(user_table).where(user_table.c.id == number)
    changed = query.values(password_hash=mark, version=user_table.c.version + 1)
    if connection.execute(changed).rowcount != 1:
        raise NotFound(f"There is no user {number}.")
    sessions.revoke_all(connection, number)
    audit.append(connection, actor=actor, action="user.invited", subject=f"user:{number}")
    return _token(connection, number, mark, secret)


def open_invitation(connection: Connection, secret: str) -> str | None:
    """The invitation of the first administrator, as long as no administrator has a password.

    Parameters
    ----------
    connection : Connection
        To the database.
    secret : str
        The desk's secret.

    Returns
    -------
    token : str or None
        As of `invite`; None if it is not needed.
    """
    active = user_table.c.is_active & (user_table.c.role == "admin")
    rows = connection.execute(select(user_table).where(active).order_by(user_table.c.id)).all()
    if not rows or any(not row.password_hash.startswith(INVITED) for row in rows):
        return None
    return _token(connection, rows[0].id, rows[0].password_hash, secret)


def _token(connection: Connection, number: int, mark: str, secret: str) -> str:
    # It holds a digest of the mark, and a password replaces the mark: so it works once.
    until = now(connection) + INVITATION_SECONDS * SECOND
    return signed(_key(secret), f"{number}-{until}-{stored_form(mark)[:32]}")


def link(settings: Settings, token: str) -> str:
    """The one-time link of an invitation.

    Parameters
    ----------
    settings : Settings
        Where the desk is.
    token : str
        Of `invite`.

    Returns
    -------
    link : str
        What follows the sign # stays in the browser, so that no server on the way can log it.
    """
    return f"{settings.address}/welcome#{token}"


def accept(
    database: Database, token: str, password: str, *, secret: str, passwords: Passwords
) -> User:
    """Choose the password of an invited user.

    Parameters
    ----------
    database : Database
        Of the desk.
    token : str
        Of `invite`.
    password : str
        The new password.
    secret : str
        The desk's secret.
    passwords : Passwords
        Makes the hash.

    Returns
    -------
    User
    """
    text = unsigned(_key(secret), token)
    if text is None:
        raise Invalid("This invitation is not valid: ask an administrator for another one.")
    number, until, digest = text.split("-")

    def invited(connection: Connection) -> Row[Any]:
        row = _locked(connection, user_table.c.id == int(number))
        used = row is None or not row.is_active or stored_form(row.password_hash)[:32] != digest
        if row is None or used or int(until) < now(connection):
            raise Invalid(
                "This invitation was used or is too old: ask an administrator for another one."
            )
        return row

    with database.reading() as connection:
        name = invited(connection).name
    stored = _checked_hash(password, name, passwords)
    return database.write(
        lambda connection: _store(connection, invited(connection), stored, f"user:{name}")
    )


def change_password(
    database: Database, name: str, password: str, *, passwords: Passwords, actor: str
) -> None:
    """Give a user another password; the user's sessions end.

    Parameters
    ----------
    database : Database
        Of the desk.
    name : str
        Of the user.
    password : str
        The new password.
    passwords : Passwords
        Makes the hash.
    actor : str
        Who does it.
    """
    stored = _checked_hash(password, name, passwords)

    def store(connection: Connection) -> User:
        row = _locked(connection, user_table.c.name == name)
        if row is None:
            raise NotFound(f"There is no user {name[:100]!r}.")
        return _store(connection, row, stored, actor)

    database.write(store)


def _checked_hash(password: str, name: str, passwords: Passwords) -> str:
    """The hash of a good password, made outside of transactions because it takes long."""
    try:
        check_password(password, name)
    except PasswordError as error:
        raise Invalid(str(error)) from error
    return passwords.hashed(password)


def _store(connection: Connection, row: Row[Any], stored: str, actor: str) -> User:
    changed = update(user_table).where(user_table.c.id == row.id)
    connection.execute(changed.values(password_hash=stored, version=row.version + 1))
    sessions.revoke_all(connection, row.id)
    audit.append(connection, actor=actor, action="user.password", subject=f"user:{row.id}")
    return get(connection, row.id)


def _locked(connection: Connection, condition: ColumnElement[bool]) -> Row[Any] | None:
    """A user whom no other transaction changes meanwhile."""
    query = select(user_table).where(condition).with_for_update()
    return connection.execute(query).one_or_none()


def change(
    connection: Connection,
    number: int,
    *,
    version: int | None = None,
    role: str | None = None,
    expert_id: int | None = None,
    is_active: bool | None = None,
    actor: str,
) -> User:
    """Change what a user may do. A user who is switched off is logged out at once.

    Parameters
    ----------
    connection : Connection
        In a transaction that writes.
    number : int
        The user.
    version : int or None, default=None
        The version that was read; another one in the database is an error. None: any.
    role, expert_id, is_active : optional
        The new values; None: as before. An ``expert_id`` of 0 is no expert.
    actor : str
        Who does it.

    Returns
    -------
    User
    """
    admins = _admins(connection)
    row = _locked(connection, user_table.c.id == number)
    if row is None:
        raise NotFound(f"There is no user {number}.")
    if version is not None and row.version != version:
        raise Stale(f"User {number} was changed meanwhile: it has version {row.version} now.")
    new: dict[str, Any] = {
        "role": row.role if role is None else role,
        "expert_id": row.expert_id if expert_id is None else expert_id or None,
        "is_active": row.is_active if is_active is None else is_active,
    }
    _check(connection, new["role"], new["expert_id"])
    if admins == [number] and not (new["is_active"] and new["role"] == "admin"):
        raise Conflict("This is the last active administrator: make another one first.")
    connection.execute(
        update(user_table).where(user_table.c.id == number).values(**new, version=row.version + 1)
    )
    if not new["is_active"]:
        sessions.revoke_all(connection, number)
    audit.append(
        connection, actor=actor, action="user.changed", subject=f"user:{number}", detail=new
    )
    return get(connection, number)


def _admins(connection: Connection) -> list[int]:
    """All active administrators, locked, so that two of them cannot switch off each other."""
    active = user_table.c.is_active & (user_table.c.role == "admin")
    query = select(user_table.c.id).where(active).order_by(user_table.c.id).with_for_update()
    return list(connection.execute(query).scalars())


def get(connection: Connection, number: int) -> User:
    """The user with a number.

    Parameters
    ----------
    connection : Connection
        To the database.
    number : int
        The number.

    Returns
    -------
    User
    """
    row = connection.execute(select(user_table).where(user_table.c.id == number)).one_or_none()
    if row is None:
        raise NotFound(f"There is no user {number}.")
    return _user(row)


def find(connection: Connection, name: str) -> User | None:
    """The user with a name.

    Parameters
    ----------
    connection : Connection
        To the database.
    name : str
        The name.

    Returns
    -------
    User or None
    """
    row = connection.execute(select(user_table).where(user_table.c.name == name)).one_or_none()
    return None if row is None else _user(row)


def all_of(connection: Connection) -> list[User]:
    """All users, in the order in which they were made.

    Parameters
    ----------
    connection : Connection
        To the database.

    Returns
    -------
    users : list of User
    """
    return [_user(row) for row in connection.execute(select(user_table).order_by(user_table.c.id))]


def _user(row: Row[Any]) -> User:
    has_password = not row.password_hash.startswith(INVITED)
    return User(row.id, row.name, row.role, row.expert_id, row.is_active, has_password, row.version)


def _key(secret: str) -> bytes:
    return derive(secret, "invitation")
