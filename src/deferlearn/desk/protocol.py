"""HTTP as uvicorn's quick parser reads it, with a limit on what is not the body of a request.

That parser, unlike uvicorn's other one, takes headers of any length into memory before anybody can refuse
the request.
"""

from __future__ import annotations

from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

# Bytes of the request line and the headers together.
MOST_HEAD = 65_536
_REFUSAL = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\n"
    b"Content-Type: text/plain; charset=utf-8\r\nContent-Length: 33\r\nConnection: close\r\n\r\n"
    b"The headers are too long: refused"
)


class LimitedHeads(HttpToolsProtocol):
    """A connection that is closed if headers, trailers or the frames of chunks do not end."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._since_progress = 0

    def data_received(self, data: bytes) -> None:
        """Read what has come; refuse the request if it is all head.

        Parameters
        ----------
        data : bytes
            What has come.
        """
        self._since_progress += len(data)
        super().data_received(data)
        if self._since_progress > MOST_HEAD and not self.transport.is_closing():
            self.transport.write(_REFUSAL)
            self.transport.close()

    def on_headers_complete(self) -> None:
        """Begin with the body."""
        self._since_progress = 0
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Take a part of the body, for which the app has limits of its own.

        Parameters
        ----------
        body : bytes
            The part.
        """
        self._since_progress = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Expect the next request."""
        self._since_progress = 0
        super().on_message_complete()
