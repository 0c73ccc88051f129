"""`deferlearn demo` on the real engine."""

import re

import matplotlib.image
import numpy as np
import pytest
from typer.testing import CliRunner

import deferlearn
from deferlearn.cli import demo as command
from deferlearn.cli.app import app
from deferlearn.datasets import make_linear
from deferlearn.objective import SVMObjective


@pytest.fixture
def run(monkeypatch):
    # Wide enough that rich breaks no line of the table.
    monkeypatch.setenv("COLUMNS", "200")
    return lambda *words: CliRunner().invoke(app, [str(word) for word in words])


def test_table_and_picture(run, tmp_path):
    result = run("demo", "--out", tmp_path / "new" / "folder")
    assert result.exit_code == 0, result.output
    picture = tmp_path / "new" / "folder" / "demo.png"
    assert f"Picture: {picture}" in result.output
    assert list(picture.parent.iterdir()) == [picture]
    assert matplotlib.image.imread(picture).shape == (975, 1350, 4)

    X, y = make_linear(400, random_state=command.SEED)
    objective = SVMObjective(X, y, alpha=1.0, kernel="linear")
    gains = objective.gains(range(400))
    assert f"F = {objective.value:.4f}" in result.output
    rows = re.findall(r"│ +(\d+) │ +([+-]1) │ .+? │ +([\d.]+) │ +([\d.]+) │", result.output)
    assert len(rows) == 10
    loss = np.maximum(0.0, 1.0 - y * objective.decision_function(X))
    shown = [int(row[0]) for row in rows]
    assert shown == list(np.argsort(-gains, kind="stable")[:10])
    for k, (_, label, machine_loss, gain) in zip(shown, rows, strict=True):
        assert int(label) == y[k]
        assert float(machine_loss) == pytest.approx(loss[k], abs=6e-5)
        assert float(gain) == pytest.approx(gains[k], abs=6e-5)


def test_draw_in_which_no_line_helps_says_so(run, tmp_path):
    result = run("demo", "--out", tmp_path, "--seed", 0)
    assert result.exit_code == 0, result.output
    assert "answers alike everywhere" in result.output
    assert (tmp_path / "demo.png").exists()


def test_default_draw_has_something_to_see(run, tmp_path):
    assert "answers alike everywhere" not in run("demo", "--out", tmp_path).output


def assert_one_line_of_complaint(result, *parts):
    assert result.exit_code == 1
    assert isinstance(result.exception, SystemExit)
    assert len(result.stderr.strip().splitlines()) == 1
    for part in ("deferlearn demo: cannot", "--out", *parts):
        assert part in result.stderr


def test_folder_that_is_a_file(run, tmp_path):
    path = tmp_path / "taken"
    path.write_text("mine")
    assert_one_line_of_complaint(run("demo", "--out", path), str(path))
    assert path.read_text() == "mine"


def test_folder_that_cannot_be_written(run, tmp_path, monkeypatch):
    def refuse(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(command, "write_atomically", refuse)
    assert_one_line_of_complaint(run("demo", "--out", tmp_path), "Permission denied")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("seed", [-1, 2**32, "x"])
def test_wrong_seed_is_a_usage_error(run, tmp_path, seed):
    result = run("demo", "--out", tmp_path / "new", f"--seed={seed}")
    assert result.exit_code == 2
    assert "--seed" in result.stderr
    assert not (tmp_path / "new").exists()


def test_version_and_help(run):
    assert run("--version").output.strip() == f"deferlearn {deferlearn.__version__}"
    assert "demo" in run("--help").output
    assert run().exit_code == 2
