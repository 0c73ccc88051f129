"""Who is told of events: webhooks are added, changed and removed, and dead letters are sent again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from sqlalchemy import Connection, delete, insert, select, update

from deferlearn.desk import audit
from deferlearn.desk.database import now
from deferlearn.desk.errors import Invalid, NotFound, Stale
from deferlearn.desk.rules import touch
from deferlearn.desk.schema import delivery, webhook
from deferlearn.desk.tokens import new_token
from deferlearn.desk.webhooks import KINDS


def list_webhooks(connection: Connection) -> Sequence[Any]:
    """All webhooks."""
    return connection.execute(select(webhook).order_by(webhook.c.id)).all()


def find_webhook(connection: Connection, number: int) -> Any:
    """A webhook by its id.

    Parameters
    ----------
    connection : Connection
        A connection to the database.
    number : int
        The id.

    Returns
    -------
    row : Row
    """
    row = connection.execute(select(webhook).where(webhook.c.id == number)).first()
    if row is None:
        raise NotFound(f"There is no webhook {number}.")
    return row


def add_webhook(
    connection: Connection, url: str, events: Sequence[str], *, actor: str
) -> tuple[int, str]:
    """Add a webhook.

    Parameters
    ----------
    connection : Connection
        A connection that writes.
    url : str
        Where events are sent.
    events : sequence of str
        Their kinds.
    actor : str
        Who adds it.

    Returns
    -------
    id : int
    secret : str
        With which events are signed; it is not shown again.
    """
    _check({"url": url, "events": events})
    secret = new_token()
    row = insert(webhook).values(
        url=url, secret=secret, events=sorted(set(events)), is_active=True, version=1
    )
    number = int(connection.execute(row.returning(webhook.c.id)).scalar_one())
    _changed(connection, "webhook.added", number, actor, {"events": sorted(set(events))})
    return number, secret


def change_webhook(
    connection: Connection, number: int, changes: Mapping[str, Any], *, actor: str, version: int
) -> Any:
    """Change the address, the events or the activity of a webhook.

    Parameters
    ----------
    connection : Connection
        A connection that writes.
    number : int
        The id.
    changes : mapping
        New values by name.
    actor : str
        Who changes it.
    version : int
        The version that was seen; if the webhook has another one now, nothing is changed.

    Returns
    -------
    row : Row
    """
    _check(changes)
    before = find_webhook(connection, number)
    changed = connection.execute(
        update(webhook)
        .where(webhook.c.id == number, webhook.c.version == version)
        .values(**changes, version=version + 1)
    )
    if not changed.rowcount:
        raise Stale(f"The webhook has version {before.version}, not {version}: read it again.")
    _changed(connection, "webhook.changed", number, actor, {"changed": sorted(changes)})
    return find_webhook(connection, number)


def remove_webhook(connection: Connection, number: int, *, actor: str) -> None:
    """Remove a webhook, with all that was to be delivered to it.

    Parameters
    ----------
    connection : Connection
        A connection that writes.
    number : int
        The id.
    actor : str
        Who removes it.
    """
    find_webhook(connection, number)
    connection.execute(delete(delivery).where(delivery.c.webhook_id == number))
    connection.execute(delete(webhook).where(webhook.c.id == number))
    _changed(connection, "webhook.removed", number, actor, {})


def retry_dead_letter(connection: Connection, number: int, *, actor: str) -> None:
    """Try to deliver a dead letter again, from the first attempt.

    Parameters
    ----------
    connection : Connection
        A connection that writes.
    number : int
        The delivery.
    actor : str
        Who asks for it.
    """
    again = connection.execute(
        update(delivery)
        .where(delivery.c.id == number, delivery.c.state == "dead")
        .values(state="waiting", attempts=0, next_at=now(connection))
    )
    if not again.rowcount:
        raise NotFound(f"There is no dead letter {number}.")
    audit.append(connection, actor=actor, action="delivery.retried", subject=f"delivery:{number}")


def _changed(
    connection: Connection, action: str, number: int, actor: str, detail: dict[str, Any]
) -> None:
    touch(connection)
    subject = f"webhook:{number}"
    audit.append(connection, actor=actor, action=action, subject=subject, detail=detail)


def _check(values: Mapping[str, Any]) -> None:
    if "url" in values:
        url = values["url"]
        try:
            parts = urlsplit(url)
            host, _ = parts.hostname, parts.port
        except ValueError:
            host, parts = None, urlsplit("")
        if not url.isascii() or not url.isprintable() or " " in url:
            host = None
        if parts.scheme not in ("http", "https") or not host or parts.username or parts.fragment:
            raise Invalid(
                "The url of a webhook must be an address such as https://example.org/path, without a "
                "password in it."
            )
    unknown = sorted(set(values.get("events", [])) - set(KINDS))
    if unknown or values.get("events") == []:
        raise Invalid(f"The events of a webhook are one or more of {', '.join(KINDS)}.")
