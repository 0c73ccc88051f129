"""`deferlearn desk config`: what is in force, without secrets; and the rules of the work."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated, Any

from deferlearn.cli import _options as shared
from deferlearn.cli._errors import fail
from deferlearn.cli._options import option
from deferlearn.cli._screen import print_facts, print_json
from deferlearn.cli.desk._opened import Config, DatabaseUrl, opened, who

COMMAND = "desk config"


def config(
    change: Annotated[
        list[str] | None,
        option(
            "Change a rule of the work, as in readings=2 or deadline_seconds=3600; null means none. Can be "
            "repeated. Default: nothing is changed.",
            "--set",
        ),
    ] = None,
    as_json: shared.AsJson = False,
    config: Config = None,
    database: DatabaseUrl = None,
) -> None:
    """Print the settings of the service and the rules of the work that are in force, without secrets."""
    changes = dict(_parsed(text) for text in change or [])
    with opened(COMMAND, config, database) as desk:
        from deferlearn.desk.rules import change_rules, read_rules

        if changes:
            desk.database.write(lambda connection: change_rules(connection, changes, actor=who()))
        with desk.database.reading() as connection:
            rules, _ = read_rules(connection)
        settings = desk.settings.shown()
    if as_json:
        print_json({"settings": settings, "rules": asdict(rules)})
        return
    print_facts("Settings of the service", settings.items())
    print_facts("Rules of the work", asdict(rules).items())


def _parsed(text: str) -> tuple[str, Any]:
    name, sign, value = text.partition("=")
    if not sign:
        fail(COMMAND, f"--set {text[:50]} must have the form name=value")
    try:
        return name.strip(), json.loads(value)
    except ValueError:  # text needs no quotes
        return name.strip(), value.strip()
