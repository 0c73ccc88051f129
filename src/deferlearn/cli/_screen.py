"""What commands print: tables, notes and JSON on stdout, progress on stderr.

rich is imported when it prints something, so that a command which only reports a mistake answers at once.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import typer

from deferlearn._utils.progress import in_words, watched_by
from deferlearn._utils.words import printable

if TYPE_CHECKING:
    from rich.progress import Progress

_quiet: ContextVar[bool] = ContextVar("quiet", default=False)
# Whether results go to stderr, because stdout holds a table.
_stderr: ContextVar[bool] = ContextVar("stderr", default=False)


def say(*lines: str, err: bool = False) -> None:
    """Print lines as they are: rich adds no colours and breaks no line, so that paths can be copied.

    Parameters
    ----------
    *lines : str
        The lines.
    err : bool, default=False
        Whether to print to stderr.
    """
    if is_quiet() and not err:
        return
    console = _console(err)
    for line in lines:
        console.print(printable(line), highlight=False, markup=False, soft_wrap=True)


def say_notes(notes: Iterable[str]) -> None:
    """Print what the user should know; with --quiet, too, but to stderr.

    Parameters
    ----------
    notes : iterable of str
        The notes.
    """
    say(*(f"Note: {note}" for note in notes), err=is_quiet())


@contextmanager
def all_to_stderr(wanted: bool) -> Iterator[None]:
    """A context in which results are printed to stderr, because stdout holds a table.

    Parameters
    ----------
    wanted : bool
        Whether this is so.
    """
    token = _stderr.set(wanted)
    try:
        yield
    finally:
        _stderr.reset(token)


@contextmanager
def quietly(wanted: bool) -> Iterator[None]:
    """A context in which no tables and no progress are printed.

    Parameters
    ----------
    wanted : bool
        Whether this is so.
    """
    token = _quiet.set(wanted)
    try:
        yield
    finally:
        _quiet.reset(token)


def set_quiet(context: typer.Context, wanted: bool) -> bool:
    """Print no tables and no progress until the command ends; the callback of --quiet.

    Parameters
    ----------
    context : typer.Context
        Of the command that runs.
    wanted : bool
        Whether this is so.

    Returns
    -------
    bool
        The same.
    """
    token = _quiet.set(wanted)
    context.call_on_close(lambda: _quiet.reset(token))
    return wanted


def is_quiet() -> bool:
    """Whether no tables and no progress are printed."""
    return _quiet.get()


def _console(err: bool = False) -> Any:
    from rich.console import Console

    return Console(stderr=err or _stderr.get())


def print_json(result: dict[str, Any]) -> None:
    """Print a result as JSON.

    Parameters
    ----------
    result : dict
        Plain values.
    """
    typer.echo(json.dumps(result, indent=2, allow_nan=False), err=_stderr.get())


def print_facts(title: str, rows: Iterable[tuple[str, Any]]) -> None:
    """Print a table of names and values.

    Parameters
    ----------
    title : str
        Title of the table.
    rows : iterable of pairs
        A name and a value; markup is shown as it is.
    """
    from rich.markup import escape
    from rich.table import Table

    if is_quiet():
        return

    table = Table(title=title, title_justify="left", show_header=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in rows:
        table.add_row(escape(printable(name)), escape(printable(str(value))))
    _console().print(table)


def print_grid(title: str, headings: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Print a table with a header; the first column is text, the others are numbers.

    Parameters
    ----------
    title : str
        Title of the table.
    headings : sequence of str
        Names of the columns.
    rows : iterable of sequences
        Cells; markup is shown as it is.
    """
    from rich.markup import escape
    from rich.table import Table

    if is_quiet():
        return

    table = Table(title=title, title_justify="left")
    for place, heading in enumerate(headings):
        table.add_column(
            escape(printable(heading)), justify="right" if place else "left", overflow="fold"
        )
    for row in rows:
        table.add_row(*(escape(printable(str(cell))) for cell in row))
    _console().print(table)


def print_errors(title: str, errors: dict[str, dict[str, float]], key: str) -> None:
    """Print the errors of machine, human and team with their intervals.

    Parameters
    ----------
    title : str
        Title of the table.
    errors : dict
        For each of them a dict with the error, under `key`, and the ends lower and upper. If all of them
        have a cost, it is printed, too.
    key : str
        The key of the error.
    """
    more = ["cost"] if all("cost" in e for e in errors.values()) else []
    rows = [
        (
            who,
            f"{e[key]:.3f}",
            f"{e['lower']:.3f} to {e['upper']:.3f}",
            *(f"{e[name]:.3f}" for name in more),
        )
        for who, e in errors.items()
    ]
    print_grid(title, ["who", "error", "95% interval", *(f"mean {name}" for name in more)], rows)


@contextmanager
def status(text: str) -> Iterator[Any]:
    """Show on stderr what the command is doing.

    Parameters
    ----------
    text : str
        What it is doing.
    """
    from rich.console import Console

    console = Console(stderr=True)
    if is_quiet():
        yield
        return
    if not console.is_terminal:
        say(text, err=True)
        yield
        return
    with console.status(text) as shown:
        yield shown


@contextmanager
def work_status(text: str) -> Iterator[None]:
    """Show on stderr what the command is doing, and the time left once it can be estimated.

    Parameters
    ----------
    text : str
        What it is doing. If stderr is not a terminal, this line is all that is shown.
    """
    from rich.console import Console

    console = Console(stderr=True)
    with status(text) as shown:
        if not console.is_terminal or is_quiet():
            yield
            return

        def show(share: float, left: float) -> None:
            shown.update(f"{text}: {in_words(share, left)}")

        with watched_by(show):
            yield


def progress_bar() -> Progress:
    """A bar on stderr with the work that is done and the time left; hidden if stderr is not a terminal."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    console = Console(stderr=True)
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(elapsed_when_finished=False),
        console=console,
        transient=True,
        disable=not console.is_terminal or is_quiet(),
    )


class Advance:
    """Moves the bar. Jobs that were ready at the start are subtracted: they say nothing about speed."""

    def __init__(self, progress: Progress, task: Any, cost: float) -> None:
        self.progress, self.task, self.cost = progress, task, cost
        self.started = False

    def __call__(self, count: int) -> None:
        if self.started:
            self.progress.advance(self.task, count * self.cost)
            return
        self.started = True
        total = self.progress.tasks[0].total or 0.0
        self.progress.update(self.task, total=total - count * self.cost)
