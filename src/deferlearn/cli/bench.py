"""`deferlearn bench`: a tuned team against equally tuned baselines."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from deferlearn.cli._errors import FAILURE, STOPPED, fail
from deferlearn.cli._progress import KEPT, Advance, progress_bar
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
        typer.Argument(
            help="Data sets; default: all nine.", metavar="[DATA]...", show_default=False
        ),
    ] = None,
    out: Annotated[
        Path, typer.Option(help="Folder for rows and tables; made if it does not exist.")
    ] = Path("results"),
    splits: Annotated[
        int | None,
        typer.Option(min=2, help="Random splits; default: 20.", show_default=False),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the first split.")] = 0,
    quick: Annotated[bool, typer.Option("--quick", help="Five splits.")] = False,
    jobs: Annotated[
        int | None,
        typer.Option(min=1, help="Splits at a time; default: one a core.", show_default=False),
    ] = None,
) -> None:
    """Compare `AssistedSVCCV` with equally tuned baselines, on test parts that took no part in tuning.

    Prints mean errors, and the team's paired difference from each baseline with its 95% interval.
    Stopped or killed, the same command goes on where it was.
    """
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        fail(COMMAND, f"this needs {', '.join(missing)}: pip install 'deferlearn[cli]'")
    # Imported here: they bring the compiled engine, which `--help` need not wait for.
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
    from deferlearn.experiments.runner import JobError, run_jobs
    from deferlearn.experiments.store import write_table

    names = data or list(NAMES)
    unknown = [name for name in names if name not in NAMES]
    if unknown:
        fail(COMMAND, f"no data set is named {unknown[0]!r}; there are {', '.join(NAMES)}")
    count = splits or (QUICK_SPLITS if quick else SPLITS)
    work = comparison_jobs(names, count, seed)
    console = Console(stderr=True)
    try:
        with progress_bar(console) as progress:
            task = progress.add_task("team", total=len(work))
            rows = run_jobs(
                work,
                comparison_work,
                out / "team" / "parts",
                n_jobs=jobs or cpu_count(),
                on_done=Advance(progress, task, 1.0),
            )
        table = comparison_table(rows)
        write_table(out / "team" / "rows.parquet", rows)
        write_table(out / "team" / "team.csv", table)
        page = write_comparison_page(out / "team", rows, table, _command(data, count, seed))
    except KeyboardInterrupt:
        fail(COMMAND, KEPT, STOPPED)
    except JobError as error:
        fail(COMMAND, f"{error}; what is done is kept", FAILURE)
    except OSError as error:
        what = f"{error.filename}: {error.strerror}" if error.filename else str(error)
        fail(COMMAND, f"cannot go on: {what}", FAILURE)
    _print(table, seed, count)
    typer.echo(f"Page, picture, table and rows: {page}")


def _command(data: list[str] | None, count: int, seed: int) -> str:
    """What to type to get the same again."""
    words = ["deferlearn bench team", *(data or []), f"--splits {count}"]
    return " ".join([*words, f"--seed {seed}"] if seed else words)


def _print(table: pd.DataFrame, seed: int, count: int) -> None:
    from deferlearn.experiments.comparison import BASELINES, comparison_counts
    from deferlearn.experiments.comparison_page import difference_of

    console = Console()
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
    console.print(shown)
    for name, counts in comparison_counts(table).items():
        said = ", ".join(f"{what} {number}" for what, number in counts.items())
        console.print(f"against {name}: {said}", highlight=False)
