"""What the commands on tables share: options, checks of paths, progress, and tables to read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from deferlearn.cli._errors import FAILURE, fail

# numpy's generator takes no larger seed.
MAX_SEED = 2**32 - 1
# Of a number of cases: nobody has more.
MAX_DIGITS = 18

# Headings of the help.
FILES, ANSWERS, COLUMNS = "How CSV files are written", "Human answers", "Columns"

Delimiter = Annotated[
    str | None,
    typer.Option(
        help="What separates cells of CSV files: a character, or tab. Default: a comma; a tab for .tsv.",
        show_default=False,
        rich_help_panel=FILES,
    ),
]
Decimal = Annotated[
    str,
    typer.Option(
        help="What separates decimals in CSV files, . or , (never guessed).", rich_help_panel=FILES
    ),
]
Encoding = Annotated[str, typer.Option(help="Encoding of CSV files.", rich_help_panel=FILES)]
LongTable = Annotated[
    Path | None,
    typer.Option(
        help="Long table of answers, one row an answer.",
        show_default=False,
        rich_help_panel=ANSWERS,
    ),
]
CaseColumn = Annotated[
    str, typer.Option(help="Column of that table that names the case.", rich_help_panel=ANSWERS)
]
ReaderColumn = Annotated[
    str, typer.Option(help="Column of that table that names the reader.", rich_help_panel=ANSWERS)
]
AnswerColumn = Annotated[
    str, typer.Option(help="Column of that table that holds the answer.", rich_help_panel=ANSWERS)
]
Jobs = Annotated[
    int | None, typer.Option(min=1, help="How many fits at a time.", show_default=False)
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]


def unwrapped(text: str | None) -> str:
    r"""Paragraphs as one line each: a terminal breaks lines where it ends, not where the source does.

    Parameters
    ----------
    text : str or None
        A docstring.

    Returns
    -------
    text : str

    Examples
    --------
    >>> from deferlearn.cli._tables import unwrapped
    >>> unwrapped("One\n    line.\n\n    Another.")
    'One line.\n\nAnother.'
    """
    paragraphs = (text or "").split("\n\n")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)


def require_arrow(command: str) -> None:
    """Say what to install if pyarrow is missing.

    Parameters
    ----------
    command : str
        Name of the command.
    """
    if find_spec("pyarrow") is None:
        fail(command, "tables need pyarrow: pip install 'deferlearn[cli]'", FAILURE)


def parse_budget(text: str) -> float | int:
    """A share or a number of cases from what the user typed.

    Parameters
    ----------
    text : str
        Such as 0.2, 20% or 30.

    Returns
    -------
    budget : float or int
        A whole number without point and percent sign is a number of cases.

    Examples
    --------
    >>> from deferlearn.cli._tables import parse_budget
    >>> [parse_budget(text) for text in ("0.2", "20%", "30", "1", "1.0")]
    [0.2, 0.2, 30, 1, 1.0]
    """
    from deferlearn.tables import TableError

    plain = text.strip()
    if plain.isdecimal() and len(plain) <= MAX_DIGITS:
        return int(plain)
    try:
        budget = float(plain.removesuffix("%")) / 100 if plain.endswith("%") else float(plain)
    except ValueError:
        budget = -1.0
    if plain.isdecimal() or not 0.0 <= budget <= 1.0:
        raise TableError(
            f"--budget {text[:30]} must be a share such as 0.2 or 20%, or a whole number of cases"
        )
    return budget


def check_paths(outputs: Sequence[Path], inputs: Iterable[Path]) -> None:
    """Refuse outputs that cannot be written, or that would take the place of something needed.

    Parameters
    ----------
    outputs : sequence of Path
        Files to be written.
    inputs : iterable of Path
        Files to be read.
    """
    from deferlearn.tables import TableError
    from deferlearn.tables.writing import StagedFiles

    taken = {path.resolve(): path for path in inputs}
    for path in outputs:
        if path.resolve() in taken:
            raise TableError(f"{path} would be overwritten by what is written: choose another name")
        taken[path.resolve()] = path
        try:
            with StagedFiles() as files:
                files.open(path)
                raise _OnlyTrying
        except _OnlyTrying:
            pass


@contextmanager
def made_folder(path: Path) -> Iterator[None]:
    """A folder for what the block writes; what had to be made for it is gone again if the block fails.

    Parameters
    ----------
    path : Path
        The folder; those above it are made, too.
    """
    from deferlearn.tables import TableError

    new = [folder for folder in (path, *path.parents) if not folder.exists()]
    try:
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise TableError(
                f"cannot use the folder {path}: {error.strerror}; choose another with --out"
            ) from error
        yield
    except BaseException:
        for folder in new:  # the innermost comes first
            with suppress(OSError):  # never made, or somebody else has begun to use it
                folder.rmdir()
        raise


class _OnlyTrying(Exception):
    """Ends a block that was to find out whether a file can be written."""


@contextmanager
def status(text: str) -> Iterator[None]:
    """Say on stderr what is going on.

    Parameters
    ----------
    text : str
        What is going on.
    """
    console = Console(stderr=True)
    if console.is_terminal:
        with console.status(text):
            yield
    else:
        console.print(text, highlight=False, soft_wrap=True)
        yield


def facts(title: str, rows: Iterable[tuple[str, Any]]) -> Table:
    """A table of two columns without a head.

    Parameters
    ----------
    title : str
        Its title.
    rows : iterable of pairs
        A name, and what it is; markup is shown as it stands.

    Returns
    -------
    rich.table.Table
    """
    table = Table(title=title, title_justify="left", show_header=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in rows:
        table.add_row(escape(name), escape(str(value)))
    return table


def grid(title: str, headings: Sequence[str], rows: Iterable[Sequence[Any]]) -> Table:
    """A table with a head; the first column is text, the others are numbers.

    Parameters
    ----------
    title : str
        Its title.
    headings : sequence of str
        Names of the columns.
    rows : iterable of sequences
        Cells; markup is shown as it stands.

    Returns
    -------
    rich.table.Table
    """
    table = Table(title=title, title_justify="left")
    for place, heading in enumerate(headings):
        table.add_column(escape(heading), justify="right" if place else "left", overflow="fold")
    for row in rows:
        table.add_row(*(escape(str(cell)) for cell in row))
    return table


def show(console: Console, notes: Iterable[str]) -> None:
    """Print notes, one a line.

    Parameters
    ----------
    console : Console
        Where to.
    notes : iterable of str
        What to know.
    """
    for note in notes:
        console.print(f"Note: {note}", highlight=False, markup=False, soft_wrap=True)
