"""API keys: shown once, stored as a digest, limited to scopes."""

from __future__ import annotations

import re
import secrets
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, bindparam, insert, select, update
from sqlalchemy.exc import IntegrityError

from deferlearn.desk import audit
from deferlearn.desk.database import SECOND, Database, DatabaseUnavailable, clock, now
from deferlearn.desk.errors import Conflict, Invalid, NotFound
from deferlearn.desk.permissions import SCOPES
from deferlearn.desk.schema import api_key
from deferlearn.desk.signing import same
from deferlearn.desk.tokens import new_token, stored_form

# A key reads dlk_PREFIX_SECRET: the prefix finds it, and programs that look for leaked secrets know it.
_FORM = re.compile(r"dlk_([0-9a-f]{12})_([\w-]{43})", re.A)
# The last use is stored so often at most, because each time is a transaction.
_USE_SECONDS = 300
# Made once, because every request of a program needs it.
_FIND = select(api_key, clock().label("now")).where(api_key.c.prefix == bindparam("prefix"))
NAME = re.compile(r"[^\x00-\x1f\x7f\ud800-\udfff]{1,100}")


@dataclass(frozen=True)
class Key:
    """An API key, without its secret.

    Attributes
    ----------
    id : int
        Its number.
    name : str
        Which program uses it.
    scopes : frozenset of str
        What it allows.
    created_at : int
        Microseconds since 1970.
    revoked_at, last_used_at : int or None
        Microseconds since 1970; None if that did not happen.
    """

    id: int
    name: str
    scopes: frozenset[str]
    created_at: int
    revoked_at: int | None
    last_used_at: int | None


def create(
    connection: Connection, *, name: str, scopes: Collection[str], actor: str
) -> tuple[int, str]:
    """Make a key.

    Parameters
    ----------
    connection : Connection
        In a transaction that writes.
    name : str
        Which program will use it. No other valid key may have this name: the audit log tells programs
        apart by it.
    scopes : collection of str
        What it allows.
    actor : str
        Who makes it.

    Returns
    -------
    id : int
        Its number.
    text : str
        The key, which cannot be found out again.
    """
    if not NAME.fullmatch(name):
        raise Invalid("The name of a key has 1 to 100 characters, without control characters.")
    unknown = sorted(set(scopes) - set(SCOPES))
    if unknown or not scopes:
        wrong = f"No scope has the name {unknown[0][:50]!r}" if unknown else "A key needs a scope"
        raise Invalid(f"{wrong}; use {', '.join(SCOPES)}.")
    taken = select(api_key.c.id).where(api_key.c.name == name, api_key.c.revoked_at.is_(None))
    if connection.execute(taken).first() is not None:
        raise _is_taken(name)
    prefix, token = secrets.token_hex(6), new_token()
    values = {
        "name": name,
        "prefix": prefix,
        "key_hash": stored_form(token),
        "scopes": sorted(set(scopes)),
        "created_at": now(connection),
    }
    added = insert(api_key).values(values).returning(api_key.c.id)
    try:
        number = connection.execute(added).scalar_one()
    except IntegrityError:  # another key got the name at the same time
        raise _is_taken(name) from None
    audit.append(
        connection,
        actor=actor,
        action="key.created",
        subject=f"key:{number}",
        detail={"name": name, "scopes": values["scopes"]},
    )
    return number, f"dlk_{prefix}_{token}"


def _is_taken(name: str) -> Conflict:
    return Conflict(
        f"There is already a valid key with the name {name!r}: choose another name, or revoke that "
        "key first."
    )


def looks_like_key(text: str) -> bool:
    """Whether a text has the form of a key.

    Parameters
    ----------
    text : str
        What was sent.

    Returns
    -------
    has_form : bool

    Examples
    --------
    >>> from deferlearn.desk.keys import looks_like_key
    >>> looks_like_key("dlk_0123456789ab_" + 43 * "x"), looks_like_key("secret")
    (True, False)
    """
    return _FORM.fullmatch(text) is not None


def find(database: Database, text: str) -> Key | None:
    """The key that a program sent, if it is valid.

    Parameters
    ----------
    database : Database
        Of the desk.
    text : str
        What was sent.

    Returns
    -------
    Key or None
    """
    parts = _FORM.fullmatch(text)
    if parts is None:
        return None
    with database.reading() as connection:
        row = connection.execute(_FIND, {"prefix": parts[1]}).one_or_none()
    if row is None or row.revoked_at is not None:
        return None
    if not same(row.key_hash.encode(), stored_form(parts[2]).encode()):
        return None
    if row.last_used_at is None or abs(row.now - row.last_used_at) > _USE_SECONDS * SECOND:
        _remember_use(database, row.id)
    return _key(row)


def _remember_use(database: Database, number: int) -> None:
    used = update(api_key).where(api_key.c.id == number).values(last_used_at=clock())
    try:
        database.write(lambda connection: connection.execute(used) and None)
    except DatabaseUnavailable:  # who only reads should get the answer all the same
        return


def revoke(connection: Connection, number: int, *, actor: str) -> None:
    """Make a key invalid from now on.

    Parameters
    ----------
    connection : Connection
        In a transaction that writes.
    number : int
        The key.
    actor : str
        Who does it.
    """
    query = update(api_key).where(api_key.c.id == number, api_key.c.revoked_at.is_(None))
    if connection.execute(query.values(revoked_at=now(connection))).rowcount != 1:
        raise NotFound(f"There is no key {number}, or it is revoked already.")
    audit.append(connection, actor=actor, action="key.revoked", subject=f"key:{number}")


def all_of(connection: Connection) -> list[Key]:
    """All keys, also revoked ones, in the order in which they were made.

    Parameters
    ----------
    connection : Connection
        To the database.

    Returns
    -------
    keys : list of Key
    """
    return [_key(row) for row in connection.execute(select(api_key).order_by(api_key.c.id))]


def _key(row: Row[Any]) -> Key:
    return Key(
        row.id, row.name, frozenset(row.scopes), row.created_at, row.revoked_at, row.last_used_at
    )
