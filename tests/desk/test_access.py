"""Who may do what over HTTP: sessions, keys, scopes, roles, other sites, guessed passwords."""

import asyncio
import shutil
import threading
from typing import Annotated

import httpx
import pytest
from fastapi import FastAPI, Request
from fastapi.exceptions import HTTPException
from sqlalchemy import insert, update

from deferlearn.desk import audit, keys, sessions, sign_in_links, users
from deferlearn.desk.api import guards
from deferlearn.desk.database import Database
from deferlearn.desk.errors import DeskError
from deferlearn.desk.permissions import ALL, PERMISSIONS, SCOPES
from deferlearn.desk.principal import Principal, require
from deferlearn.desk.refusals import refusal
from deferlearn.desk.schema import expert
from deferlearn.desk.schema import session as session_table
from deferlearn.desk.schema import user as user_table
from deferlearn.desk.settings import Settings
from deferlearn.desk.signing import derive
from deferlearn.desk.tokens import signed
from desk.stub_desk import SECRET
from desk.test_users import PASSWORD, accept, create, invite
from desk_client import TestClient

BROWSER = {"sec-fetch-site": "same-origin"}
SETTINGS = Settings(secret=SECRET, password_passes=1, password_memory=8, max_body=10_000)


def make_app(database, settings=SETTINGS):
    """An app with the guards, and one endpoint per permission."""
    app = FastAPI()
    app.state.database, app.state.settings = database, settings
    guards.install(app)
    for router in guards.routers():
        app.include_router(router)

    @app.exception_handler(DeskError)
    def refuse(request: Request, error: DeskError):
        return refusal(error.status, str(error))

    @app.exception_handler(HTTPException)
    def answer(request: Request, error: HTTPException):
        return refusal(error.status_code, error.detail, error.headers)

    for permission in sorted(ALL):

        @app.get(f"/probe/{permission}")
        def probe(principal: Annotated[Principal, require(permission)]) -> str:
            return principal.actor

    return app


@pytest.fixture
def database(sqlite_template, tmp_path):
    """SQLite only: users, sessions, keys and throttling have tests of their own on both databases."""
    shutil.copy(sqlite_template, tmp_path / "desk.db")
    database = Database(f"sqlite:///{tmp_path / 'desk.db'}", options=audit.key_options(SECRET))
    yield database
    database.close()


@pytest.fixture
def client(database):
    with TestClient(make_app(database), headers=BROWSER) as client:
        yield client


def person(database, name="anna", role="admin", **options):
    user = create(database, name, role, **options)
    accept(database, invite(database, user.id))
    return user.id


def log_in(client, name="anna", password=PASSWORD):
    return client.post("/api/v1/session", json={"name": name, "password": password})


def allowed(client, **options):
    """The permissions whose endpoint answers; the others answer 403 for the reason given."""
    found = {p: client.get(f"/probe/{p}", **options) for p in ALL}
    assert {answer.status_code for answer in found.values()} <= {200, 403}
    for permission, answer in found.items():
        assert answer.status_code == 200 or permission in answer.json()["detail"]
    return {p for p, answer in found.items() if answer.status_code == 200}


def bearer(text):
    return {"headers": {"authorization": f"Bearer {text}"}}


def test_without_identity_nothing_is_allowed(client):
    for permission in ALL:
        answer = client.get(f"/probe/{permission}")
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"] == "Bearer"


def test_each_role_has_its_permissions_and_no_others(database, client):
    values = {"name": "Dr B", "is_arbiter": False, "is_active": True, "price": 0.0, "version": 1}
    new = insert(expert).values(values).returning(expert.c.id)
    number = database.write(lambda c: c.execute(new).scalar_one())
    person(database, "reader", "expert", expert_id=number)
    person(database, "chief", "supervisor")
    person(database, "boss", "admin")
    for name, role in (("reader", "expert"), ("chief", "supervisor"), ("boss", "admin")):
        assert log_in(client, name).status_code == 204
        assert allowed(client) == PERMISSIONS[role]
        assert client.get("/api/v1/session").json()["role"] == role
    assert PERMISSIONS["expert"] == {"answers:write"}
    assert "users:write" not in PERMISSIONS["supervisor"]
    assert "audit:read" not in PERMISSIONS["supervisor"]


