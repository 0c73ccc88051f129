"""Single cases that wait at the same time are stored together, whoever sent them.

A transaction for many cases takes little longer than one for a single case, and waits for the disk only
once. Cases that arrive during a transaction, or in a short time after it began, wait for the next one. A
case that comes alone does not wait.
"""

from __future__ import annotations

import time
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple

from starlette.responses import Response

from deferlearn.desk.api import cases
from deferlearn.desk.api.problems import told
from deferlearn.desk.cases import CHUNK, Sent, arrive_together
from deferlearn.desk.database import DatabaseUnavailable
from deferlearn.desk.desk import Desk
from deferlearn.desk.errors import DeskError
from deferlearn.desk.principal import Principal, of_key

# The least time in seconds between the beginnings of two transactions.
PAUSE = 0.02


class Asked(NamedTuple):
    """A request that is valid, except that its key has not been checked yet.

    Attributes
    ----------
    key : str
        What was sent as an API key.
    body : object
        The body, which is valid.
    number : int
        The number in the address, if it has one.
    """

    key: str
    body: Any
    number: int = 0


class Replied(NamedTuple):
    """A reply, and to whom.

    Attributes
    ----------
    principal : Principal
        Who asked.
    response : Response
        The reply.
    """

    principal: Principal
    response: Response


class Together:
    """Stores cases of several requests in one transaction.

    Parameters
    ----------
    desk : Desk
        The desk.
    """

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self._waiting: deque[tuple[Asked, Future[Replied | None]]] = deque()
        self._thread = ThreadPoolExecutor(1, "desk-cases")
        self._next = 0.0  # when the next transaction may begin

    def send(self, asked: Asked) -> Future[Replied | None]:
        """Let a case wait for the next transaction.

        Parameters
        ----------
        asked : Asked
            The case.

        Returns
        -------
        replied : Future
            The reply; None if the key does not allow it, or nobody could look at it.
        """
        replied: Future[Replied | None] = Future()
        self._waiting.append((asked, replied))
        # Many of these find nothing, because those before them took all that waited.
        self._thread.submit(self._work)
        return replied

    def _work(self) -> None:
        if not self._waiting:
            return
        time.sleep(max(self._next - time.monotonic(), 0.0))
        self._next = time.monotonic() + PAUSE
        some = [self._waiting.popleft() for _ in range(min(len(self._waiting), CHUNK))]
        # A client that is gone has cancelled its request.
        some = [
            (asked, replied) for asked, replied in some if replied.set_running_or_notify_cancel()
        ]
        try:
            replies = self._answer([asked for asked, _ in some])
        except Exception:
            # A defect in what one of them needs is no reason to refuse the others.
            for asked, replied in some:
                try:
                    replied.set_result(self._answer([asked])[0])
                except Exception as error:
                    replied.set_exception(error)
            return
        for (_, replied), reply in zip(some, replies, strict=True):
            replied.set_result(reply)

    def _answer(self, asked: list[Asked]) -> list[Replied | None]:
        try:
            known = {key: of_key(self.desk.database, key) for key in {one.key for one in asked}}
        except DatabaseUnavailable:
            return [None] * len(asked)
        allowed = [
            (place, principal, Sent(one.body.id, one.body.fields, principal.actor))
            for place, one in enumerate(asked)
            if (principal := known[one.key]) is not None and principal.may(cases.PERMISSION)
        ]
        replies: list[Replied | None] = [None] * len(asked)
        responses = self._store([sent for _, _, sent in allowed]) if allowed else []
        for (place, principal, _), response in zip(allowed, responses, strict=True):
            replies[place] = Replied(principal, response)
        return replies

    def _store(self, sent: list[Sent]) -> list[Response]:
        try:
            outcomes = arrive_together(self.desk, sent)
            shown = cases.shown_arrived(self.desk, outcomes)
        except (DatabaseUnavailable, DeskError) as error:
            return [told(error) for _ in sent]
        return [
            told(one) if isinstance(one, DeskError) else cases.reply_to_one(one, shown)
            for one in outcomes
        ]
