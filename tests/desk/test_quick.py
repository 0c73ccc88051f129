"""The short way of frequent requests: it answers as the endpoints do, and stores together what waits."""

import json
import shutil
import threading
import time
from concurrent.futures import CancelledError

import pytest

from deferlearn.desk import audit, keys
from deferlearn.desk.api import cases, queue
from deferlearn.desk.api import together as module
from deferlearn.desk.api.cases import NewCase
from deferlearn.desk.api.quick import Quick
from deferlearn.desk.api.together import Asked, Together
from deferlearn.desk.database import Database, DatabaseUnavailable
from deferlearn.desk.logs import request_id
from deferlearn.desk.permissions import SCOPES
from deferlearn.desk.schema import audit_log, case
from desk.stub_desk import SECRET, rows, stub_desk
from desk.test_api import client_of

JSON = {"Content-Type": "application/json"}
# What changes from one reply to the other of the same requests.
FLEETING = ("token", "until", "at", "received_at", "answered_at")


@pytest.fixture
def passed_on(monkeypatch):
    """The addresses of requests that did not take the short way."""
    found, begin = [], Quick.__init__

    def init(self, app, desk):
        async def noted(scope, receive, send):
            found.append(scope.get("path"))
            await app(scope, receive, send)

        begin(self, noted, desk)

    monkeypatch.setattr(Quick, "__init__", init)
    return found


def make_key(desk, name, scopes=tuple(SCOPES)):
    return desk.database.write(
        lambda connection: keys.create(connection, name=name, scopes=scopes, actor="test")
    )


def plain(content):
    """A reply without what is never the same twice."""
    if isinstance(content, list):
        return [plain(one) for one in content]
    if isinstance(content, dict):
        return {name: plain(one) for name, one in content.items() if name not in FLEETING}
    return content


def all_replies(desk):
    """Requests of every kind, in and out of order, and what is replied to them."""
    client = client_of(desk)
    _, reader = make_key(desk, "reader", ["cases:read"])
    found = []

    def post(path, body, **headers):
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        reply = client.post(path, content=content, headers={**JSON, **headers})
        names = {name: one for name, one in reply.headers.items() if name != "x-request-id"}
        names.pop("content-length", None)
        found.append((reply.status_code, names, plain(reply.json() if reply.content else None)))
        return reply

    at = "/api/v1/cases"
    good = {"id": "a", "fields": {"gain": 1, "x": None, "y": "\u00e9", "z": 0.5}}
    for body in (
        good,
        good,
        {**good, "fields": {"gain": 2}},
        {"id": "b", "fields": {"gain": -1}},
        {"id": "\x00", "fields": {"gain": 1}},
        {"id": "c", "fields": {"x": "y" * 30_000}},
        {"id": "c"},
        {"id": 1, "fields": {}},
        {**good, "more": 1},
        [good, {"id": "d", "fields": {"gain": 1}}],
        [],
        None,
        b"{",
        b"\xff",
        b"",
        b'{"id": "e", "fields": {"gain": NaN}}',
    ):
        post(at, body)
    new = {"id": "f", "fields": {"gain": 1}}
    post(at, new, **{"Content-Type": "text/plain"})
    for key in ("nonsense", "Bearer nonsense", f"Bearer {reader}", "Basic abc"):
        post(at, new, Authorization=key)
    post(at, new, **{"Sec-Fetch-Site": "cross-site"})
    post(f"{at}?x=1", new, **{"Content-Type": "application/json; charset=utf-8"})
    at = "/api/v1/queue"
    for body in ({}, {"expert": 0}, {"expert": "1"}, {"expert": 99}, {"expert": 1, "more": 1}):
        post(f"{at}/next", body)
    post(f"{at}/next", {"expert": 1}, Authorization=f"Bearer {reader}")
    lease = post(f"{at}/next", {"expert": 1}).json()
    held, number = {"token": lease["token"]}, lease["reading"]
    for place in (number, "0", "-1", "007", "1" * 30, "99", "x"):
        post(f"{at}/{place}/answer", {"token": "wrong", "answer": "ill"})
    for body in (held, {**held, "answer": "purple"}, {**held, "answer": "ill", "note": "\x00"}):
        post(f"{at}/{number}/answer", body)
    post(f"{at}/{number}/answer", {**held, "answer": "ill"}, Authorization=f"Bearer {reader}")
    for value in ("ill", "ill", "well"):
        post(f"{at}/{number}/answer", {**held, "answer": value})
    for expert in (1, 2, 1, 3):
        post(f"{at}/next", {"expert": expert})
    return found


