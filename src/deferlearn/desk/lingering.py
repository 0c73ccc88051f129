"""How a connection is closed so that the client can still read the last reply.

A system that closes a socket with unread bytes, or gets bytes for one that is closed, tells the client that
the connection is broken. The client may then lose a reply that it has not read yet. So the server first
ends only its own direction. It discards what the client still sends until the client ends the connection,
or until some time has passed.
"""

from __future__ import annotations

import asyncio
from typing import Any

# How long the client has to take the last reply and to end the connection.
LINGER_SECONDS = 2.0


class LingeringTransport:
    """A transport that is closed in this way; in all else it behaves like the one that it wraps.

    Parameters
    ----------
    transport : Transport
        Of the connection.

    Attributes
    ----------
    ends : bool
        Whether what the client sends is no longer read.
    """

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self.ends = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def is_closing(self) -> bool:
        """Whether the connection is about to end."""
        return self.ends or self._transport.is_closing()

    def close(self) -> None:
        """End the connection when the client has ended it, or after a while."""
        if self.is_closing():
            return
        self.ends = True
        self._transport.write_eof()  # after what is unsent
        self._transport.resume_reading()
        asyncio.get_running_loop().call_later(LINGER_SECONDS, self._transport.close)

    def close_at_once(self) -> None:
        """End a connection on which nothing is under way."""
        self.ends = True
        self._transport.close()
