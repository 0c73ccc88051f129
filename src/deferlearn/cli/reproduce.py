"""`deferlearn reproduce`: compute the paper's results, one or all, into a folder."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated

import typer

from deferlearn._utils.words import counted
from deferlearn.cli import _options as shared
from deferlearn.cli._errors import FAILURE, fail, require, resumable
from deferlearn.cli._options import argument, option
from deferlearn.cli._screen import Advance, progress_bar

if TYPE_CHECKING:
    from deferlearn.experiments import Config

NAME = "reproduce"
NEEDED = ("matplotlib", "pandas", "pyarrow", "pydantic")
ALL = "all"


class Protocol(StrEnum):
    """How the data are split and the humans are drawn."""

    repeated = "repeated"
    published = "published"


def reproduce(
    names: Annotated[
        list[str], argument("fig1 to fig6, runtime, bounds, or all.", metavar="NAME...")
    ],
    *,
    out: shared.OutFolder = Path("results"),
    protocol: Annotated[
        Protocol | None,
        option(
            "repeated: random splits, with intervals. published: the paper's split, Figure 5 as published. "
            "Default: repeated."
        ),
    ] = None,
    quick: Annotated[
        bool,
        typer.Option(
            "--quick", help="Use three splits and a coarse search, to see whether everything works."
        ),
    ] = False,
    splits: Annotated[
        int | None, option("Number of splits or draws. Default: that of the protocol.", min=1)
    ] = None,
    config: Annotated[
        Path | None, option("TOML file with other settings. Default: those of the protocol.")
    ] = None,
    jobs: shared.AllJobs = None,
) -> None:
    """Compute the paper's results: tables with intervals, figures, and a verdict on each claim.

    If it is stopped or killed, the same command continues with the jobs that are left.
    """
    require(NAME, *NEEDED)
    # Imported here because they load the compiled engine, which `--help` does not need.
    from joblib import cpu_count

    from deferlearn.experiments import EXPERIMENTS

    unknown = [name for name in names if name not in EXPERIMENTS and name != ALL]
    if unknown:
        message = f"no result has the name {unknown[0]!r}; use {', '.join(EXPERIMENTS)}, or {ALL}"
        fail(NAME, message, FAILURE)
    wanted = [name for name in EXPERIMENTS if name in names or ALL in names]
    settings = _settings(config, protocol, quick, splits)
    with resumable(NAME):
        _run(wanted, settings, out, jobs or cpu_count())


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
        fail(NAME, f"cannot read {path}: {error.strerror}", FAILURE)
    except ValueError as error:
        fail(NAME, str(error), FAILURE)


def _run(names: list[str], settings: Config, out: Path, n_jobs: int) -> None:
    from deferlearn.experiments import EXPERIMENTS, write_page
    from deferlearn.experiments.reproduce import prepare
    from deferlearn.experiments.reproduce import reproduce as run_one

    start = perf_counter()
    try:
        cost = prepare(names, settings, out)
    except ValueError as error:  # the data are not what they should be
        fail(NAME, f"cannot continue: {error}", FAILURE)
    with progress_bar() as progress:
        task = progress.add_task("", total=cost)
        for name in names:
            progress.update(task, description=name)
            on_done = Advance(progress, task, EXPERIMENTS[name].cost)
            outcome = run_one(name, settings, out, n_jobs=n_jobs, on_done=on_done)
            rows = counted(len(outcome.rows), "row")
            line = f"{name}: {rows}, {perf_counter() - start:.0f} s"
            progress.console.print(line, highlight=False)
    typer.echo(f"Results: {write_page(out, settings)}")
