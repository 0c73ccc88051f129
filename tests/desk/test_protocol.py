"""What is not the body of a request has a limit, whatever the parser of HTTP would take."""

from __future__ import annotations

import socket

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from deferlearn.desk.protocol import MOST_HEAD
from desk.running import served


async def size(request: Request) -> PlainTextResponse:
    return PlainTextResponse(str(len(await request.body())))


@pytest.fixture(scope="module")
def address():
    with served(Starlette(routes=[Route("/", size, methods=["GET", "POST"])])) as url:
        host, _, port = url.removeprefix("http://").partition(":")
        yield host, int(port)


def replies(address, parts):
    """All that the server answers to these parts, until it closes the connection."""
    with socket.create_connection(address, timeout=20) as connection:
        received = b""
        try:
            for part in parts:
                connection.sendall(part)
        except OSError:
            pass  # it was closed meanwhile
        try:
            while piece := connection.recv(65_536):
                received += piece
        except ConnectionResetError:
            pass
        return received


LINE = b"POST / HTTP/1.1\r\nHost: desk\r\n"
CHUNKED = LINE + b"Transfer-Encoding: chunked\r\n\r\n"
PIECE = b"x" * 16_384


@pytest.mark.parametrize(
    "parts",
    [
        [LINE + b"X-Long: ", *[PIECE] * 200],
        [LINE, *[b"X-%d: %s\r\n" % (n, b"y" * 1000) for n in range(3000)]],
        [b"GET /", *[PIECE] * 200],
        [CHUNKED + b"1\r\nz\r\n0\r\nX-Trailer: ", *[PIECE] * 200],
        [CHUNKED + b"1;", *[PIECE] * 200],
    ],
    ids=["one header", "many headers", "address", "trailer", "extension of a chunk"],
)
def test_what_does_not_end_is_refused(address, parts):
    found = replies(address, parts)
    # The reply may be lost if the client sends on without reading.
    assert b" 200 " not in found
    assert found == b"" or found.startswith((b"HTTP/1.1 431", b"HTTP/1.1 400"))


def test_the_refusal_can_be_read(address):
    found = replies(address, [LINE + b"X-Long: " + b"x" * MOST_HEAD])
    assert found.startswith(b"HTTP/1.1 431")
    head, _, body = found.partition(b"\r\n\r\n")
    assert b"Content-Length: %d\r\n" % len(body) in head


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
