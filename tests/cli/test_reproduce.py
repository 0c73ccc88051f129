"""`deferlearn reproduce`: what it writes, what it refuses, and that it survives being killed."""

import dataclasses
import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest
from rich.progress import Progress
from typer.testing import CliRunner

from deferlearn.cli._screen import Advance
from deferlearn.cli.app import app


@pytest.fixture
def run(monkeypatch):
    # Wide enough that rich breaks no line.
    monkeypatch.setenv("COLUMNS", "300")
    return lambda *words: CliRunner().invoke(app, ["reproduce", *(str(word) for word in words)])


def test_one_result(run, tmp_path):
    result = run("fig1", "--out", tmp_path / "new", "--splits", 2, "--jobs", 1)
    assert result.exit_code == 0, result.output
    folder = tmp_path / "new" / "repeated"
    assert f"Results: {folder / 'results.md'}" in result.output
    names = {path.name for path in folder.iterdir()}
    assert names == {
        "config.json", "parts", "results.md",
        *(f"fig1.{end}" for end in ("parquet", "csv", "pdf", "svg", "png")),
    }  # fmt: skip
    assert "reproduce fig1 --splits 2" in (folder / "results.md").read_text()
    assert len(pd.read_parquet(folder / "fig1.parquet")["job"].unique()) == 2


def test_settings_from_a_file(run, tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text("splits = 3\nseed = 7\n")
    result = run("fig1", "--out", tmp_path, "--config", file, "--jobs", 1)
    assert result.exit_code == 0, result.output
    rows = pd.read_parquet(tmp_path / "repeated" / "fig1.parquet")
    assert sorted(rows["seed"].unique()) == [7, 8, 9]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["fig7"], "no result has the name 'fig7'; use fig1, fig2, fig3"),
        (["fig1", "--config", "nowhere.toml"], "cannot read nowhere.toml: No such file"),
        (["fig1", "--protocol", "published", "--splits", "3"], "one split, got splits=3"),
    ],
)
def test_refused(run, tmp_path, words, message):
    result = run(*words, "--out", tmp_path)
    assert result.exit_code == 1
    assert message in result.output
    assert result.output.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_a_file(run, tmp_path):
    (tmp_path / "taken").write_text("")
    result = run("fig1", "--out", tmp_path / "taken")
    assert result.exit_code == 1
    assert "taken" in result.output
    assert result.output.count("\n") == 1


def test_data_that_are_not_there(run, tmp_path, monkeypatch):
    from deferlearn.datasets import _files
    from deferlearn.experiments import data

    def no_network(*_, **__):
        raise OSError("no network in tests")

    monkeypatch.setenv("DEFERLEARN_DATA", str(tmp_path / "empty"))
    monkeypatch.setattr(_files, "urlopen", no_network, raising=False)
    data.retina.cache_clear()
    monkeypatch.setattr(data.datasets, "fetch_aptos", no_network)
    result = run("fig6", "--out", tmp_path, "--quick")
    data.retina.cache_clear()
    assert result.exit_code == 1
    assert "cannot continue: no network in tests" in result.output


def test_damaged_data(run, tmp_path, monkeypatch):
    from deferlearn.experiments import data

    def damaged():
        raise ValueError("aptos.pkl is damaged")

    data.retina.cache_clear()
    monkeypatch.setattr(data.datasets, "fetch_aptos", damaged)
    result = run("fig6", "--out", tmp_path, "--quick")
    data.retina.cache_clear()
    assert result.exit_code == 1
    assert result.output == "deferlearn reproduce: cannot continue: aptos.pkl is damaged\n"


def test_a_job_that_fails(run, tmp_path, monkeypatch):
    from deferlearn.experiments import EXPERIMENTS

    def fails(parameters):
        raise ZeroDivisionError("no luck")

    broken = dataclasses.replace(EXPERIMENTS["fig1"], work=fails)
    monkeypatch.setitem(EXPERIMENTS, "fig1", broken)
    result = run("fig1", "--out", tmp_path, "--splits", 2, "--jobs", 1)
    assert result.exit_code == 1
    assert "fig1 failed with {'seed': 0" in result.output
    assert "ZeroDivisionError: no luck; the finished jobs are kept" in result.output


