"""The API from outside: cases, queue, experts, models, rules, the log and webhooks."""

import pytest

from deferlearn.desk import keys
from deferlearn.desk.api.app import make_app
from deferlearn.desk.database import DatabaseUnavailable
from deferlearn.desk.permissions import SCOPES
from deferlearn.desk.settings import Settings
from desk.stub_desk import SECRET, stub_desk
from desk_client import TestClient


def client_of(desk, **settings):
    """A program with a key that may do everything that keys may do."""
    given = Settings(secret=SECRET, password_passes=1, password_memory=8, **settings)
    app = make_app(desk.database, given, desk=desk, keep=False)
    _, key = desk.database.write(
        lambda connection: keys.create(connection, name="test", scopes=SCOPES, actor="test")
    )
    client = TestClient(app, raise_server_exceptions=False)
    client.headers["Authorization"] = f"Bearer {key}"
    return client


@pytest.fixture
def client(sqlite_desk):
    return client_of(sqlite_desk)


def is_problem(reply, status):
    assert reply.status_code == status, reply.text
    assert reply.headers["content-type"] == "application/problem+json"
    assert reply.json()["status"] == status
    return reply.json()["detail"]


def test_a_case_from_its_arrival_to_the_truth(database):
    client = client_of(stub_desk(database, {"Ann": None}))
    sent = {"id": "a/b c?é", "fields": {"gain": 0.4, "answer": "ill", "x": None, "y": True}}
    reply = client.post("/api/v1/cases", json=sent)
    assert reply.status_code == 201
    case = reply.json()
    assert (case["state"], case["answer"], case["created"]) == ("waiting", None, True)
    assert case["decision"]["deferred"]
    assert case["decision"]["machine_answer"] == "ill"
    again = client.post("/api/v1/cases", json=sent)
    assert again.status_code == 200
    assert again.json() == {**case, "created": False}
    other = {**sent, "fields": {"gain": 0.5}}
    assert "other content" in is_problem(client.post("/api/v1/cases", json=other), 409)

    lease = client.post("/api/v1/queue/next", json={"expert": 1}).json()
    assert (lease["case"], lease["fields"]) == (sent["id"], sent["fields"])
    assert lease["machine_answer"] is None
    held = {"token": lease["token"]}
    at = f"/api/v1/queue/{lease['reading']}"
    assert client.post(f"{at}/renew", json=held).json()["until"] >= lease["until"]
    answer = client.post(f"{at}/answer", json={**held, "answer": "well", "note": "sure"}).json()
    assert answer["final"]
    assert client.post("/api/v1/queue/next", json={"expert": 1}).status_code == 204
    assert client.get("/api/v1/answers", params={"expert": 1}).json()[0]["value"] == "well"
    assert client.delete(f"/api/v1/answers/{answer['answer']}").status_code == 204
    lease = client.post("/api/v1/queue/next", json={"expert": 1}).json()
    held, at = {"token": lease["token"]}, f"/api/v1/queue/{lease['reading']}"
    assert client.post(f"{at}/release", json=held).status_code == 204
    is_problem(client.post(f"{at}/pass", json=held), 409)
    lease = client.post("/api/v1/queue/next", json={"expert": 1}).json()
    passed = client.post(f"{at}/pass", json={"token": lease["token"]})
    assert passed.status_code == 204

    path = "/api/v1/cases/a%2Fb%20c%3F%C3%A9"
    truth = client.post(f"{path}/truth", json={"value": "well"})
    assert truth.json() == {"value": "well", "changed": True}
    found = client.get(path).json()
    assert (found["fields"], found["truth"]) == (sent["fields"], "well")
    assert (found["answer"], found["flag"]) == ("ill", "nobody could tell")
    assert client.get(f"{path}/decision").json() == case["decision"]
    actions = [entry["action"] for entry in client.get("/api/v1/audit").json()["items"]]
    assert actions[actions.index("case.arrived") :] == [
        "case.arrived",
        "case.answered",
        "answer.withdrawn",
        "case.passed",
        "truth.reported",
    ]


def test_many_cases_and_pages_of_them(database):
    client = client_of(stub_desk(database))
    many = [{"id": f"case {i}", "fields": {"gain": i % 2}} for i in range(7)]
    many[3]["fields"] = {}
    outcomes = client.post("/api/v1/cases", json=many).json()
    assert [one["status"] for one in outcomes] == [201, 201, 201, 422, 201, 201, 201]
    assert "fields" in outcomes[3]["problem"]["detail"]
    assert outcomes[1]["case"]["decision"]["deferred"]
    pages, after = [], 0
    while after is not None:
        page = client.get("/api/v1/cases", params={"after": after, "limit": 4}).json()
        pages.append([one["id"] for one in page["items"]])
        after = page["next"]
    assert [len(page) for page in pages] == [4, 2]
    waiting = client.get("/api/v1/cases", params={"state": "waiting"}).json()["items"]
    assert [one["id"] for one in waiting] == ["case 1", "case 5"]
    one = client.get("/api/v1/cases", params={"id": "case 2"}).json()["items"]
    assert [found["id"] for found in one] == ["case 2"]


