"""What is not the body of a request has a limit, and no request can hide in another one."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import socket
import threading
import time
from contextlib import contextmanager

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from uvicorn.server import ServerState

from deferlearn.desk import lingering, protocol
from deferlearn.desk.limits import LimitBodies
from deferlearn.desk.metrics import Metrics
from deferlearn.desk.protocol import MOST_HEAD, GuardedHttp
from deferlearn.desk.refusals import REFUSED
from desk.running import served


async def size(request: Request) -> PlainTextResponse:
    return PlainTextResponse(str(len(await request.body())))


async def drip(request: Request) -> StreamingResponse:
    async def parts():
        for _ in range(10):
            yield b"part "
            await asyncio.sleep(0.03)

    return StreamingResponse(parts())


# More than the buffers of the system hold.
LARGE = b"z" * 16_000_000


async def large(request: Request) -> Response:
    return Response(LARGE)


ROUTES = [
    Route("/drip", drip),
    Route("/large", large),
    Route("/{rest:path}", size, methods=["GET", "POST"]),
]


@pytest.fixture(scope="module")
def address():
    with served(Starlette(routes=ROUTES)) as url:
        host, _, port = url.removeprefix("http://").partition(":")
        yield host, int(port)


def replies(address, parts):
    """All that the server answers to these parts, until it closes the connection."""
    with socket.create_connection(address, timeout=20) as connection:

        def send():
            try:
                for part in parts:
                    connection.sendall(part)
            except OSError:
                pass  # it was closed meanwhile

        sending = threading.Thread(target=send)
        sending.start()
        received = b"".join(pieces(connection))
        sending.join()
        return received


def pieces(connection):
    """What comes until the connection ends, no matter how."""
    try:
        while piece := connection.recv(65_536):
            yield piece
    except ConnectionResetError:
        pass


@contextmanager
def warnings():
    """The warnings that the protocol logs meanwhile."""
    found = []
    handler = logging.Handler(logging.WARNING)
    handler.emit = found.append
    logger = logging.getLogger("deferlearn.desk.protocol")
    logger.addHandler(handler)
    yield found
    logger.removeHandler(handler)


LINE = b"POST / HTTP/1.1\r\nHost: desk\r\n"
CHUNKED = LINE + b"Transfer-Encoding: chunked\r\n\r\n"
PIECE = b"x" * 16_384


@pytest.mark.parametrize(
    "parts",
    [
        [LINE + b"X-Long: ", *[PIECE] * 50],
        [LINE, *[b"X-%d: %s\r\n" % (n, b"y" * 1000) for n in range(800)]],
        [b"GET /", *[PIECE] * 50],
        [CHUNKED + b"1\r\nz\r\n0\r\nX-Trailer: ", *[PIECE] * 50],
        [CHUNKED + b"1;", *[PIECE] * 50],
    ],
    ids=["one header", "many headers", "address", "trailer", "extension of a chunk"],
)
def test_what_does_not_end_is_refused(address, parts):
    def just_too_long():
        yield parts[0]
        time.sleep(0.05)  # until it is read: the rest counts by itself
        yield b"".join(parts[1:])[: MOST_HEAD + 1]

    assert statuses(replies(address, just_too_long())) in ([431], [400])
    assert statuses(replies(address, parts)) in ([431], [400])


def test_the_refusal_can_be_read(address):
    found = replies(address, [LINE + b"X-Long: " + b"x" * MOST_HEAD])
    assert found.startswith(b"HTTP/1.1 431")
    head, _, body = found.partition(b"\r\n\r\n")
    assert b"content-length: %d\r\n" % len(body) in head
    assert b"content-type: application/problem+json" in head
    assert json.loads(body)["status"] == 431


def test_requests_below_the_limits_are_answered(address):
    header = LINE + b"X-Long: " + b"x" * (MOST_HEAD // 2) + b"\r\n"
    whole = header + b"Content-Length: 200000\r\n\r\n" + b"b" * 200_000
    chunks = CHUNKED + b"1\r\nz\r\n" * 50_000 + b"0\r\n\r\n"
    last = LINE + b"Connection: close\r\nContent-Length: 0\r\n\r\n"
    found = replies(address, [whole, chunks, last])
    assert [part.rpartition(b"\r\n")[2] for part in found.split(b"HTTP/1.1 200 OK")[1:]] == [
        b"200000",
        b"50000",
        b"0",
    ]


def statuses(found):
    return [int(one) for one in re.findall(rb"HTTP/1.1 ([0-9]{3}) ", found)]


LAST = b"GET /last HTTP/1.1\r\nHost: desk\r\nConnection: close\r\n\r\n"
SECRET = b"(secret)"
HIDDEN = b"GET /hidden HTTP/1.1\r\nHost: desk\r\n\r\n"


@pytest.mark.parametrize(
    "framing",
    [
        b"Content-Length: 5\r\nTransfer-Encoding: chunked",
        b"Transfer-Encoding: chunked\r\nContent-Length: 5",
        b"Content-Length: 5\r\nContent-Length: 0",
        b"Content-Length: 5, 5",
        b"Content-Length: +5",
        b"Transfer-Encoding: xchunked",
        b"Transfer-Encoding: chunked, identity",
        b"Transfer-Encoding:\r\n chunked",
        b"Transfer-Encoding : chunked",
        b"Transfer-Encoding: \x0bchunked",
        b"Transfer-Encoding: chunked\nX: y",
        b"X: \x00",
    ],
)
def test_a_request_whose_end_is_in_doubt_is_refused(address, framing):
    found = replies(address, [LINE + framing + b"\r\n\r\n0\r\n\r\n" + HIDDEN + LAST])
    assert statuses(found) == [400]


@pytest.mark.parametrize("sign", [b"\n", b"+1\r\n", b"0x1\r\n", b"1\n", b"-1\r\n", b"1\r\nzz"])
def test_a_chunk_whose_end_is_in_doubt_is_refused(address, sign):
    found = replies(address, [CHUNKED + sign + b"\r\n0\r\n\r\n" + HIDDEN + LAST])
    assert statuses(found) == [400]


@pytest.mark.parametrize("protocol_name", [b"h2c", b"websocket"])
@pytest.mark.parametrize("pause", [0, 0.1], ids=["in one piece", "in two pieces"])
@pytest.mark.parametrize("chunked", [False, True])
def test_the_body_of_a_request_that_offers_an_upgrade_is_its_body(
    address, protocol_name, pause, chunked
):
    offer = LINE + b"Connection: Upgrade\r\nUpgrade: " + protocol_name + b"\r\n"
    body = b"%x\r\n%s\r\n0\r\n\r\n" % (len(HIDDEN), HIDDEN) if chunked else HIDDEN
    offer += b"Transfer-Encoding: chunked" if chunked else b"Content-Length: %d" % len(body)
    found = b""
    with socket.create_connection(address, timeout=20) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for part in (offer + b"\r\n\r\n", body + offer + b"\r\n\r\n" + body + LAST):
            connection.sendall(part)
            time.sleep(pause)
        while piece := connection.recv(65_536):
            found += piece
    assert statuses(found) == [200, 200, 200]
    sizes = [part.rpartition(b"\r\n")[2] for part in found.split(b"HTTP/1.1 200 OK")[1:]]
    assert sizes == [b"%d" % len(HIDDEN)] * 2 + [b"0"]


def test_a_refusal_does_not_get_into_the_reply_to_another_request(address):
    for bad in (b"GET /" + b"x" * 2 * MOST_HEAD, b"no request\r\n\r\n"):
        with socket.create_connection(address, timeout=20) as connection:
            connection.sendall(b"GET /drip HTTP/1.1\r\nHost: desk\r\n\r\n")
            found = connection.recv(65_536)
            connection.sendall(bad)
            while piece := connection.recv(65_536):
                found += piece
        assert statuses(found) == [200]
        assert found.count(b"part ") == 10
        assert b"Refused" not in found


GOOD = LINE + b"Content-Length: 3\r\n\r\nabc"


@pytest.mark.parametrize(
    ("bad", "expected"),
    [
        (b"no request " + SECRET + b"\r\n\r\n", [200, 200]),
        (CHUNKED + SECRET, [200, 200, 400]),
    ],
    ids=["no request", "bad chunk"],
)
def test_a_request_is_answered_even_if_bad_bytes_follow(address, bad, expected):
    with warnings() as logged:
        found = replies(address, [GOOD + GOOD + bad])
    assert statuses(found) == expected
    assert found.count(b"\r\n\r\n3") == 2
    (line,) = logged
    assert line.facts == {"status": 400}
    assert SECRET.decode() not in repr(vars(line))


def test_what_follows_the_last_request_is_ignored_also_after_an_offer(address):
    offer = GOOD.replace(LINE, LINE + b"Connection: Upgrade\r\nUpgrade: h2c\r\n")
    with warnings() as logged:
        assert statuses(replies(address, [LAST + HIDDEN])) == [200]
        assert statuses(replies(address, [offer + LAST + HIDDEN])) == [200, 200]
    assert logged == []


@pytest.mark.parametrize(
    "parts",
    [[], [b"GET / HT"], [b"\r\n"], [LINE + b"X: y\r\n"]],
    ids=["nothing", "half a line", "an empty line", "half a head"],
)
def test_a_request_that_does_not_come_is_not_waited_for(address, parts, monkeypatch):
    monkeypatch.setattr(protocol, "REQUEST_SECONDS", 0.2)
    began = time.monotonic()
    # The server's usual time-out, which is for connections that were used, is five seconds.
    assert replies(address, parts) == b""
    assert time.monotonic() - began < 4


def test_a_head_in_drops_is_not_waited_for(address, monkeypatch):
    monkeypatch.setattr(protocol, "REQUEST_SECONDS", 0.3)
    over = threading.Event()

    def drops():
        yield LINE
        while not over.wait(0.05):
            yield b"X: y\r\n"

    timer = threading.Timer(4, over.set)
    timer.start()
    assert replies(address, drops()) == b""
    assert not over.is_set()
    timer.cancel()


def test_a_reply_may_take_longer_than_a_request(address, monkeypatch):
    monkeypatch.setattr(protocol, "REQUEST_SECONDS", 0.1)
    found = replies(address, [b"GET /drip HTTP/1.1\r\nHost: desk\r\n\r\n", b"GET"])
    assert found.count(b"part ") == 10


def test_a_reply_is_not_lost_although_the_client_goes_on_sending(address):
    following = [PIECE] * (lingering.LINGER_BYTES // len(PIECE) - 1)
    with socket.create_connection(address, timeout=20) as connection:
        connection.sendall(LAST)
        for part in following:
            connection.sendall(part)
        time.sleep(0.1)  # the server has closed its direction
        assert statuses(b"".join(pieces(connection))) == [200]


def test_a_client_that_never_ends_is_not_waited_for_long(address, monkeypatch):
    monkeypatch.setattr(lingering, "LINGER_SECONDS", 0.2)
    with socket.create_connection(address, timeout=20) as connection:
        connection.sendall(LAST)
        assert statuses(b"".join(pieces(connection))) == [200]

        def goes_on():
            try:
                connection.sendall(b"x")
            except OSError:
                return True
            return False

        wait_for(goes_on)


@pytest.mark.parametrize(
    "first", [LAST, LINE + b"X-Long: " + b"x" * MOST_HEAD], ids=["the last one", "a refused one"]
)
def test_a_client_that_sends_too_much_after_its_request_is_cut_off(address, first, monkeypatch):
    monkeypatch.setattr(lingering, "LINGER_SECONDS", 60.0)
    with socket.create_connection(address, timeout=20) as connection:
        connection.sendall(first)
        next(pieces(connection))
        with pytest.raises(ConnectionError):
            connection.sendall(PIECE * 5000)


def test_bytes_after_a_refusal_are_limited_while_a_reply_is_under_way():
    async def look():
        config = uvicorn.Config(Starlette(routes=ROUTES), log_config=None)
        connection, transport = GuardedHttp(config, ServerState(), {}), Transport()
        connection.connection_made(transport)
        connection._is_refused = True
        for _ in range(lingering.LINGER_BYTES // len(PIECE)):
            connection.data_received(PIECE)
        assert not transport.paused
        connection.data_received(b"x")
        assert transport.paused
        assert not transport.closing
        connection.transport.close()
        assert transport.closing
        connection.connection_lost(None)

    asyncio.run(asyncio.wait_for(look(), 5))


def test_nothing_waits_for_the_end_of_a_connection_that_is_lost():
    async def look():
        config = uvicorn.Config(Starlette(), log_config=None)
        connection = GuardedHttp(config, ServerState(), {})
        connection.connection_made(Transport())
        connection.transport.close()
        end = connection.transport._end
        assert not end.cancelled()
        connection.connection_lost(None)
        assert end.cancelled()

    asyncio.run(asyncio.wait_for(look(), 5))


def test_refused_connections_are_counted(address):
    metrics, before = Metrics(), REFUSED[431]
    metrics.watch_refused(REFUSED)
    replies(address, [LINE + b"X-Long: " + b"x" * MOST_HEAD])
    wanted = f'deferlearn_desk_refused_connections_total{{status="431"}} {before + 1}.0'
    assert wanted in metrics.text().decode()


GET_LARGE = b"GET /large HTTP/1.1\r\nHost: desk\r\n"


@pytest.mark.parametrize("closes", [False, True])
def test_a_client_that_does_not_read_is_cut_off(closes, monkeypatch):
    monkeypatch.setattr(protocol, "REQUEST_SECONDS", 0.2)
    ended, lost = threading.Event(), GuardedHttp.connection_lost
    monkeypatch.setattr(
        GuardedHttp, "connection_lost", lambda self, exc: (lost(self, exc), ended.set())
    )
    limited = LimitBodies(Starlette(routes=ROUTES), most_bytes=1000, most_levels=8)
    with served(limited) as url:
        host, _, port = url.removeprefix("http://").partition(":")
        with socket.create_connection((host, int(port)), timeout=20) as connection:
            if closes:
                connection.sendall(GET_LARGE + b"Connection: close\r\n\r\n")
            else:
                connection.sendall(GET_LARGE + b"\r\n" + GOOD)
                wait_for(lambda: limited.held == 3)
                wait_for(lambda: limited.held == 0)
            assert ended.wait(5)
            assert sum(map(len, pieces(connection))) < len(LARGE)


def wait_for(condition):
    until = time.monotonic() + 5
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.005)


class Transport(asyncio.Transport):
    """One whose client takes as much as the test says."""

    unsent = 0
    aborted = closing = paused = False

    def get_write_buffer_size(self):
        return self.unsent

    def is_closing(self):
        return self.closing

    def close(self):
        self.closing = True

    def abort(self):
        self.aborted = True

    def write_eof(self):
        pass

    def pause_reading(self):
        self.paused = True

    def resume_reading(self):
        self.paused = False

    def get_extra_info(self, name, default=None):
        return default


@pytest.mark.parametrize("closes", [False, True])
def test_a_client_that_reads_slowly_is_not_cut_off(closes, monkeypatch):
    monkeypatch.setattr(protocol, "REQUEST_SECONDS", 0.01)

    async def look():
        config = uvicorn.Config(Starlette(), log_config=None)
        connection, transport = GuardedHttp(config, ServerState(), {}), Transport()
        connection.connection_made(transport)
        connection._clear_deadline()
        transport.unsent = 1000
        if closes:
            connection.shutdown()
        else:
            connection.pause_writing()
        for transport.unsent in range(999, 989, -1):
            seen = connection._next_look
            while connection._next_look is seen:
                await asyncio.sleep(0.001)
            assert not transport.aborted
        connection.resume_writing()
        await asyncio.sleep(0.05)
        assert transport.aborted == closes

    asyncio.run(asyncio.wait_for(look(), 5))
