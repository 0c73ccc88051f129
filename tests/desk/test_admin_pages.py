"""The entrance and the administrator's pages: log in, users, keys, fields, rules, the log."""

import re
from dataclasses import replace

import pytest

from deferlearn.desk import keys, sessions, users
from deferlearn.desk.display import read_display
from deferlearn.desk.pages.entrance import own_path
from deferlearn.desk.rules import read_rules
from deferlearn.desk.schema import audit_log, user
from desk.page_clients import OWN, app_of, browser_of
from desk.stub_desk import SECRET, rows, send
from desk_client import TestClient

PASSWORD = "four words without sense"


@pytest.fixture
def client(sqlite_desk):
    return browser_of(app_of(sqlite_desk), sqlite_desk, "ada", "admin")


def version_in(page):
    return re.search(r'name="version" value="(\d+)"', page.text)[1]


def test_from_an_invitation_to_a_session_and_out(sqlite_desk, client):
    form = {"name": "ann", "role": "expert", "expert_id": "1"}
    page = client.post("/users", data=form)
    token = re.search(r"/welcome#([\w.-]+)", page.text)[1]
    assert "/welcome#" not in client.get("/users").text, "a link is shown once"
    visitor = TestClient(client.app, follow_redirects=False, headers=OWN)
    assert "welcome.js" in visitor.get("/welcome").text
    chosen = visitor.post("/api/v1/invitations", json={"token": token, "password": PASSWORD})
    assert chosen.status_code == 204
    wrong = visitor.post("/login", data={"name": "ann", "password": "wrong", "next": "/work"})
    assert wrong.status_code == 401
    assert "The name or the password is wrong." in wrong.text
    assert 'name="next" value="/work"' in wrong.text
    right = visitor.post(
        "/login", data={"name": "ann", "password": PASSWORD, "next": "https://elsewhere.org"}
    )
    assert right.headers["location"] == "/"
    assert visitor.get("/").headers["location"] == "/work"
    cookie = visitor.cookies[sessions.PLAIN_COOKIE]
    assert visitor.post("/logout").headers["location"] == "/login?said=logged-out"
    visitor.cookies.set(sessions.PLAIN_COOKIE, cookie)
    assert visitor.get("/work").status_code == 303, "the session has ended, also for a copy"


def test_after_the_login_nobody_is_sent_elsewhere():
    for path in ("//elsewhere.org", "/\\elsewhere.org", "https:elsewhere.org", "", "/\x09/e.org"):
        assert own_path(path) == "/"
    assert own_path("/work/history") == "/work/history"


def test_users_are_changed_with_their_version(sqlite_desk, client):
    client.post("/users", data={"name": "sue", "role": "supervisor"})
    sue = rows(sqlite_desk, user, name="sue")[0]
    form = {"version": str(sue.version), "role": "admin", "expert_id": "1", "is_active": "true"}
    assert client.post(f"/users/{sue.id}", data=form).status_code == 303
    now = rows(sqlite_desk, user, name="sue")[0]
    assert (now.role, now.expert_id) == ("admin", 1)
    assert client.post(f"/users/{sue.id}", data=form).status_code == 412
    assert "Send this link to sue." in client.post(f"/users/{sue.id}/invitation").text
    cookie = sqlite_desk.database.write(lambda c: sessions.start(c, sue.id, SECRET))
    assert client.post(f"/users/{sue.id}/logout").status_code == 303
    assert sessions.find(sqlite_desk.database, SECRET, cookie) is None
    with sqlite_desk.database.reading() as connection:
        assert not users.get(connection, sue.id).has_password


def test_a_user_can_be_taken_from_an_expert_again(sqlite_desk, client):
    client.post("/users", data={"name": "sue", "role": "supervisor", "expert_id": "1"})
    sue = rows(sqlite_desk, user, name="sue")[0]
    assert sue.expert_id == 1
    form = {
        "version": str(sue.version),
        "role": "supervisor",
        "expert_id": "0",
        "is_active": "true",
    }
    assert client.post(f"/users/{sue.id}", data=form).status_code == 303
    assert rows(sqlite_desk, user, name="sue")[0].expert_id is None


def test_supervisors_do_not_decide_which_fields_experts_see(sqlite_desk, client):
    boss = browser_of(client.app, sqlite_desk, "sue", "supervisor")
    assert (boss.get("/fields").status_code, client.get("/fields").status_code) == (403, 200)
    assert "/fields" not in boss.get("/today").text


def test_behind_tls_a_plain_cookie_is_no_session(sqlite_desk, client):
    assert client.get("/users").status_code == 200
    settings = replace(client.app.state.settings, public_url="https://desk.example")
    client.app.state.settings = settings
    assert client.get("/users").status_code != 200