def test_a_key_is_good_for_its_scopes_only(database, client):
    for scope in SCOPES:
        _, text = database.write(
            lambda c, scope=scope: keys.create(c, name=f"ris {scope}", scopes=[scope], actor="desk")
        )
        assert allowed(client, **bearer(text)) == {scope}
        assert client.get(f"/probe/{scope}", **bearer(text)).json() == f"key:ris {scope}"


def test_a_wrong_key_is_refused_even_with_a_session(database, client):
    person(database)
    log_in(client)
    assert client.get("/probe/cases:read").status_code == 200
    for header in ("Bearer x", "Bearer", "", "Basic YTpi", f"Bearer dlk_{'0' * 12}_{'x' * 43}"):
        answer = client.get("/probe/cases:read", headers={"authorization": header})
        assert answer.status_code == 401, header


def test_a_revoked_key_is_refused_at_once(database, client):
    number, text = database.write(
        lambda c: keys.create(c, name="ris", scopes=["cases:read"], actor="desk")
    )
    assert client.get("/probe/cases:read", **bearer(text)).status_code == 200
    database.write(lambda c: keys.revoke(c, number, actor="desk"))
    assert client.get("/probe/cases:read", **bearer(text)).status_code == 401


def test_who_logs_out_is_out_also_with_a_copy_of_the_cookie(database, client):
    person(database)
    log_in(client)
    copy = dict(client.cookies)
    assert client.delete("/api/v1/session").status_code == 204
    assert not client.cookies
    client.cookies.update(copy)
    assert client.get("/api/v1/session").status_code == 401


def test_a_tampered_cookie_is_refused(database, client):
    person(database)
    log_in(client)
    cookie = client.cookies["desk"]
    token, _, signature = cookie.rpartition(".")
    for forged in (token, f"{token}.{signature[:-1]}", f"{token}.{signature[::-1]}", "x"):
        client.cookies.set("desk", forged)
        assert client.get("/api/v1/session").status_code == 401
    client.cookies.clear()
    client.cookies.set("desk", cookie)
    assert client.get("/api/v1/session").status_code == 200


def test_the_cookie_is_kept_from_scripts_and_other_sites(database, client):
    person(database)
    parts = log_in(client).headers["set-cookie"].lower().split("; ")
    assert {"httponly", "samesite=lax", "path=/"} <= set(parts)
    assert "secure" not in parts  # over plain HTTP on this machine


def test_behind_tls_the_cookie_never_leaves_it(database):
    person(database)
    settings = Settings(**{**vars(SETTINGS), "public_url": "https://desk.example"})
    with TestClient(make_app(database, settings), headers=BROWSER) as client:
        cookie = log_in(client).headers["set-cookie"]
    assert cookie.startswith("__Host-desk=")
    assert "secure" in cookie.lower().split("; ")


def test_another_site_can_neither_act_for_a_user_nor_log_one_in(database, client):
    person(database)
    foreign = {"sec-fetch-site": "cross-site"}
    body = {"name": "anna", "password": PASSWORD}
    assert client.post("/api/v1/session", json=body, headers=foreign).status_code == 403
    log_in(client)
    new = {"name": "eve", "role": "admin"}
    assert client.post("/api/v1/users", json=new, headers=foreign).status_code == 403
    assert len(client.get("/api/v1/users").json()) == 1
    assert client.post("/api/v1/users", json=new).status_code == 201


def test_guessing_passwords_is_stopped(database, client):
    person(database)
    statuses = [log_in(client, password=f"guess {n}").status_code for n in range(8)]
    assert statuses == [401] * 5 + [429] * 3
    answer = log_in(client)
    assert answer.status_code == 429
    assert answer.headers["retry-after"] == "1"


