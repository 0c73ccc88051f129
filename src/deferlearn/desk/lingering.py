"""How a connection is closed so that the client can still read the last reply.

A system that closes a socket with unread bytes, or gets bytes for one that is closed, tells the client that
the connection is broken. The client may then lose a reply that it has not read yet. So the server first
ends only its own direction. It discards what the client still sends until the client ends the connection,
until some time has passed, or until the client has sent too much.
"""

from __future__ import annotations

import asyncio
from typing import Any

# How long the client has to take the last reply and to end the connection.
LINGER_SECONDS = 2.0
# So many bytes are discarded at most: to read them costs the server as much as to read a request.
LINGER_BYTES = 1_048_576


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
        self._discarded = 0
        self._end: asyncio.TimerHandle | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def is_closing(self) -> bool:
        """Whether the connection is about to end."""
        return self.ends or self._transport.is_closing()

    def close(self) -> None:
        """End the connection when the client has ended it, or after a while."""
        if self.is_closing():
            return
        if self._discarded > LINGER_BYTES:
            self.close_at_once()
            return
        self.ends = True
        self._transport.write_eof()  # after what is unsent
        self._transport.resume_reading()
        self._end = asyncio.get_running_loop().call_later(LINGER_SECONDS, self._transport.close)

    def discard(self, size: int) -> None:
        """Note that bytes were discarded, and read no more if they are too many.

        Parameters
        ----------
        size : int
            How many came.
        """
        self._discarded += size
        if self._discarded <= LINGER_BYTES:
            return
        if self.ends:
            self._transport.close()
        else:  # a reply is under way, and must not be cut off
            self._transport.pause_reading()

    def forget(self) -> None:
        """Wait no longer for the end of a connection that is lost."""
        if self._end is not None:
            self._end.cancel()

    def close_at_once(self) -> None:
        """End a connection on which nothing is under way."""
        self.ends = True
        self._transport.close()
