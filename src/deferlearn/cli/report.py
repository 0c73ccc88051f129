"""`deferlearn report`: a model and cases with known truth in, one HTML page out."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from deferlearn.cli._errors import FAILURE, fail, noted, reported
from deferlearn.cli._inputs import load_team, long_table, name_and_digest
from deferlearn.cli._progress import progress_bar
from deferlearn.cli._tables import (
    ANSWERS,
    COLUMNS,
    MAX_SEED,
    AnswerColumn,
    AsJson,
    CaseColumn,
    Decimal,
    Delimiter,
    Encoding,
    Jobs,
    LongTable,
    ReaderColumn,
    check_paths,
    facts,
    grid,
    require_arrow,
    show,
)

if TYPE_CHECKING:
    from deferlearn.report.refit_study import Progress

NAME = "report"
STAGES = {
    "cases left out": "Deciding cases by teams that were fitted without them",
    "verdict": "Does assistance pay? Fitting teams on parts of the cases",
    "curves": "Curves: fitting teams on parts of the cases",
}
EXAMPLES = """Examples:

deferlearn report model.skops cases.csv --label diagnosis --human reader_1 --out report.html

deferlearn report model.skops cases.csv --group patient --subgroup site --quick --out report.html
"""


def report(
    model: Annotated[
        Path, typer.Argument(help="Model file that `deferlearn fit` wrote.", show_default=False)
    ],
    cases: Annotated[
        Path,
        typer.Argument(help="CSV or parquet file of cases with known truth.", show_default=False),
    ],
    out: Annotated[Path, typer.Option(help="File for the report (HTML).", show_default=False)],
    label: Annotated[
        str | None,
        typer.Option(help="Column of the truth. Default: that of the model.", show_default=False),
    ] = None,
    human: Annotated[
        list[str] | None,
        typer.Option(
            help="Column of a reader's answers; may be repeated. Default: the model's readers.",
            show_default=False,
            rich_help_panel=ANSWERS,
        ),
    ] = None,
    answers: LongTable = None,
    case: CaseColumn = "case",
    reader: ReaderColumn = "reader",
    answer: AnswerColumn = "answer",
    identifier: Annotated[
        str | None,
        typer.Option(
            "--id",
            help="Column that names the cases. Default: that of the model, of --case, or the row.",
            show_default=False,
            rich_help_panel=COLUMNS,
        ),
    ] = None,
    group: Annotated[
        str | None,
        typer.Option(
            help="Column of what belongs together, such as a patient. Default: that of the model.",
            show_default=False,
            rich_help_panel=COLUMNS,
        ),
    ] = None,
    subgroup: Annotated[
        str | None,
        typer.Option(
            help="Column whose values the verdict tells apart, such as a site.",
            show_default=False,
            rich_help_panel=COLUMNS,
        ),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Fewer budgets and splits: a third of the time.")
    ] = False,
    refit_cases: Annotated[
        int,
        typer.Option(
            min=0,
            help="Verdict and curves fit teams anew, on at most so many cases, drawn by lot; 0 leaves "
            "both out.",
        ),
    ] = 1000,
    seed: Annotated[int, typer.Option(min=0, max=MAX_SEED, help="Of splits and lots.")] = 0,
    jobs: Jobs = None,
    delimiter: Delimiter = None,
    decimal: Decimal = ".",
    encoding: Encoding = "utf8",
    as_json: AsJson = False,
) -> None:
    """Judge a model on cases with known truth and human answers: one HTML file that needs no network.

    It says whether assistance pays, who errs where, whether the model defers as many cases as it promises,
    and lists the cases, those for humans first: the file holds their data. If the model was fitted on
    these very cases, errors are those of teams that were fitted without the case. Verdict and curves fit
    dozens of teams on parts of the cases: about half a minute with 600 cases, a minute or two with 1000;
    --jobs and --quick help.
    """
    require_arrow(NAME)
    missing = [name for name in ("pandas", "jinja2") if find_spec(name) is None]
    if missing:
        fail(NAME, f"a report needs {', '.join(missing)}: pip install 'deferlearn[cli]'", FAILURE)
    start = perf_counter()
    with reported(NAME):
        from deferlearn._utils.atomic import write_atomically
        from deferlearn.report import case_report, select_report_cases
        from deferlearn.tables import TableError, open_table

        inputs = {"model": model, "cases": cases}
        if answers is not None:
            inputs["answers"] = answers
        check_paths([out], inputs.values())
        with noted() as notes:
            team, version = load_team(model)
        written: dict[str, Any] = {"delimiter": delimiter, "decimal": decimal, "encoding": encoding}
        file = open_table(cases, **written)
        card = team.card_
        file.require([label or card["label"]], "named by --label" if label else "the model's label")
        file.require(human or [], "named by --human")
        file.require([group] if group else [], "named by --group")
        file.require([subgroup] if subgroup else [], "named by --subgroup")
        file.require(list(card["columns"]), "which the model needs")
        if answers is not None and identifier is None:
            own = card["identifier"]
            identifier = own if own in file.columns else case
        file.require([identifier] if identifier else [], "which names the cases (--id)")
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
        command = _command(
            [model, cases],
            label=label,
            human=human,
            answers=answers,
            case=case if answers else None,
            reader=reader if answers else None,
            answer=answer if answers else None,
            id=identifier,
            group=group,
            subgroup=subgroup,
            quick=quick,
            refit_cases=refit_cases,
            seed=seed,
            delimiter=delimiter,
            decimal=decimal if decimal != "." else None,
            encoding=encoding if encoding != "utf8" else None,
            out=out,
        )
        known = card["files"].get("cases", {}).get("sha256")
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
        told = {"report": str(out), **found.to_dict(), "seconds": perf_counter() - start}
    if as_json:
        typer.echo(json.dumps(told, indent=2, allow_nan=False))
    else:
        _print(told)


def _command(paths: list[Path], **options: Any) -> str:
    """The command that makes the same report, every choice spelled out."""
    words = ["deferlearn", NAME, *map(str, paths)]
    for name, value in options.items():
        flag = f"--{name.replace('_', '-')}"
        if value is True:
            words.append(flag)
        elif value is not None and value is not False:
            for one in value if isinstance(value, list) else [value]:
                words += [flag, str(one)]
    return shlex.join(words)


@contextmanager
def _progress() -> Iterator[Progress]:
    """A bar of fits; where nobody looks, a line for each stage."""
    console = Console(stderr=True)
    said: list[str] = []
    with progress_bar(console) as bar:
        task = bar.add_task("", total=None)

        def tell(stage: str, done: int, total: int) -> None:
            text = STAGES[stage]
            if not console.is_terminal and text not in said:
                console.print(f"{text} ({total - done} fits left)", highlight=False, soft_wrap=True)
            said.append(text)
            bar.update(task, description=text, completed=done, total=total)

        yield tell


def _print(told: dict[str, Any]) -> None:
    console = Console()
    found, c = told["assistance"], told["calibration"]
    lines = [
        ("cases", f"{told['cases']['rows']}, {told['cases']['judged']} of them judged"),
        ("judged by", told["judged_by"]),
        ("deferred", f"{c['observed']['share']:.1%}; expected {c['expected']:.1%}"),
    ]
    if found is None:
        lines.append(("verdict and curves", f"not measured: {told['refits']['skipped']}"))
    console.print(facts("Report", lines))
    console.print(
        grid(
            "Errors",
            ["who", "error", "95% interval"],
            [
                (who, f"{e['share']:.3f}", f"{e['lower']:.3f} to {e['upper']:.3f}")
                for who, e in told["errors"].items()
            ],
        )
    )
    if found is not None:
        console.print(found["headline"], highlight=False, markup=False, soft_wrap=True)
    show(console, told["notes"])
    end = f"Report: {told['report']}, {told['seconds']:.1f} s"
    console.print(end, highlight=False, markup=False, soft_wrap=True)
