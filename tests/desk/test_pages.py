"""All pages: who sees them, that nothing hostile runs in them, and that other sites cannot use them."""

import re

import pytest

from deferlearn.desk import keys
from deferlearn.desk.experts import add_expert
from deferlearn.desk.pages import routers
from desk.page_clients import OWN, app_of, browser_of
from desk.stub_desk import send
from desk_client import TestClient

EXPERT = ["/work", "/work/history"]
SUPERVISOR = [
    "/today",
    "/monitoring",
    "/cases",
    "/experts",
    "/models",
    "/import",
    "/rules",
]
ADMIN = ["/export", "/fields", "/users", "/keys", "/log"]
HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>{{ 7*7 }}"


@pytest.fixture
def app(sqlite_desk):
    return app_of(sqlite_desk)


@pytest.fixture
def browsers(app, sqlite_desk):
    return {
        "expert": browser_of(app, sqlite_desk, "ann", "expert", 1),
        "supervisor": browser_of(app, sqlite_desk, "sue", "supervisor"),
        "admin": browser_of(app, sqlite_desk, "ada", "admin", 1),
    }


def test_each_role_sees_its_pages_and_no_others(browsers):
    allowed = {
        "expert": EXPERT,
        "supervisor": SUPERVISOR,
        "admin": [*EXPERT, *SUPERVISOR, *ADMIN],
    }
    for role, client in browsers.items():
        for path in (*SUPERVISOR, *ADMIN, *EXPERT):
            status = client.get(path).status_code
            assert status == (200 if path in allowed[role] else 403), (role, path)
        shown = re.findall(r'<li><a href="([^"]+)"', client.get(allowed[role][0]).text)
        assert sorted(shown) == sorted(allowed[role])
        assert client.get("/").headers["location"] == ("/work" if role == "expert" else "/today")


def test_without_a_session_every_page_leads_to_the_login(app):
    client = TestClient(app, follow_redirects=False)
    for path in (*EXPERT, *SUPERVISOR, *ADMIN, "/"):
        answer = client.get(path)
        assert answer.status_code == 303, path
        assert answer.headers["location"] == f"/login?next={path}"
    # A script is told so, and goes there by itself.
    assert client.post("/work/next", headers={**OWN, "HX-Request": "true"}).status_code == 401


def fill_with_hostile(desk):
    """Cells, names and notes that would run if they were not escaped."""
    send(desk, "x" + HOSTILE, gain=0.4, **{HOSTILE: HOSTILE, "long": HOSTILE + "\n" + HOSTILE})
    desk.database.write(lambda c: add_expert(c, HOSTILE, actor=HOSTILE))
    desk.database.write(
        lambda c: keys.create(c, name=HOSTILE[:100], scopes=["cases:read"], actor="test")
    )


def has_no_inline_code(answer):
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self';" in policy
    assert "style-src 'self';" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    text = answer.text
    assert "<script>" not in text
    for tag in re.findall(r"<script[^>]*>", text):
        assert re.fullmatch(r'<script src="/static/[\w.]+\?v=[0-9a-f]{12}" defer>', tag)
    for tag in re.findall(r"<[a-zA-Z][^<>]*>", text):
        bare = re.sub(r'"[^"]*"|\'[^\']*\'', '""', tag)
        assert not re.search(r"\s(on\w+|style|hx-on[\w:-]*|hx-vals|hx-vars)\s*=", bare), tag
    assert "<style" not in text
    assert "onerror=alert(2)>" not in text
    assert "49" not in re.findall(r"alert.{0,60}", text)


def test_nothing_hostile_runs_on_any_page(sqlite_desk, browsers):
    fill_with_hostile(sqlite_desk)
    client = browsers["admin"]
    pages = [
        *EXPERT,
        *SUPERVISOR,
        *ADMIN,
        "/experts/2",
        "/cases/1",
        "/models/1",
        "/welcome",
        "/enter",
    ]
    for path in pages:
        answer = client.get(path)
        assert answer.status_code == 200, path
        has_no_inline_code(answer)
    leased = client.post("/work/next")
    has_no_inline_code(leased)
    assert leased.text.count("&lt;script&gt;alert(1)") >= 4
    reading, token = held(leased)
    form = {"token": token, "answer": "ill", "note": HOSTILE}
    has_no_inline_code(client.post(f"/work/{reading}/answer", data=form))
    history = client.get("/work/history")
    has_no_inline_code(history)
    assert "&lt;img src=x onerror" in history.text
    refused = client.get("/cases", params={"id": HOSTILE[:100]})
    assert refused.status_code == 404
    has_no_inline_code(refused)
    login = client.post("/login", data={"name": HOSTILE, "password": "x", "next": HOSTILE})
    assert login.status_code == 401
    has_no_inline_code(login)


def held(answer):
    """The reading and the token that a page holds."""
    reading = re.search(r'action="/work/(\d+)/answer"', answer.text)[1]
    return reading, re.search(r'id="answer".*?name="token" value="([^"]+)"', answer.text, re.S)[1]


def changing():
    """Paths of all forms."""
    routes = [route for router in routers() for route in router.routes]
    assert {method for route in routes for method in route.methods} == {"GET", "POST"}
    return [re.sub(r"{\w+}", "1", route.path) for route in routes if "POST" in route.methods]


def test_another_site_cannot_make_a_browser_change_anything(browsers):
    assert len(changing()) > 20
    for path in changing():
        for headers in ({"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"}):
            answer = browsers["admin"].post(path, headers=headers)
            assert answer.status_code == 403, path
            assert "another site" in answer.text


def test_an_expert_cannot_send_what_only_others_may(browsers):
    others = [path for path in changing() if not path.startswith(("/work", "/log"))]
    assert len(others) > 12
    for path in others:
        assert browsers["expert"].post(path).status_code == 403, path


def test_files_of_the_pages_are_a_fixed_list(browsers):
    client = browsers["expert"]
    page = client.get("/work").text
    for address in re.findall(r'(?:src|href)="(/static/[^"]+)"', page):
        answer = client.get(address)
        assert answer.status_code == 200
        assert "immutable" in answer.headers["cache-control"]
        assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert "Zero-Clause BSD" in client.get("/static/htmx.LICENSE").text
    for name in ("..%2F__init__.py", "nothing.js", "%2e%2e/common.py"):
        assert client.get(f"/static/{name}").status_code == 404


def test_pages_are_not_part_of_the_api(app):
    assert all(
        path.startswith(("/api/", "/healthz", "/readyz", "/metrics"))
        for path in app.openapi()["paths"]
    )
