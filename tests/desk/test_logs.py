"""Logs are lines of JSON with the id of the request, and never hold data of a case."""

import io
import json
import logging

import pytest
from fastapi import FastAPI
from fastapi.responses import PlainTextResponse

from deferlearn.desk import logs
from deferlearn.desk.metrics import Metrics
from deferlearn.desk.watching import Watched
from desk_client import TestClient

SECRET = "Mrs Smith"
LOGGERS = ("deferlearn.desk", "uvicorn", "uvicorn.error", "uvicorn.access")


@pytest.fixture
def stream():
    before = {n: (g.handlers, g.propagate, g.level) for n in LOGGERS if (g := logging.getLogger(n))}
    stream = io.StringIO()
    logs.configure(stream=stream)
    yield stream
    for name, (handlers, propagate, level) in before.items():
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = handlers, propagate
        logger.setLevel(level)


def lines(stream):
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def make_client(metrics):
    app = FastAPI()

    @app.get("/cases/{id}")
    def fine(id: str):
        logging.getLogger("deferlearn.desk").info("inside")
        return PlainTextResponse("fine")

    @app.get("/broken")
    def broken():
        raise ValueError(f"could not convert string to float: '{SECRET}'")

    app.add_middleware(Watched, metrics=metrics)
    return TestClient(app)


def test_a_request_has_one_id_in_all_its_lines_and_in_the_answer(stream):
    answer = make_client(Metrics()).get("/cases/17", headers={"x-request-id": "scan-1"})
    inside, request = lines(stream)
    assert answer.headers["x-request-id"] == inside["request_id"] == request["request_id"]
    assert request["request_id"] == "scan-1"
    assert (request["method"], request["status"]) == ("GET", 200)


@pytest.mark.parametrize("given", ["a b", "x" * 65, '"}', "\u00e9", ""])
def test_an_id_that_could_forge_lines_is_replaced(stream, given):
    answer = make_client(Metrics()).get("/cases/17", headers={"x-request-id": given.encode()})
    assert len(answer.headers["x-request-id"]) == 16


def test_neither_the_path_nor_the_query_is_logged(stream):
    make_client(Metrics()).get(f"/cases/{SECRET}?token={SECRET}")
    make_client(Metrics()).get(f"/nothing/{SECRET}")
    assert "Smith" not in stream.getvalue()


def test_a_defect_is_logged_by_place_without_its_message_and_hidden_from_the_client(stream):
    metrics = Metrics()
    answer = make_client(metrics).get("/broken")
    assert answer.status_code == 500
    assert answer.json()["status"] == 500
    assert answer.headers["x-request-id"] in answer.json()["detail"]
    assert SECRET not in answer.text + stream.getvalue()
    defect, request = lines(stream)
    assert defect["exception"] == "ValueError"
    assert any(place.endswith(" broken") for place in defect["places"])
    assert request["status"] == 500
    assert 'status="500"' in metrics.text().decode()


def test_the_server_logs_no_paths_and_no_messages_of_exceptions_either(stream):
    logging.getLogger("uvicorn.access").info("GET /cases/%s", SECRET)
    try:
        raise ValueError(SECRET)
    except ValueError:
        logging.getLogger("uvicorn.error").exception("Exception in ASGI application")
    (line,) = lines(stream)
    assert line["exception"] == "ValueError"
    assert SECRET not in stream.getvalue()


def test_answers_may_not_be_stored_framed_or_guessed_at():
    headers = make_client(Metrics()).get("/cases/17").headers
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"
    assert headers["cache-control"] == "no-store"
    assert "default-src 'none'" in headers["content-security-policy"]


def test_measurements_count_requests_by_route_and_not_by_path():
    metrics = Metrics()
    client = make_client(metrics)
    for path in ("/cases/17", "/cases/18", "/nothing"):
        client.get(path)
    client.request("FROB", "/cases/17")
    text = metrics.text().decode()
    assert 'requests_total{method="GET",route="/cases/{id}",status="200"} 2.0' in text
    assert 'requests_total{method="other",route="/cases/{id}",status="405"} 1.0' in text
    assert 'requests_total{method="GET",route="unknown",status="404"} 1.0' in text
    assert "/cases/17" not in text


def test_the_state_of_the_desk_is_read_when_it_is_asked_for():
    metrics = Metrics()
    waiting = [3.0]
    metrics.watch(lambda: {"readings_waiting": waiting[0]})
    waiting[0] = 4.0
    assert "deferlearn_desk_readings_waiting 4.0" in metrics.text().decode()
