"""The commands that watch a desk and learn from it."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from deferlearn.cli.app import app
from deferlearn.desk import audit
from deferlearn.desk.database import Database
from deferlearn.desk.migrations import migrate
from desk.learning.desk_of_rows import add_rows, make_model, store

SECRET = "0" * 64


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """A desk whose cases have changed since its model was fitted."""
    address = f"sqlite:///{tmp_path_factory.mktemp('desk') / 'desk.db'}"
    database = Database(address, options=audit.key_options(SECRET))
    migrate(database)
    content = make_model()
    store(database, content)
    add_rows(database, content, 300, np.random.default_rng(0), angle=np.pi / 3)
    database.close()
    return address


def run(*words, code=0):
    environment = {"DEFERLEARN_DESK_SECRET": SECRET}
    result = CliRunner().invoke(app, ["desk", *words], env=environment)
    assert result.exit_code == code, (result.output, result.exception)
    return " ".join(result.output.split())


def test_refit_says_what_was_learned_and_compared(address):
    printed = run("refit", "--database", address, "--name", "second")
    assert "Model 2 (second) is stored as a candidate. It was fitted on 225 cases" in printed
    assert "The candidate is better than the active model" in printed
    few = run("refit", "--database", address, "--newest", "30", code=2)
    assert "The truth of 30 cases is known" in few


def test_monitor_prints_numbers_with_intervals(address):
    printed = run("monitor", "--database", address)
    assert "Experts get" in printed
    assert "by 300 of 300 cases of which the truth is known" in printed
    found = json.loads(run("monitor", "--database", address, "--json"))
    assert found["cases"] == 300
    assert {"machine's error", "team's error", "shift"} <= {one["name"] for one in found["figures"]}
