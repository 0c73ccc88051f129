"""`deferlearn import-answers`: answers from Label Studio's export as a long table."""

import io
from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from deferlearn.cli import _options as shared
from deferlearn.cli._errors import reported, require
from deferlearn.cli._files import check_paths
from deferlearn.cli._options import argument, option
from deferlearn.cli._screen import print_grid, print_json, say

NAME = "import-answers"
EXAMPLES = """Examples:

deferlearn import-answers export.json --out answers.csv

deferlearn fit cases.csv --label diagnosis --answers answers.csv --id id --out model.skops

deferlearn import-answers export.json --delimiter ";" --encoding latin-1 --out answers.csv
"""


def import_answers(
    export: Annotated[Path, argument("Export of Label Studio in the format JSON.")],
    *,
    out: Annotated[
        Path, option("File for the answers: parquet for .parquet and .pq, CSV otherwise.")
    ],
    case: Annotated[
        str, typer.Option(help="Entry of each task's data that holds the name of the case.")
    ] = "id",
    question: Annotated[
        str, typer.Option(help="Name of the choices in the labelling setup.")
    ] = "answer",
    delimiter: shared.Delimiter = None,
    encoding: shared.Encoding = "utf8",
    as_json: shared.AsJson = False,
) -> None:
    """Turn annotations of Label Studio into a table with the columns case, reader and answer.

    `deferlearn fit --answers` reads the table in the format of the cases: if these have semicolons or
    another encoding, pass the same options here. The truth of the cases must come from another source:
    answers say what humans think, not whether they are right.
    """
    require(NAME, "pyarrow")
    with reported(NAME):
        from deferlearn.tables import TableError, as_table, read_label_studio
        from deferlearn.tables.files import check_encoding, delimiter_of
        from deferlearn.tables.writing import CsvWriter, StagedFiles, table_writer

        check_paths([out], [export])
        check_encoding(encoding)
        delimiter = delimiter_of(out, delimiter)
        answers = read_label_studio(export, case=case, question=question)
        buffer = io.BytesIO()
        writer = table_writer(out, buffer, delimiter)
        writer.write(as_table(answers))
        writer.close()
        content = buffer.getvalue()
        if isinstance(writer, CsvWriter):
            try:
                content = content.decode().encode(encoding)
            except UnicodeEncodeError as error:
                wrong = error.object[error.start : error.end]
                raise TableError(
                    f"{wrong!r} cannot be written in the encoding {encoding!r}: choose another"
                ) from error
        with StagedFiles() as files:
            files.open(out).write(content)
    counts = Counter(answers["reader"])
    if as_json:
        print_json({"answers": len(answers["case"]), "readers": dict(counts), "out": str(out)})
        return
    print_grid("Answers", ["reader", "answers"], counts.items())
    say(f"Answers: {out}")
