"""`deferlearn apply`: from a model file and a table of new cases to who takes each case, and why."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from deferlearn.cli import _options as shared
from deferlearn.cli._errors import noted, reported, require
from deferlearn.cli._experts import parse_capacities, print_loads
from deferlearn.cli._files import check_paths
from deferlearn.cli._options import argument, option, parse_budget
from deferlearn.cli._screen import (
    all_to_stderr,
    print_facts,
    print_json,
    progress_bar,
    say,
    say_notes,
)

if TYPE_CHECKING:
    from deferlearn.tables import Router, TableFile
    from deferlearn.tables.writing import StagedFiles

NAME = "apply"
CHUNK_ROWS = 20_000
EXAMPLES = """Examples:

deferlearn apply model.skops new.csv --out routed.csv

deferlearn apply model.skops new.parquet --out routed.parquet --budget 30

deferlearn apply model.skops new.csv --out routed.csv --audit 0.05 --seed 1 --label-studio tasks.json

deferlearn apply model.skops new.csv --out routed.csv --capacity reader_1=10 --capacity reader_2=4
"""


def apply(
    model: shared.Model,
    cases: Annotated[Path, argument("CSV, parquet or Excel file of new cases.")],
    *,
    out: Annotated[
        Path,
        option(
            "File for the result: parquet for .parquet and .pq, Excel for .xlsx, CSV otherwise; - is the "
            "standard output, and the summary then goes to stderr."
        ),
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
    capacity: Annotated[
        list[str] | None,
        option(
            "For a model of several experts: the most cases of this file that an expert takes, as in "
            "reader_1=10 (or a share, reader_1=0.1); can be repeated. The file is then one batch, and "
            "experts who are not named take no case. Default: the capacities of the model."
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
    with_predictions: Annotated[
        bool,
        typer.Option(
            "--with-predictions",
            help="Put the machine's answer into these tasks, where Label Studio shows it. Default: those "
            "who answer do not see it.",
        ),
    ] = False,
    identifier: Annotated[
        str | None,
        option(
            "Column with the names of the cases in these tasks. Default: the identifier of the model, "
            "or the number of the row.",
            "--id",
        ),
    ] = None,
    defer_unusual: Annotated[
        bool,
        typer.Option(
            help="Give humans the cases that are unlike the training cases first: a number out of range, "
            "a gap or a category that never occurred. They are marked and counted in any case.",
        ),
    ] = True,
    exceed_budget: Annotated[
        bool,
        typer.Option(
            "--exceed-budget",
            help="Give humans all unusual cases, even if these are more than the budget. Default: the "
            "budget is kept.",
        ),
    ] = False,
    use_full_budget: Annotated[
        bool,
        typer.Option(
            "--use-full-budget",
            help="With --batch or --budget, use all places, also where humans are not expected to do "
            "better. Default: such places stay unused.",
        ),
    ] = False,
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
    quiet: shared.Quiet = False,
) -> None:
    """Write for each new case the machine's answer, whether a human should take it, and why.

    By default cases are decided one by one: a human takes a case if its score is above the model's
    threshold. With --batch or --budget, the cases of the file with the highest scores go to humans, and the
    file is read twice. Files may be larger than the memory. The result holds all columns of the file and
    ten more, and with --probabilities also one per class; cells that a spreadsheet would run as a
    formula get an apostrophe. The result is written completely or not at all.

    A model of several experts (`deferlearn fit --expert`) also names the expert who takes a case: one by
    one by the prices of their time, or with --batch, --budget or --capacity within hard capacities.
    """
    require(NAME, "pyarrow")
    start = perf_counter()
    with reported(NAME):
        from deferlearn.tables import TableError, load_decider, open_table
        from deferlearn.tables.decider import check_whole_card
        from deferlearn.tables.writing import StagedFiles
        from deferlearn.teams.budget import share_of

        share = None if budget is None else parse_budget(budget)
        limits = parse_capacities(capacity, "--capacity") if capacity else None
        setup = None if label_studio is None else label_studio.with_suffix(".xml")
        outputs = [path for path in (out, label_studio, setup) if path is not None]
        check_paths(outputs, [model, cases])
        with noted() as notes:
            team = load_decider(model)
        card = team.card_
        check_whole_card(card, model)
        experts = card.get("experts") or []
        if experts and use_full_budget:
            raise TableError("--use-full-budget is for a model without --expert")
        file = open_table(cases, delimiter=delimiter, decimal=decimal, encoding=encoding)
        _check_columns(file, card, probabilities)
        if identifier is not None and label_studio is not None:
            file.require([identifier], "given by --id")
        elif card.get("identifier") in file.columns:
            identifier = card["identifier"]
        if label_studio is not None and identifier is None:
            notes.append(
                "The tasks name their cases by the numbers of the rows. To bring the answers back, pass "
                "--id, the column with the names of the cases."
            )
        if batch and share is None and limits is None:
            share = share_of(card["budget"], card["rows"])
        if seed is None:
            seed = secrets.randbelow(shared.MAX_SEED + 1)
        write = partial(_write, file=file, outputs=outputs, identifier=identifier)
        write = partial(write, with_predictions=with_predictions, chunk_rows=chunk_rows)
        make = partial(
            _router_for(experts, limits),
            team,
            audit=audit,
            seed=seed,
            version=team.version,
            decimal=file.decimal,
            probabilities=probabilities,
            defer_unusual=defer_unusual,
            exceed_budget=exceed_budget,
            use_full_budget=use_full_budget,
        )
        router = make(budget=share)
        with StagedFiles() as files:
            n_tasks = write(router, files)
            if (kept := router.over_budget()) is not None:
                share, router = kept, make(budget=kept)
                notes.append(
                    f"Unusual cases would have exceeded the budget of {kept:.1%}. So the file was decided "
                    "as one batch, unusual cases first. Pass --exceed-budget to give humans all of them."
                )
                files.restart()
                n_tasks = write(router, files)
    totals = router.totals
    result: dict[str, Any] = {
        "model_version": team.version,
        "out": str(out),
        "rule": "batch" if router.in_batch else "one by one",
        "rows": totals.rows,
        "deferred": totals.deferred,
        "audited": totals.audited,
        "machine": totals.rows - totals.deferred - totals.audited,
        "unusual": totals.unusual,
        "unusual_deferred": totals.unusual_deferred,
        "unused_places": totals.unused,
        "unknown_categories": {name: found._asdict() for name, found in totals.unknown.items()},
        "seconds": perf_counter() - start,
        "notes": notes + totals.notes(),
    }
    if experts:
        result["experts"] = router.loads()
    if audit:
        result["seed"] = seed
    if label_studio is not None:
        result["label_studio"] = {"tasks": str(label_studio), "setup": str(setup), "count": n_tasks}
    with all_to_stderr(str(out) == "-"):
        if as_json:
            print_json(result)
        else:
            _print(result)


def _router_for(experts: list[dict[str, Any]], limits: dict[str, float | int] | None) -> Any:
    """What makes a router: one that names experts, if the model tells them apart."""
    from deferlearn.tables import Router

    if not experts and limits is None:
        return Router
    # Imported here because the engine is loaded with it, which other models do not need.
    from deferlearn.tables import ExpertRouter
    from deferlearn.tables.experts import check_known

    check_known(experts, limits)
    return partial(ExpertRouter, capacity=limits)


def _check_columns(file: TableFile, card: dict[str, Any], probabilities: bool) -> None:
    from deferlearn.tables import TableError
    from deferlearn.tables.columns import score_names
    from deferlearn.tables.routed import added_columns

    needed = [*card["columns"], *score_names(card["machine_score"])]
    file.require(needed, "which the model needs")
    for name in added_columns(card["classes"], probabilities, bool(card.get("experts"))):
        if name in file.columns:
            raise TableError(
                f"{file.path} has a column {name!r}, which the result needs: rename it, or use the file "
                "before it was routed"
            )


def _write(
    router: Router,
    files: StagedFiles,
    *,
    file: TableFile,
    outputs: list[Path],
    identifier: str | None,
    with_predictions: bool,
    chunk_rows: int,
) -> int:
    """Route all cases into the result, and into tasks and their setup if wanted; the number of tasks."""
    from deferlearn.tables.errors import CellError, TableError
    from deferlearn.tables.labelstudio import TaskWriter, labelling_setup
    from deferlearn.tables.writing import table_writer

    card = router.model.card_
    out, *studio = outputs
    with _progress(router, file.estimated_rows()) as seen:
        encoding = "utf-8-sig" if file.marked else file.encoding
        writer = table_writer(out, files.open(out), file.delimiter, file.decimal, encoding)
        tasks = None
        if studio:
            hidden = [card["label"], *(row["reader"] for row in card["readers"])]
            tasks = TaskWriter(files.open(studio[0]), identifier, hidden, with_predictions)
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
def _progress(router: Router, rows: int | None) -> Iterator[Any]:
    """Show how many rows are done and how long the others may take, if stderr is a terminal."""
    passes = 2 if router.in_batch else 1
    what = "Routing" if passes == 1 else "Scoring, then routing"
    with progress_bar() as bar:
        task = bar.add_task(what, total=None if rows is None else passes * rows)
        yield lambda done: bar.advance(task, done)


def _print(result: dict[str, Any]) -> None:
    rows = result["rows"]
    share = {key: f"{result[key]:,} ({result[key] / rows:.1%})" for key in ("deferred", "machine")}
    lines = [
        ("cases", f"{rows:,}"),
        ("rule", result["rule"]),
        ("deferred to humans", share["deferred"]),
        ("left to the machine", share["machine"]),
    ]
    if result["unusual"]:
        lines.append(("unusual cases", f"{result['unusual']:,} ({result['unusual'] / rows:.1%})"))
    if "seed" in result:
        lines.append(("audited by humans", f"{result['audited']:,}, random seed {result['seed']}"))
    print_facts("Routed", [*lines, ("model", result["model_version"])])
    if "experts" in result:
        print_loads(result["experts"], rows)
    say_notes(result["notes"])
    if "label_studio" in result:
        studio = result["label_studio"]
        say(f"Tasks: {studio['tasks']} ({studio['count']}), labelling setup: {studio['setup']}")
    say(f"Result: {result['out']}, {result['seconds']:.1f} s")
