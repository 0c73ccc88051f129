"""`deferlearn bench`: compare a tuned team with equally tuned baselines."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from deferlearn.cli import _options as shared
from deferlearn.cli._errors import fail, require, resumable
from deferlearn.cli._options import argument, option
from deferlearn.cli._screen import Advance, progress_bar, say
from deferlearn.cli.reproduce import NEEDED

if TYPE_CHECKING:
    import pandas as pd

bench = typer.Typer(help="Comparisons that take a while.", no_args_is_help=True)
COMMAND = "bench team"


@bench.callback()
def _keep_the_name() -> None:
    """Comparisons that take a while."""


@bench.command()
def team(
    data: Annotated[
        list[str] | None, argument("Data sets. Default: all nine.", metavar="[DATA]...")
    ] = None,
    *,
    out: shared.OutFolder = Path("results"),
    splits: Annotated[int | None, option("Number of random splits. Default: 20.", min=2)] = None,
    seed: Annotated[int, typer.Option(min=0, help="Random seed of the first split.")] = 0,
    quick: Annotated[bool, typer.Option("--quick", help="Use five splits.")] = False,
    jobs: shared.AllJobs = None,
) -> None:
    """Compare `AssistedSVCCV` with equally tuned baselines, on test sets that are not used for tuning.

    Prints mean errors, and the team's paired difference from each baseline with its 95% interval.
    If it is stopped or killed, the same command continues with the jobs that are left.
    """
    require(COMMAND, *NEEDED)
    # Imported here because they load the compiled engine, which `--help` does not need.
    from joblib import cpu_count

    from deferlearn.experiments.comparison import (
        QUICK_SPLITS,
        SPLITS,
        comparison_jobs,
        comparison_table,
        comparison_work,
    )
    from deferlearn.experiments.comparison_data import NAMES
    from deferlearn.experiments.comparison_page import write_comparison_page
    from deferlearn.experiments.runner import run_jobs
    from deferlearn.experiments.store import write_table

    names = data or list(NAMES)
    unknown = [name for name in names if name not in NAMES]
    if unknown:
        fail(COMMAND, f"no data set has the name {unknown[0]!r}; use {', '.join(NAMES)}")
    count = splits or (QUICK_SPLITS if quick else SPLITS)
    work = comparison_jobs(names, count, seed)
    folder = out / "team"
    with resumable(COMMAND):
        with progress_bar() as progress:
            done = Advance(progress, progress.add_task("team", total=len(work)), 1.0)
            n_jobs = jobs or cpu_count()
            rows = run_jobs(work, comparison_work, folder / "parts", n_jobs=n_jobs, on_done=done)
        table = comparison_table(rows)
        write_table(folder / "rows.parquet", rows)
        write_table(folder / "team.csv", table)
        words = ["deferlearn", COMMAND, *(data or []), f"--splits {count}"]
        command = " ".join([*words, f"--seed {seed}"] if seed else words)
        page = write_comparison_page(folder, rows, table, command)
    _print(table, seed, count)
    typer.echo(f"Page, picture, table and rows: {page}")


def _print(table: pd.DataFrame, seed: int, count: int) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from deferlearn.experiments.comparison import BASELINES, comparison_counts
    from deferlearn.experiments.comparison_page import difference_of

    shown = Table(
        title=f"Error of the tuned team, and its difference from each baseline (95% interval); "
        f"seeds {seed} to {seed + count - 1}"
    )
    for heading in ("data", "budget", "team", "asked", "policy", *BASELINES):
        shown.add_column(heading, justify="left" if heading in ("data", "policy") else "right")
    colours = {"better": "green", "worse": "red"}
    for line in table.to_dict("records"):
        differences = [difference_of(line, name) for name in BASELINES]
        shown.add_row(
            line["dataset"],
            f"{line['budget']:g}",
            f"{line['team']:.3f}",
            f"{line['asked']:.2f}",
            line["policy"],
            *(Text(said, style=colours.get(said.split()[-1], "")) for said in differences),
        )
    Console().print(shown)
    for name, counts in comparison_counts(table).items():
        said = ", ".join(f"{what} {number}" for what, number in counts.items())
        say(f"against {name}: {said}")
