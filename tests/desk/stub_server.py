"""A server with the stub model in a process of its own, which a test may kill."""

from __future__ import annotations

import http.client
import json
import socket
import time
from contextlib import closing, suppress
from multiprocessing import get_context
from typing import Any

import uvicorn

from deferlearn.desk import audit
from deferlearn.desk.api.app import make_app
from deferlearn.desk.database import Database
from deferlearn.desk.protocol import GuardedHttp
from deferlearn.desk.settings import Settings
from desk.stub_desk import SECRET, open_stub

# Processes are forked from one that has loaded everything.
processes = get_context("forkserver")
processes.set_forkserver_preload(["desk.stub_server"])


def serve(url: str, port: int) -> None:
    """Run until killed."""
    database = Database(url, options=audit.key_options(SECRET))
    settings = Settings(
        secret=SECRET, password_passes=1, password_memory=8, requests_per_second=100_000
    )
    app = make_app(database, settings, desk=open_stub(database))
    uvicorn.run(
        app, host="127.0.0.1", port=port, http=GuardedHttp, log_level="warning", access_log=False
    )


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class StubServer:
    """Starts, kills and restarts the server."""

    def __init__(self, url: str) -> None:
        self.url, self.port = url, free_port()
        self.process: Any = None

    def start(self) -> None:
        self.process = processes.Process(target=serve, args=(self.url, self.port), daemon=True)
        self.process.start()
        deadline = time.monotonic() + 120  # a busy machine takes its time to load everything
        while time.monotonic() < deadline:
            with (
                suppress(OSError, http.client.HTTPException),
                closing(Client(self.port, "")) as one,
            ):
                one.get("/healthz")
                return
            time.sleep(0.05)
        raise TimeoutError("the server does not answer")

    def kill(self) -> None:
        self.process.kill()
        self.process.join()
        self.process.close()


class Client:
    """A client that keeps its connection; each method gives the status and the body."""

    def __init__(self, port: int, key: str) -> None:
        self.port, self.key = port, key
        self.connection: http.client.HTTPConnection | None = None

    def close(self) -> None:
        if self.connection is not None:
            self.connection.close()
            self.connection = None

    def get(self, path: str) -> tuple[int, Any]:
        return self.send("GET", path, None)

    def post(self, path: str, body: Any) -> tuple[int, Any]:
        return self.send("POST", path, json.dumps(body))

    def send(self, method: str, path: str, body: str | None) -> tuple[int, Any]:
        if self.connection is None:
            self.connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {self.key}"}
        try:
            self.connection.request(method, path, body, headers if self.key else {})
            reply = self.connection.getresponse()
            content = reply.read()
        except (OSError, http.client.HTTPException):
            self.close()
            raise
        return reply.status, json.loads(content) if content else None
