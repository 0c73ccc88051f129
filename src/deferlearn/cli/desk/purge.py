"""`deferlearn desk purge`: remove old cases for good."""

import re
from typing import Annotated

import typer

from deferlearn._utils.words import counted
from deferlearn.cli._errors import fail
from deferlearn.cli._options import option
from deferlearn.cli._screen import say
from deferlearn.cli.desk._opened import Config, DatabaseUrl, opened, who

COMMAND = "desk purge"
_DAYS = {"d": 1.0, "w": 7.0, "y": 365.0, "": 1.0}


def purge(
    older_than: Annotated[
        str, option("Age of the answers, in days (90 or 90d), weeks (12w) or years (2y).")
    ],
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only count the cases. Default: remove them.")
    ] = False,
    config: Config = None,
    database: DatabaseUrl = None,
) -> None:
    """Remove cases whose answer is older than this, with their decisions, answers and truths, for good.

    Cases that still wait for an answer stay. The audit log records the purge and keeps its entries, which
    have numbers of cases but no fields. Backups are files of their own: remove old ones as well.
    """
    days = _days(older_than)
    with opened(COMMAND, config, database) as desk:
        from deferlearn.desk import purge as purging

        if dry_run:
            found = purging.count_old(desk.database, days)
        else:
            found = purging.purge(desk.database, days, actor=who())
    say(f"{'Would be removed' if dry_run else 'Removed'}: {counted(found, 'case')}")


def _days(text: str) -> float:
    form = re.fullmatch(r"([0-9]{1,6}(?:\.[0-9]+)?)([dwy]?)", text.strip())
    if form is None or float(form[1]) == 0:
        fail(COMMAND, f"--older-than {text[:30]} must be a time such as 90d, 12w or 2y")
    return float(form[1]) * _DAYS[form[2]]
