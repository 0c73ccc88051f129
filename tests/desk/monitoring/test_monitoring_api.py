"""Monitoring from outside."""

import pytest
from sqlalchemy import insert

from deferlearn.desk import keys
from deferlearn.desk.api.app import make_app
from deferlearn.desk.monitoring.alarms import advance
from deferlearn.desk.permissions import SCOPES
from deferlearn.desk.schema import model_report
from deferlearn.desk.settings import Settings
from desk.stub_desk import SECRET, add_model, change, send
from desk_client import TestClient


@pytest.fixture
def client(sqlite_desk):
    given = Settings(secret=SECRET, password_passes=1, password_memory=8)
    app = make_app(sqlite_desk.database, given, desk=sqlite_desk, keep=False)
    _, key = sqlite_desk.database.write(
        lambda connection: keys.create(connection, name="test", scopes=SCOPES, actor="test")
    )
    client = TestClient(app, raise_server_exceptions=False)
    client.headers["Authorization"] = f"Bearer {key}"
    return client


def test_numbers_and_alarms(sqlite_desk, client):
    for i in range(7):
        send(sqlite_desk, f"odd {i}", gain=-1.0, unusual="odd")
    advance(sqlite_desk)
    found = client.get("/api/v1/monitoring", params={"days": 3}).json()
    assert found["cases"] == 7
    figures = {one["name"]: one for one in found["figures"]}
    assert figures["share of unusual cases"]["value"] == 1.0
    assert figures["machine's error"]["value"] is None
    (alarm,) = found["alarms"]
    assert alarm["kind"] == "unusual cases"
    assert client.get("/api/v1/alarms").json() == [alarm]
    measured = client.get("/metrics").text
    assert "deferlearn_desk_alarms_open 1.0" in measured
    assert 'deferlearn_desk_alarms_open_by_kind{kind="unusual cases"} 1.0' in measured
    assert 'deferlearn_desk_alarms_open_by_kind{kind="expert\'s error"} 0.0' in measured
    assert client.post(f"/api/v1/alarms/{alarm['id']}/close").status_code == 204
    assert client.get("/api/v1/alarms").json() == []
    assert client.post("/api/v1/alarms/99/close").status_code == 404


def test_reports_and_the_shadow(sqlite_desk, client):
    candidate = add_model(sqlite_desk.database, "candidate", active=False)
    assert client.get(f"/api/v1/models/{candidate}/report").status_code == 404
    report = {"comparison": {"sentence": "No difference."}}
    change(sqlite_desk, insert(model_report).values(model_id=candidate, at=0, report=report))
    assert client.get(f"/api/v1/models/{candidate}/report").json()["report"] == report
    assert client.get("/api/v1/shadow").json() == {"model": None}
    assert client.put("/api/v1/shadow", json={"model": candidate}).status_code == 200
    assert client.get("/api/v1/shadow").json() == {"model": candidate}
    assert client.put("/api/v1/shadow", json={"model": 1}).status_code == 409
    assert client.put("/api/v1/shadow", json={"model": None}).status_code == 200
    assert client.get("/api/v1/shadow").json() == {"model": None}