def test_stopped_by_the_user(run, tmp_path, monkeypatch):
    from deferlearn.experiments import EXPERIMENTS, fig1

    def stopped(parameters):
        if parameters["seed"] == 1:
            raise KeyboardInterrupt
        return fig1.work(parameters)

    broken = dataclasses.replace(EXPERIMENTS["fig1"], work=stopped)
    monkeypatch.setitem(EXPERIMENTS, "fig1", broken)
    result = run("fig1", "--out", tmp_path, "--splits", 2, "--jobs", 1)
    assert result.exit_code == 130
    assert "the same command continues" in result.output
    assert len(list((tmp_path / "repeated" / "parts").iterdir())) == 1


def test_packages_that_are_not_there(run, tmp_path, monkeypatch):
    find = "deferlearn.cli._errors.find_spec"
    monkeypatch.setattr(find, lambda name: None if name == "pyarrow" else name)
    result = run("fig1", "--out", tmp_path)
    assert result.exit_code == 1
    assert "this needs pyarrow: pip install 'deferlearn[cli]'" in result.output


def test_jobs_that_were_ready_say_nothing_of_speed():
    bar = Progress(disable=True)
    task = bar.add_task("", total=20.0)
    done = Advance(bar, task, cost=2.0)
    done(3)  # of ten
    assert (bar.tasks[0].completed, bar.tasks[0].total) == (0.0, 14.0)
    done(1)
    assert (bar.tasks[0].completed, bar.tasks[0].total) == (2.0, 14.0)


N_KILLS = 10


@pytest.mark.slow
def test_killed_at_ten_random_moments(tmp_path):
    """The whole command with two workers, by SIGKILL; the table is that of an uninterrupted run."""
    options = ["fig4", "--quick", "--splits", "12", "--jobs", "2", "--out"]
    command = [sys.executable, "-c", "from deferlearn.cli import main; main()", "reproduce"]
    start = time.monotonic()
    subprocess.run([*command, *options, tmp_path / "whole"], check=True, capture_output=True)
    patience = 10 * (time.monotonic() - start)
    whole = pd.read_parquet(tmp_path / "whole" / "repeated" / "fig4.parquet")
    n_jobs = whole["job"].nunique()
    pause = whole.groupby("job")["job_seconds"].first().mean()

    folder = tmp_path / "killed" / "repeated"
    rng = np.random.RandomState(1)
    ready: dict[str, int] = {}
    for _ in range(N_KILLS):
        # A group of its own, so that the workers die too, as when a machine is switched off.
        process = subprocess.Popen(
            [*command, *options, tmp_path / "killed"], start_new_session=True,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            # By what is done rather than by the clock, which says little on a busy machine; then at
            # a random moment of the jobs that are under way.
            wanted = len(ready) + rng.randint(1, 4)
            end = time.monotonic() + patience
            while len(list(folder.glob("parts/fig4-*.json"))) < wanted:
                assert time.monotonic() < end, "no progress"
                assert process.poll() is None, "it ended before it could be killed"
                time.sleep(0.01)
            time.sleep(rng.uniform(0.0, pause))
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        assert process.returncode == -signal.SIGKILL
        now = {p.name: p.stat().st_mtime_ns for p in folder.glob("parts/fig4-*.json")}
        # In the middle: some jobs are done, others are not, and there is no table yet.
        assert wanted <= len(now) < n_jobs
        assert not (folder / "fig4.parquet").exists()
        # What was done is neither lost nor computed again.
        assert ready.items() <= now.items()
        ready = now
    rows = [row for name in ready for row in json.loads((folder / "parts" / name).read_text())]
    assert 0 < len(rows) < len(whole)

    subprocess.run([*command, *options, tmp_path / "killed"], check=True, capture_output=True)
    after = {p.name: p.stat().st_mtime_ns for p in folder.glob("parts/fig4-*.json")}
    assert ready.items() <= after.items()
    assert len(after) == n_jobs
    resumed = pd.read_parquet(folder / "fig4.parquet")
    keep = [name for name in whole.columns if "seconds" not in name]
    assert len(whole.columns) - len(keep) == 3
    pd.testing.assert_frame_equal(whole[keep], resumed[keep], check_exact=True)
    tables = [tmp_path / name / "repeated" / "fig4.csv" for name in ("whole", "killed")]
    assert tables[0].read_bytes() == tables[1].read_bytes()  # it has no seconds
