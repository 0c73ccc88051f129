"""`deferlearn evaluate`: fit a team and report on it by cross-validation, in one step."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import typer

from deferlearn.cli import _options as shared
from deferlearn.cli._options import answers_option, argument, column, option
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
    label: Annotated[str, option("Column of the true labels, with two or more classes.")],
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
    identifier: Annotated[
        str | None,
        column(
            "Column with the names of the cases; it is not a feature. Default: the column named by "
            "--case if --answers is given, otherwise none.",
            "--id",
        ),
    ] = None,
    group: Annotated[
        str | None,
        column("Column with the group of each case, such as a patient. Default: no groups."),
    ] = None,
    subgroup: Annotated[
        str | None,
        column("Column of subgroups, for which the verdict is repeated. Default: none."),
    ] = None,
    machine_score: Annotated[
        list[str] | None,
        column("Column with the score of a machine that cannot be retrained. Default: none."),
    ] = None,
    grades: Annotated[
        str | None,
        column(
            'All labels from the lowest grade to the highest, as in "none<mild<severe". Default: classes '
            "have no order."
        ),
    ] = None,
    budget: Annotated[
        str,
        typer.Option(
            help="The most cases that humans may take: a share (0.2, 20%) or a whole number of cases."
        ),
    ] = "0.2",
    alpha: Annotated[
        float | None,
        option(
            "Regularisation of a linear SVM. With it, nothing is tuned. Default: machine and policy are "
            "chosen for the team."
        ),
    ] = None,
    drop: Annotated[list[str] | None, column("Column to leave out; can be repeated.")] = None,
    category: Annotated[
        list[str] | None, column("Column to take as categories; can be repeated.")
    ] = None,
    number: Annotated[
        list[str] | None, column("Column to take as numbers; can be repeated.")
    ] = None,
    keep: Annotated[
        list[str] | None,
        column("Column to use as a feature although its values are the classes; can be repeated."),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Use fewer budgets and splits: a third of the time.")
    ] = False,
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
    with TemporaryDirectory() as folder:
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
