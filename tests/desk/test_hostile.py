"""Two hundred hostile inputs: each is refused, or stored as it is and does no harm."""

import json

import pytest

from deferlearn.desk.schema import case
from desk.stub_desk import count, rows, stub_desk
from desk.test_api import client_of

TEXTS = [
    "'; DROP TABLE case_; --",
    '" OR 1=1 --',
    "1); DELETE FROM answer; --",
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "{{7*7}} ${7*7} <%= 7 %>",
    "=cmd|' /C calc'!A0",
    "../../../../etc/passwd",
    "..\\..\\windows",
    "%00%2e%2e%2f",
    "a\x00b",
    "a\x01\x1b[31m",
    "\u202egnp.exe",
    "\ud800",
    "\udfff\ud800",
    "\ufeff\uffff\u0000",
    "a" * 30_000,
    "\U0001f600" * 300,
    "\r\nSet-Cookie: a=b",
    "NaN",
    "%s%n%p",
    "null",
    "-0",
    "1e999",
    "\\u0000",
]
VALUES = [
    float("nan"),
    float("inf"),
    -float("inf"),
    10**30,
    -(10**30),
    1e308,
    5e-324,
    -0.0,
    2**53,
    True,
    None,
    [],
    [[]],
    {},
    {"a": {"b": 1}},
    [1, 2],
    "",
    "\t",
]
BODIES = [
    b"",
    b"{",
    b"null",
    b"[]",
    b"[[]]",
    b"0",
    b'"text"',
    b"\xff\xfe",
    b"\x00" * 100,
    b"[" * 10_000,
    b'{"id":' * 5_000,
    b'{"id":"a","fields":{"gain":1e}}',
    b'{"id":"a","fields":{"gain":' + b"9" * 5000 + b"}}",
    b'{"id":"a","id":"b","fields":{"gain":0}}',
    b'{"id":1,"fields":{"gain":0}}',
    b'{"id":null,"fields":{"gain":0}}',
    b'{"id":"a","fields":[]}',
    b'{"id":"a","fields":null}',
    b'{"id":"a","fields":{"gain":0},"state":"answered"}',
    b'{"id":"a","fields":{"gain":0},"__proto__":{}}',
    b'[{"id":"a"}]',
    b'[{"id":"a","fields":{"gain":0}},null]',
    b"<xml/>",
    b"x" * 6_000_000,
]


def sends():
    """All requests: addresses and bodies."""
    cases = "/api/v1/cases"
    for at, text in enumerate(TEXTS):
        yield cases, json.dumps({"id": text, "fields": {"gain": 0}})
        yield cases, json.dumps({"id": f"text {at}", "fields": {"gain": 0, "x": text}})
        yield cases, json.dumps({"id": f"name {at}", "fields": {"gain": 0, text: 1}})
        yield "/api/v1/experts", json.dumps({"name": text})
        yield "/api/v1/queue/1/answer", json.dumps({"token": text, "answer": text, "note": text})
    for at, value in enumerate(VALUES):
        yield cases, json.dumps({"id": f"value {at}", "fields": {"gain": 0, "x": value}})
        yield cases, json.dumps({"id": value, "fields": {"gain": 0}})
        yield "/api/v1/queue/next", json.dumps({"expert": value})
    for body in BODIES:
        yield cases, body


def test_hostile_inputs_are_refused_or_stored_harmlessly(database):
    desk = stub_desk(database, {"Ann": None})
    client = client_of(desk, requests_per_second=10**6)
    statuses, stored = [], 0
    for path, body in sends():
        headers = {"Content-Type": "application/json"}
        reply = client.post(path, content=body, headers=headers)
        assert reply.status_code < 500, (path, body[:100], reply.text[:200])
        if reply.status_code >= 400:
            assert reply.headers["content-type"] == "application/problem+json"
        elif path == "/api/v1/cases" and reply.status_code == 201:
            stored += 1
            sent = json.loads(body)
            kept = {row.id: row.content for row in rows(desk, case, id=sent["id"])}
            assert kept == {sent["id"]: sent["fields"]}
        statuses.append(reply.status_code)
    assert len(statuses) >= 200
    assert {201, 404, 413, 422} <= set(statuses)
    assert count(desk, case) == stored
    page = client.get("/api/v1/cases", params={"limit": 1000})
    assert len(page.json()["items"]) == stored


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/cases/..%2f..%2fetc%2fpasswd",
        "/api/v1/cases/%00",
        "/api/v1/cases/%ff%fe",
        "/api/v1/cases/%ed%a0%80",
        "/api/v1/cases/a/decision/decision",
        "/api/v1/cases/'%20OR%201=1--",
        "/api/v1/cases?after=-1",
        "/api/v1/cases?after=99999999999999999999",
        "/api/v1/cases?limit=0",
        "/api/v1/cases?id=%00",
        "/api/v1/experts/99999999999999999999",
        "/api/v1/experts/-1",
        "/api/v1/models/%00",
        "/api/v1/audit?limit=100000",
    ],
)
def test_hostile_addresses_are_refused(database, path):
    client = client_of(stub_desk(database))
    assert client.get(path).status_code in (404, 422)
