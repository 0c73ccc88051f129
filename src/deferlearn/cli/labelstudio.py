"""`deferlearn import-answers`: answers from Label Studio's export as a long table."""

from __future__ import annotations

import io
import json
from collections import Counter
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from deferlearn.cli._errors import reported
from deferlearn.cli._tables import AsJson, Delimiter, Encoding, check_paths, grid, require_arrow

NAME = "import-answers"
EXAMPLES = """Examples:

deferlearn import-answers export.json --out answers.csv

deferlearn fit cases.csv --label diagnosis --answers answers.csv --id id --out model.skops

deferlearn import-answers export.json --delimiter ";" --encoding latin-1 --out answers.csv
"""


def import_answers(
    export: Annotated[
        Path, typer.Argument(help="Label Studio's export, format JSON.", show_default=False)
    ],
    out: Annotated[
        Path,
        typer.Option(help="File for the answers: .parquet, or else CSV.", show_default=False),
    ],
    case: Annotated[
        str, typer.Option(help="Entry of each task's data that names the case.")
    ] = "id",
    question: Annotated[
        str, typer.Option(help="Name of the choices in the labelling setup.")
    ] = "answer",
    delimiter: Delimiter = None,
    encoding: Encoding = "utf8",
    as_json: AsJson = False,
) -> None:
    """Turn annotations of Label Studio into a table with the columns case, reader and answer.

    `deferlearn fit --answers` takes it, and reads it as it reads the cases: if these have semicolons or
    another encoding, say so here, too. The truth of these cases must come from elsewhere: answers tell what
    humans say, not whether they are right.
    """
    require_arrow(NAME)
    with reported(NAME):
        from deferlearn.tables import as_table, read_label_studio
        from deferlearn.tables.files import check_encoding, delimiter_of
        from deferlearn.tables.writing import PARQUET_SUFFIXES, StagedFiles, table_writer

        check_paths([out], [export])
        check_encoding(encoding)
        delimiter = delimiter_of(out, delimiter)
        answers = read_label_studio(export, case=case, question=question)
        with StagedFiles() as files:
            content = io.BytesIO()
            writer = table_writer(out, content, delimiter)
            writer.write(as_table(answers))
            writer.close()
            parquet = out.suffix in PARQUET_SUFFIXES
            files.open(out).write(
                content.getvalue() if parquet else _encoded(content.getvalue(), encoding)
            )
    counts = Counter(answers["reader"])
    if as_json:
        told = {"answers": len(answers["case"]), "readers": dict(counts), "out": str(out)}
        typer.echo(json.dumps(told, indent=2))
        return
    console = Console()
    console.print(grid("Answers", ["reader", "answers"], counts.items()))
    console.print(f"Answers: {out}", highlight=False, markup=False, soft_wrap=True)


def _encoded(content: bytes, encoding: str) -> bytes:
    from deferlearn.tables import TableError

    try:
        return content.decode().encode(encoding)
    except UnicodeEncodeError as error:
        wrong = error.object[error.start : error.end]
        raise TableError(f"{wrong!r} cannot be written in the encoding {encoding!r}") from error
