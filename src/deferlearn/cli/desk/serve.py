"""`deferlearn desk serve`: run the service until it is told to stop."""

from __future__ import annotations

import signal
import socket
from typing import TYPE_CHECKING, Annotated, Any

from deferlearn.cli._errors import FAILURE, fail
from deferlearn.cli._options import option
from deferlearn.cli._screen import say
from deferlearn.cli.desk._opened import SERVICE, Config, DatabaseUrl, Opened, opened

if TYPE_CHECKING:
    from deferlearn.desk.settings import Settings

COMMAND = "desk serve"


def serve(
    host: Annotated[
        str | None,
        option("Address to listen at. Default: 127.0.0.1, which other machines cannot reach."),
    ] = None,
    port: Annotated[
        int | None, option("Port to listen at. Default: 8470.", min=1, max=65535)
    ] = None,
    public_url: Annotated[
        str | None,
        option(
            "How browsers reach the desk, such as https://desk.example.org, if a proxy stands before it. "
            "Default: by host and port.",
            panel=SERVICE,
        ),
    ] = None,
    log_level: Annotated[
        str | None,
        option("Least level that is logged: debug, info, warning or error. Default: info."),
    ] = None,
    config: Config = None,
    database: DatabaseUrl = None,
) -> None:
    """Run the service. It writes its log to stderr, one JSON object per line.

    SIGTERM or Ctrl-C stops it gracefully: requests that have begun are finished. A database with an older
    schema is refused: make a backup, then run `deferlearn desk migrate`.
    """
    flags: dict[str, Any] = {
        "host": host,
        "port": port,
        "public_url": public_url,
        "log_level": log_level,
    }
    with opened(COMMAND, config, database, **flags) as desk:
        listening = _listen(desk.settings)
        with listening:
            _greet(desk)
            _run(desk, listening)
    say("The desk has stopped.", err=True)


def _listen(settings: Settings) -> socket.socket:
    try:
        infos = socket.getaddrinfo(settings.host, settings.port, type=socket.SOCK_STREAM)
        family, *_, address = infos[0]
        return socket.create_server(address[:2], family=family, backlog=2048)
    except OSError as error:
        fail(
            COMMAND,
            f"cannot listen at {settings.host}, port {settings.port}: {error.strerror}; choose another "
            "by --host and --port",
            FAILURE,
        )


def _greet(desk: Opened) -> None:
    from deferlearn.desk import users

    with desk.database.reading() as connection:
        token = users.open_invitation(connection, desk.settings.secret)
    say(f"The desk is at {desk.settings.address} (Ctrl-C stops it).")
    if token is not None:
        say(f"The administrator chooses a password here: {users.link(desk.settings, token)}")


def _run(desk: Opened, listening: socket.socket) -> None:
    import uvicorn

    from deferlearn.desk import logs
    from deferlearn.desk.api.app import make_app
    from deferlearn.desk.protocol import GuardedHttp
    from deferlearn.desk.readiness import get_ready

    settings = desk.settings
    logs.configure(settings.log_level)
    app = make_app(desk.database, settings)
    get_ready(app.state.desk)
    server = uvicorn.Server(
        uvicorn.Config(
            app,
            http=GuardedHttp,
            ws="none",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=True,
            forwarded_allow_ips=settings.trusted_proxies,
            timeout_graceful_shutdown=settings.stop_seconds,
        )
    )
    # The server repeats a signal after it has stopped. It has done what was asked, so that nothing is left.
    before = {
        number: signal.signal(number, lambda *_: None) for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        server.run(sockets=[listening])
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if not server.started:
        fail(COMMAND, "the service could not start; its log says why", FAILURE)
