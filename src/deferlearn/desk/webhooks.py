"""Webhooks: whoever subscribes is told of events, signed, at least once, until it answers or is given up.

Events are stored in the transaction that causes them, so none is lost and none is invented. They are sent
afterwards, again and again with growing pauses, and after the last attempt they are kept in a list of dead
letters. A receiver may get an event twice, and in another order: the id and the version of the case tell.
"""

from __future__ import annotations

import hashlib
import hmac
import http.client
import socket
import ssl
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from ipaddress import ip_address
from threading import Timer
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    Select,
    insert,
    literal,
    or_,
    select,
    update,
)

from deferlearn.desk.database import SECOND
from deferlearn.desk.desk import Desk
from deferlearn.desk.rules import Moment
from deferlearn.desk.schema import DEAD, WAITING, canonical, delivery, event, webhook
from deferlearn.desk.times import iso

KINDS = ("case.answered", "case.reopened", "alarm.raised")
SIGNATURE, EVENT_ID = "X-Deferlearn-Signature", "X-Deferlearn-Event"
# Seconds before the next attempt: doubled each time, up to an hour. The last attempt is after half a day.
FIRST_PAUSE, LONGEST_PAUSE, ATTEMPTS = 2, 3600, 22
# More than the pause after so many attempts.
_PAUSE = literal(FIRST_PAUSE * SECOND, BigInteger).bitwise_lshift(delivery.c.attempts)
# A process that dies while it sends has its deliveries taken over after this many seconds.
CLAIM_SECONDS = 60
TIMEOUT = 10
# So many deliveries to each receiver are taken at a time.
BATCH = 20
# So many receivers are sent to at the same time.
MOST_AT_ONCE = 1000

Send = Callable[["Parcel"], str | None]


class Parcel(NamedTuple):
    """A delivery that is due.

    Attributes
    ----------
    id : int
        The delivery.
    attempts : int
        The number of this attempt, from 1.
    url, secret : str
        Of the webhook.
    event_id : int
        The event.
    body : bytes
        What is sent.
    at : int
        The time, for the signature.
    """

    id: int
    attempts: int
    url: str
    secret: str
    event_id: int
    body: bytes
    at: int


def announce(
    connection: Connection,
    moment: Moment,
    kind: str,
    number: int,
    case_id: str,
    facts: Mapping[str, Any],
    *,
    version: int,
) -> None:
    """Store an event of a case for all who subscribe to its kind, within the transaction that causes it.

    Parameters
    ----------
    connection : Connection
        A connection that writes.
    moment : Moment
        Now.
    kind : str
        One of KINDS.
    number, case_id : int and str
        The case.
    facts : mapping
        Answer, answered_by and flag of the case.
    version : int
        Of the case, so that a receiver can tell what is newer.
    """
    body = {
        "case": case_id,
        "version": version,
        "answer": facts.get("answer"),
        "answered_by": facts.get("answered_by"),
        "flag": facts.get("flag"),
    }
    tell(connection, moment, kind, body, number)


def tell(
    connection: Connection,
    moment: Moment,
    kind: str,
    body: Mapping[str, Any],
    number: int | None = None,
) -> None:
    """Store an event for all who subscribe to its kind, within the transaction that causes it.

    Parameters
    ----------
    connection : Connection
        A connection that writes.
    moment : Moment
        Now.
    kind : str
        One of KINDS.
    body : mapping
        What is told, besides the kind and the time.
    number : int or None, default=None
        The case that it is about.
    """
    hooks = [one.id for one in moment.configuration.subscriptions if kind in one.events]
    if not hooks:
        return
    # One may be removed at this moment: those that are there stay until the transaction ends.
    there = select(webhook.c.id).where(webhook.c.id.in_(hooks)).order_by(webhook.c.id)
    hooks = list(connection.execute(there.with_for_update(read=True, key_share=True)).scalars())
    if not hooks:
        return
    told = {"event": kind, **body, "at": iso(moment.now)}
    added = insert(event).values(kind=kind, case_number=number, body=told, at=moment.now)
    event_id = connection.execute(added.returning(event.c.id)).scalar_one()
    connection.execute(
        insert(delivery),
        [
            {
                "webhook_id": hook,
                "event_id": event_id,
                "state": "waiting",
                "attempts": 0,
                "next_at": moment.now,
            }
            for hook in hooks
        ],
    )


def signature(secret: str, at: int, body: bytes) -> str:
    """What a receiver compares: HMAC-SHA256 of the time in seconds, a point and the body.

    Parameters
    ----------
    secret : str
        The secret of the webhook.
    at : int
        The time in microseconds.
    body : bytes
        What is sent.

    Returns
    -------
    signature : str

    Examples
    --------
    >>> from deferlearn.desk.webhooks import signature
    >>> signature("secret", 5_000_000, b"{}")[:20]
    't=5,v1=f18d2fcd9a241'
    """
    seconds = at // SECOND
    mac = hmac.new(secret.encode(), f"{seconds}.".encode() + body, hashlib.sha256)
    return f"t={seconds},v1={mac.hexdigest()}"


