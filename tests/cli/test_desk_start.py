"""The page that leads to an own desk with three experts is right: its commands, one after the other."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from deferlearn.desk import audit
from deferlearn.desk.answering import give_answer
from deferlearn.desk.database import Database
from deferlearn.desk.desk import Desk
from deferlearn.desk.queue import lease_next
from deferlearn.desk.settings import load_settings

PAGE = Path(__file__).parents[2] / "docs" / "desk" / "start.md"
MAIN = "from deferlearn.cli import main; main()"


def blocks(kind):
    return re.findall(rf"^```{kind}\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.M | re.S)


def anna_answers(folder):
    """What happens on her page."""
    settings = load_settings(folder / "desk.toml", environment={})
    database = Database(settings.database, options=audit.key_options(settings.secret))
    desk, done = Desk(database), 0
    while (found := lease_next(desk, 1)) is not None:
        give_answer(desk, found.reading_id, found.token, "naevus", actor="user:2")
        done += 1
    database.close()
    assert done


@pytest.mark.slow
def test_the_commands_of_the_page_lead_to_a_desk_that_has_learned(tmp_path):
    (table,) = blocks("python")
    subprocess.run([sys.executable, "-c", table], cwd=tmp_path, check=True)
    lines = [line for block in blocks("console") for line in block.splitlines()]
    told = {}
    for line in lines:
        if not line.startswith("deferlearn ") or line == "deferlearn desk serve":
            continue
        if line == "deferlearn desk refit":
            anna_answers(tmp_path)
        words = shlex.split(line)[1:]
        # The machine is not tuned, which would take most of the time.
        words += ["--alpha", "0.1"] if words[1] == "init" else []
        done = subprocess.run(
            [sys.executable, "-c", MAIN, *words],
            cwd=tmp_path,
            env={**os.environ, "DEFERLEARN_DESK_PASSWORD_PASSES": "1"},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, (line, done.stderr)
        told[line] = done.stdout
    printed = "\n".join(told.values())
    assert printed.count("/welcome#") == 5, "links for the administrator and four others"
    assert "New: 100 cases" in told["deferlearn desk import new.csv --id case"]
    assert "The team is wrong in" in told["deferlearn desk monitor"]
    assert "Model 2 (refit) is stored as a candidate" in told["deferlearn desk refit"]
