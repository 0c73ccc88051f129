"""Files that several commands read or write."""

import os
import shlex
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import typer

from deferlearn._utils.words import printable


def long_table(path: Path, columns: list[str], written: dict[str, Any]) -> Any:
    """Read the long table of answers, and name its columns case, reader and answer.

    Parameters
    ----------
    path : Path
        The file.
    columns : list of str
        Its columns for case, reader and answer.
    written : dict
        The options of `deferlearn.tables.open_table`.

    Returns
    -------
    pyarrow.Table
    """
    from deferlearn.tables import open_table

    file = open_table(path, **written)
    file.require(
        columns,
        "given by --case, --reader and --answer; the file is read in the format of the cases",
    )
    return file.read().select(columns).rename_columns(["case", "reader", "answer"])


def costs_file(given: str | None) -> list[Path]:
    """The file of ``--cost-matrix``; none if the matrix itself was given as JSON, or nothing.

    Parameters
    ----------
    given : str or None
        The text of the option.

    Returns
    -------
    files : list of Path
    """
    from deferlearn.tables.costs import is_json

    return [] if given is None or is_json(given) else [Path(given)]


def name_and_digest(path: Path) -> dict[str, str]:
    """The entry of a model's card for a file.

    Parameters
    ----------
    path : Path
        The file.

    Returns
    -------
    dict
    """
    from deferlearn.tables.files import sha256_of

    return {"name": printable(path.name), "sha256": sha256_of(path)}


def command_line(context: typer.Context, spelled: Sequence[str] = ()) -> str:
    """The command that gives the same result again.

    Parameters
    ----------
    context : typer.Context
        Of the command that runs.
    spelled : sequence of str, default=()
        Parameters to write out even if they have their default value.

    Returns
    -------
    command : str
    """
    words = ["deferlearn", *context.command_path.split()[1:]]
    for parameter in context.command.params:
        value = context.params.get(parameter.name or "")
        chosen = value not in (None, [], (), parameter.default) or parameter.name in spelled
        if not chosen or parameter.name in ("jobs", "as_json"):
            continue
        flag = [] if parameter.param_type_name == "argument" else [parameter.opts[0]]
        if value is True:
            words += flag
        else:
            for one in value if isinstance(value, list) else [value]:
                words += [*flag, str(one)]
    return printable(shlex.join(words))


def check_paths(outputs: Sequence[Path], inputs: Iterable[Path]) -> None:
    """Refuse outputs that cannot be written, or that would replace an input.

    Parameters
    ----------
    outputs : sequence of Path
        Files to be written.
    inputs : iterable of Path
        Files to be read.
    """
    from deferlearn.tables import TableError
    from deferlearn.tables.writing import STDOUT, StagedFiles

    # `Path.resolve` raises for a link that leads to itself.
    taken = {os.path.realpath(path) for path in inputs}
    for path in outputs:
        if path == STDOUT:
            continue
        if os.path.realpath(path) in taken:
            raise TableError(f"{path} would be overwritten: choose another name")
        taken.add(os.path.realpath(path))
        with suppress(_OnlyTrying), StagedFiles() as files:
            files.open(path)
            raise _OnlyTrying


class _OnlyTrying(Exception):
    """Ends a block that only tests whether a file can be written."""


@contextmanager
def made_folder(path: Path) -> Iterator[None]:
    """Make a folder for the files that the block writes; remove it again if the block fails.

    Parameters
    ----------
    path : Path
        The folder; the folders above it are made as well.
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
            with suppress(OSError):  # it was never made, or another program uses it
                folder.rmdir()
        raise
