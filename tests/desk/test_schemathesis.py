"""Whatever a client sends: no error of the server, and every answer is as the description says."""

import os
import shutil

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import checks
from schemathesis.specs.openapi import checks as openapi_checks

from deferlearn.desk import keys, sessions
from deferlearn.desk.api.app import make_app
from deferlearn.desk.permissions import SCOPES
from deferlearn.desk.settings import Settings
from desk.conftest import _emptied
from desk.stub_desk import SECRET, send, stub_desk
from desk.test_users import create

EXAMPLES = int(os.environ.get("DEFERLEARN_SCHEMATHESIS_EXAMPLES", "2"))


@pytest.fixture
def api(database):
    """The description of an app with some cases, and who asks: a program, and an administrator."""
    desk = stub_desk(database, {"Ann": None, "Bob": 3})
    for name, gain in (("0", 1), ("1", -1), ("2", 1)):
        send(desk, name, gain=gain)
    _, key = database.write(
        lambda connection: keys.create(connection, name="test", scopes=SCOPES, actor="test")
    )
    given = Settings(
        secret=SECRET, password_passes=1, password_memory=8, requests_per_second=100_000
    )
    app = make_app(database, given, desk=desk, keep=False)
    schema = schemathesis.openapi.from_asgi("/api/v1/openapi.json", app)
    admin = create(database, "admin", "admin", expert_id=1)
    for name in ("anna", "ben"):
        create(database, name, "expert", expert_id=1)

    def session():
        """The headers of a new session: a call may end those that there are."""
        cookie = database.write(lambda c: sessions.start(c, admin.id, SECRET))
        return {"Cookie": f"{sessions.PLAIN_COOKIE}={cookie}", "Sec-Fetch-Site": "same-origin"}

    schema.askers = [lambda: {"Authorization": f"Bearer {key}"}, session]
    return schema


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
def database_url(request, sqlite_template, tmp_path):
    """SQLite by default: to try PostgreSQL takes as long again."""
    if request.param == "postgresql":
        return _emptied(request.getfixturevalue("postgres_url"))
    shutil.copy(sqlite_template, tmp_path / "desk.db")
    return f"sqlite:///{tmp_path / 'desk.db'}"


CHECKS = [
    checks.not_a_server_error,
    openapi_checks.response_schema_conformance,
    openapi_checks.content_type_conformance,
    openapi_checks.status_code_conformance,
]


def statuses_of(operation, askers):
    """All statuses that an operation answers with; each answer is checked."""
    statuses = set()

    @given(case=operation.as_strategy())
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    def run(case):
        for headers in askers:
            reply = case.call(headers=headers())
            case.validate_response(reply, checks=CHECKS)
            statuses.add(reply.status_code)

    run()
    return statuses


def test_no_request_breaks_the_server(api):
    operations = [found.ok() for found in api.get_all_operations()]
    answered = {one.label: statuses_of(one, api.askers) for one in operations}
    assert len(answered) > 30
    # But for those that ask for a password, and are throttled, somebody may call each.
    refused = {label for label, found in answered.items() if found <= {401, 403, 429}}
    assert refused == {"POST /api/v1/session", "POST /api/v1/session/password"}
