"""HTTP as uvicorn's quick parser reads it, with what that parser leaves out.

Unlike uvicorn's other parser, it takes headers of any length into memory before anybody can refuse the
request, it loses the body of a request that offers an upgrade, and it takes what follows for the next
request. Neither of them gives up on a client that never ends its headers or never reads its replies.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from deferlearn.desk.lingering import LingeringTransport
from deferlearn.desk.refusals import REFUSED, refusal

# Bytes of the request line and the headers together.
MOST_HEAD = 65_536
# A connection on which nothing is answered has so many seconds to bring a whole request. The app gives a
# body half of that. A client to which a reply could not be sent has as long to take some more of it.
REQUEST_SECONDS = 60.0
_TOO_LONG = "The headers of the request are too long."
_NO_REQUEST = "This is not a request in HTTP."

log = logging.getLogger("deferlearn.desk.protocol")


class GuardedHttp(HttpToolsProtocol):
    """A connection that ends if headers, trailers or frames of chunks are too long, or do not come.

    It also ends if the client does not take its replies: until then they, and requests, fill the memory.
    An offer to upgrade to another protocol, which some clients make with every request, is ignored.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._since_progress = 0
        self._is_partial = False  # whether a request has begun and not ended
        self._reads_again = False  # whether the parser reads a head that was read before
        self._is_refused = False  # whether nothing that comes is read any more
        self._deadline: asyncio.TimerHandle | None = None
        self._next_look: asyncio.TimerHandle | None = None  # at how much is unsent

    @property
    def _is_busy(self) -> bool:
        """Whether a request is being answered."""
        return self.cycle is not None and not self.cycle.response_complete

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for a request.

        Parameters
        ----------
        transport : Transport
            Of the connection.
        """
        super().connection_made(LingeringTransport(transport))  # type: ignore[arg-type]
        self._set_deadline()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection.

        Parameters
        ----------
        exc : Exception or None
            Why it ended.
        """
        self._clear_deadline()
        self._unwatch_unsent()
        self.transport.forget()  # type: ignore[attr-defined]
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Hold replies back because the client is slow to take them, and see whether it takes any."""
        super().pause_writing()
        self._watch_unsent()

    def resume_writing(self) -> None:
        """Go on with replies; a connection that is about to end must still be rid of the rest."""
        super().resume_writing()
        self._unwatch_unsent()
        self._watch_if_closing()

    def on_response_complete(self) -> None:
        """Go on with the next request, if there is one."""
        super().on_response_complete()
        self._watch_if_closing()

    def timeout_keep_alive_handler(self) -> None:
        """End a connection that is not used."""
        self._end_if_idle()
        super().timeout_keep_alive_handler()
        self._watch_if_closing()

    def shutdown(self) -> None:
        """End the connection, after the reply if there is one."""
        self._end_if_idle()
        super().shutdown()
        self._watch_if_closing()

    def data_received(self, data: bytes) -> None:
        """Read what has come; refuse the request if it is all head.

        Parameters
        ----------
        data : bytes
            What has come.
        """
        if self._is_refused or self.transport.is_closing():
            self.transport.discard(len(data))  # type: ignore[attr-defined]
            return
        self._since_progress += len(data)
        self._unset_keepalive_if_required()
        try:
            self._parse(data)
        except httptools.HttpParserError:
            self._refuse(400, _NO_REQUEST)
            return
        if self._since_progress > MOST_HEAD:
            self._refuse(431, _TOO_LONG)
        elif self._is_busy and not self._is_partial:
            self._clear_deadline()
        elif self._deadline is None:
            self._set_deadline()

    def _parse(self, data: bytes) -> None:
        while data:
            try:
                self.parser.feed_data(data)
                return
            except httptools.HttpParserUpgrade as offer:
                data = data[offer.args[0] :]
            # The parser has stopped after the head. Another one reads how the body is framed, and goes on.
            framing = [
                name + b": " + value + b"\r\n"
                for name, value in self.headers
                if name in (b"content-length", b"transfer-encoding")
            ]
            self.parser = self._new_parser()
            self._reads_again = True
            self.parser.feed_data(b"".join([b"POST / HTTP/1.1\r\n", *framing, b"\r\n"]))

    def _new_parser(self) -> httptools.HttpRequestParser:
        """One that reads as uvicorn's first one: what follows the last request is no error."""
        parser = httptools.HttpRequestParser(self)
        parser.set_dangerous_leniencies(lenient_data_after_close=True)
        return parser

    def on_message_begin(self) -> None:
        """Begin with a request."""
        if not self._reads_again:
            self._is_partial = True
            self._clear_deadline()
            super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        """Take a part of the address.

        Parameters
        ----------
        url : bytes
            The part.
        """
        if not self._reads_again:
            super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header.

        Parameters
        ----------
        name, value : bytes
            The header.
        """
        if not self._reads_again:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Begin with the body."""
        self._since_progress = 0
        if not self._reads_again:
            super().on_headers_complete()
        self._reads_again = False

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
        """Expect the next request, unless only the parser has come to an end."""
        if self.parser.should_upgrade():
            return
        self._since_progress = 0
        self._is_partial = False
        super().on_message_complete()

    def _refuse(self, status: int, detail: str) -> None:
        """Say why the connection ends, after the replies to the requests that were read before."""
        if self.transport.is_closing():
            return
        log.warning("refused what is not a valid request", extra={"facts": {"status": status}})
        REFUSED[status] += 1
        self._is_refused = True
        reply = refusal(status, detail, {"Connection": "close"})
        if self._is_busy and self.cycle.more_body and self.pipeline:
            # The body is what is wrong, and its request still waits for the replies to others.
            self.pipeline[0] = (self.cycle, reply)  # type: ignore[assignment]
            return
        if self._is_busy and (not self.cycle.more_body or self.cycle.response_started):
            # A refusal would get into the reply, or be taken for it.
            self.cycle.keep_alive = False
            return
        head = [b"HTTP/1.1 %d %s\r\n" % (status, b"Refused")]
        head += [b"%s: %s\r\n" % header for header in reply.raw_headers]
        self.transport.write(b"".join([*head, b"\r\n", bytes(reply.body)]))
        self._close()

    def _set_deadline(self) -> None:
        self._deadline = self.loop.call_later(REQUEST_SECONDS, self._give_up)

    def _clear_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _give_up(self) -> None:
        """End the connection of a client that is too slow, but not in the middle of a reply."""
        if self._is_busy:
            self._set_deadline()
        else:
            self._close()

    def _end_if_idle(self) -> None:
        """Let nobody wait for the end of a connection on which nothing is under way."""
        if not self._is_busy and not self._is_partial and not self.transport.is_closing():
            self.transport.close_at_once()  # type: ignore[attr-defined]

    def _close(self) -> None:
        self.transport.close()
        self._watch_if_closing()

    def _watch_if_closing(self) -> None:
        """See to it that a closed connection ends: it does not while bytes are unsent."""
        if self.transport.is_closing():
            self._watch_unsent()

    def _watch_unsent(self) -> None:
        self._unwatch_unsent()
        if unsent := self.transport.get_write_buffer_size():
            self._next_look = self.loop.call_later(REQUEST_SECONDS, self._look_at_unsent, unsent)

    def _unwatch_unsent(self) -> None:
        if self._next_look is not None:
            self._next_look.cancel()
            self._next_look = None

    def _look_at_unsent(self, before: int) -> None:
        """Cut the connection off if the client has taken nothing since the look before."""
        if self.transport.get_write_buffer_size() < before:
            self._watch_unsent()
        else:
            self.transport.abort()