def deliver_due(desk: Desk, send: Send | None = None) -> int:
    """Send what is due.

    Parameters
    ----------
    desk : Desk
        The desk.
    send : callable or None, default=None
        Sends a parcel, and returns what went wrong or None; None sends it over HTTP.

    Returns
    -------
    sent : int
        The number of deliveries that were tried.
    """
    send = post if send is None else send
    tried, end = 0, time.monotonic() + TIMEOUT
    running: dict[Future[int], str] = {}
    # Each receiver has a thread. As long as one is slow, the others get what becomes due. So that the round
    # has an end, none gets more after TIMEOUT: then they wait for what is being sent at that time.
    with ThreadPoolExecutor(MOST_AT_ONCE) as pool:
        parcels = desk.database.write(partial(_claim, desk))
        while parcels or running:
            receivers: dict[str, list[Parcel]] = {}
            for parcel in parcels:
                receivers.setdefault(parcel.url, []).append(parcel)
            running |= {
                pool.submit(_serve, desk, own, send, end): url for url, own in receivers.items()
            }
            for done in wait(running, timeout=1.0, return_when=FIRST_COMPLETED).done:
                del running[done]
                tried += done.result()
            parcels = []
            if running and time.monotonic() < end:
                parcels = desk.database.write(partial(_claim, desk, busy=list(running.values())))
    return tried


def _serve(desk: Desk, parcels: list[Parcel], send: Send, end: float) -> int:
    """Send parcels to one receiver and store how it went; how many there was time for."""
    outcomes = _send_in_order(parcels, send, end)
    for parcel, problem in outcomes:
        desk.database.write(partial(_note, desk, parcel=parcel, problem=problem))
    if left := parcels[len(outcomes) :]:
        desk.database.write(partial(_give_back, desk, parcels=left))
    return len(outcomes)


def _send_in_order(
    parcels: list[Parcel], send: Send, end: float
) -> list[tuple[Parcel, str | None]]:
    """Send parcels to one receiver. What a slow one leaves no time for is due again later."""
    outcomes = []
    for parcel in parcels:
        outcomes.append((parcel, send(parcel)))
        if time.monotonic() > end:
            break
    return outcomes


def _claim(desk: Desk, connection: Connection, busy: Sequence[str] = ()) -> list[Parcel]:
    """Take what is due, except for receivers that are busy."""
    moment = desk.look(connection)
    # Each receiver has its own share: else one that is behind by many events would leave nothing to others.
    idle = select(webhook.c.id).where(webhook.c.is_active, webhook.c.url.not_in(busy))
    hooks = connection.execute(idle).scalars().all()
    ids = [number for hook in hooks for number in connection.execute(_due(moment, hook)).scalars()]
    if not ids:
        return []
    connection.execute(
        update(delivery)
        .where(delivery.c.id.in_(ids))
        .values(attempts=delivery.c.attempts + 1, next_at=moment.after(CLAIM_SECONDS))
    )
    rows = connection.execute(
        select(
            delivery.c.id,
            delivery.c.attempts,
            webhook.c.url,
            webhook.c.secret,
            event.c.id,
            event.c.body,
        )
        .join(webhook, webhook.c.id == delivery.c.webhook_id)
        .join(event, event.c.id == delivery.c.event_id)
        .where(delivery.c.id.in_(ids))
        .order_by(delivery.c.id)
    )
    return [
        Parcel(*row[:5], canonical({"id": row[4], **row[5]}).encode(), moment.now) for row in rows
    ]


def _due(moment: Moment, webhook_id: int) -> Select[tuple[int]]:
    """The first deliveries to a receiver that are due."""
    return (
        select(delivery.c.id)
        .where(
            delivery.c.webhook_id == webhook_id,
            delivery.c.state == WAITING,
            delivery.c.next_at <= moment.now,
        )
        .order_by(delivery.c.next_at)
        .limit(BATCH)
        .with_for_update(skip_locked=True)
    )


def bring_forward(desk: Desk) -> int:
    """Let deliveries be due now whose time was planned before the clock was set back.

    All that waits is looked at, so this is done less often than sending, and first without a lock.

    Parameters
    ----------
    desk : Desk
        The desk.

    Returns
    -------
    found : int
        The number of them.
    """
    with desk.database.reading() as connection:
        found = select(delivery.c.id).where(_is_misplanned(desk.look(connection))).limit(1)
        if connection.execute(found).first() is None:
            return 0

    def let_be_due(connection: Connection) -> int:
        moment = desk.look(connection)
        change = update(delivery).where(_is_misplanned(moment)).values(next_at=moment.now)
        return connection.execute(change).rowcount

    return desk.database.write(let_be_due)


def _is_misplanned(moment: Moment) -> ColumnElement[bool]:
    """Whether a delivery is due later than by any pause."""
    return (delivery.c.state == WAITING) & or_(
        delivery.c.next_at > moment.after(CLAIM_SECONDS) + _PAUSE,
        delivery.c.next_at > moment.after(CLAIM_SECONDS + LONGEST_PAUSE),
    )


