"""The demonstration of the desk: the whole loop in a few seconds, and a clean end."""

import os
import signal
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing

import numpy as np
import pytest

from deferlearn.datasets import load_sleep
from deferlearn.desk.demo.making import DemoError
from deferlearn.desk.demo.nights import READERS, Nights
from deferlearn.desk.demo.story import Choices, run

MAIN = "from deferlearn.cli import main; main()"


@pytest.fixture(scope="module")
def nights():
    return Nights()


def test_readers_answer_as_the_experts_did_and_the_truth_is_their_majority(nights):
    sleep = load_sleep(classes="stages", context=0)
    names = [name[:8] for name in sleep.night_names]
    for one, _ in zip(nights.coming(), range(200), strict=False):
        night, number = one.id.split("-")
        found = (sleep.groups == names.index(night)) & (sleep.epochs == int(number))
        (row,) = np.flatnonzero(found)
        said = [None if np.isnan(x) else nights.stages[int(x)] for x in sleep.answers[row]]
        assert list(one.answers.values()) == said
        counts = {stage: said.count(stage) for stage in nights.stages}
        assert all(counts[one.truth] > n for stage, n in counts.items() if stage != one.truth)
        votes = np.bincount(sleep.networks[row], minlength=5) / 6
        shown = [one.fields[stage] for stage in nights.stages]
        assert np.abs(votes - shown).max() < 0.006
        broken = np.bincount([*sleep.networks[row][:-1], 0], minlength=5) / 6
        shown = [one.broken_fields[stage] for stage in nights.stages]
        assert np.abs(broken - shown).max() < 0.006


def test_nights_to_learn_from_do_not_come_again(nights, tmp_path):
    nights.write(tmp_path / "nights.csv", 300)
    lines = (tmp_path / "nights.csv").read_text().splitlines()
    learned = {line.split("-")[0] for line in lines[1:]}
    coming = {one.id.split("-")[0] for one, _ in zip(nights.coming(), range(2000), strict=False)}
    assert len(lines) == 301
    assert len(learned) > 30 < len(coming)
    assert not learned & coming


@pytest.mark.slow
def test_the_whole_loop_runs_and_ends(tmp_path):
    lines = []
    choices = Choices(tmp_path, open_browser=False, speed=400.0, minutes=27.0, training_cases=200)
    run(choices, lines.append)
    told = "\n".join(lines)
    assert "/enter#" in told
    assert f"The desk stays in {tmp_path}" in told
    assert [thread.name for thread in threading.enumerate() if "laboratory" in thread.name] == []
    with closing(sqlite3.connect(tmp_path / "desk.db")) as connection:
        counts = {
            table: connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
            for table in ("truth", "answer", "audit_log")
        }
        deferred, audited, n = connection.execute(
            "SELECT sum(deferred), sum(audited), count(*) FROM decision"
        ).fetchone()
        names = {name for (name,) in connection.execute("SELECT name FROM expert")}
    assert names == set(READERS)
    assert n >= 27 * 12
    assert deferred > 0 < audited
    assert counts["truth"] > 0 < counts["answer"]
    assert counts["audit_log"] > n
    assert "Traceback" not in (tmp_path / "serve.log").read_text()


def test_a_folder_with_something_in_it_is_refused(tmp_path):
    (tmp_path / "own.txt").write_text("mine")
    with pytest.raises(DemoError, match="not empty"):
        run(Choices(tmp_path, open_browser=False), print)


@pytest.mark.slow
def test_two_minutes_show_everything_and_ctrl_c_ends_it():
    """In a folder that is gone afterwards; with the alarms that the story has earned, and none before."""
    process = subprocess.Popen(
        [sys.executable, "-u", "-c", MAIN, "desk", "demo", "--no-browser"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    lines = []
    for line in process.stdout:
        lines.append(line)
        if "You have seen it all" in line:
            break
    process.send_signal(signal.SIGINT)
    rest, errors = process.communicate(timeout=90)
    told = "".join(lines) + rest
    assert process.returncode == 0, errors
    assert "is stored as a candidate" in told
    alarms = [line for line in lines if line.startswith("Alarm: ")]
    assert any("reader_2 was wrong" in line for line in alarms)
    assert any("Column" in line for line in alarms)
    careless = next(i for i, line in enumerate(lines) if "reader_2 is careless" in line)
    assert not [line for line in lines[:careless] if line.startswith("Alarm: ")]
    assert "The demonstration has ended." in rest
