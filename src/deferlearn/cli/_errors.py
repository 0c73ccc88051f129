"""When a command cannot continue: one line on stderr, and an exit code that tells the kind of failure."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from importlib.util import find_spec
from typing import NoReturn

import typer

from deferlearn._utils.words import printable, without_repeats

# A mistake of the user; a defect, or a full disk; Ctrl-C, as in shells.
MISTAKE, FAILURE, STOPPED = 2, 1, 130
OUT_OF_MEMORY = (
    "there is not enough memory: use fewer cases or columns, fewer --jobs, or a larger machine"
)
# The command that the user has called, if it calls others.
_called: ContextVar[str | None] = ContextVar("called", default=None)


@contextmanager
def on_behalf_of(command: str) -> Iterator[None]:
    """Let the commands that this one calls report under its name: the user has called no other.

    Parameters
    ----------
    command : str
        Name of the command.
    """
    token = _called.set(command)
    try:
        yield
    finally:
        _called.reset(token)


def fail(command: str, message: str, code: int = MISTAKE) -> NoReturn:
    """Print the reason in one line, and end the command.

    Parameters
    ----------
    command : str
        Name of the command.
    message : str
        What was wrong and what to do.
    code : int, default=2
        The exit code.
    """
    command = _called.get() or command
    typer.echo(printable(f"deferlearn {command}: {' '.join(message.split())}"), err=True)
    raise typer.Exit(code=code)


def require(command: str, *packages: str, extra: str = "cli") -> None:
    """Say what to install if a package is missing.

    Parameters
    ----------
    command : str
        Name of the command.
    *packages : str
        Packages that it needs.
    extra : str, default="cli"
        The extra of deferlearn that brings them.
    """
    missing = [name for name in packages if find_spec(name) is None]
    if missing:
        fail(
            command, f"this needs {', '.join(missing)}: pip install 'deferlearn[{extra}]'", FAILURE
        )


@contextmanager
def reported(command: str) -> Iterator[None]:
    """Report a user's mistake, a file that cannot be written and Ctrl-C in one line; let defects show.

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
        fail(command, f"cannot continue: {_reason(error)}; nothing was changed", FAILURE)
    except MemoryError:
        fail(command, f"{OUT_OF_MEMORY}; nothing was changed", FAILURE)
    except KeyboardInterrupt:
        fail(command, "stopped; nothing was changed", STOPPED)


@contextmanager
def resumable(command: str) -> Iterator[None]:
    """Like `reported`, for work that keeps its finished jobs.

    Parameters
    ----------
    command : str
        Name of the command.
    """
    from deferlearn.experiments import JobError

    try:
        yield
    except JobError as error:
        fail(command, f"{error}; the finished jobs are kept", FAILURE)
    except OSError as error:
        fail(command, f"cannot continue: {_reason(error)}", FAILURE)
    except MemoryError:
        fail(command, f"{OUT_OF_MEMORY}; the finished jobs are kept", FAILURE)
    except KeyboardInterrupt:
        message = (
            "stopped; the finished jobs are kept, and the same command continues with the others"
        )
        fail(command, message, STOPPED)


def _reason(error: OSError) -> str:
    name = f"{error.filename}: " if error.filename else ""
    return f"{name}{error.strerror or error}"


@contextmanager
def noted() -> Iterator[list[str]]:
    """Collect the warnings for the user, each of them once, instead of printing them.

    Yields
    ------
    notes : list of str
        Filled when the block ends.
    """
    notes: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield notes
    notes += without_repeats(
        " ".join(str(warning.message).split())
        for warning in caught
        if issubclass(warning.category, UserWarning)  # others are for programmers
    )
