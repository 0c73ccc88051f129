"""Every endpoint of the desk says whom it is for, and nobody gets at what is another one's."""

import secrets

import pytest
from sqlalchemy import select

from deferlearn.desk import keys, users
from deferlearn.desk.api.app import make_app
from deferlearn.desk.display import HIDDEN, Display, change_display, read_display
from deferlearn.desk.experts import add_expert
from deferlearn.desk.fields import digest_of
from deferlearn.desk.passwords import Passwords
from deferlearn.desk.permissions import PERMISSIONS, SCOPES
from deferlearn.desk.schema import audit_log
from deferlearn.desk.settings import Settings
from desk.stub_desk import SECRET, send
from desk_client import TestClient

PASSWORD = "four words no order"
BROWSER = {"sec-fetch-site": "same-origin"}
SETTINGS = Settings(secret=SECRET, password_passes=1, password_memory=8)
# What needs no identity: to log in, also by a link, to accept an invitation, to log out, and whether the
# server runs.
PUBLIC = {
    ("post", "/api/v1/session"),
    ("delete", "/api/v1/session"),
    ("post", "/api/v1/session/link"),
    ("post", "/api/v1/invitations"),
    ("get", "/healthz"),
    ("get", "/readyz"),
}
# What anyone with an identity may ask: who they are; and a user may change the own password.
ANYONE = {("get", "/api/v1/session"), ("post", "/api/v1/session/password")}
# The permission of each other endpoint, by the beginning of its path.
NEEDED = {
    "/api/v1/queue": "answers:write",
    "/api/v1/answers": "answers:write",
    "/api/v1/experts": "experts:write",
    "/api/v1/models": "models:write",
    "/api/v1/monitoring": "models:write",
    "/api/v1/alarms": "models:write",
    "/api/v1/shadow": "models:write",
    "/api/v1/audit": "audit:read",
    "/api/v1/webhooks": "webhooks:write",
    "/api/v1/users": "users:write",
    "/api/v1/keys": "keys:write",
    "/metrics": "metrics:read",
}


def needed(method, path):
    if path.startswith("/api/v1/cases"):
        if path.endswith("/truth"):
            return "truth:write"
        return "cases:write" if method == "post" else "cases:read"
    if path == "/api/v1/rules":
        return "experts:write" if method == "get" else "settings:write"
    return next(NEEDED[begin] for begin in NEEDED if path.startswith(begin))


def operations(app):
    """Method and path of every endpoint, with numbers in the place of names."""
    for path, methods in app.openapi()["paths"].items():
        for method in methods:
            if method in ("get", "post", "put", "patch", "delete"):
                yield method, path


def call(client, method, path, **options):
    parts = ["1" if part.startswith("{") else part for part in path.split("/")]
    body = {} if method in ("get", "delete") else {"json": {}}
    return client.request(method, "/".join(parts), **body, **options)


@pytest.fixture
def app(sqlite_desk):
    return make_app(sqlite_desk.database, SETTINGS, desk=sqlite_desk, keep=False)


@pytest.fixture
def client(app):
    return TestClient(app, headers=BROWSER, raise_server_exceptions=False)


def bearer(app, *scopes):
    name = f"program {secrets.token_hex(4)}"
    _, text = app.state.database.write(
        lambda c: keys.create(c, name=name, scopes=scopes, actor="test")
    )
    return {"headers": {"authorization": f"Bearer {text}"}}


def person(app, name, role, expert_id=None):
    """A browser in which a user is logged in."""
    database = app.state.database
    values = {"name": name, "role": role, "expert_id": expert_id, "actor": "test"}
    user = database.write(lambda c: users.create(c, **values))
    token = database.write(lambda c: users.invite(c, user.id, secret=SECRET, actor="test"))
    passwords = Passwords(1, 8)
    users.accept(database, token, PASSWORD, secret=SECRET, passwords=passwords)
    browser = TestClient(app, headers=BROWSER, raise_server_exceptions=False)
    body = {"name": name, "password": PASSWORD}
    assert browser.post("/api/v1/session", json=body).status_code == 204
    return browser


def test_every_endpoint_is_public_on_purpose_or_asks_who_it_is(app, client):
    asked = [one for one in operations(app) if one not in PUBLIC]
    assert len(asked) > 30
    for method, path in asked:
        assert call(client, method, path).status_code == 401, (method, path)


