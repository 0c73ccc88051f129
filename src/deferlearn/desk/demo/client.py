"""Requests to the desk with an API key, over one connection per thread."""

from __future__ import annotations

import http.client
import json
import threading
import time
from typing import Any

# A server that starts, on a machine that is busy, answers after a while.
PATIENCE = 120.0


class Refused(RuntimeError):
    """The desk refused a request; the message has its reason."""


class Client:
    """The desk as a program sees it.

    Parameters
    ----------
    port : int
        Where it listens on this machine.
    key : str
        The API key.
    """

    def __init__(self, port: int, key: str) -> None:
        self.port = port
        self._headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
        self._own = threading.local()

    def send(self, method: str, path: str, body: Any = None) -> Any:
        """Send a request.

        Parameters
        ----------
        method, path : str
            Such as POST and /api/v1/cases.
        body : object, default=None
            Plain values.

        Returns
        -------
        answer : object
            Plain values; None if there is nothing to say.

        Raises
        ------
        Refused
            If the desk refuses it.
        OSError
            If it does not answer for a while.
        """
        content = None if body is None else json.dumps(body)
        end = time.monotonic() + PATIENCE
        while True:
            try:
                connection = self._connection()
                connection.request(method, path, content, self._headers)
                answer = connection.getresponse()
                text, status = answer.read(), answer.status
            except (OSError, http.client.HTTPException) as error:
                self.close()
                if time.monotonic() > end:
                    raise OSError(f"the desk does not answer: {error}") from error
                time.sleep(0.1)  # to send a request again is safe
                continue
            if status == 503 and time.monotonic() < end:
                time.sleep(0.1)
                continue
            found = json.loads(text) if text else None
            if status >= 400:
                raise Refused(str(found["detail"] if isinstance(found, dict) else status))
            return found

    def close(self) -> None:
        """Close the connection of this thread."""
        connection = getattr(self._own, "connection", None)
        if connection is not None:
            connection.close()
            self._own.connection = None

    def _connection(self) -> http.client.HTTPConnection:
        found: http.client.HTTPConnection | None = getattr(self._own, "connection", None)
        if found is None:
            found = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
            self._own.connection = found
        return found
