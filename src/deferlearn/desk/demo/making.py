"""The desk of the demonstration: made by the commands that everyone uses, and served by them."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from sqlalchemy import Connection

from deferlearn.desk import audit, keys, sign_in_links, users
from deferlearn.desk.database import Database
from deferlearn.desk.demo.nights import ID, LABEL, READERS, Nights
from deferlearn.desk.display import Display, change_display, read_display
from deferlearn.desk.experts import list_experts
from deferlearn.desk.rules import change_rules
from deferlearn.desk.settings import load_settings

ACTOR = "demo"
TABLE, MODEL, LOG = "nights.csv", "nights.skops", "serve.log"
# What each reader takes of the cases, at most.
CAPACITY = 0.04
# Six beds, from each of which an epoch comes every 30 seconds.
CASES_PER_MINUTE = 12
CASES_PER_DAY = CASES_PER_MINUTE * 24 * 60
# More than usual, so that the errors of the machine are known within minutes.
AUDIT_SHARE = 0.05
SCOPES = (
    "cases:write",
    "cases:read",
    "answers:write",
    "truth:write",
    "experts:write",
    "models:write",
)
SUPERVISOR = "supervisor"
STOP_SECONDS = 30.0


class DemoError(RuntimeError):
    """The demonstration cannot go on; the message says why."""


class Place:
    """The folder of a demonstration, in which its desk is made and served.

    Parameters
    ----------
    folder : Path
        An empty folder.
    port : int
        Where the desk will listen.
    """

    def __init__(self, folder: Path, port: int) -> None:
        self.folder, self.port = folder, port
        self.key = ""
        self.experts: dict[str, int] = {}

    @property
    def address(self) -> str:
        """Where the desk is."""
        return f"http://127.0.0.1:{self.port}"

    def fit(self, nights: Nights, n_cases: int) -> None:
        """Write the table of training cases, and fit a model on it."""
        nights.write(self.folder / TABLE, n_cases)
        words = [TABLE, "--label", LABEL, "--id", ID, "--no-evaluate", "--out", MODEL]
        for name in nights.score_columns():
            words += ["--machine-score", name]
        for reader in READERS:
            words += ["--expert", f"{reader}={CAPACITY}"]
        self.command("fit", *words)

    def make(self, nights: Nights) -> None:
        """Make the desk, its users, its rules, and a key."""
        per_day = str(CASES_PER_DAY)
        self.command("desk", "init", "--model", MODEL, "--cases-per-day", per_day)

        def job(connection: Connection) -> None:
            # The experts that the model tells apart are known to the desk, with their daily limits.
            for expert in list_experts(connection):
                self.experts[expert.name] = expert.id
                users.create(
                    connection, name=expert.name, role="expert", expert_id=expert.id, actor=ACTOR
                )
            users.create(connection, name=SUPERVISOR, role="supervisor", actor=ACTOR)
            change_rules(connection, {"audit_share": AUDIT_SHARE}, actor=ACTOR)
            _, version = read_display(connection)
            display = Display(groups=nights.groups())
            change_display(connection, display, actor=ACTOR, version=version)
            _, self.key = keys.create(connection, name=ACTOR, scopes=SCOPES, actor=ACTOR)

        with self._database() as database:
            database.write(job)

    def link(self, name: str) -> str:
        """A link that signs a user in, once."""

        def job(connection: Connection) -> str:
            user = users.find(connection, name)
            assert user is not None
            return sign_in_links.create(connection, user.id, actor=ACTOR)

        with self._database() as database:
            token = database.write(job)
        return f"{self.address}/enter#{token}"

    def command(self, *words: str) -> str:
        """Run a command of deferlearn in the folder, and give what it printed."""
        done = subprocess.run(
            _command(words), cwd=self.folder, env=_environment(), capture_output=True, text=True
        )
        if done.returncode:
            raise DemoError(f"`deferlearn {' '.join(words[:2])}` failed: {done.stderr.strip()}")
        return done.stdout

    @contextmanager
    def served(self) -> Iterator[None]:
        """The desk, served until the block ends; its log goes to a file."""
        words = ("desk", "serve", "--port", str(self.port), "--log-level", "warning")
        with (self.folder / LOG).open("w", encoding="utf-8") as log:
            # Ctrl-C is for the demonstration, which stops the server itself when it has finished.
            process = subprocess.Popen(
                _command(words),
                cwd=self.folder,
                env=_environment(),
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
            try:
                self._wait_for(process, log)
                yield
            finally:
                process.send_signal(signal.SIGTERM)
                try:
                    process.wait(STOP_SECONDS)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()

    def _wait_for(self, process: subprocess.Popen[bytes], log: IO[str]) -> None:
        while True:
            if process.poll() is not None:
                raise DemoError(f"the desk could not start; {self.folder / LOG} says why")
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
            except OSError:
                time.sleep(0.05)
            else:
                return

    @contextmanager
    def _database(self) -> Iterator[Database]:
        settings = load_settings(self.folder / "desk.toml", environment={})
        database = Database(settings.database, options=audit.key_options(settings.secret))
        try:
            yield database
        finally:
            database.close()


def free_port(wanted: int) -> int:
    """A port at which nothing listens: the one that is wanted, or any other one.

    Parameters
    ----------
    wanted : int
        The first to try.

    Returns
    -------
    port : int
    """
    for port in (wanted, 0):
        with socket.socket() as trial:
            try:
                trial.bind(("127.0.0.1", port))
            except OSError:
                continue
            return int(trial.getsockname()[1])
    raise DemoError("no port is free")


def _command(words: Sequence[str]) -> list[str]:
    return [sys.executable, "-c", "from deferlearn.cli import main; main()", *words]


def _environment() -> dict[str, str]:
    """The environment without settings of another desk."""
    kept = {n: v for n, v in os.environ.items() if not n.startswith("DEFERLEARN_DESK_")}
    return {**kept, "NO_COLOR": "1"}
