"""`deferlearn reproduce`: the paper's results, one or all, into a folder."""

from __future__ import annotations

from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer
from rich.console import Console

from deferlearn.cli._errors import FAILURE, STOPPED, fail
from deferlearn.cli._progress import KEPT, Advance, progress_bar

if TYPE_CHECKING:
    from deferlearn.experiments import Config

NEEDED = ("matplotlib", "pandas", "pyarrow", "pydantic")
ALL = "all"


class Protocol(StrEnum):
    """How the data are split and the humans drawn."""

    repeated = "repeated"
    published = "published"


def reproduce(
    names: Annotated[
        list[str],
        typer.Argument(
            help="fig1 to fig6, runtime, bounds, or all.", metavar="NAME...", show_default=False
        ),
    ],
    out: Annotated[
        Path, typer.Option(help="Folder for rows, tables and figures; made if it does not exist.")
    ] = Path("results"),
    protocol: Annotated[
        Protocol | None,
        typer.Option(
            help="repeated (default): random splits, with intervals. published: the paper's one split.",
            show_default=False,
        ),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Three splits and a coarse search: to see that it runs.")
    ] = False,
    splits: Annotated[
        int | None, typer.Option(min=1, help="How many splits or draws.", show_default=False)
    ] = None,
    config: Annotated[
        Path | None, typer.Option(help="TOML file with other settings.", show_default=False)
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option(
            min=1, help="How many jobs at a time; default: one a core.", show_default=False
        ),
    ] = None,
) -> None:
    """Compute the paper's results anew: tables with intervals, figures, and what became of each claim.

    Stopped or killed, the same command goes on where it was.
    """
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        _fail(f"this needs {', '.join(missing)}: pip install 'deferlearn[cli]'")
    # Imported here: they bring the compiled engine, which `--help` need not wait for.
    from joblib import cpu_count

    from deferlearn.experiments import EXPERIMENTS

    unknown = [name for name in names if name not in EXPERIMENTS and name != ALL]
    if unknown:
        _fail(f"no result is named {unknown[0]!r}; there are {', '.join(EXPERIMENTS)}, and {ALL}")
    wanted = [name for name in EXPERIMENTS if name in names or ALL in names]
    settings = _settings(config, protocol, quick, splits)
    try:
        _run(wanted, settings, out, jobs or cpu_count())
    except KeyboardInterrupt:
        fail("reproduce", KEPT, STOPPED)


def _settings(
    path: Path | None, protocol: Protocol | None, quick: bool, splits: int | None
) -> Config:
    from deferlearn.experiments import Config, load_config

    changes = {} if splits is None else {"splits": splits}
    chosen = None if protocol is None else protocol.value
    try:
        if path is not None:
            return load_config(path, chosen, quick, **changes)
        return Config.preset(chosen or Protocol.repeated.value, quick, **changes)
    except OSError as error:
        _fail(f"cannot read {path}: {error.strerror}")
    except ValueError as error:
        _fail(str(error))


def _run(names: list[str], settings: Config, out: Path, n_jobs: int) -> None:
    from deferlearn.experiments import EXPERIMENTS, JobError, write_page
    from deferlearn.experiments.reproduce import reproduce as run_one

    start = perf_counter()
    console = Console(stderr=True)
    try:
        cost = _prepare(names, settings, out)
        with progress_bar(console) as progress:
            task = progress.add_task("", total=cost)
            for name in names:
                progress.update(task, description=name)
                on_done = Advance(progress, task, EXPERIMENTS[name].cost)
                outcome = run_one(name, settings, out, n_jobs=n_jobs, on_done=on_done)
                progress.console.print(
                    f"{name}: {len(outcome.rows)} rows, {perf_counter() - start:.0f} s",
                    highlight=False,
                )
        page = write_page(out, settings)
    except JobError as error:
        _fail(f"{error}; what is done is kept")
    except OSError as error:
        what = f"{error.filename}: {error.strerror}" if error.filename else str(error)
        _fail(f"cannot go on: {what}")
    typer.echo(f"Results: {page}")


def _prepare(names: list[str], settings: Config, out: Path) -> float:
    from deferlearn.experiments.reproduce import prepare

    try:
        return prepare(names, settings, out)
    except ValueError as error:  # data that are not what they should be
        _fail(f"cannot go on: {error}")


def _fail(message: str) -> NoReturn:
    fail("reproduce", message, FAILURE)
