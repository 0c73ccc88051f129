"""`deferlearn bench`: compare a tuned team with equally tuned baselines and peers."""

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
        list[str] | None,
        argument(
            "Data sets. Default: the ten with two classes. Others: ten-digits, stages-1 to stages-5, and "
            "messidor-grades, stare-grades and aptos-grades, whose error is the mean number of grades by "
            "which answers are off.",
            metavar="[DATA]...",
        ),
    ] = None,
    *,
    out: shared.OutFolder = Path("results"),
    splits: Annotated[int | None, option("Number of random splits. Default: 20.", min=2)] = None,
    seed: Annotated[int, typer.Option(min=0, help="Random seed of the first split.")] = 0,
    quick: Annotated[bool, typer.Option("--quick", help="Use five splits.")] = False,
    part: Annotated[
        list[str] | None,
        option(
            "Compute only this part of the comparison: peers, baselines, svm or team. Repeat the option "
            "for several; with peers and team among them, the page is written. Default: all."
        ),
    ] = None,
    again: Annotated[
        list[str] | None,
        option("Compute this part again, even if its rows are there. Default: none."),
    ] = None,
    jobs: shared.AllJobs = None,
) -> None:
    """Compare the tuned team with equally tuned baselines and peers, on test sets not used for tuning.

    Prints mean errors, and the team's paired difference from its rivals with its 95% interval.
    If it is stopped or killed, the same command continues with the jobs that are left.
    """
    require(COMMAND, *NEEDED)
    # Imported here because they load the compiled engine, which `--help` does not need.
    import pandas as pd
    from joblib import cpu_count

    from deferlearn.experiments import comparison
    from deferlearn.experiments.comparison_classes import CLASS_NAMES
    from deferlearn.experiments.comparison_data import NAMES
    from deferlearn.experiments.comparison_page import write_comparison_page
    from deferlearn.experiments.comparison_table import comparison_counts, comparison_table
    from deferlearn.experiments.runner import run_jobs
    from deferlearn.experiments.store import PartStore, write_table

    names = data or list(NAMES)
    known_data = (*NAMES, *CLASS_NAMES)
    unknown = [name for name in names if name not in known_data]
    if unknown:
        fail(COMMAND, f"no data set has the name {unknown[0]!r}; use {', '.join(known_data)}")
    known = list(comparison.PARTS)
    unknown = [name for name in (*(part or ()), *(again or ())) if name not in known]
    if unknown:
        fail(COMMAND, f"no part has the name {unknown[0]!r}; use {', '.join(known)}")
    parts = [name for name in known if not part or name in part]
    count = splits or (comparison.QUICK_SPLITS if quick else comparison.SPLITS)
    work = comparison.comparison_jobs(names, count, seed, parts=parts)
    folder = out / "team"
    with resumable(COMMAND):
        store = PartStore(folder / "parts")
        for job in work:
            if job.parameters["part"] in (again or ()):
                store.path(job).unlink(missing_ok=True)
        with progress_bar() as progress:
            done = Advance(progress, progress.add_task("team", total=len(work)), 1.0)
            rows = run_jobs(
                work,
                comparison.comparison_work,
                store.folder,
                n_jobs=jobs or cpu_count(),
                on_done=done,
            )
        if not {"peers", "team"} <= set(parts):
            _print_seconds(rows)
            typer.echo(f"Rows: {store.folder}. With the parts peers and team, a page is written.")
            return
        table = comparison_table(rows)
        write_table(folder / "rows.parquet", rows)
        write_table(folder / "team.csv", table)
        counts = comparison_counts(table)
        write_table(folder / "counts.csv", pd.DataFrame(counts.values()).assign(rival=list(counts)))
        words = ["deferlearn", COMMAND, *(data or []), f"--splits {count}"]
        words += [f"--part {name}" for name in parts] if part else []
        command = " ".join([*words, f"--seed {seed}"] if seed else words)
        page = write_comparison_page(folder, rows, table, command)
    _print(table, seed, count)
    typer.echo(f"Page, picture, tables and rows: {page}")


def _print_seconds(rows: pd.DataFrame) -> None:
    from rich.console import Console
    from rich.table import Table

    from deferlearn.experiments.comparison_table import seconds_per_method

    seconds = seconds_per_method(rows)
    typer.echo("Processor seconds per split, all budgets together:")
    shown = Table()
    shown.add_column("method")
    for name in seconds.columns:
        shown.add_column(name, justify="right")
    for name, *values in seconds.itertuples(name=None):
        shown.add_row(name, *(f"{value:.1f}" for value in values))
    Console().print(shown)


def _print(table: pd.DataFrame, seed: int, count: int) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from deferlearn.experiments.comparison_page import difference_of, shown_in
    from deferlearn.experiments.comparison_table import comparison_counts

    shown = Table(
        title=f"Error of the tuned team, and its difference from its rivals (95% interval); "
        f"seeds {seed} to {seed + count - 1}"
    )
    names = shown_in(table)
    for heading in ("data", "budget", "team", "asked", "policy", *names):
        shown.add_column(heading, justify="left" if heading in ("data", "policy") else "right")
    colours = {"better": "green", "worse": "red"}
    for line in table.to_dict("records"):
        differences = [difference_of(line, name) for name in names]
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
