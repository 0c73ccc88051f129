"""Whatever a client sends: no error of the server, and every answer is as the description says."""

import os
import shutil

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import checks
from schemathesis.specs.openapi import checks as openapi_checks

from deferlearn.desk import audit, keys
from deferlearn.desk.api.app import make_app
from deferlearn.desk.database import Database
from deferlearn.desk.permissions import SCOPES
from deferlearn.desk.settings import Settings
from desk.stub_desk import SECRET, send, stub_desk

EXAMPLES = int(os.environ.get("DEFERLEARN_SCHEMATHESIS_EXAMPLES", "2"))


@pytest.fixture(scope="module")
def api(sqlite_template, tmp_path_factory):
    """The description of an app with some cases, and a key in its configuration."""
    path = tmp_path_factory.mktemp("api") / "desk.db"
    shutil.copy(sqlite_template, path)
    database = Database(f"sqlite:///{path}", options=audit.key_options(SECRET))
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
    schema.key = key
    yield schema
    database.close()


CHECKS = [
    checks.not_a_server_error,
    openapi_checks.response_schema_conformance,
    openapi_checks.content_type_conformance,
    openapi_checks.status_code_conformance,
]


def test_no_request_breaks_the_server(api):
    tried = []
    for found in api.get_all_operations():
        operation = found.ok()

        @given(case=operation.as_strategy())
        @settings(
            max_examples=EXAMPLES,
            deadline=None,
            derandomize=True,
            database=None,
            suppress_health_check=list(HealthCheck),
        )
        def run(case):
            reply = case.call(headers={"Authorization": f"Bearer {api.key}"})
            case.validate_response(reply, checks=CHECKS)

        run()
        tried.append(operation.label)
    assert len(tried) > 30
