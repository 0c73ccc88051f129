"""`deferlearn desk import`: cases and truths from a table."""

from pathlib import Path
from typing import Annotated

import typer

from deferlearn._utils.words import counted
from deferlearn.cli import _options as shared
from deferlearn.cli._errors import MISTAKE
from deferlearn.cli._options import argument, column
from deferlearn.cli._screen import say, status
from deferlearn.cli.desk._opened import Config, DatabaseUrl, opened, who

COMMAND = "desk import"
EXAMPLES = """Examples:

deferlearn desk import new.csv --id id

deferlearn desk import followed_up.csv --id id --truth diagnosis --only-truth
"""


def import_cases(
    cases: Annotated[Path, argument("CSV, parquet or Excel file with one row per case.")],
    *,
    identifier: Annotated[str, column("Column with the ids of the cases.", "--id")],
    truth: Annotated[
        str | None,
        column("Column with the truth, where it is known. Default: no truth is reported."),
    ] = None,
    only_truth: Annotated[
        bool,
        typer.Option(
            "--only-truth", help="Report truths of known cases. Default: cases arrive, too."
        ),
    ] = False,
    drop: Annotated[
        list[str] | None,
        column("Column that is not a field of the cases; can be repeated. Default: none."),
    ] = None,
    delimiter: shared.Delimiter = None,
    decimal: shared.Decimal = ".",
    encoding: shared.Encoding = "utf8",
    config: Config = None,
    database: DatabaseUrl = None,
) -> None:
    """Let the rows of a table arrive as cases, and report the truth of cases.

    Columns with the labels and the readers of the active model are left out, because experts must not see
    them. A case that is known already is left as it is, so that a table can be imported again after an
    interruption. Rows that are refused are told and counted, and the exit code is 2 then; others arrive.
    """
    with opened(COMMAND, config, database) as desk:
        from deferlearn.desk.desk import Desk
        from deferlearn.desk.importing import import_table
        from deferlearn.tables import open_table

        file = open_table(cases, delimiter=delimiter, decimal=decimal, encoding=encoding)
        with status(f"Importing {cases}"):
            done = import_table(
                Desk(desk.database),
                file,
                identifier=identifier,
                truth=truth,
                drop=drop or [],
                only_truth=only_truth,
                actor=who(),
            )
    for refusal in done.refusals:
        say(f"Refused: {refusal}", err=True)
    counts = done.counts
    say(
        f"New: {counted(counts['new'], 'case')}, known before: {counts['known']}, refused: "
        f"{counts['refused']}, new truths: {counts['truths']}"
    )
    if counts["refused"]:
        raise typer.Exit(MISTAKE)
