"""`deferlearn desk audit verify`: whether the audit log is as it was written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from deferlearn.cli._errors import FAILURE, fail
from deferlearn.cli._options import option
from deferlearn.cli._screen import say
from deferlearn.cli.desk._opened import Config, DatabaseUrl, opened

if TYPE_CHECKING:
    from deferlearn.desk.audit import Head

COMMAND = "desk audit verify"
audit = typer.Typer(help="The audit log.", no_args_is_help=True)


@audit.callback()
def _keep_the_name() -> None:
    """The audit log."""


@audit.command()
def verify(
    noted: Annotated[
        list[str] | None,
        option(
            "Head of the log that this command or a backup printed earlier, as in 120:3fa8...; the log "
            "must still have this entry. Can be repeated. Default: none."
        ),
    ] = None,
    config: Config = None,
    database: DatabaseUrl = None,
) -> None:
    """Find out whether an entry of the audit log was changed, removed, inserted or moved.

    The exit code is 1 if so. The log is tamper-evident, not tamper-proof: whoever has the secret can write
    a new log, and whoever puts back an old database removes what came after. So note the head that is
    printed outside of the desk, and pass it here later.
    """
    with opened(COMMAND, config, database) as desk:
        from deferlearn.desk import audit as log

        heads = [_head(text) for text in noted or []]
        with desk.database.snapshot() as connection:
            found = log.verify(connection, desk.settings.secret, heads)
    for fault in found.faults:
        say(f"Fault: {fault}", err=True)
    if found.faults:
        raise typer.Exit(FAILURE)
    say(f"The audit log is as it was written, {found.head.sequence} entries. Head: {found.head}")


def _head(text: str) -> Head:
    from deferlearn.desk.audit import Head

    sequence, sign, digest = text.strip().partition(":")
    if not sign or not sequence.isdecimal() or len(sequence) > 18 or len(digest) != 64:
        fail(COMMAND, f"--noted {text[:30]} must be a head that this command printed")
    return Head(int(sequence), digest.lower())
