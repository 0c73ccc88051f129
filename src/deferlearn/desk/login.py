"""From a name and a password to a session."""

from __future__ import annotations

import math
from typing import Any

from sqlalchemy import Connection, Row, select, update

from deferlearn.desk import audit, sessions
from deferlearn.desk.database import Database
from deferlearn.desk.errors import DeskError
from deferlearn.desk.passwords import MAX_LENGTH, Passwords
from deferlearn.desk.schema import user as user_table
from deferlearn.desk.throttling import Counters, attempt, succeeded


class WrongPassword(DeskError):
    """The name or the password is wrong; which of them is not said."""

    status = 401


class TooManyAttempts(DeskError):
    """There were too many wrong passwords.

    Parameters
    ----------
    seconds : float
        The time to wait.
    """

    status = 429

    def __init__(self, seconds: float) -> None:
        self.seconds = math.ceil(seconds)
        super().__init__(f"There were too many attempts. Try again in {self.seconds} seconds.")


def log_in(
    database: Database,
    name: str,
    password: str,
    *,
    address: str,
    secret: str,
    passwords: Passwords,
) -> str:
    """Start a session of a user who knows the password.

    Parameters
    ----------
    database : Database
        Of the desk.
    name, password : str
        What was entered.
    address : str
        Where the request comes from.
    secret : str
        The desk's secret.
    passwords : Passwords
        Checks the password.

    Returns
    -------
    cookie : str
        Value of the session's cookie.
    """
    row = check(database, name, password, address=address, passwords=passwords)
    newer = passwords.hashed(password) if passwords.is_outdated(row.password_hash) else None

    def start(connection: Connection) -> str:
        # A password that was changed meanwhile, or a user who was switched off, starts no session.
        same_user = (user_table.c.id == row.id) & (user_table.c.version == row.version)
        values = {"password_hash": newer or row.password_hash}
        if connection.execute(update(user_table).where(same_user).values(values)).rowcount != 1:
            raise WrongPassword("The user was changed meanwhile. Try again.")
        cookie = sessions.start(connection, row.id, secret)
        audit.append(connection, actor=f"user:{row.name}", action="login", subject=f"user:{row.id}")
        return cookie

    return database.write(start)


def check(
    database: Database, name: str, password: str, *, address: str, passwords: Passwords
) -> Row[Any]:
    """The user whose name and password these are; wrong ones are counted and slowed down.

    Parameters
    ----------
    database : Database
        Of the desk.
    name, password : str
        What was entered.
    address : str
        Where the request comes from.
    passwords : Passwords
        Checks the password.

    Returns
    -------
    user : Row

    Raises
    ------
    WrongPassword, TooManyAttempts
        If they are not.
    """
    counters = Counters.of(name, address)
    wait = database.write(lambda connection: attempt(connection, counters))
    if wait:
        raise TooManyAttempts(wait)
    known = name[:200].replace("\x00", "")  # which PostgreSQL does not take, and no name holds
    query = select(user_table).where(user_table.c.name == known, user_table.c.is_active)
    with database.reading() as connection:
        row = connection.execute(query).one_or_none()
    stored = None if row is None else row.password_hash
    right = passwords.matches(stored, password[: MAX_LENGTH + 1])
    if row is None or not right:
        subject = "user:unknown" if row is None else f"user:{row.id}"
        database.write(
            lambda connection: audit.append(
                connection, actor="desk", action="login.failed", subject=subject
            )
        )
        raise WrongPassword("The name or the password is wrong.")
    database.write(lambda connection: succeeded(connection, counters))
    return row
