"""`deferlearn import-answers`: answers from Label Studio's export as a long table."""

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
        Path,
        option(
            "File for the answers: parquet for .parquet and .pq, Excel for .xlsx, CSV otherwise; - is the "
            "standard output."
        ),
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
    quiet: shared.Quiet = False,
) -> None:
    """Turn annotations of Label Studio into a table with the columns case, reader and answer.

    `deferlearn fit --answers` reads the table in the format of the cases: if these have semicolons or
    another encoding, pass the same options here. The truth of the cases must come from another source:
    answers say what humans think, not whether they are right.
    """
    require(NAME, "pyarrow")
    with reported(NAME):
        from deferlearn.tables import as_table, read_label_studio
        from deferlearn.tables.files import check_encoding, delimiter_of
        from deferlearn.tables.writing import StagedFiles, table_writer

        check_paths([out], [export])
        check_encoding(encoding)
        delimiter = delimiter_of(out, delimiter)
        answers = read_label_studio(export, case=case, question=question)
        with StagedFiles() as files:
            writer = table_writer(out, files.open(out), delimiter, encoding=encoding)
            writer.write(as_table(answers))
            writer.close()
    counts = Counter(answers["reader"])
    if as_json and str(out) != "-":
        print_json({"answers": len(answers["case"]), "readers": dict(counts), "out": str(out)})
        return
    if str(out) != "-":
        print_grid("Answers", ["reader", "answers"], counts.items())
        say(f"Answers: {out}")
