"""When a command cannot go on: one line on stderr, and an exit code that says whose fault it is."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

import typer

# A mistake in what the user gave; a defect, or a disk that is full; Ctrl-C, as shells have it.
MISTAKE, FAILURE, STOPPED = 2, 1, 130


def fail(command: str, message: str, code: int = MISTAKE) -> NoReturn:
    """Say why in one line, and end.

    Parameters
    ----------
    command : str
        Name of the command.
    message : str
        What was wrong and what to do.
    code : int, default=2
        The exit code.
    """
    typer.echo(f"deferlearn {command}: {' '.join(message.split())}", err=True)
    raise typer.Exit(code=code)


@contextmanager
def reported(command: str) -> Iterator[None]:
    """Report a user's mistake, a file that cannot be written and Ctrl-C in one line; defects show as such.

    Parameters
    ----------
    command : str
        Name of the command.
    """
    from deferlearn.tables.errors import TableError

    try:
        yield
    except TableError as error:
        fail(command, str(error))
    except OSError as error:
        name = f"{error.filename}: " if error.filename else ""
        fail(
            command, f"cannot go on: {name}{error.strerror or error}; nothing was changed", FAILURE
        )
    except KeyboardInterrupt:
        fail(command, "stopped; nothing was changed", STOPPED)


@contextmanager
def noted() -> Iterator[list[str]]:
    """Collect what warnings tell a user, each once, instead of printing it.

    Yields
    ------
    notes : list of str
        Filled when the block ends.
    """
    notes: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield notes
    notes += dict.fromkeys(
        " ".join(str(warning.message).split())
        for warning in caught
        if issubclass(warning.category, UserWarning)  # others are for those who write programs
    )
