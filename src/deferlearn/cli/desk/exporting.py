"""`deferlearn desk export`: what the desk knows, as tables."""

from pathlib import Path
from typing import Annotated

from deferlearn._utils.words import counted
from deferlearn.cli import _options as shared
from deferlearn.cli._options import argument, option
from deferlearn.cli._screen import say
from deferlearn.cli.desk._opened import Config, DatabaseUrl, opened, who

COMMAND = "desk export"
EXAMPLES = """Examples:

deferlearn desk export cases --out cases.csv

deferlearn desk export answers --out answers.csv

deferlearn fit cases.csv --label truth --answers answers.csv --out next.skops
"""


def export(
    what: Annotated[
        str,
        argument(
            "cases: fields and truth; decisions: what was decided, and what became of it, without fields; "
            "answers: one row per answer; audit: the audit log."
        ),
    ],
    *,
    out: Annotated[
        Path,
        option(
            "File: parquet for .parquet and .pq, Excel for .xlsx, CSV otherwise; - is the standard output."
        ),
    ],
    delimiter: shared.Delimiter = None,
    config: Config = None,
    database: DatabaseUrl = None,
) -> None:
    """Write cases, decisions, answers or the audit log to a file; the audit log records it.

    The tables of cases and answers are those that `deferlearn fit` reads. Cells that a spreadsheet would
    run as a formula get an apostrophe.
    """
    with opened(COMMAND, config, database) as desk:
        from deferlearn.desk import exporting
        from deferlearn.tables.files import delimiter_of

        separator = delimiter_of(out, delimiter)
        rows = exporting.export(desk.database, what, out, actor=who(), delimiter=separator)
    if str(out) != "-":
        say(f"{what.capitalize()}: {out}, {counted(rows, 'row')}")