def test_too_many_cases_at_once_are_refused(sqlite_desk):
    client = client_of(sqlite_desk, max_cases=3)
    many = [{"id": f"case {i}", "fields": {"gain": 0}} for i in range(4)]
    assert "the most are 3" in is_problem(client.post("/api/v1/cases", json=many), 413)
    assert client.get("/api/v1/cases").json()["items"] == []
    assert client.post("/api/v1/cases", json=many[:3]).status_code == 200


def test_experts_are_changed_only_as_they_were_seen(client):
    made = client.post("/api/v1/experts", json={"name": "Bob", "daily_limit": 5})
    assert made.status_code == 201
    bob = f"/api/v1/experts/{made.json()['id']}"
    is_problem(client.post("/api/v1/experts", json={"name": "Bob"}), 409)
    seen = client.get(bob).headers["etag"]
    is_problem(client.put(bob, json={"name": "Bob"}), 428)
    changed = client.put(bob, json={"name": "Bob", "daily_limit": 7}, headers={"If-Match": seen})
    assert changed.json()["daily_limit"] == 7
    is_problem(client.put(bob, json={"name": "Bob"}, headers={"If-Match": seen}), 412)
    taken = client.put(bob, json={"name": "Ann"}, headers={"If-Match": changed.headers["etag"]})
    is_problem(taken, 409)
    assert [one["name"] for one in client.get("/api/v1/experts").json()] == ["Ann", "Bob"]
    is_problem(client.get("/api/v1/experts/99"), 404)


def test_rules_are_for_people(client):
    assert client.get("/api/v1/rules").json()["readings"] == 1
    changed = client.patch("/api/v1/rules", json={"readings": 2}, headers={"If-Match": '"1"'})
    is_problem(changed, 403)


def test_webhooks_are_added_changed_and_removed(client):
    made = client.post(
        "/api/v1/webhooks", json={"url": "https://a.example/x", "events": ["case.answered"]}
    )
    assert made.status_code == 201
    assert len(made.json()["secret"]) > 30
    hook = f"/api/v1/webhooks/{made.json()['id']}"
    assert "secret" not in client.get(hook).json()
    state = {"url": "http://b.example", "events": ["case.reopened"], "is_active": False}
    changed = client.put(hook, json=state, headers={"If-Match": '"1"'})
    assert (changed.json()["is_active"], changed.headers["etag"]) == (False, '"2"')
    is_problem(client.put(hook, json=state, headers={"If-Match": '"1"'}), 412)
    assert len(client.get("/api/v1/webhooks").json()) == 1
    assert client.get("/api/v1/webhooks/dead").json() == {"items": [], "next": None}
    is_problem(client.post("/api/v1/webhooks/dead/1/retry"), 404)
    assert client.delete(hook).status_code == 204
    is_problem(client.delete(hook), 404)


@pytest.mark.parametrize(
    "url",
    [
        "ftp://a",
        "file:///etc/passwd",
        "https://",
        "http://u:p@a",
        "https://a:x",
        "https://a b",
        "é",
    ],
)
def test_addresses_that_are_none_are_refused(client, url):
    body = {"url": url, "events": ["case.answered"]}
    is_problem(client.post("/api/v1/webhooks", json=body), 422)


def test_a_file_that_is_no_model_is_refused(client):
    for content in (b"", b"PK\x03\x04", b"\x80\x04cos\nsystem\n"):
        reply = client.post("/api/v1/models", params={"name": "x"}, content=content)
        assert "not a model" in is_problem(reply, 422)
    assert client.get("/api/v1/models").json()["items"][0]["state"] == "active"
    is_problem(client.post("/api/v1/models/99/activate"), 404)
    assert client.post("/api/v1/models/1/activate").json()["state"] == "active"


def test_an_outage_is_told_and_nothing_is_half_written(client, sqlite_desk):
    def gone(function):
        raise DatabaseUnavailable("The database cannot be used now: disk is full")

    sqlite_desk.database.write = gone
    reply = client.post("/api/v1/cases", json={"id": "a", "fields": {"gain": 1}})
    assert "disk is full" in is_problem(reply, 503)
    assert reply.headers["retry-after"] == "5"


def test_all_errors_have_one_form(client, sqlite_desk):
    is_problem(client.get("/nowhere"), 404)
    is_problem(client.delete("/api/v1/cases"), 405)
    is_problem(client.get("/api/v1/cases/none"), 404)
    assert "fields" in is_problem(client.post("/api/v1/cases", json={"id": "a"}), 422)
    is_problem(client.post("/api/v1/cases", content=b"{"), 422)
    del client.headers["Authorization"]
    is_problem(client.get("/api/v1/cases"), 401)
