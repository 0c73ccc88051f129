"""How a server of the desk runs: flags before the environment, the environment before a TOML file.

What concerns the work itself, such as deadlines and readings, is stored in the database: see `rules`.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sqlalchemy import URL

PREFIX = "DEFERLEARN_DESK_"
# Settings that are never shown, and that the environment may name a file for.
SECRETS = ("secret", "database")
LARGEST_PORT = 65535
LOG_LEVELS = ("debug", "info", "warning", "error")


class SettingsError(ValueError):
    """A setting cannot be used; the message says which, where it was given, and what to do."""


@dataclass(frozen=True)
class Settings:
    """How a server runs.

    Attributes
    ----------
    database : str
        Address of the database. It may hold a password, so it is shown without one.
    secret : str
        The key of cookies and of the audit log, 32 characters or more.
    host, port : str and int
        Where the server listens.
    public_url : str
        How browsers reach the desk, if a proxy stands before it; empty: by host and port.
    max_body : int
        The largest body of a request, in bytes.
    max_cases : int
        The most cases in one request.
    log_level : str
        One of debug, info, warning and error.
    requests_per_second : int
        What one address may ask for, in the long run; ten times as much at once.
    trusted_proxies : str
        Addresses of proxies, separated by commas, whose word on the client's address is believed.
    stop_seconds : int
        How long a server that is told to stop waits for requests that it has begun.
    password_passes, password_memory : int
        The effort to hash a password: passes over the memory, and the memory in KiB.
    """

    database: str = "sqlite:///desk.db"
    secret: str = ""
    host: str = "127.0.0.1"
    port: int = 8470
    public_url: str = ""
    max_body: int = 5_000_000
    max_cases: int = 1000
    log_level: str = "info"
    requests_per_second: int = 500
    trusted_proxies: str = "127.0.0.1"
    stop_seconds: int = 20
    password_passes: int = 3
    password_memory: int = 65536

    @property
    def address(self) -> str:
        """How browsers reach the desk, without a slash at the end."""
        if self.public_url:
            return self.public_url.rstrip("/")
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"

    def shown(self) -> dict[str, Any]:
        """All settings as they may be printed: secrets are hidden."""
        from sqlalchemy import make_url

        values = {field.name: getattr(self, field.name) for field in fields(self)}
        values["secret"] = "(set)" if self.secret else "(not set)"
        url = make_url(self.database)
        url = url.update_query_dict(dict.fromkeys(passwords_in(url), "***"))
        values["database"] = url.render_as_string(hide_password=True)
        return values


def passwords_in(url: URL) -> list[str]:
    """Options in the address of a database that hold a password, such as ``password`` and ``sslpassword``.

    Parameters
    ----------
    url : URL
        The address.

    Returns
    -------
    names : list of str
    """
    return [name for name in url.query if name.lower().endswith("password")]


def load_settings(
    file: Path | None = None,
    environment: Mapping[str, str] | None = None,
    flags: Mapping[str, Any] | None = None,
) -> Settings:
    """Read the settings.

    Parameters
    ----------
    file : Path or None, default=None
        A TOML file with the names of `Settings`. None: the one that ``DEFERLEARN_DESK_CONFIG`` names, if
        any. ``secret_file`` in it names a file with the secret, relative to the TOML file.
    environment : mapping or None, default=None
        The environment; None is that of the process. ``DEFERLEARN_DESK_PORT`` is the port, and so on;
        ``DEFERLEARN_DESK_SECRET_FILE`` and ``DEFERLEARN_DESK_DATABASE_FILE`` name files with the value.
    flags : mapping or None, default=None
        What the command line gives; None counts as not given.

    Returns
    -------
    Settings

    Examples
    --------
    >>> from deferlearn.desk.settings import load_settings
    >>> load_settings(environment={"DEFERLEARN_DESK_PORT": "80"}, flags={"host": "::1"}).port
    80
    """
    environment = os.environ if environment is None else environment
    if file is None and environment.get(f"{PREFIX}CONFIG"):
        file = Path(environment[f"{PREFIX}CONFIG"])
    found = {} if file is None else _from_file(file)
    found |= _from_environment(environment)
    found |= {
        name: (value, f"--{name.replace('_', '-')}")
        for name, value in (flags or {}).items()
        if value is not None
    }
    known = {field.name: field for field in fields(Settings)}
    values: dict[str, Any] = {}
    for name, (value, place) in found.items():
        if name not in known:
            raise SettingsError(f"{place} is not a setting; use one of {', '.join(known)}.")
        values[name] = _converted(value, type(known[name].default), place, name)
    return Settings(**values)


def _from_file(file: Path) -> dict[str, tuple[Any, str]]:
    try:
        content = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(f"cannot read {file}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"{file} is not a TOML file: {error}") from error
    found = {name: (value, f"{name} in {file}") for name, value in content.items()}
    for name in SECRETS:
        if f"{name}_file" in found:
            path = file.parent / str(found.pop(f"{name}_file")[0])
            found[name] = (_secret_in(path), f"{name}_file in {file}")
    return found


def _from_environment(environment: Mapping[str, str]) -> dict[str, tuple[Any, str]]:
    found: dict[str, tuple[Any, str]] = {}
    for field in fields(Settings):
        name = PREFIX + field.name.upper()
        if name in environment:
            found[field.name] = (environment[name], name)
        if field.name in SECRETS and f"{name}_FILE" in environment:
            if name in environment:
                raise SettingsError(f"{name} and {name}_FILE are both set: remove one of them.")
            found[field.name] = (_secret_in(Path(environment[f"{name}_FILE"])), f"{name}_FILE")
    return found


def _secret_in(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except OSError as error:
        raise SettingsError(f"cannot read {path}: {error.strerror}") from error


def _converted(value: Any, kind: type, place: str, name: str) -> Any:
    """The value with the type of the setting; a value of a secret is not repeated."""
    if kind is int and isinstance(value, str) and value.strip().isdecimal():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, kind):
        shown = "" if name in SECRETS else f" {value!r}"
        wanted = "a whole number" if kind is int else "text"
        raise SettingsError(f"{place} is{shown}, which is not {wanted}.")
    if isinstance(value, int):
        if value < 1:
            raise SettingsError(f"{place} is {value}; it must be 1 or larger.")
        if name == "port" and value > LARGEST_PORT:
            raise SettingsError(f"{place} is {value}; the largest port is {LARGEST_PORT}.")
    if name == "log_level" and value not in LOG_LEVELS:
        raise SettingsError(f"{place} is {value!r}; use one of {', '.join(LOG_LEVELS)}.")
    return value
