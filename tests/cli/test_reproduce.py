"""`deferlearn reproduce`: what it writes, what it refuses, and that it survives being killed."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

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
        (["fig7"], "no result is named 'fig7'; there are fig1, fig2, fig3"),
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
    assert "cannot go on: no network in tests" in result.output


@pytest.mark.slow
def test_killed_at_ten_random_moments(tmp_path):
    """The whole command with two workers, by SIGKILL; the table is that of an uninterrupted run."""
    options = ["fig4", "--quick", "--splits", "12", "--jobs", "2", "--out"]
    command = [sys.executable, "-c", "from deferlearn.cli import main; main()", "reproduce"]
    start = time.monotonic()
    subprocess.run([*command, *options, tmp_path / "whole"], check=True, capture_output=True)
    seconds = time.monotonic() - start
    rng = np.random.RandomState(1)
    sizes = []
    for _ in range(10):
        # A group of its own, so that the workers die too, as when a machine is switched off.
        process = subprocess.Popen(
            [*command, *options, tmp_path / "killed"], start_new_session=True,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        time.sleep(rng.uniform(0.2, 0.9) * seconds)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        parts = tmp_path / "killed" / "repeated" / "parts"
        sizes.append(len(list(parts.glob("fig4-*.json"))) if parts.exists() else 0)
    assert sizes == sorted(sizes)
    subprocess.run([*command, *options, tmp_path / "killed"], check=True, capture_output=True)
    whole, resumed = (
        pd.read_parquet(tmp_path / name / "repeated" / "fig4.parquet")
        for name in ("whole", "killed")
    )
    keep = [name for name in whole.columns if "seconds" not in name]
    pd.testing.assert_frame_equal(whole[keep], resumed[keep])
