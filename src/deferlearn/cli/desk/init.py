"""`deferlearn desk init`: from a model, or a table to fit one on, to a desk that can be started."""

from __future__ import annotations

import os
import secrets
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from deferlearn.cli import _options as shared
from deferlearn.cli._errors import fail
from deferlearn.cli._options import answers_option, argument, column, option
from deferlearn.cli._screen import say
from deferlearn.cli.desk._opened import (
    CONFIG_FILE,
    SERVICE,
    Config,
    DatabaseUrl,
    connect,
    settings_of,
    told,
    who,
)
from deferlearn.cli.fit import fit

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from deferlearn.desk.settings import Settings

COMMAND = "desk init"
SECRET_FILE, DATABASE_FILE = Path("desk.secret"), Path("desk.database")
# Where a model that is fitted is kept, for `deferlearn report`.
MODEL_FILE = Path("desk.skops")
EXAMPLES = """Examples:

deferlearn desk init --model model.skops

deferlearn desk init cases.csv --label diagnosis --human reader_1 --id id

deferlearn desk init cases.csv --label diagnosis --id id --expert anna=10% --expert ben=5%
--cases-per-day 50
"""


def init(
    cases: Annotated[
        Path | None,
        argument(
            "Table of cases to fit a model on, as `deferlearn fit` takes it. Default: --model."
        ),
    ] = None,
    *,
    model: Annotated[
        Path | None, option("Model file that `deferlearn fit` wrote. Default: a model is fitted.")
    ] = None,
    admin: Annotated[str, typer.Option(help="Name of the first administrator.")] = "admin",
    label: Annotated[str | None, option("Column of the true labels, to fit a model.")] = None,
    human: Annotated[
        list[str] | None, answers_option("Column of a reader's answers; can be repeated.")
    ] = None,
    expert: Annotated[
        list[str] | None,
        answers_option(
            "Column of an expert's answers and the most that this expert takes, as in reader_1=0.05; can "
            "be repeated."
        ),
    ] = None,
    identifier: Annotated[
        str | None, column("Column with the names of the cases. Default: none.", "--id")
    ] = None,
    group: Annotated[
        str | None, column("Column with the group of each case. Default: no groups.")
    ] = None,
    drop: Annotated[
        list[str] | None, column("Column that is not a feature; can be repeated. Default: none.")
    ] = None,
    budget: Annotated[
        str | None,
        option(
            "Most that is deferred: a share (0.2, 20%) or a number of cases. Default: 0.2, and with "
            "--expert as many as the capacities allow."
        ),
    ] = None,
    cases_per_day: Annotated[
        int | None,
        option(
            "How many cases are expected per day: an expert who takes 10% of them gets at most a tenth of "
            "this number each day. Default: 1000.",
            min=1,
            panel=SERVICE,
        ),
    ] = None,
    alpha: Annotated[
        float | None,
        option("Regularisation of the machine. Default: machine and policy are tuned."),
    ] = None,
    seed: shared.Seed = 0,
    delimiter: shared.Delimiter = None,
    decimal: shared.Decimal = ".",
    encoding: shared.Encoding = "utf8",
    config: Config = None,
    database: DatabaseUrl = None,
) -> None:
    """Make a desk: a database with a model and an administrator, a secret, and a file with the settings.

    The secret signs sessions and the audit log. Unless the settings name one, it is made and stored in
    desk.secret, and desk.toml is written, which the other commands find in the same folder. The model can
    be given, or is fitted on a table; for all options of the fit, use `deferlearn fit` first. The link that
    is printed at the end lets the administrator choose a password, once.
    """
    if (cases is None) == (model is None):
        fail(COMMAND, "name a table to fit a model on, or a model file by --model")
    if cases is not None and label is None:
        fail(COMMAND, "name the column of the true labels by --label")
    with told(COMMAND):
        settings = settings_of(config, database)
        if settings.secret:
            _check_free(settings)
        else:
            _check_new(SECRET_FILE, CONFIG_FILE)
        if cases is not None:
            model = MODEL_FILE
            _check_new(model)
            fit(
                cases,
                label=label or "",
                out=model,
                human=human,
                expert=expert,
                identifier=identifier,
                group=group,
                drop=drop,
                budget=budget,
                alpha=alpha,
                seed=seed,
                delimiter=delimiter,
                decimal=decimal,
                encoding=encoding,
            )
        assert model is not None
        with _settled(settings) as (settings, made):
            link = _fill(settings, model, cases or model, admin, cases_per_day)
    for path in made:
        say(f"Written: {path}")
    say(
        f"Desk: {settings.shown()['database']}",
        f"Start it by `deferlearn desk serve`, and let {admin} choose a password here: {link}",
    )


