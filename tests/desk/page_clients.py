"""Browsers of users with roles, for tests of the desk's pages."""

from __future__ import annotations

from deferlearn.desk import sessions, users
from deferlearn.desk.api.app import make_app
from deferlearn.desk.settings import Settings
from desk.stub_desk import SECRET
from desk_client import TestClient

# What a browser says about a request that comes from the desk's own page.
OWN = {"Sec-Fetch-Site": "same-origin"}


def app_of(desk):
    settings = Settings(
        database=desk.database.url.render_as_string(hide_password=False),
        secret=SECRET,
        password_passes=1,
        password_memory=1024,
    )
    return make_app(desk.database, settings, desk=desk, keep=False)


def cookie_of(desk, name, role, expert_id=None):
    """A user with a role, and the cookie of a session."""

    def start(connection):
        user = users.create(connection, name=name, role=role, expert_id=expert_id, actor="test")
        return sessions.start(connection, user.id, SECRET)

    return desk.database.write(start)


def browser_of(app, desk, name, role, expert_id=None):
    client = TestClient(app, raise_server_exceptions=False, follow_redirects=False)
    client.headers.update(OWN)
    client.cookies.set(sessions.PLAIN_COOKIE, cookie_of(desk, name, role, expert_id))
    return client
