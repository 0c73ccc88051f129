"""What the desk does by itself, in threads beside the server: deadlines, prices, webhooks, alarms."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from deferlearn.desk.database import DatabaseUnavailable
from deferlearn.desk.deadlines import enforce_deadlines
from deferlearn.desk.desk import Desk
from deferlearn.desk.handing import look_after_unread
from deferlearn.desk.learning.shadowing import follow
from deferlearn.desk.monitoring.alarms import advance
from deferlearn.desk.pricing import update_prices
from deferlearn.desk.webhooks import bring_forward, deliver_due

log = logging.getLogger("deferlearn.desk.keeper")
# Seconds between two looks, if there was nothing to do.
PAUSE = 1.0
# The same for what nobody waits for: alarms, the candidate that decides along, a clock that was set back.
WATCH_PAUSE = 15.0
# The same after the database could not be used.
OUTAGE_PAUSE = 5.0


class Keeper:
    """Threads that do what is due, until they are told to stop.

    Several servers may have one each: each piece of work is taken by one of them.

    Parameters
    ----------
    desk : Desk
        The desk.
    """

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []

    def start(self) -> None:
        """Begin."""
        # A receiver that does not answer must not keep deadlines waiting.
        for name, pause, chores in (
            ("desk-rules", PAUSE, [enforce_deadlines, update_prices]),
            ("desk-webhooks", PAUSE, [deliver_due]),
            ("desk-watch", WATCH_PAUSE, [look_after_unread, bring_forward, _watch, follow]),
        ):
            args = (chores, pause)
            thread = threading.Thread(target=self._run, args=args, name=name, daemon=True)
            thread.start()
            self._threads.append(thread)

    def stop(self, seconds: float = 15.0) -> None:
        """Finish what was begun, and end.

        Parameters
        ----------
        seconds : float, default=15.0
            How long to wait for it.
        """
        self._stop.set()
        for thread in self._threads:
            thread.join(seconds)
        self._threads.clear()

    def _run(self, chores: list[Callable[[Desk], int | bool]], usual_pause: float) -> None:
        while not self._stop.is_set():
            busy, pause = False, usual_pause
            for chore in chores:
                try:
                    busy = bool(chore(self.desk)) or busy
                except DatabaseUnavailable:
                    log.warning("the database cannot be used now")
                    pause = OUTAGE_PAUSE
                except Exception:
                    log.exception("a defect")  # the next round may succeed
                    pause = OUTAGE_PAUSE
            if not busy:
                self._stop.wait(pause)


def _watch(desk: Desk) -> int:
    """Raise the alarms that are due."""
    return len(advance(desk))
