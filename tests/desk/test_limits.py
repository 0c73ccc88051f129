"""Bodies that are too large, deep or slow, and clients that ask too often, are refused."""

import asyncio

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from deferlearn.desk.limits import LimitBodies, LimitRates, Rates, is_deep
from desk_client import TestClient

MOST_BYTES, MOST_LEVELS = 1000, 8


async def echo(request: Request) -> JSONResponse:
    return JSONResponse({"size": len(await request.body())})


@pytest.fixture
def client():
    app = Starlette(routes=[Route("/", echo, methods=["GET", "POST"])])
    app.add_middleware(LimitBodies, most_bytes=MOST_BYTES, most_levels=MOST_LEVELS)
    with TestClient(app) as client:
        yield client


@pytest.mark.parametrize(("size", "status"), [(0, 200), (MOST_BYTES, 200), (MOST_BYTES + 1, 413)])
@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_has_a_largest_size_announced_or_not(client, size, status, chunked):
    body = b"x" * size
    answer = client.post("/", content=iter([body[:500], body[500:]]) if chunked else body)
    assert answer.status_code == status
    if status == 200:
        assert answer.json() == {"size": size}
    else:
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.json()["status"] == 413
        assert "1000 bytes" in answer.json()["detail"]


def test_a_deep_body_is_refused_before_it_is_parsed(client):
    assert client.post("/", content=b"[" * MOST_LEVELS + b"]" * MOST_LEVELS).status_code == 200
    answer = client.post("/", content=b"[" * (MOST_LEVELS + 1))
    assert answer.status_code == 400
    assert "8 levels" in answer.json()["detail"]


def test_a_file_is_not_taken_for_deep_json(client):
    headers = {"content-type": "application/octet-stream"}
    assert client.post("/", content=b"[" * 100, headers=headers).status_code == 200


@pytest.mark.parametrize(
    ("body", "deep"),
    [
        (b'{"a": "[[[[[[[[[["}', False),
        (b'{"a": "\\"[[[[[[[[[["}', False),
        (b'{"a": "\\\\", "b": [[[[[[[[]]]]]]]]}', True),
        (b"[1],[1],[1],[1],[1]", False),
        (b'{"a": {"b": {"c": {"d": {}}}}}', True),
        (b'"unfinished [[[[[[', False),
    ],
)
def test_depth_counts_brackets_outside_of_strings(body, deep):
    assert is_deep(body, 4) is deep


def test_a_long_string_of_escapes_takes_no_time():
    # A pattern that tries all ways to split this would never end.
    assert not is_deep(b'"' + b"\\" * 200_001 + b"[" * 100, 10)


def test_a_request_without_a_body_passes(client):
    assert client.get("/").json() == {"size": 0}


def send_slowly(messages):
    """The status that a client gets whose messages arrive like this; None if it gets no answer."""
    sent = []
    called = []

    async def inner(scope, receive, send):
        called.append(True)

    async def receive():
        message = messages.pop(0)
        if message is None:
            await asyncio.sleep(60)
        return message

    async def send(message):
        sent.append(message)

    scope = {"type": "http", "method": "POST", "headers": [(b"content-length", b"10")]}
    app = LimitBodies(inner, MOST_BYTES, MOST_LEVELS, seconds=0.05)
    asyncio.run(app(scope, receive, send))
    return (sent[0]["status"] if sent else None), bool(called)


def test_a_body_that_does_not_come_is_not_waited_for():
    start = {"type": "http.request", "body": b"half", "more_body": True}
    assert send_slowly([start, None]) == (408, False)


def test_half_a_body_is_never_taken_for_the_whole():
    start = {"type": "http.request", "body": b"half", "more_body": True}
    assert send_slowly([start, {"type": "http.disconnect"}]) == (None, False)


def test_bodies_that_are_here_at_once_do_not_fill_the_memory():
    held, statuses = [], []

    async def inner(scope, receive, send):
        while not finish.is_set():
            await asyncio.sleep(0.001)

    async def one(app):
        async def receive():
            return {"type": "http.request", "body": b"x" * MOST_BYTES}

        async def send(message):
            statuses.append(message.get("status"))

        scope = {"type": "http", "method": "POST", "headers": [(b"content-length", b"9")]}
        await app(scope, receive, send)

    async def run():
        app = LimitBodies(inner, MOST_BYTES, MOST_LEVELS)
        others = [asyncio.create_task(one(app)) for _ in range(30)]
        await asyncio.sleep(0.05)
        held.append(app.held)
        finish.set()
        await asyncio.gather(*others)
        held.append(app.held)

    finish = asyncio.Event()
    asyncio.run(run())
    assert held == [20 * MOST_BYTES, 0]
    assert statuses.count(503) == 10


def test_rates_refill_steadily_and_clients_do_not_share_them():
    time = [0.0]
    rates = Rates(10.0, 5.0, clock=lambda: time[0])
    assert [rates.wait("a") == 0.0 for _ in range(7)] == [True] * 5 + [False] * 2
    assert rates.wait("b") == 0.0
    time[0] = 0.3
    assert [rates.wait("a") == 0.0 for _ in range(4)] == [True] * 3 + [False]


def test_many_clients_do_not_fill_the_memory():
    rates = Rates(1.0, 2.0, clock=lambda: 0.0)
    for number in range(25_000):
        rates.wait(str(number))
    assert len(rates._buckets) <= 10_000


def test_a_client_that_asks_too_often_is_told_when_to_come_back():
    app = Starlette(routes=[Route("/", echo)])
    app.add_middleware(LimitRates, rates=Rates(0.5, 2.0, clock=lambda: 0.0))
    with TestClient(app) as client:
        answers = [client.get("/") for _ in range(3)]
    assert [answer.status_code for answer in answers] == [200, 200, 429]
    assert answers[2].headers["retry-after"] == "2"


def test_a_network_of_ipv6_asks_as_one_client():
    app = Starlette(routes=[Route("/", echo)])
    app.add_middleware(LimitRates, rates=Rates(0.5, 2.0, clock=lambda: 0.0))

    def ask(address):
        with TestClient(app, client=(address, 50_000)) as client:
            return client.get("/").status_code

    assert [ask(f"2a00::{n}") for n in range(3)] == [200, 200, 429]
    assert ask("2a00:0:0:1::") == 200
    assert [ask(f"fd00::{n}") for n in range(1, 4)] == [200] * 3
