"""What a server does once before its first request, so that requests are answered sooner."""

from __future__ import annotations

import gc
import logging
import sys

from deferlearn.desk.database import DatabaseUnavailable
from deferlearn.desk.desk import Desk
from deferlearn.desk.errors import DeskError

log = logging.getLogger("deferlearn.desk")
# A thread that computes lets others go on after so many seconds. Python's own 5 ms are too long for a
# request, which changes threads several times.
SWITCH_SECONDS = 0.001
# The garbage collection looks at new objects after so many of them. A request makes a few thousand that go
# away by themselves, and Python's own 700 lets it begin several times per request.
NEW_OBJECTS = 20_000


def get_ready(desk: Desk) -> None:
    """Load the active model, and tune this process for many short requests.

    What is loaded now stays until the end, so that the garbage collection need not look at it again: with
    it, a quarter of a busy server's time went there.

    Parameters
    ----------
    desk : Desk
        The desk that the process serves.
    """
    try:
        desk.active_judge()
    except (DeskError, DatabaseUnavailable) as error:
        # The first request that needs a model says the same.
        log.warning("no model is ready: %s", type(error).__name__)
    sys.setswitchinterval(SWITCH_SECONDS)
    gc.collect()
    gc.freeze()
    gc.set_threshold(NEW_OBJECTS, *gc.get_threshold()[1:])
