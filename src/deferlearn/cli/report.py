"""`deferlearn report`: from a model and cases with known truth to one HTML page."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from deferlearn._utils.words import counted
from deferlearn.cli import _options as shared
from deferlearn.cli._errors import noted, reported, require
from deferlearn.cli._files import check_paths, command_line, long_table, name_and_digest
from deferlearn.cli._options import answers_option, argument, column, option
from deferlearn.cli._screen import (
    print_errors,
    print_facts,
    print_grid,
    print_json,
    progress_bar,
    say,
    say_notes,
)

if TYPE_CHECKING:
    from deferlearn.report.refit_study import Progress

NAME = "report"
STAGES = {
    "cases left out": "Deciding cases by teams that were fitted without them",
    "verdict": "Other budgets: fitting teams on parts of the cases",
    "curves": "Other budgets, one case at a time: fitting teams on parts of the cases",
}
EXAMPLES = """Examples:

deferlearn report model.skops cases.csv --label diagnosis --human reader_1 --out report.html

deferlearn report model.skops cases.csv --group patient --subgroup site --quick --out report.html
"""


def report(
    context: typer.Context,
    model: shared.Model,
    cases: Annotated[Path, argument("CSV or parquet file of cases with known truth.")],
    *,
    out: Annotated[Path, option("File for the report (HTML).")],
    label: Annotated[
        str | None, option("Column of the true labels. Default: the label column of the model.")
    ] = None,
    human: Annotated[
        list[str] | None,
        answers_option(
            "Column of a reader's answers; can be repeated. Default: the model's readers."
        ),
    ] = None,
    answers: shared.LongTable = None,
    case: shared.CaseColumn = "case",
    reader: shared.ReaderColumn = "reader",
    answer: shared.AnswerColumn = "answer",
    identifier: Annotated[
        str | None,
        column(
            "Column with the names of the cases. Default: the identifier of the model, the column named "
            "by --case if --answers is given, or the number of the row.",
            "--id",
        ),
    ] = None,
    group: Annotated[
        str | None,
        column(
            "Column with the group of each case, such as a patient. Default: the group of the model."
        ),
    ] = None,
    subgroup: shared.Subgroup = None,
    quick: shared.Quick = False,
    refit_cases: Annotated[
        int,
        typer.Option(
            min=0,
            help="The most cases, drawn at random, on which teams are refitted to try other budgets; 0 "
            "leaves that out.",
        ),
    ] = 1000,
    seed: shared.Seed = 0,
    jobs: shared.Jobs = None,
    delimiter: shared.Delimiter = None,
    decimal: shared.Decimal = ".",
    encoding: shared.Encoding = "utf8",
    as_json: shared.AsJson = False,
    quiet: shared.Quiet = False,
) -> None:
    """Evaluate a model on cases with known truth and human answers, in one HTML file.

    The report says whether it pays to ask humans, who errs where, whether the machine's probabilities
    hold, and whether the cases are like those in training. It lists the cases, those for humans first, so
    the file holds their data; it needs no network. If the model was fitted on the same cases, errors are
    those of teams that were fitted without the case. To see whether another budget or retraining would
    help, dozens of teams are fitted on parts of the cases: this takes about half a minute with 600 cases,
    and a minute or two with 1000. --jobs and --quick make it faster, and --refit-cases 0 leaves it out.
    """
    require(NAME, "pyarrow", "pandas", "jinja2")
    start = perf_counter()
    with reported(NAME):
        from deferlearn.tables import TableError, load_decider, open_table
        from deferlearn.tables.decider import check_whole_card

        inputs = {"model": model, "cases": cases}
        if answers is not None:
            inputs["answers"] = answers
        check_paths([out], inputs.values())
        with noted():
            card = load_decider(model).card_
        check_whole_card(card, model)
        written: dict[str, Any] = {"delimiter": delimiter, "decimal": decimal, "encoding": encoding}
        file = open_table(cases, **written)
        if answers is not None and identifier is None:
            own = card["identifier"]
            identifier = own if own in file.columns else case
        file.require([label or card["label"]], "given by --label" if label else "the model's label")
        file.require(human or [], "given by --human")
        file.require([group] if group else [], "given by --group")
        file.require([subgroup] if subgroup else [], "given by --subgroup")
        file.require(list(card["columns"]), "which the model needs")
        file.require([identifier] if identifier else [], "which names the cases (--id)")
        # Imported here because it takes seconds: mistakes in the options are reported first.
        from deferlearn._utils.atomic import write_atomically
        from deferlearn.report import case_report, select_report_cases
        from deferlearn.tables.team import load_team

        with noted() as notes:
            team, version = load_team(model)
        long = None if answers is None else long_table(answers, [case, reader, answer], written)
        files = {role: name_and_digest(path) for role, path in inputs.items()}
        try:
            chosen = select_report_cases(
                file.read(),
                team,
                label=label,
                humans=human or [],
                answers=long,
                identifier=identifier,
                group=group,
                subgroup=subgroup,
                decimal=decimal if not file.parquet else ".",
            )
        except TableError as error:
            raise TableError(f"{cases}: {error}") from error
        known = card["files"].get("cases", {}).get("sha256")
        command = command_line(context, spelled=("refit_cases", "seed"))
        with _progress() as progress:
            found = case_report(
                team,
                chosen,
                seen=known == files["cases"]["sha256"],
                quick=quick,
                refit_cases=refit_cases,
                seed=seed,
                n_jobs=jobs,
                version=version,
                notes=notes,
                provenance={"files": files, "command": command},
                progress=progress,
            )
        write_atomically(out, found.to_html().encode("utf-8"))
    result = {"report": str(out), **found.to_dict(), "seconds": perf_counter() - start}
    if as_json:
        print_json(result)
    else:
        _print(result)


@contextmanager
def _progress() -> Iterator[Progress]:
    """Show a bar of fits; if stderr is not a terminal, one line per stage."""
    shown: set[str] = set()
    with progress_bar() as bar:
        task = bar.add_task("", total=None)

        def show(stage: str, done: int, total: int) -> None:
            text = STAGES[stage]
            if bar.disable and stage not in shown:
                say(f"{text} ({counted(total - done, 'fit')} left)", err=True)
            shown.add(stage)
            bar.update(task, description=text, completed=done, total=total)

        yield show


def _print(result: dict[str, Any]) -> None:
    rate, cases = result["rate"], result["cases"]
    # On cases that the model was fitted on, the teams that are judged are others than the model.
    deferred = result["effect"]["deferred"] if rate["in_sample"] else rate["observed"]
    lines = [
        ("cases", f"{cases['rows']}, of which {cases['judged']} count"),
        ("errors of", result["judged_by"]),
        ("deferred", f"{deferred['share']:.1%}; expected {rate['expected']:.1%}"),
    ]
    if result["assistance"] is None:
        lines.append(("refitted teams", f"not measured: {result['refits']['skipped']}"))
    print_facts("Report", lines)
    print_errors("Errors", result["errors"], "share")
    if result["measures"] is not None:
        measures = result["measures"]
        names = list(measures["team"])
        rows = [
            (who, *("-" if own[n] is None else f"{own[n]:.3f}" for n in names))
            for who, own in measures.items()
        ]
        print_grid("Over all classes", ["who", *(n.replace("_", " ") for n in names)], rows)
    say(f"Does it pay to ask humans? {result['effect']['headline']}")
    say_notes(result["notes"])
    say(f"Report: {result['report']}, {result['seconds']:.1f} s")