def _give_back(desk: Desk, connection: Connection, parcels: list[Parcel]) -> None:
    """Let deliveries be due again that there was no time for; they were not attempts."""
    moment = desk.look(connection)
    for parcel in parcels:
        connection.execute(
            update(delivery)
            .where(_is_held(parcel))
            .values(attempts=parcel.attempts - 1, next_at=moment.now)
        )


def _is_held(parcel: Parcel) -> ColumnElement[bool]:
    """Whether a delivery is still this parcel: whoever took it over meanwhile says how it went."""
    return (
        (delivery.c.id == parcel.id)
        & (delivery.c.attempts == parcel.attempts)
        & (delivery.c.state == WAITING)
    )


def _note(desk: Desk, connection: Connection, parcel: Parcel, problem: str | None) -> None:
    """Store how a delivery went."""
    moment = desk.look(connection)
    if problem is None:
        values: dict[str, Any] = {"state": "done", "last_error": None}
    elif parcel.attempts >= ATTEMPTS:
        values = {"state": "dead", "last_error": problem}
    else:
        pause = min(FIRST_PAUSE * 2 ** (parcel.attempts - 1), LONGEST_PAUSE)
        values = {"next_at": moment.after(pause), "last_error": problem}
    connection.execute(update(delivery).where(_is_held(parcel)).values(**values))


def post(parcel: Parcel) -> str | None:
    """Send a parcel over HTTP; redirections are not followed.

    Parameters
    ----------
    parcel : Parcel
        What to send.

    Returns
    -------
    problem : str or None
        What went wrong; None if the receiver answered with a status from 200 to 299.
    """
    parts = urlsplit(parcel.url)
    make: Any = http.client.HTTPConnection
    options: dict[str, Any] = {"timeout": TIMEOUT}
    if parts.scheme == "https":
        make, options["context"] = http.client.HTTPSConnection, ssl.create_default_context()
    try:
        connection = make(parts.hostname or "", parts.port, **options)
        # The time-out of a socket is for each part of a reply: together they have no more.
        end = time.monotonic() + TIMEOUT
        last = Timer(TIMEOUT, _hang_up, (connection,))
        last.start()
        try:
            path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
            headers = {
                "Content-Type": "application/json",
                "User-Agent": "deferlearn-desk",
                EVENT_ID: str(parcel.event_id),
                SIGNATURE: signature(parcel.secret, parcel.at, parcel.body),
            }
            connection.connect()
            # The name, the connection and TLS may have taken all the time: then nobody will hang up.
            if time.monotonic() >= end:
                raise TimeoutError("the receiver was reached too late")
            if _is_link_local(connection.sock.getpeername()[0]):
                return "The address is link-local, where no receiver is."
            connection.request("POST", path, parcel.body, headers)
            status = connection.getresponse().status
        finally:
            last.cancel()
            connection.close()
    except (OSError, http.client.HTTPException, ValueError) as error:
        return f"{type(error).__name__}: {error}"[:300]
    return None if 200 <= status < 300 else f"The receiver answered with the status {status}."


def _is_link_local(address: str) -> bool:
    """Whether an address is one at which clouds tell their machines secrets: no webhook may be there."""
    found = ip_address(address.partition("%")[0])
    return (getattr(found, "ipv4_mapped", None) or found).is_link_local


def _hang_up(connection: http.client.HTTPConnection) -> None:
    """End a conversation, also while another thread waits for the receiver."""
    with suppress(OSError, AttributeError):  # it may have ended, or not have begun
        connection.sock.shutdown(socket.SHUT_RDWR)


@dataclass(frozen=True)
class DeadLetter:
    """A delivery that was given up.

    Attributes
    ----------
    id : int
        The delivery.
    webhook_id, event_id : int
        What was to be delivered.
    kind : str
        Of the event.
    attempts : int
        How often it was tried.
    last_error : str
        What went wrong.
    """

    id: int
    webhook_id: int
    event_id: int
    kind: str
    attempts: int
    last_error: str


def dead_letters(connection: Connection, *, after: int = 0, limit: int = 100) -> list[DeadLetter]:
    """Deliveries that were given up.

    Parameters
    ----------
    connection : Connection
        A connection to the database.
    after : int, default=0
        The number after which to begin.
    limit : int, default=100
        The most of them.

    Returns
    -------
    letters : list of DeadLetter
    """
    rows = connection.execute(
        select(
            delivery.c.id,
            delivery.c.webhook_id,
            delivery.c.event_id,
            event.c.kind,
            delivery.c.attempts,
            delivery.c.last_error,
        )
        .join(event, event.c.id == delivery.c.event_id)
        .where(delivery.c.state == DEAD, delivery.c.id > after)
        .order_by(delivery.c.id)
        .limit(limit)
    )
    return [DeadLetter(*row) for row in rows]
