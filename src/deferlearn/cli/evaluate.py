"""`deferlearn evaluate`: fit a team and report on it by cross-validation, in one step."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import typer

from deferlearn.cli import _options as shared
from deferlearn.cli._errors import on_behalf_of
from deferlearn.cli._options import answers_option, argument, option
from deferlearn.cli._screen import quietly
from deferlearn.cli.fit import fit
from deferlearn.cli.report import report

NAME = "evaluate"
EXAMPLES = """Examples:

deferlearn evaluate cases.csv --label diagnosis --human reader_1 --out report.html

deferlearn evaluate cases.xlsx --label diagnosis --human reader_1 --group patient --budget 10% --quick
--model model.skops --out report.html
"""


def evaluate(
    context: typer.Context,
    cases: Annotated[Path, argument("CSV, parquet or Excel file of cases with known truth.")],
    *,
    label: shared.Label,
    out: Annotated[Path, option("File for the report (HTML).")],
    model: Annotated[
        Path | None, option("File for the model. Default: the model is not kept.")
    ] = None,
    human: Annotated[
        list[str] | None, answers_option("Column of a reader's answers; can be repeated.")
    ] = None,
    answers: shared.LongTable = None,
    case: shared.CaseColumn = "case",
    reader: shared.ReaderColumn = "reader",
    answer: shared.AnswerColumn = "answer",
    identifier: shared.CaseNames = None,
    group: shared.Group = None,
    subgroup: shared.Subgroup = None,
    machine_score: shared.MachineScore = None,
    grades: shared.Grades = None,
    cost_matrix: shared.CostMatrix = None,
    budget: Annotated[
        str,
        typer.Option(
            help="The most cases that humans may take: a share (0.2, 20%) or a whole number of cases."
        ),
    ] = "0.2",
    alpha: shared.Alpha = None,
    drop: shared.Drop = None,
    category: shared.Category = None,
    number: shared.Number = None,
    keep: shared.Keep = None,
    quick: shared.Quick = False,
    seed: shared.Seed = 0,
    jobs: shared.Jobs = None,
    delimiter: shared.Delimiter = None,
    decimal: shared.Decimal = ".",
    encoding: shared.Encoding = "utf8",
    as_json: shared.AsJson = False,
    quiet: shared.Quiet = False,
) -> None:
    """Fit a team on cases with known truth, and report how well such teams do on cases they have not seen.

    This is `deferlearn fit` and `deferlearn report` on the same cases. All errors are those of teams that
    were fitted without the case, in five folds; verdict and curves fit further teams on parts of the cases.
    """
    written: dict[str, Any] = {"delimiter": delimiter, "decimal": decimal, "encoding": encoding}
    long: dict[str, Any] = {"answers": answers, "case": case, "reader": reader, "answer": answer}
    with on_behalf_of(NAME), TemporaryDirectory() as folder:
        path = Path(folder) / "model.skops" if model is None else model
        with quietly(quiet or as_json):
            fit(
                cases,
                label=label,
                out=path,
                human=human,
                **long,
                identifier=identifier,
                group=group,
                machine_score=machine_score,
                grades=grades,
                cost_matrix=cost_matrix,
                budget=budget,
                alpha=alpha,
                drop=drop,
                category=category,
                number=number,
                keep=keep,
                seed=seed,
                jobs=jobs,
                evaluate=False,
                certify=None,
                **written,
            )
        report(
            context,
            path,
            cases,
            out=out,
            human=human,
            **long,
            identifier=identifier,
            group=group,
            subgroup=subgroup,
            quick=quick,
            seed=seed,
            jobs=jobs,
            **written,
            as_json=as_json,
        )