def test_a_user_who_changes_the_password_must_know_the_present_one(database, client):
    person(database)
    log_in(client)
    new = "another good password"
    change = "/api/v1/session/password"
    assert client.post(change, json={"password": "x", "new_password": new}).status_code == 401
    assert client.post(change, json={"password": PASSWORD, "new_password": "x"}).status_code == 422
    right = {"password": PASSWORD, "new_password": new}
    assert client.post(change, json=right).status_code == 204
    assert client.get("/api/v1/session").status_code == 401
    assert log_in(client, password=new).status_code == 204


def test_guessing_the_present_password_in_a_session_is_stopped_too(database, client):
    person(database)
    log_in(client)
    body = {"password": "x", "new_password": "another good password"}
    answers = [client.post("/api/v1/session/password", json=body) for _ in range(7)]
    assert [answer.status_code for answer in answers] == [401] * 5 + [429] * 2


def test_a_key_has_no_password(database, client):
    _, text = database.write(
        lambda c: keys.create(c, name="ris", scopes=["cases:read"], actor="desk")
    )
    body = {"password": "x", "new_password": "another good password"}
    answer = client.post("/api/v1/session/password", json=body, **bearer(text))
    assert answer.status_code == 403


def test_an_invitation_is_accepted_once(database, client):
    user = create(database)
    token = invite(database, user.id)
    body = {"token": token, "password": PASSWORD}
    assert client.post("/api/v1/invitations", json=body).status_code == 204
    answer = client.post("/api/v1/invitations", json=body)
    assert answer.status_code == 422
    assert "was used" in answer.json()["detail"]
    assert log_in(client).status_code == 204


def test_an_administrator_makes_changes_and_logs_out_users(database, client):
    person(database)
    log_in(client)
    made = client.post("/api/v1/users", json={"name": "bob", "role": "supervisor"}).json()
    assert made["link"].startswith("http://127.0.0.1:8470/welcome#")
    bob = f"/api/v1/users/{made['user']['id']}"
    users.accept(
        database,
        made["link"].partition("#")[2],
        PASSWORD,
        secret=SECRET,
        passwords=client.app.state.passwords,
    )
    with TestClient(client.app, headers=BROWSER) as other:
        log_in(other, "bob")
        assert other.get("/api/v1/session").status_code == 200
        assert client.delete(f"{bob}/sessions").status_code == 204
        assert other.get("/api/v1/session").status_code == 401
    assert client.patch(bob, json={"role": "admin"}).status_code == 428
    version = next(u["version"] for u in client.get("/api/v1/users").json() if u["name"] == "bob")
    old, new = ({"if-match": f'"{number}"'} for number in (version - 1, version))
    assert client.patch(bob, json={"role": "admin"}, headers=old).status_code == 412
    assert client.patch(bob, json={"role": "admin"}, headers={"if-match": "x"}).status_code == 412
    changed = client.patch(bob, json={"role": "admin"}, headers=new)
    assert changed.json()["role"] == "admin"
    assert changed.headers["etag"] == f'"{version + 1}"'
    again = client.post(f"{bob}/invitation").json()
    assert again["user"]["has_password"] is False
    assert again["link"] != made["link"]
    assert client.delete("/api/v1/users/99/sessions").status_code == 404


def test_keys_are_made_listed_and_revoked_by_administrators(database, client):
    person(database)
    log_in(client)
    made = client.post("/api/v1/keys", json={"name": "ris", "scopes": ["cases:read"]}).json()
    assert client.get("/probe/cases:read", **bearer(made["key"])).status_code == 200
    listed = client.get("/api/v1/keys")
    assert made["key"] not in listed.text
    assert [(key["id"], key["scopes"]) for key in listed.json()] == [(made["id"], ["cases:read"])]
    assert client.delete(f"/api/v1/keys/{made['id']}").status_code == 204
    assert client.get("/probe/cases:read", **bearer(made["key"])).status_code == 401
    wrong = client.post("/api/v1/keys", json={"name": "ris", "scopes": ["users:write"]})
    assert wrong.status_code == 422