def test_replies_are_those_of_the_endpoints(sqlite_template, tmp_path, monkeypatch):
    found = []
    for way in ("quick", "long"):
        shutil.copy(sqlite_template, tmp_path / f"{way}.db")
        database = Database(f"sqlite:///{tmp_path / way}.db", options=audit.key_options(SECRET))
        if way == "long":
            monkeypatch.setattr(Quick, "_way_of", lambda self, scope: (None, 0))
        found.append(all_replies(stub_desk(database, {"Ann": None, "Bob": None, "Cid": 0})))
        database.close()
    for short, long in zip(*found, strict=True):
        assert short == long
    assert {reply[0] for reply in found[0]} >= {200, 201, 204, 400, 401, 403, 404, 409, 422}


def test_requests_in_order_take_the_short_way_and_are_counted(database, passed_on):
    desk = stub_desk(database, {"Ann": None})
    client = client_of(desk)
    reply = client.post("/api/v1/cases", json={"id": "a", "fields": {"gain": 1}})
    assert reply.status_code == 201
    lease = client.post("/api/v1/queue/next", json={"expert": 1}).json()
    body = {"token": lease["token"], "answer": "ill"}
    assert client.post(f"/api/v1/queue/{lease['reading']}/answer", json=body).status_code == 200
    assert client.post("/api/v1/queue/next", json={"expert": 1}).status_code == 204
    assert passed_on == []
    metrics = client.get("/metrics").text
    for route, status in (
        ("/api/v1/cases", 201),
        ("/api/v1/queue/next", 200),
        ("/api/v1/queue/{reading}/answer", 200),
    ):
        assert f'method="POST",route="{route}",status="{status}"}} 1.0' in metrics


def test_a_revoked_key_opens_nothing_at_once(database):
    desk = stub_desk(database, {"Ann": None})
    client = client_of(desk)
    number, key = make_key(desk, "other")
    client.headers["Authorization"] = f"Bearer {key}"
    assert client.post("/api/v1/cases", json={"id": "a", "fields": {"gain": 1}}).status_code == 201
    database.write(lambda connection: keys.revoke(connection, number, actor="test"))
    for path, body in (
        ("/api/v1/cases", {"id": "b", "fields": {"gain": 1}}),
        ("/api/v1/queue/next", {"expert": 1}),
        ("/api/v1/queue/1/answer", {"token": "x", "answer": "ill"}),
    ):
        assert client.post(path, json=body).status_code == 401
    assert len(rows(desk, case)) == 1


def test_a_database_that_cannot_be_used_is_told(sqlite_desk, monkeypatch):
    client = client_of(sqlite_desk)

    def fail(function):
        raise DatabaseUnavailable("The database cannot be used now: gone")

    monkeypatch.setattr(sqlite_desk.database, "write", fail)
    for path, body in (
        ("/api/v1/cases", {"id": "a", "fields": {"gain": 1}}),
        ("/api/v1/queue/next", {"expert": 1}),
    ):
        reply = client.post(path, json=body)
        assert (reply.status_code, reply.headers["retry-after"]) == (503, "5")


def test_nobody_waits_twice_to_learn_of_an_outage(sqlite_desk, passed_on, monkeypatch):
    client = client_of(sqlite_desk)
    looks = []

    def fail():
        looks.append(1)
        raise DatabaseUnavailable("The database cannot be used now: gone")

    monkeypatch.setattr(sqlite_desk.database, "reading", fail)
    for path, body in (
        ("/api/v1/cases", {"id": "a", "fields": {"gain": 1}}),
        ("/api/v1/queue/next", {"expert": 1}),
    ):
        reply = client.post(path, json=body)
        assert (reply.status_code, reply.headers["retry-after"]) == (503, "5")
    assert (len(looks), passed_on) == (2, [])


def test_what_cannot_be_a_key_does_not_wait_for_its_turn(sqlite_desk, monkeypatch):
    client = client_of(sqlite_desk)

    def fail(self, asked):
        raise AssertionError

    monkeypatch.setattr(Together, "send", fail)
    client.headers["Authorization"] = "Bearer nonsense"
    assert client.post("/api/v1/cases", json={"id": "a", "fields": {"gain": 1}}).status_code == 401


def test_the_id_of_a_request_is_known_where_it_is_answered(sqlite_desk, monkeypatch):
    client, found = client_of(sqlite_desk), []
    lease = queue.next_case

    def noted(*arguments):
        found.append(request_id.get())
        return lease(*arguments)

    monkeypatch.setattr(queue, "next_case", noted)
    client.post("/api/v1/queue/next", json={"expert": 1}, headers={"X-Request-ID": "mine"})
    assert found == ["mine"]


@pytest.fixture
def together(database):
    return Together(stub_desk(database, {"Ann": None}))