def test_a_key_with_all_other_scopes_is_refused_everywhere(app, client):
    with_all_but = {scope: bearer(app, *(set(SCOPES) - {scope})) for scope in SCOPES}
    everything = bearer(app, *SCOPES)
    for method, path in operations(app):
        if (method, path) in PUBLIC | ANYONE:
            continue
        permission = needed(method, path)
        key = with_all_but.get(permission, everything)  # no key may do what only people may
        answer = call(client, method, path, **key)
        assert answer.status_code == 403, (method, path, answer.text)
        assert permission in answer.json()["detail"]


def test_roles_get_what_is_theirs(app):
    for role, expert_id in (("expert", 1), ("supervisor", None), ("admin", None)):
        browser = person(app, role, role, expert_id)
        for method, path in operations(app):
            if (method, path) in PUBLIC | ANYONE:
                continue
            answer = call(browser, method, path)
            permission = needed(method, path)
            if permission not in PERMISSIONS[role]:
                assert answer.status_code == 403, (role, method, path)
                assert permission in answer.json()["detail"]
            elif answer.status_code == 403:  # allowed in general, but this user is no expert
                assert "is not an expert" in answer.json()["detail"], (role, method, path)


@pytest.fixture
def two(app, sqlite_desk):
    """Two experts in their browsers, and one case that the first of them holds."""
    bob = sqlite_desk.database.write(lambda c: add_expert(c, "Bob", actor="test"))
    send(sqlite_desk, "case 1", gain=0.5, answer="ill")
    first, second = person(app, "ann", "expert", 1), person(app, "bob", "expert", bob.id)
    lease = first.post("/api/v1/queue/next", json={}).json()
    return first, second, lease


def test_an_expert_gets_neither_cases_nor_answers_of_another_one(two):
    first, second, lease = two
    assert second.post("/api/v1/queue/next", json={}).status_code == 204
    assert second.post("/api/v1/queue/next", json={"expert": 1}).status_code == 403
    assert second.get("/api/v1/answers", params={"expert": 1}).status_code == 403
    at = f"/api/v1/queue/{lease['reading']}"
    for token in ("guess", lease["token"]):  # the right one does not help others either
        for action in ("renew", "pass", "release"):
            assert second.post(f"{at}/{action}", json={"token": token}).status_code == 409
        guess = {"token": token, "answer": "ill"}
        assert second.post(f"{at}/answer", json=guess).status_code == 409
    given = first.post(f"{at}/answer", json={"token": lease["token"], "answer": "ill"})
    assert given.status_code == 200
    taken_back = second.delete(f"/api/v1/answers/{given.json()['answer']}")
    assert taken_back.status_code in (403, 404)
    assert second.get("/api/v1/answers").json() == []


def test_an_expert_is_blind_to_the_machine(two):
    first, _, lease = two
    assert lease["machine_answer"] is None
    assert first.get("/api/v1/cases/case 1").status_code == 403
    assert first.get("/api/v1/cases/case 1/decision").status_code == 403
    assert "machine_answer" not in first.get("/api/v1/answers").text


def test_an_expert_cannot_tell_audits_from_other_cases(two):
    first, _, lease = two
    sent = {"token": lease["token"], "answer": "ill"}
    assert first.post(f"/api/v1/queue/{lease['reading']}/answer", json=sent).json()["final"] is None


def test_hidden_fields_do_not_reach_experts(app, two):
    first, _, lease = two
    name = next(iter(lease["fields"]))
    with app.state.database.reading() as connection:
        _, version = read_display(connection)
    app.state.database.write(
        lambda c: change_display(c, Display(kinds={name: HIDDEN}), actor="test", version=version)
    )
    again = first.post("/api/v1/queue/next", json={}).json()
    assert again["case"] == lease["case"]
    assert name not in again["fields"]


def test_the_audit_log_says_who_it_was(app, two):
    first, _, lease = two
    at = f"/api/v1/queue/{lease['reading']}"
    first.post(f"{at}/answer", json={"token": lease["token"], "answer": "ill"})
    with app.state.database.reading() as connection:
        answered = select(audit_log.c.actor).where(audit_log.c.action == "case.answered")
        assert connection.execute(answered).scalars().all() == ["user:ann"]


def test_fields_of_cases_are_not_in_the_audit_log(app, client):
    key = bearer(app, "cases:write")
    body = {"id": "case 1", "fields": {"gain": 0.5, "name": "Mrs Smith"}}
    assert client.post("/api/v1/cases", json=body, **key).status_code == 201
    with app.state.database.reading() as connection:
        entries = str(connection.execute(select(audit_log)).all())
    assert "case.arrived" in entries
    assert "Smith" not in entries
    # Nor can a guess of them be checked.
    assert digest_of(body["fields"]) not in entries