def _check_new(*paths: Path) -> None:
    """Refuse to replace files."""
    from deferlearn.desk.errors import Conflict

    for path in paths:
        if path.exists():
            raise Conflict(f"{path} is there already: use another folder, or remove it first.")


def _check_free(settings: Settings) -> None:
    """Refuse a database that has a desk, before a model is fitted."""
    from sqlalchemy import inspect

    from deferlearn.desk.errors import Conflict
    from deferlearn.desk.migrations import revision_of

    database = connect(settings)
    shown = settings.shown()["database"]
    if database.is_sqlite:
        path = Path(str(database.url.database))
        if not path.exists():
            return  # a connection would make the file
        # Not by the desk's own connection, which would change the file of another program.
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as file:
            tables = [name for (name,) in file.execute("SELECT name FROM sqlite_master")]
    else:
        with database.reading() as connection:
            tables = inspect(connection).get_table_names()
    try:
        if not tables:
            return
        if "alembic_version" in tables and revision_of(database) is not None:
            raise Conflict(f"{shown} has a desk already: use another database.")
        raise Conflict(
            f"{shown} belongs to another program: it has the table {tables[0]!r}. Use a database of its "
            "own for the desk."
        )
    finally:
        database.close()


@contextmanager
def _settled(settings: Settings) -> Iterator[tuple[Settings, list[Path]]]:
    """Settings with a secret, and the files that were written for them; they are removed after an error."""
    if settings.secret:
        _check_free(settings)
        yield settings, []
        return
    from sqlalchemy import make_url

    from deferlearn.desk.settings import passwords_in

    url = make_url(settings.database)
    if url.get_backend_name() == "sqlite" and url.database:
        url = url.set(database=os.path.abspath(url.database))
    secret, address = secrets.token_hex(32), url.render_as_string(hide_password=False)
    settings = replace(settings, secret=secret, database=address)
    # An address with a password is kept apart from the settings, as the secret is.
    files = {SECRET_FILE: secret}
    lines = [f'secret_file = "{SECRET_FILE}"']
    if url.password or passwords_in(url):
        files[DATABASE_FILE] = address
        lines.append(f'database_file = "{DATABASE_FILE}"')
    else:
        lines.append(f"database = {_quoted(address)}")
    files[CONFIG_FILE] = "\n".join(lines)
    _check_new(*files)
    _check_free(settings)
    made: list[Path] = []
    try:
        for path, content in files.items():
            descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
            made.append(path)
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(f"{content}\n")
        yield settings, made
    except BaseException:
        for path in made:
            with suppress(OSError):
                path.unlink()
        raise


def _quoted(text: str) -> str:
    import json

    return json.dumps(text)  # a string of TOML is written in the same way


def _fill(
    settings: Settings, path: Path, source: Path, admin: str, cases_per_day: int | None
) -> str:
    """Make the tables, store and activate the model, and invite the administrator; gives the link."""
    from deferlearn.desk import users
    from deferlearn.desk.migrations import migrate
    from deferlearn.desk.models import activate_model, load_model, store_model
    from deferlearn.desk.rules import change_rules

    content = path.read_bytes()
    card = load_model(content).card_
    database = connect(settings)
    is_new = database.is_sqlite and not Path(str(database.url.database)).exists()

    def fill(connection: Connection) -> str:
        if cases_per_day is not None:  # the limits of experts follow from it
            change_rules(connection, {"cases_per_day": cases_per_day}, actor=who())
        number, _ = store_model(connection, content, card, name=source.name, actor=who())
        activate_model(connection, number, actor=who())
        user = users.create(connection, name=admin, role="admin", actor=who())
        return users.invite(connection, user.id, secret=settings.secret, actor=who())

    try:
        migrate(database)
        token = database.write(fill)
    except BaseException:
        if is_new:
            database.close()
            for end in ("", "-wal", "-shm"):
                Path(f"{database.url.database}{end}").unlink(missing_ok=True)
        raise
    finally:
        database.close()
    return users.link(settings, token)