def waiting(together, asked, before=None):
    """Let cases wait at the same time; their replies, as far as there are any."""
    begin = threading.Event()
    together._thread.submit(begin.wait)
    replies = [together.send(one) for one in asked]
    if before is not None:
        before(replies)
    begin.set()
    return replies


def case_of(key, case_id, **fields):
    return Asked(key, NewCase(id=case_id, fields=fields or {"gain": 1}))


def test_cases_that_wait_are_stored_in_one_transaction(together, monkeypatch):
    desk = together.desk
    one, two = make_key(desk, "one")[1], make_key(desk, "two")[1]
    reader = make_key(desk, "reader", ["cases:read"])[1]
    keys.find(desk.database, one), keys.find(desk.database, two)  # their use is noted already
    keys.find(desk.database, reader)
    transactions, write = [], desk.database.write
    monkeypatch.setattr(desk.database, "write", lambda job: (transactions.append(1), write(job))[1])
    asked = [
        case_of(one, "a"),
        case_of(two, "b"),
        case_of("nonsense", "c"),
        case_of(reader, "d"),
        case_of(two, "a"),
        case_of(two, "b", gain=-1),
        case_of(one, "e", x="y" * 30_000),
        case_of(one, "f"),
    ]
    replies = [reply.result(20) for reply in waiting(together, asked)]
    assert len(transactions) == 1
    found = [None if one is None else one.response.status_code for one in replies]
    assert found == [201, 201, None, None, 200, 409, 422, 201]
    assert [row.source for row in rows(desk, case)] == ["key:one", "key:two", "key:one"]
    assert len(rows(desk, audit_log, action="case.arrived")) == 3
    with desk.database.reading() as connection:
        assert audit.verify(connection, SECRET).faults == []


def test_a_defect_at_one_case_does_not_refuse_the_others(together):
    desk, (_, key) = together.desk, make_key(together.desk, "one")
    judge = desk._judges[1].judge

    def broken(fields):
        return judge(fields) if "gain" in fields else 1 / 0

    desk._judges[1].judge = broken
    first, second, third = waiting(
        together, [case_of(key, "a"), case_of(key, "b", x=1), case_of(key, "c")]
    )
    assert first.result(20).response.status_code == third.result(20).response.status_code == 201
    with pytest.raises(ZeroDivisionError):
        second.result(20)


def test_a_request_that_is_cancelled_before_its_turn_is_not_stored(together):
    _, key = make_key(together.desk, "one")
    first, second = waiting(
        together, [case_of(key, "a"), case_of(key, "b")], lambda replies: replies[0].cancel()
    )
    assert second.result(20).response.status_code == 201
    with pytest.raises(CancelledError):
        first.result(20)
    assert [row.id for row in rows(together.desk, case)] == ["b"]


def test_a_case_that_comes_alone_waits_for_nothing(together, monkeypatch):
    monkeypatch.setattr(module, "PAUSE", 3600.0)
    _, key = make_key(together.desk, "one")
    for case_id in "abc":
        assert together.send(case_of(key, case_id)).result(20).response.status_code == 201


def test_after_several_cases_more_may_come_together(together, monkeypatch):
    monkeypatch.setattr(module, "PAUSE", 0.5)
    _, key = make_key(together.desk, "one")
    begin = time.monotonic()
    for reply in waiting(together, [case_of(key, "a"), case_of(key, "b")]):
        assert reply.result(20).response.status_code == 201
    assert together.send(case_of(key, "c")).result(20).response.status_code == 201
    assert time.monotonic() - begin >= 0.5


@pytest.mark.parametrize("place", ["of_key", "arrive_together"])
def test_all_who_wait_in_an_outage_are_told_at_once(together, monkeypatch, place):
    _, key = make_key(together.desk, "one")
    tries = []

    def fail(*arguments):
        tries.append(1)
        raise DatabaseUnavailable("The database cannot be used now: gone")

    with monkeypatch.context() as patch:
        patch.setattr(module, place, fail)
        asked = [case_of(key, f"case {n}") for n in range(3 * module.CHUNK)]
        replies = [reply.result(20).response for reply in waiting(together, asked)]
    assert len(tries) == 1
    assert {reply.status_code for reply in replies} == {503}
    assert together.send(case_of(key, "a")).result(20).response.status_code == 201


def test_cases_that_are_stored_are_not_called_known_because_of_a_defect(together, monkeypatch):
    _, key = make_key(together.desk, "one")
    show = cases.shown_arrived

    def fails_once(*arguments):
        monkeypatch.setattr(cases, "shown_arrived", show)
        return 1 / 0

    monkeypatch.setattr(cases, "shown_arrived", fails_once)
    for reply in waiting(together, [case_of(key, "a"), case_of(key, "b")]):
        with pytest.raises(ZeroDivisionError):
            reply.result(20)
    assert len(rows(together.desk, case)) == 2
