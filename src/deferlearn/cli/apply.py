"""`deferlearn apply`: from a model file and a table of new cases to who takes each case, and why."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from deferlearn.cli import _options as shared
from deferlearn.cli._errors import noted, reported, require
from deferlearn.cli._files import check_paths
from deferlearn.cli._options import argument, option, parse_budget
from deferlearn.cli._screen import print_facts, print_json, say

if TYPE_CHECKING:
    from deferlearn.tables import Router, TableFile

NAME = "apply"
CHUNK_ROWS = 20_000
EXAMPLES = """Examples:

deferlearn apply model.skops new.csv --out routed.csv

deferlearn apply model.skops new.parquet --out routed.parquet --budget 30

deferlearn apply model.skops new.csv --out routed.csv --audit 0.05 --seed 1 --label-studio tasks.json
"""


def apply(
    model: shared.Model,
    cases: Annotated[Path, argument("CSV or parquet file of new cases.")],
    *,
    out: Annotated[
        Path, option("File for the result: parquet for .parquet and .pq, CSV otherwise.")
    ],
    batch: Annotated[
        bool,
        typer.Option(
            "--batch",
            help="Defer the cases of this file with the highest scores, as many as the model's budget "
            "allows, instead of deciding one by one.",
        ),
    ] = False,
    budget: Annotated[
        str | None,
        option(
            "Like --batch with another budget: a share (0.1, 10%) or a whole number of cases. "
            "Default: without --batch, cases are decided one by one."
        ),
    ] = None,
    audit: Annotated[
        float,
        typer.Option(
            min=0.0,
            max=1.0,
            help="Share of the machine's cases that humans take as well; they are drawn at random and "
            "marked.",
        ),
    ] = 0.0,
    seed: Annotated[
        int | None,
        option(
            "Random seed of the audit. Default: a new seed, which is printed.",
            min=0,
            max=shared.MAX_SEED,
        ),
    ] = None,
    label_studio: Annotated[
        Path | None,
        option(
            "File (JSON) for the humans' cases as tasks of Label Studio; the labelling setup is written "
            "beside it as .xml. Default: no tasks are written."
        ),
    ] = None,
    identifier: Annotated[
        str | None,
        option(
            "Column with the names of the cases in these tasks. Default: the identifier of the model, "
            "or the number of the row.",
            "--id",
        ),
    ] = None,
    probabilities: Annotated[
        bool,
        typer.Option(
            "--probabilities",
            help="Add a column for each class with its probability, as the machine sees it. Default: no "
            "such columns.",
        ),
    ] = False,
    chunk_rows: Annotated[int, typer.Option(min=1, help="Rows in memory at a time.")] = CHUNK_ROWS,
    delimiter: shared.Delimiter = None,
    decimal: shared.Decimal = ".",
    encoding: shared.Encoding = "utf8",
    as_json: shared.AsJson = False,
) -> None:
    """Write for each new case the machine's answer, whether a human should take it, and why.

    By default cases are decided one by one: a human takes a case if its score is above the model's
    threshold. With --batch or --budget, the cases of the file with the highest scores go to humans, and the
    file is read twice. Files may be larger than the memory. The result holds all columns of the file and
    nine more, and with --probabilities also one per class; cells that a spreadsheet would run as a
    formula get an apostrophe. The result is written completely or not at all.
    """
    require(NAME, "pyarrow")
    start = perf_counter()
    with reported(NAME):
        from deferlearn.tables import Router, load_decider, open_table
        from deferlearn.tables.decider import check_whole_card
        from deferlearn.teams.budget import share_of

        share = None if budget is None else parse_budget(budget)
        setup = None if label_studio is None else label_studio.with_suffix(".xml")
        outputs = [path for path in (out, label_studio, setup) if path is not None]
        check_paths(outputs, [model, cases])
        with noted() as notes:
            team = load_decider(model)
        card = team.card_
        check_whole_card(card, model)
        file = open_table(cases, delimiter=delimiter, decimal=decimal, encoding=encoding)
        _check_columns(file, card, probabilities)
        if identifier is not None and label_studio is not None:
            file.require([identifier], "given by --id")
        elif card.get("identifier") in file.columns:
            identifier = card["identifier"]
        if batch and share is None:
            share = share_of(card["budget"], card["rows"])
        if seed is None:
            seed = secrets.randbelow(shared.MAX_SEED + 1)
        router = Router(
            team,
            budget=share,
            audit=audit,
            seed=seed,
            version=team.version,
            decimal=decimal,
            probabilities=probabilities,
        )
        n_tasks = _write(router, file, outputs, identifier, chunk_rows)
    totals = router.totals
    result: dict[str, Any] = {
        "model_version": team.version,
        "out": str(out),
        "rule": "one by one" if share is None else "batch",
        "rows": totals.rows,
        "deferred": totals.deferred,
        "audited": totals.audited,
        "machine": totals.rows - totals.deferred - totals.audited,
        "unknown_categories": {name: found._asdict() for name, found in totals.unknown.items()},
        "seconds": perf_counter() - start,
        "notes": notes + totals.notes(),
    }
    if audit:
        result["seed"] = seed
    if label_studio is not None:
        result["label_studio"] = {"tasks": str(label_studio), "setup": str(setup), "count": n_tasks}
    if as_json:
        print_json(result)
    else:
        _print(result)


def _check_columns(file: TableFile, card: dict[str, Any], probabilities: bool) -> None:
    from deferlearn.tables import TableError
    from deferlearn.tables.columns import score_names
    from deferlearn.tables.routing import added_columns

    needed = [*card["columns"], *score_names(card["machine_score"])]
    file.require(needed, "which the model needs")
    for name in added_columns(card["classes"], probabilities):
        if name in file.columns:
            raise TableError(
                f"{file.path} has a column {name!r}, which the result needs: rename it, or use the file "
                "before it was routed"
            )


def _write(
    router: Router, file: TableFile, outputs: list[Path], identifier: str | None, chunk_rows: int
) -> int:
    """Route all cases into the result, and into tasks and their setup if wanted; the number of tasks."""
    from deferlearn.tables.errors import CellError, TableError
    from deferlearn.tables.labelstudio import TaskWriter, labelling_setup
    from deferlearn.tables.writing import StagedFiles, table_writer

    card = router.model.card_
    out, *studio = outputs
    with StagedFiles() as files, _progress(router) as seen:
        writer = table_writer(out, files.open(out), file.delimiter, file.decimal)
        tasks = None
        if studio:
            hidden = [card["label"], *(row["reader"] for row in card["readers"])]
            tasks = TaskWriter(files.open(studio[0]), identifier, hidden)
            files.open(studio[1]).write(labelling_setup(card["classes"]).encode())
        try:
            for chunk, routed in router.route(lambda: file.chunks(chunk_rows), seen):
                if tasks is not None:
                    tasks.write(chunk, routed)
                for name in routed.column_names:
                    chunk = chunk.append_column(name, routed.column(name))
                writer.write(chunk)
        except CellError as error:
            raise TableError(f"{file.path}: {error}") from error
        if router.totals.rows == 0:
            raise TableError(f"{file.path} has columns, but no rows")
        writer.close()
        if tasks is not None:
            tasks.close()
    return 0 if tasks is None else tasks.count


@contextmanager
def _progress(router: Router) -> Iterator[Any]:
    """Count the rows on stderr, if it is a terminal."""
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    counts = TextColumn("{task.completed:,.0f} rows")
    columns = (SpinnerColumn(), TextColumn("{task.description}"), counts, TimeElapsedColumn())
    hidden = not console.is_terminal
    with Progress(*columns, console=console, transient=True, disable=hidden) as bar:
        what = "Routing" if router.budget is None else "Scoring, then routing"
        task = bar.add_task(what, total=None)
        yield lambda rows: bar.advance(task, rows)


def _print(result: dict[str, Any]) -> None:
    rows = result["rows"]
    share = {key: f"{result[key]:,} ({result[key] / rows:.1%})" for key in ("deferred", "machine")}
    lines = [
        ("cases", f"{rows:,}"),
        ("rule", result["rule"]),
        ("deferred to humans", share["deferred"]),
        ("left to the machine", share["machine"]),
    ]
    if "seed" in result:
        lines.append(("audited by humans", f"{result['audited']:,}, random seed {result['seed']}"))
    print_facts("Routed", [*lines, ("model", result["model_version"])])
    say(*(f"Note: {note}" for note in result["notes"]))
    if "label_studio" in result:
        studio = result["label_studio"]
        say(f"Tasks: {studio['tasks']} ({studio['count']}), labelling setup: {studio['setup']}")
    say(f"Result: {result['out']}, {result['seconds']:.1f} s")