@pytest.mark.parametrize("at", ["/cases/99999999999999999999999", "/cases/77", "/cases?id=%00"])
def test_addresses_of_cases_that_are_none(sqlite_desk, client, at):
    send(sqlite_desk, "77", gain=-1)  # an id, but no case has this number
    assert 400 <= client.get(at).status_code < 500


def test_a_key_is_shown_once_and_can_be_revoked(sqlite_desk, client):
    page = client.post("/keys", data={"name": "ris", "scopes": ["cases:write", "cases:read"]})
    (text,) = re.findall(r"dlk_[0-9a-f]{12}_[\w-]{43}", page.text)
    assert keys.find(sqlite_desk.database, text).scopes == {"cases:write", "cases:read"}
    listed = client.get("/keys").text
    assert "dlk_" not in listed
    assert "ris" in listed
    assert client.post("/keys", data={"name": "without"}).status_code == 422
    assert client.post("/keys/1/revoke").headers["location"] == "/keys?said=revoked"
    assert keys.find(sqlite_desk.database, text) is None


def test_fields_are_changed_with_their_version(sqlite_desk, client):
    send(sqlite_desk, "a", gain=0.1, pulse=80, scan="https://images.example.org/1.png")
    page = client.get("/fields")
    assert 'name="kind:pulse"' in page.text
    form = {
        "version": version_in(page),
        "kind:pulse": "hidden",
        "kind:scan": "image",
        "kind:gain": "shown",
        "group:scan": " Seen ",
        "image_sources": "https://images.example.org",
    }
    assert client.post("/fields", data=form).headers["location"] == "/fields?said=changed"
    with sqlite_desk.database.reading() as connection:
        display, _ = read_display(connection)
    assert display.kinds == {"pulse": "hidden", "scan": "image"}
    assert display.groups == {"scan": "Seen"}
    assert client.post("/fields", data=form).status_code == 412
    for source in ("https://a.org/path", "javascript:alert(1)", "*", "https://a.org;script-src"):
        form |= {"version": version_in(client.get("/fields")), "image_sources": source}
        assert client.post("/fields", data=form).status_code == 422, source


def test_rules_are_changed_with_their_version(sqlite_desk, client):
    page = client.get("/rules")
    assert SECRET not in page.text
    form = {
        "version": version_in(page),
        "readings": "2",
        "audit_percent": "5",
        "deadline_rule": "wait",
        "deadline_seconds": "3600",
        "lease_seconds": "600",
        "undo_seconds": "60",
        "cases_per_day": "300",
        "timezone": "Europe/Oslo",
    }
    assert client.post("/rules", data=form).status_code == 303
    with sqlite_desk.database.reading() as connection:
        rules, _ = read_rules(connection)
    assert (rules.readings, rules.audit_share, rules.blind) == (2, 0.05, False)
    assert (rules.deadline_seconds, rules.timezone) == (3600, "Europe/Oslo")
    assert client.post("/rules", data=form).status_code == 412
    form |= {"version": version_in(client.get("/rules")), "timezone": "Nowhere"}
    assert client.post("/rules", data=form).status_code == 422


def test_the_log_is_read_page_by_page(sqlite_desk, client):
    for number in range(105):
        send(sqlite_desk, f"a{number}")
    page = client.get("/log").text
    assert page.count("case.arrived") == 100
    more = re.search(r'href="(/log\?before=\d+)"', page)[1]
    assert "user.created" in client.get(more).text


def test_an_export_is_a_file_and_on_record(sqlite_desk, client):
    send(sqlite_desk, "a", gain=0.4, pulse=80, told="=1+1")
    assert 'name="kind" value="answers"' in client.get("/export").text
    sent = client.post("/export", data={"kind": "cases"})
    assert sent.headers["content-disposition"] == 'attachment; filename="cases.csv"'
    assert sent.text.splitlines() == ["case,gain,pulse,told,truth", "a,0.4,80,'=1+1,"]
    table = client.post("/export", data={"kind": "audit", "ending": "parquet"})
    assert table.content[:4] == b"PAR1"
    subjects = [row.subject for row in rows(sqlite_desk, audit_log, action="desk.exported")]
    assert subjects == ["cases", "audit"]
    assert client.post("/export", data={"kind": "user"}).status_code == 422
    assert client.post("/export", data={"kind": "cases", "ending": "exe"}).status_code == 422


def test_an_address_that_leads_nowhere_is_a_page_for_browsers_only(client):
    page = client.get("/nowhere", headers={"Accept": "text/html,*/*"})
    assert (page.status_code, page.headers["content-type"]) == (404, "text/html; charset=utf-8")
    assert "There is no page at this address." in page.text
    for path in ("/api/v1/nowhere", "/static/nowhere.js"):
        answer = client.get(path, headers={"Accept": "text/html,*/*"})
        assert answer.headers["content-type"] == "application/problem+json", path
    assert client.get("/nowhere").headers["content-type"] == "application/problem+json"
