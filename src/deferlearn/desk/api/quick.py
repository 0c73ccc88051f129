"""A short way for the most frequent requests: to take a case, to lease one, and to take an answer.

The framework takes longer to find out what an endpoint needs than the desk takes for the work. So a valid
request of a program goes straight to the function that its endpoint calls. All others go on to the
endpoint, which says what is wrong: another type of content, a body that is not valid, a key that does not
allow it. What cannot be a key at all does not wait here for its turn.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from pydantic import TypeAdapter, ValidationError
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from deferlearn.desk.api import cases, queue
from deferlearn.desk.api.problems import told
from deferlearn.desk.api.together import Asked, Replied, Together
from deferlearn.desk.database import DatabaseUnavailable
from deferlearn.desk.desk import Desk
from deferlearn.desk.errors import DeskError
from deferlearn.desk.keys import looks_like_key
from deferlearn.desk.limits import replay
from deferlearn.desk.principal import Principal, key_in, of_key

_ANSWER = re.compile(r"/api/v1/queue/([1-9][0-9]{0,17})/answer")
# How many leases and answers are worked on at a time: as many as in the framework.
_THREADS = 40
_leased, _given = TypeAdapter(queue.LeasedCase), TypeAdapter(queue.GivenAnswer)


@dataclass(frozen=True)
class _Way:
    path: str  # as the endpoint has it, for the log and the measurements
    body: TypeAdapter[Any]
    answer: Callable[[Asked], Future[Replied | None]]


class Quick:
    """Middleware that takes the short way where it can. The guards, which read the body, stand before it.

    Parameters
    ----------
    app : ASGI application
        What answers the other requests.
    desk : Desk
        The desk.
    """

    def __init__(self, app: ASGIApp, desk: Desk) -> None:
        self.app, self.desk = app, desk
        self._threads = ThreadPoolExecutor(_THREADS, "desk-queue")
        arrive = _Way("/api/v1/cases", TypeAdapter(cases.NewCase), Together(desk).send)
        lease = _Way("/api/v1/queue/next", TypeAdapter(queue.NextCase), self._lease)
        self._ways = {way.path: way for way in (arrive, lease)}
        self._answer = _Way(
            "/api/v1/queue/{reading}/answer", TypeAdapter(queue.NewAnswer), self._take_answer
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        way, number = self._way_of(scope)
        headers = Headers(scope=scope) if way is not None else {}
        key = key_in(headers.get("authorization", ""))
        if key is not None and not looks_like_key(key):
            key = None
        if way is None or key is None or not _is_whole_json(headers):
            await self.app(scope, receive, send)
            return
        content = (await receive())["body"]
        body = _read(way.body, content)
        replied = None
        if body is not None:
            replied = await asyncio.wrap_future(way.answer(Asked(key, body, number)))
        if replied is None:
            await self.app(scope, replay(content, receive), send)
            return
        scope["route"] = SimpleNamespace(path=way.path)
        if replied.principal is not None:
            scope.setdefault("state", {})["actor"] = replied.principal.actor
        await replied.response(scope, receive, send)

    def _way_of(self, scope: Scope) -> tuple[_Way | None, int]:
        """What is asked for, and the number in the address."""
        if scope["type"] != "http" or scope["method"] != "POST":
            return None, 0
        found = _ANSWER.fullmatch(scope["path"])
        if found is not None:
            return self._answer, int(found[1])
        return self._ways.get(scope["path"]), 0

    def _lease(self, asked: Asked) -> Future[Replied | None]:
        def work(principal: Principal) -> Any:
            return queue.next_case(asked.body, self.desk, principal)

        return self._submit(asked, work, _leased)

    def _take_answer(self, asked: Asked) -> Future[Replied | None]:
        def work(principal: Principal) -> Any:
            return queue.answer(asked.number, asked.body, self.desk, principal)

        return self._submit(asked, work, _given)

    def _submit(
        self, asked: Asked, work: Callable[[Principal], Any], form: TypeAdapter[Any]
    ) -> Future[Replied | None]:
        """Work in a thread, in which log lines have the id of the request, too."""
        return self._threads.submit(copy_context().run, self._reply, asked, work, form)

    def _reply(
        self, asked: Asked, work: Callable[[Principal], Any], form: TypeAdapter[Any]
    ) -> Replied | None:
        """What the endpoint answers; None if the key does not allow it."""
        try:
            principal = of_key(self.desk.database, asked.key)
        except DatabaseUnavailable as error:
            return Replied(None, told(error))
        if principal is None or not principal.may(queue.PERMISSION):
            return None
        try:
            found = work(principal)
        except (DeskError, DatabaseUnavailable) as error:
            return Replied(principal, told(error))
        if isinstance(found, Response):
            return Replied(principal, found)
        content = form.dump_json(form.validate_python(found))
        return Replied(principal, Response(content, media_type="application/json"))


def _is_whole_json(headers: Mapping[str, str]) -> bool:
    """Whether the body is JSON, and was read by the guards."""
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    return kind == "application/json" and "content-length" in headers


def _read(form: TypeAdapter[Any], content: bytes) -> Any:
    """The body; None if it is not valid."""
    try:
        return form.validate_python(json.loads(content))
    except (ValueError, ValidationError):
        return None