def test_bodies_have_a_limit_before_anyone_is_asked_who_they_are(client):
    answer = client.post("/api/v1/session", content=b"x" * 10_001)
    assert answer.status_code == 413
    deep = client.post("/api/v1/session", content=b"[" * 40)
    assert deep.status_code == 400


def test_an_address_may_not_ask_without_end(database):
    settings = Settings(**{**vars(SETTINGS), "requests_per_second": 1})
    with TestClient(make_app(database, settings), headers=BROWSER) as client:
        statuses = [client.get("/healthz").status_code for _ in range(12)]
    assert statuses[:10] == [200] * 10
    assert statuses[-1] == 429


def test_health_needs_nothing_and_readiness_a_database_with_a_model(client, database, monkeypatch):
    assert client.get("/healthz").json() == {"status": "alive"}
    answer = client.get("/readyz")
    assert answer.status_code == 503
    assert "No model is active" in answer.json()["detail"]


def test_a_server_whose_threads_all_wait_for_the_database_is_alive(database, monkeypatch):
    back = threading.Event()

    def has_model(database):
        assert back.wait(20)
        return True

    monkeypatch.setattr("deferlearn.desk.state.has_model", has_model)
    transport = httpx.ASGITransport(make_app(database))

    async def ask():
        async with httpx.AsyncClient(transport=transport, base_url="http://desk") as asking:
            waiting = [asyncio.create_task(asking.get("/readyz")) for _ in range(50)]
            try:
                alive = await asyncio.wait_for(asking.get("/healthz"), 5)
            finally:
                back.set()
            return alive.status_code, {one.status_code for one in await asyncio.gather(*waiting)}

    assert asyncio.run(ask()) == (200, {200})


def test_measurements_are_for_those_who_may_read_them(database, client):
    assert client.get("/metrics").status_code == 401
    _, text = database.write(
        lambda c: keys.create(c, name="prometheus", scopes=["metrics:read"], actor="desk")
    )
    answer = client.get("/metrics", **bearer(text))
    assert answer.status_code == 200
    assert "deferlearn_desk_readings_waiting 0.0" in answer.text
    assert "deferlearn_desk_audit_entries 1.0" in answer.text
    assert 'route="/metrics",status="401"' in answer.text


def test_an_endpoint_cannot_ask_for_a_permission_that_nobody_has():
    with pytest.raises(ValueError, match="cases:wirte"):
        require("cases:wirte")


def test_a_link_signs_a_user_in_once(database, client):
    user = person(database)
    token = database.write(lambda c: sign_in_links.create(c, user, actor="test"))
    client.cookies.set("desk", signed(derive(SECRET, "cookie"), token))
    assert client.get("/api/v1/session").status_code == 401, "a link is not a cookie"
    client.cookies.clear()
    assert client.post("/api/v1/session/link", json={"token": token}).status_code == 204
    assert client.get("/api/v1/session").json()["name"] == "anna"
    again = client.post("/api/v1/session/link", json={"token": token})
    assert (again.status_code, "was used" in again.json()["detail"]) == (422, True)
    assert log_in(client).status_code == 204, "the password stays as it was"


@pytest.mark.parametrize("end", ["old", "revoked", "off"])
def test_a_link_ends_with_its_time_and_its_user(database, client, end):
    user = person(database)
    token = database.write(lambda c: sign_in_links.create(c, user, actor="test"))
    past = update(session_table).values(expires_at=1)
    off = update(user_table).values(is_active=False)
    database.write(
        lambda c: (
            sessions.revoke_all(c, user)
            if end == "revoked"
            else c.execute(past if end == "old" else off).rowcount
        )
    )
    assert client.post("/api/v1/session/link", json={"token": token}).status_code == 422
    assert client.get("/api/v1/session").status_code == 401
