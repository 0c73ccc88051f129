"""A desk that browsers can open, in a thread of the test."""

from __future__ import annotations

import socket
import threading
import time
from contextlib import contextmanager

import uvicorn

from deferlearn.desk.protocol import GuardedHttp


@contextmanager
def served(app):
    """Serve an app at a free port; its address."""
    listening = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(app, http=GuardedHttp, log_config=None, access_log=False)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive()
        time.sleep(0.01)
    yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    server.should_exit = True
    thread.join()
    listening.close()
