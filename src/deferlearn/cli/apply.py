"""`deferlearn apply`: from a model file and a table of new cases to who takes each of them, and why."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from deferlearn.cli._errors import noted, reported
from deferlearn.cli._inputs import load_team
from deferlearn.cli._tables import (
    MAX_SEED,
    AsJson,
    Decimal,
    Delimiter,
    Encoding,
    check_paths,
    facts,
    parse_budget,
    require_arrow,
    show,
)

if TYPE_CHECKING:
    from deferlearn.tables import Router, TableFile, TabularTeam

NAME = "apply"
CHUNK_ROWS = 20_000
EXAMPLES = """Examples:

deferlearn apply model.skops new.csv --out routed.csv

deferlearn apply model.skops new.parquet --out routed.parquet --budget 30

deferlearn apply model.skops new.csv --out routed.csv --audit 0.05 --seed 1 --label-studio tasks.json
"""


def apply(
    model: Annotated[
        Path, typer.Argument(help="Model file that `deferlearn fit` wrote.", show_default=False)
    ],
    cases: Annotated[
        Path, typer.Argument(help="CSV or parquet file of new cases.", show_default=False)
    ],
    out: Annotated[
        Path,
        typer.Option(help="File for the result: .parquet, or else CSV.", show_default=False),
    ],
    batch: Annotated[
        bool,
        typer.Option(
            "--batch",
            help="Give humans those of this file that score highest, as many as the model's budget says.",
        ),
    ] = False,
    budget: Annotated[
        str | None,
        typer.Option(
            help="The same with another budget: a share (0.1, 10%) or a whole number of cases.",
            show_default=False,
        ),
    ] = None,
    audit: Annotated[
        float,
        typer.Option(
            min=0.0,
            max=1.0,
            help="Share of the machine's cases that humans get too, drawn by lot and marked.",
        ),
    ] = 0.0,
    seed: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=MAX_SEED,
            help="Of the lot; without one it is drawn, and told.",
            show_default=False,
        ),
    ] = None,
    label_studio: Annotated[
        Path | None,
        typer.Option(
            help="File (JSON) for the humans' cases as tasks of Label Studio; the labelling setup is "
            "written beside it as .xml.",
            show_default=False,
        ),
    ] = None,
    identifier: Annotated[
        str | None,
        typer.Option(
            "--id",
            help="Column that names the cases in these tasks. Default: that of the model, or the row.",
            show_default=False,
        ),
    ] = None,
    chunk_rows: Annotated[int, typer.Option(min=1, help="Rows in memory at a time.")] = CHUNK_ROWS,
    delimiter: Delimiter = None,
    decimal: Decimal = ".",
    encoding: Encoding = "utf8",
    as_json: AsJson = False,
) -> None:
    """Say of each new case what the machine answers, whether a human should take it, and why.

    One case at a time by default: a human takes it if its score is above the model's threshold. With
    --batch or --budget the file is a batch, and those that score highest go to humans; it is read
    twice. Files may be larger than the memory. The result holds all columns of the file and nine more;
    cells that a spreadsheet would run as a formula get an apostrophe. It is written whole or not at all.
    """
    require_arrow(NAME)
    start = perf_counter()
    with reported(NAME):
        share = None if budget is None else parse_budget(budget)
        setup = None if label_studio is None else label_studio.with_suffix(".xml")
        outputs = [path for path in (out, label_studio, setup) if path is not None]
        check_paths(outputs, [model, cases])
        with noted() as notes:
            team, version = load_team(model)
        file = _open(cases, team, delimiter=delimiter, decimal=decimal, encoding=encoding)
        if label_studio is not None:
            identifier = _identifier(identifier, team, file)
        if batch and share is None:
            share = _own_budget(team)
        if seed is None:
            seed = secrets.randbelow(MAX_SEED + 1)
        from deferlearn.tables import Router

        router = Router(team, budget=share, audit=audit, seed=seed, version=version)
        n_tasks = _run(router, file, out, label_studio, setup, identifier, chunk_rows)
    told = _summary(router, version, out, perf_counter() - start)
    if audit:
        told["seed"] = seed
    if label_studio is not None:
        told["label_studio"] = {"tasks": str(label_studio), "setup": str(setup), "count": n_tasks}
    told["notes"] = notes + _strangers(router)
    if as_json:
        typer.echo(json.dumps(told, indent=2, allow_nan=False))
    else:
        _print(told)


def _open(path: Path, team: TabularTeam, **options: Any) -> TableFile:
    from deferlearn.tables import TableError, open_table
    from deferlearn.tables.routing import COLUMNS

    file = open_table(path, **options)
    file.require(list(team.card_["columns"]), "which the model needs")
    taken = [name for name in COLUMNS if name in file.columns]
    if taken:
        raise TableError(
            f"{path} has a column {taken[0]!r}, which is to be written: rename it, or take the file "
            "before it was routed"
        )
    return file


def _identifier(name: str | None, team: TabularTeam, file: TableFile) -> str | None:
    if name is not None:
        file.require([name], "named by --id")
        return name
    own: str | None = team.card_.get("identifier")
    return own if own in file.columns else None


def _own_budget(team: TabularTeam) -> float:
    """A number of training cases acts as the share that it was of them."""
    budget = team.card_["budget"]
    return budget / team.card_["rows"] if isinstance(budget, int) else float(budget)


def _run(
    router: Router,
    file: TableFile,
    out: Path,
    tasks: Path | None,
    setup: Path | None,
    identifier: str | None,
    chunk_rows: int,
) -> int:
    """Route all cases into the files; how many tasks there are."""
    from deferlearn.tables import TableError
    from deferlearn.tables.labelstudio import TaskWriter, labelling_setup
    from deferlearn.tables.writing import StagedFiles, table_writer

    card = router.model.card_
    hidden = [card["label"], *(row["reader"] for row in card["readers"])]
    with StagedFiles() as files:
        writer = table_writer(out, files.open(out), file.delimiter, file.decimal)
        task_writer = None
        if tasks is not None and setup is not None:
            task_writer = TaskWriter(files.open(tasks), identifier, hidden)
            files.open(setup).write(labelling_setup(card["classes"]).encode())
        for chunk, routed in _routed(router, file, chunk_rows):
            writer.write(_beside(chunk, routed))
            if task_writer is not None:
                task_writer.write(chunk, routed)
        if router.totals.rows == 0:
            raise TableError(f"{file.path} has columns, but no rows")
        writer.close()
        if task_writer is not None:
            task_writer.close()
    return 0 if task_writer is None else task_writer.count


def _routed(router: Router, file: TableFile, chunk_rows: int) -> Iterable[tuple[Any, Any]]:
    """Chunks as they stand in the file with what was decided, and a bar that moves."""
    from deferlearn.tables.cells import with_points
    from deferlearn.tables.errors import CellError, TableError

    numbers = [name for name, kind in router.model.card_["columns"].items() if kind == "number"]
    raw: list[Any] = []

    def chunks() -> Iterable[Any]:
        rows = 0
        for chunk in file.chunks(chunk_rows):
            raw[:] = [chunk]
            if file.decimal == ",":
                try:
                    chunk = with_points(chunk, numbers)
                except CellError as error:
                    raise error.moved(rows) from None
            rows += chunk.num_rows
            yield chunk

    console = Console(stderr=True)
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        TextColumn("{task.completed:,.0f} rows"),
        TimeElapsedColumn(),
    )
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        what = "Routing" if router.budget is None else "Scoring, then routing"
        task = bar.add_task(what, total=None)
        try:
            for _, routed in router.route(chunks, lambda rows: bar.advance(task, rows)):
                yield raw[0], routed
        except TableError as error:
            raise TableError(f"{file.path}: {error}") from error


def _beside(chunk: Any, routed: Any) -> Any:
    for name in routed.column_names:
        chunk = chunk.append_column(name, routed.column(name))
    return chunk


def _strangers(router: Router) -> list[str]:
    return [
        f"column {name!r} has {unknown.cells} cells with a category that was not there in training, such "
        f"as {unknown.example!r}; they count as rare ones"
        for name, unknown in router.totals.unknown.items()
    ]


def _summary(router: Router, version: str, out: Path, seconds: float) -> dict[str, Any]:
    totals = router.totals
    batch = router.budget is not None
    return {
        "model_version": version,
        "out": str(out),
        "rule": "batch" if batch else "one by one",
        "rows": totals.rows,
        "deferred": totals.deferred,
        "audited": totals.audited,
        "machine": totals.rows - totals.deferred - totals.audited,
        "unknown_categories": {
            name: {"cells": unknown.cells, "example": unknown.example}
            for name, unknown in totals.unknown.items()
        },
        "seconds": seconds,
    }


def _print(told: dict[str, Any]) -> None:
    console = Console()
    rows = told["rows"]
    share = {key: f"{told[key]:,} ({told[key] / rows:.1%})" for key in ("deferred", "machine")}
    lines = [
        ("cases", f"{rows:,}"),
        ("rule", told["rule"]),
        ("deferred to humans", share["deferred"]),
        ("left to the machine", share["machine"]),
    ]
    if "seed" in told:
        lines.append(("audited by humans", f"{told['audited']:,}, by lot, seed {told['seed']}"))
    lines.append(("model", told["model_version"]))
    console.print(facts("Routed", lines))
    show(console, told["notes"])
    if "label_studio" in told:
        studio = told["label_studio"]
        end = f"Tasks: {studio['tasks']} ({studio['count']}), labelling setup: {studio['setup']}"
        console.print(end, highlight=False, markup=False, soft_wrap=True)
    end = f"Result: {told['out']}, {told['seconds']:.1f} s"
    console.print(end, highlight=False, markup=False, soft_wrap=True)
