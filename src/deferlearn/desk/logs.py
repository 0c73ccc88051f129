"""Structured logs: one JSON object per line, with the id of the request and without data of cases.

Messages of exceptions often quote what they failed on, such as a cell of a case. So an exception is logged
by its type and the places in the code, never by its message.
"""

from __future__ import annotations

import json
import logging
import re
import secrets
import sys
import time
import traceback
from contextvars import ContextVar
from types import TracebackType
from typing import Any, TextIO

# The id of the request that is being answered; empty between requests.
request_id: ContextVar[str] = ContextVar("request_id", default="")
# A client's own id is taken over if it is no more than this.
_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
# Facts that a line may have besides its message: `log.info("...", extra={"facts": {...}})`.
_FACTS = "facts"
# So many calls of a traceback are logged, the innermost ones.
_MOST_CALLS = 30


def id_of(given: str | None) -> str:
    """The id of a request: that of the client if it is harmless, otherwise a new one.

    Parameters
    ----------
    given : str or None
        The header `X-Request-ID`.

    Returns
    -------
    id : str
    """
    if given is not None and _ID.fullmatch(given):
        return given
    return secrets.token_hex(8)


def places(trace: TracebackType | None) -> list[str]:
    """Where an exception happened: file, line and function of each call, without any value.

    Parameters
    ----------
    trace : traceback or None
        Of the exception.

    Returns
    -------
    places : list of str
        The innermost call last.
    """
    calls = traceback.extract_tb(trace)[-_MOST_CALLS:]
    return [f"{call.filename}:{call.lineno} {call.name}" for call in calls]


class JsonLines(logging.Formatter):
    """Formats a record as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """The line of a record.

        Parameters
        ----------
        record : LogRecord
            The record.

        Returns
        -------
        line : str
        """
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        line: dict[str, Any] = {
            "time": f"{stamp}.{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if request_id.get():
            line["request_id"] = request_id.get()
        line |= getattr(record, _FACTS, {})
        if record.exc_info and record.exc_info[0] is not None:
            line["exception"] = record.exc_info[0].__qualname__
            line["places"] = places(record.exc_info[2])
        return json.dumps(line, default=str)


def configure(level: str = "info", stream: TextIO | None = None) -> None:
    """Write the logs of the desk and of its server as lines of JSON.

    Parameters
    ----------
    level : str, default="info"
        The least level that is written.
    stream : file or None, default=None
        Where to; None is stderr.
    """
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonLines())
    for name in ("deferlearn.desk", "uvicorn", "uvicorn.error"):
        logger = logging.getLogger(name)
        logger.handlers = [handler] if name != "uvicorn.error" else []
        logger.propagate = name == "uvicorn.error"
        logger.setLevel(level.upper())
    # The desk writes its own line per request, without the path: that has ids of cases.
    access = logging.getLogger("uvicorn.access")
    access.handlers, access.propagate = [], False
