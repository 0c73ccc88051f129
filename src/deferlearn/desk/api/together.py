"""Single cases that wait at the same time are stored together, whoever sent them.

A transaction for many cases takes little longer than one for a single case, and waits for the disk only
once. Cases that arrive during a transaction wait for the next one. After a transaction of several cases the
next one begins a little later, so that more of them come together. A case that comes alone waits for
nothing.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple

from starlette.responses import Response

from deferlearn.desk.api import cases
from deferlearn.desk.api.problems import told
from deferlearn.desk.cases import CHUNK, Arrived, Sent, arrive_together
from deferlearn.desk.database import DatabaseUnavailable
from deferlearn.desk.desk import Desk
from deferlearn.desk.errors import DeskError
from deferlearn.desk.principal import Principal, of_key

# The least time in seconds from the beginning of a transaction of several cases to that of the next one.
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
    principal : Principal or None
        Who asked; None if an outage of the database keeps the desk from finding out.
    response : Response
        The reply.
    """

    principal: Principal | None
    response: Response


class _Case(NamedTuple):
    asked: Asked
    replied: Future[Replied | None]


class Together:
    """Stores cases of several requests in one transaction.

    Parameters
    ----------
    desk : Desk
        The desk.
    """

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self._waiting: deque[_Case] = deque()
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
            The reply; None if the key does not allow it.
        """
        replied: Future[Replied | None] = Future()
        self._waiting.append(_Case(asked, replied))
        # Many of these find nothing, because those before them took all that waited.
        self._thread.submit(self._work)
        return replied

    def _work(self) -> None:
        if not self._waiting:
            return
        time.sleep(max(self._next - time.monotonic(), 0.0))
        some = self._take(CHUNK)
        self._next = time.monotonic() + (PAUSE if len(some) > 1 else 0.0)
        try:
            self._answer(some)
        except DatabaseUnavailable as error:
            # It may have taken long to find that out, and those who wait would learn no more.
            for one in [*some, *self._take(len(self._waiting))]:
                if not one.replied.done():
                    one.replied.set_result(Replied(None, told(error)))
        except Exception as error:
            for one in some:
                if not one.replied.done():
                    one.replied.set_exception(error)

    def _take(self, most: int) -> list[_Case]:
        """Cases that wait, without those whose clients are gone: these have cancelled their requests."""
        some = [self._waiting.popleft() for _ in range(min(len(self._waiting), most))]
        return [one for one in some if one.replied.set_running_or_notify_cancel()]

    def _answer(self, some: list[_Case]) -> None:
        keys = {one.asked.key for one in some}
        known = {key: of_key(self.desk.database, key) for key in keys}
        allowed: list[tuple[_Case, Principal]] = []
        for one in some:
            principal = known[one.asked.key]
            if principal is not None and principal.may(cases.PERMISSION):
                allowed.append((one, principal))
            else:
                one.replied.set_result(None)
        if not allowed:
            return
        outcomes = self._store(
            [Sent(one.asked.body.id, one.asked.body.fields, who.actor) for one, who in allowed]
        )
        # What is stored is never stored again, whatever goes wrong from here on.
        shown = cases.shown_arrived(
            self.desk, [outcome for outcome in outcomes if isinstance(outcome, Arrived)]
        )
        for (one, principal), outcome in zip(allowed, outcomes, strict=True):
            if isinstance(outcome, Arrived):
                reply = cases.reply_to_one(outcome, shown)
            elif isinstance(outcome, DeskError):
                reply = told(outcome)
            else:
                one.replied.set_exception(outcome)
                continue
            one.replied.set_result(Replied(principal, reply))

    def _store(self, sent: list[Sent]) -> Sequence[Arrived | Exception]:
        """What became of cases. A defect in what one of them needs is no reason to refuse the others."""
        try:
            return arrive_together(self.desk, sent)
        except DatabaseUnavailable:
            raise
        except Exception as error:
            if len(sent) == 1:
                return [error]
            return [outcome for one in sent for outcome in self._store([one])]
