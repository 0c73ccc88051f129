"""Links that sign a user in once, for whoever may use the shell of the desk.

A link is kept in the table of sessions, under a name that no cookie can have. Using it ends it and starts a
session. What ends the sessions of a user ends the links, too.
"""

from __future__ import annotations

from sqlalchemy import Connection, insert, select, update

from deferlearn.desk import audit, sessions
from deferlearn.desk.database import SECOND, Database, clock, now
from deferlearn.desk.errors import Invalid
from deferlearn.desk.schema import session as session_table
from deferlearn.desk.schema import user as user_table
from deferlearn.desk.settings import Settings
from deferlearn.desk.tokens import new_token, stored_form

LINK_SECONDS = 600


def create(connection: Connection, user_id: int, *, actor: str) -> str:
    """A text that signs a user in, once and within ten minutes.

    Parameters
    ----------
    connection : Connection
        In a transaction that writes.
    user_id : int
        Who will be signed in.
    actor : str
        Who makes the link.

    Returns
    -------
    token : str
    """
    token, moment = new_token(), now(connection)
    connection.execute(
        insert(session_table).values(
            id_hash=_stored(token),
            user_id=user_id,
            created_at=moment,
            expires_at=moment + LINK_SECONDS * SECOND,
        )
    )
    audit.append(connection, actor=actor, action="user.link", subject=f"user:{user_id}")
    return token


def link(settings: Settings, token: str) -> str:
    """The address that a browser opens.

    Parameters
    ----------
    settings : Settings
        Where the desk is.
    token : str
        Of `create`.

    Returns
    -------
    link : str
        What follows the sign # stays in the browser, so that no server on the way can log it.
    """
    return f"{settings.address}/enter#{token}"


def use(database: Database, token: str, *, secret: str) -> str:
    """Start the session of a link, which works no longer then.

    Parameters
    ----------
    database : Database
        Of the desk.
    token : str
        Of `create`.
    secret : str
        The desk's secret.

    Returns
    -------
    cookie : str
        Value of the session's cookie.
    """

    def start(connection: Connection) -> str:
        valid = (
            (session_table.c.id_hash == _stored(token))
            & session_table.c.revoked_at.is_(None)
            & (session_table.c.expires_at > clock())
        )
        query = (
            select(user_table.c.id, user_table.c.name)
            .join(session_table, session_table.c.user_id == user_table.c.id)
            .where(valid, user_table.c.is_active)
        )
        user = connection.execute(query).one_or_none()
        ended = update(session_table).where(valid).values(revoked_at=now(connection))
        # Of two requests at the same time, one ends the link.
        if user is None or connection.execute(ended).rowcount != 1:
            raise Invalid(
                "This link was used or is too old: make another one by `deferlearn desk user link`."
            )
        cookie = sessions.start(connection, user.id, secret)
        audit.append(
            connection, actor=f"user:{user.name}", action="login", subject=f"user:{user.id}"
        )
        return cookie

    return database.write(start)


def _stored(token: str) -> str:
    # Not the form of a session, so that the text of a link is not a cookie.
    return stored_form(f"link {token}")
