"""Limits of what a client may ask for: size and depth of a body, the time to send it, and the rate."""

from __future__ import annotations

import asyncio
import math
import re
import time
from collections.abc import Callable

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from deferlearn.desk.addresses import network_of
from deferlearn.desk.refusals import refusal

_STRINGS = re.compile(rb'"(?:[^"\\]|\\.)*+"?', re.S)
_BRACKETS = re.compile(rb"[\[\]{}]")
# Content types of bodies that hold files.
_FILES = ("application/octet-stream", "multipart/form-data;")
# So many bodies of the largest size may be in memory at a time.
_MOST_BODIES = 20
# A bucket of a client that asked for nothing since is forgotten when there are so many.
_MANY_CLIENTS = 10_000


def is_deep(body: bytes, most: int) -> bool:
    """Whether the lists and objects of a JSON text are nested more deeply than allowed.

    Parameters
    ----------
    body : bytes
        JSON, or anything else.
    most : int
        Levels that are allowed.

    Returns
    -------
    deep : bool

    Examples
    --------
    >>> from deferlearn.desk.limits import is_deep
    >>> is_deep(b'[[["["]]]', 3), is_deep(b'[[[[]]]]', 3)
    (False, True)
    """
    if body.count(b"[") + body.count(b"{") <= most:
        return False
    depth = 0
    for bracket in _BRACKETS.findall(_STRINGS.sub(b"", body)):
        depth += 1 if bracket in b"[{" else -1
        if depth > most:
            return True
    return False


class LimitBodies:
    """Middleware that reads the body of a request, and refuses it if it is too large, deep or slow.

    Parameters
    ----------
    app : ASGI application
        What answers the other requests.
    most_bytes : int
        Largest body.
    most_levels : int
        Deepest JSON.
    seconds : float, default=30.0
        Time in which the body must be here.
    """

    def __init__(
        self, app: ASGIApp, most_bytes: int, most_levels: int, seconds: float = 30.0
    ) -> None:
        self.app, self.most_bytes, self.most_levels = app, most_bytes, most_levels
        self.seconds = seconds
        self.held = 0  # bytes of the bodies that are here and not answered yet

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        if "content-length" not in headers and "transfer-encoding" not in headers:
            await self.app(scope, receive, send)
            return
        parts: list[bytes] = []
        try:
            await self._answer(scope, receive, send, headers, parts)
        finally:
            self.held -= sum(map(len, parts))

    async def _answer(
        self, scope: Scope, receive: Receive, send: Send, headers: Headers, parts: list[bytes]
    ) -> None:
        try:
            async with asyncio.timeout(self.seconds):
                body = await self._read(headers, receive, parts)
        except TimeoutError:
            detail = f"The body did not arrive within {self.seconds:g} seconds."
            await refusal(408, detail, {"Connection": "close"})(scope, receive, send)
            return
        except ConnectionResetError:  # half of a body is none
            return
        except MemoryError:
            detail = "The desk has too many large requests at this moment. Send it again later."
            await refusal(503, detail, {"Connection": "close", "Retry-After": "5"})(
                scope, receive, send
            )
            return
        if body is None:
            detail = f"The body is larger than {self.most_bytes} bytes. Send fewer cases at a time."
            await refusal(413, detail, {"Connection": "close"})(scope, receive, send)
            return
        # A file, such as a model or a table, is no JSON, and nothing parses it as such.
        is_file = headers.get("content-type", "").startswith(_FILES)
        if not is_file and is_deep(body, self.most_levels):
            detail = f"The body is nested more than {self.most_levels} levels deep."
            await refusal(400, detail)(scope, receive, send)
            return
        await self.app(scope, replay(body, receive), send)

    async def _read(self, headers: Headers, receive: Receive, parts: list[bytes]) -> bytes | None:
        """The body; None if it is too large. Its parts are in the list, also if not all are here."""
        announced = headers.get("content-length", "")
        if announced.isdecimal() and int(announced[:20]) > self.most_bytes:
            return None
        size = 0
        while True:
            message = await receive()
            if message["type"] != "http.request":
                raise ConnectionResetError("the client is gone")
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            self.held += len(parts[-1])
            if size > self.most_bytes:
                return None
            # Bodies are read before anyone asks who sends them: together they must not fill the memory.
            if self.held > _MOST_BODIES * self.most_bytes:
                raise MemoryError
            if not message.get("more_body", False):
                return b"".join(parts)


def replay(body: bytes, receive: Receive) -> Receive:
    """Give a body that was read once more, and then what the server says.

    Parameters
    ----------
    body : bytes
        The whole body.
    receive : callable
        What gave it.

    Returns
    -------
    receive : callable
    """
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Message:
        return waiting.pop() if waiting else await receive()

    return again


class Rates:
    """How often clients ask: each has a bucket that holds a number of requests and is refilled steadily.

    Parameters
    ----------
    per_second : float
        Requests per second that a client may send for long.
    burst : float
        Requests that it may send at once.
    clock : callable, default=time.monotonic
        The time in seconds.

    Examples
    --------
    >>> from deferlearn.desk.limits import Rates
    >>> rates = Rates(2.0, 3.0, clock=lambda: 0.0)
    >>> [rates.wait("10.0.0.1") for _ in range(4)]
    [0.0, 0.0, 0.0, 0.5]
    """

    def __init__(
        self, per_second: float, burst: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.per_second, self.burst, self.clock = per_second, burst, clock
        self._buckets: dict[str, tuple[float, float]] = {}

    def wait(self, client: str) -> float:
        """Count a request.

        Parameters
        ----------
        client : str
            Who asks.

        Returns
        -------
        seconds : float
            0 if the request is allowed; otherwise the time after which one would be.
        """
        now = self.clock()
        left, before = self._buckets.get(client, (self.burst, now))
        left = min(self.burst, left + (now - before) * self.per_second)
        allowed = left >= 1.0
        if client not in self._buckets and len(self._buckets) >= _MANY_CLIENTS:
            self._forget(now)
        self._buckets[client] = (left - allowed, now)
        return 0.0 if allowed else (1.0 - left) / self.per_second

    def _forget(self, now: float) -> None:
        """Forget clients whose bucket is full again, or all if there is none."""
        refilled = self.burst / self.per_second
        self._buckets = {
            client: bucket for client, bucket in self._buckets.items() if now - bucket[1] < refilled
        }
        if len(self._buckets) >= _MANY_CLIENTS:
            self._buckets.clear()


class LimitRates:
    """Middleware that answers 429 to a client that asks too often.

    Parameters
    ----------
    app : ASGI application
        What answers the other requests.
    rates : Rates
        How often clients may ask. Clients are told apart by their address.
    """

    def __init__(self, app: ASGIApp, rates: Rates) -> None:
        self.app, self.rates = app, rates

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] == "http":
            client = scope["client"][0] if scope.get("client") else ""
            seconds = self.rates.wait(network_of(client))
            if seconds:
                detail = f"More than {self.rates.per_second:g} requests per second. Wait a little."
                headers = {"Retry-After": str(math.ceil(seconds))}
                await refusal(429, detail, headers)(scope, receive, send)
                return
        await self.app(scope, receive, send)
