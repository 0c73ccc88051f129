"""Sessions of users who logged in: a random token in a signed cookie, which can be revoked at any time."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection, bindparam, delete, insert, select, update
from starlette.requests import Request
from starlette.responses import Response

from deferlearn.desk.database import SECOND, Database, clock, now
from deferlearn.desk.permissions import Role
from deferlearn.desk.schema import session as session_table
from deferlearn.desk.schema import user as user_table
from deferlearn.desk.signing import derive
from deferlearn.desk.tokens import new_token, signed, stored_form, unsigned

# A browser takes the first name only over TLS, and only from this very host.
SECURE_COOKIE, PLAIN_COOKIE = "__Host-desk", "desk"
COOKIES = (SECURE_COOKIE, PLAIN_COOKIE)
# A working day.
SESSION_SECONDS = 12 * 3600
# What is left of a session is removed after so long.
_KEPT_SECONDS = 7 * 24 * 3600
# Made once, because every page needs it.
_FIND = (
    select(user_table.c.id, user_table.c.name, user_table.c.role, user_table.c.expert_id)
    .join(session_table, session_table.c.user_id == user_table.c.id)
    .where(
        session_table.c.id_hash == bindparam("hash"),
        session_table.c.revoked_at.is_(None),
        session_table.c.expires_at > clock(),
        user_table.c.is_active,
    )
)


@dataclass(frozen=True)
class SessionUser:
    """The user of a session.

    Attributes
    ----------
    id : int
        The number.
    name : str
        The name.
    role : {"expert", "supervisor", "admin"}
        The role at this moment.
    expert_id : int or None
        The expert that the user is.
    """

    id: int
    name: str
    role: Role
    expert_id: int | None


def start(connection: Connection, user_id: int, secret: str) -> str:
    """Start a session.

    Parameters
    ----------
    connection : Connection
        In a transaction that writes.
    user_id : int
        Who logged in.
    secret : str
        The desk's secret.

    Returns
    -------
    cookie : str
        Value of the cookie.
    """
    token, moment = new_token(), now(connection)
    ended = session_table.c.expires_at < moment - _KEPT_SECONDS * SECOND
    connection.execute(delete(session_table).where(ended))
    connection.execute(
        insert(session_table).values(
            id_hash=stored_form(token),
            user_id=user_id,
            created_at=moment,
            expires_at=moment + SESSION_SECONDS * SECOND,
        )
    )
    return signed(_key(secret), token)


def find(database: Database, secret: str, cookie: str) -> SessionUser | None:
    """The user of a session that is valid: signed by us, neither revoked nor too old, the user active.

    Parameters
    ----------
    database : Database
        Of the desk.
    secret : str
        The desk's secret.
    cookie : str
        Value of the cookie.

    Returns
    -------
    SessionUser or None
    """
    token = unsigned(_key(secret), cookie)
    if token is None:
        return None
    with database.reading() as connection:
        row = connection.execute(_FIND, {"hash": stored_form(token)}).one_or_none()
    return None if row is None else SessionUser(row.id, row.name, row.role, row.expert_id)


def revoke(connection: Connection, secret: str, cookie: str) -> None:
    """End a session.

    Parameters
    ----------
    connection : Connection
        In a transaction that writes.
    secret : str
        The desk's secret.
    cookie : str
        Value of the cookie; a wrong one is ignored.
    """
    token = unsigned(_key(secret), cookie)
    if token is not None:
        ended = session_table.c.id_hash == stored_form(token)
        connection.execute(update(session_table).where(ended).values(revoked_at=now(connection)))


def revoke_all(connection: Connection, user_id: int) -> int:
    """End all sessions of a user.

    Parameters
    ----------
    connection : Connection
        In a transaction that writes.
    user_id : int
        The user.

    Returns
    -------
    number : int
        How many there were.
    """
    open_ones = (session_table.c.user_id == user_id) & session_table.c.revoked_at.is_(None)
    query = update(session_table).where(open_ones).values(revoked_at=now(connection))
    return connection.execute(query).rowcount


def is_secure(request: Request) -> bool:
    """Whether browsers reach the desk over TLS.

    Parameters
    ----------
    request : Request
        A request.

    Returns
    -------
    secure : bool
    """
    public: str = request.app.state.settings.public_url
    return request.url.scheme == "https" or public.startswith("https:")


def cookie_of(request: Request) -> str | None:
    """The value of the session cookie; over TLS only of the one that no other host can set.

    Parameters
    ----------
    request : Request
        A request.

    Returns
    -------
    cookie : str or None
    """
    return request.cookies.get(SECURE_COOKIE if is_secure(request) else PLAIN_COOKIE)


def give(response: Response, cookie: str, *, secure: bool) -> None:
    """Put a session into a browser, where neither scripts nor other sites can read it.

    Parameters
    ----------
    response : Response
        The answer.
    cookie : str
        Value of the cookie.
    secure : bool
        Whether browsers reach the desk over TLS.
    """
    response.set_cookie(
        SECURE_COOKIE if secure else PLAIN_COOKIE,
        cookie,
        max_age=SESSION_SECONDS,
        path="/",
        secure=secure,
        httponly=True,
        samesite="lax",
    )


def take(response: Response) -> None:
    """Remove the session from a browser.

    Parameters
    ----------
    response : Response
        The answer.
    """
    for name in COOKIES:
        response.delete_cookie(name, path="/", secure=name == SECURE_COOKIE, httponly=True)


def _key(secret: str) -> bytes:
    return derive(secret, "cookie")
