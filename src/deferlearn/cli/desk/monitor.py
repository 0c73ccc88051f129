"""`deferlearn desk monitor`: the numbers and alarms of the running desk."""

import json
from typing import Annotated

import typer

from deferlearn.cli._options import option
from deferlearn.cli._screen import say
from deferlearn.cli.desk._opened import Config, DatabaseUrl, opened

COMMAND = "desk monitor"


def monitor(
    days: Annotated[int, option("How many days. Default: 7.", min=1, max=3650)] = 7,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the numbers as JSON. Default: sentences.")
    ] = False,
    config: Config = None,
    database: DatabaseUrl = None,
) -> None:
    """Print open alarms, and what the last days say about machine, experts, team and cases.

    Every number has a 95% interval. Alarms are raised while the server runs.
    """
    with opened(COMMAND, config, database) as desk:
        from deferlearn.desk.desk import Desk
        from deferlearn.desk.monitoring.alarms import open_alarms
        from deferlearn.desk.monitoring.overview import overview
        from deferlearn.desk.times import iso

        found = overview(Desk(desk.database), days)
        with desk.database.reading() as connection:
            alarms = open_alarms(connection)
    if as_json:
        content = {
            "cases": found.cases,
            "since": None if found.since is None else iso(found.since),
            "alarms": [
                {"kind": one.kind, "subject": one.subject, "sentence": one.sentence}
                for one in alarms
            ],
            "figures": [one.plain() for one in found.figures],
        }
        typer.echo(json.dumps(content, indent=2, allow_nan=False))
        return
    for one in alarms:
        say(f"Alarm: {one.sentence}")
    if found.since is not None:
        say(
            f"These are the newest {found.cases:,} cases, which arrived from {iso(found.since)} on."
        )
    for figure in found.figures:
        say(figure.sentence)
