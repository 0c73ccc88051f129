"""`deferlearn demo` on the real engine."""

import json
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


@pytest.fixture(scope="module")
def outcome():
    """The default selection, computed once: its certificate takes seconds."""
    return command._select(command.SEED)


@pytest.fixture
def run(monkeypatch):
    # Wide enough that rich breaks no line.
    monkeypatch.setenv("COLUMNS", "300")
    return lambda *words: CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture
def quick(run, outcome, monkeypatch):
    """Runs with the default selection at hand."""
    monkeypatch.setattr(command, "_select", lambda seed: outcome)
    return run


def test_outcome_is_true(outcome):
    X, y = make_linear(400, random_state=command.SEED)
    np.testing.assert_array_equal(outcome.y, y)
    result, state = outcome.result, SVMObjective(X, y, alpha=command.ALPHA)
    assert result.initial_value == pytest.approx(state.value, rel=1e-9)
    assert len(set(result.order.tolist())) == len(result.order) == 80
    # By what refitting gives, not by what the selection says of itself.
    kept = np.setdiff1d(np.arange(400), result.order)
    machine = SVMObjective(X[kept], y[kept], alpha=command.ALPHA)
    assert outcome.machine_loss_after == pytest.approx(machine.value, rel=1e-9)
    paid = outcome.human_loss[result.order].sum()
    assert result.value == pytest.approx(state.value - machine.value - paid, rel=1e-9)
    errors = int(np.sum(y[kept] * machine.decision_function(X[kept]) <= 0))
    assert outcome.wrong["machine_after"] == errors
    # A human errs where the loss of a sure answer's sign exceeds one.
    assert outcome.wrong["human_after"] == int(np.sum(outcome.human_loss[result.order] > 1))


def test_default_draw_has_something_to_see(outcome):
    assert outcome.alike == {"before": False, "after": False}


def test_tables_and_picture(quick, outcome, tmp_path):
    result = quick("demo", "--out", tmp_path / "new" / "folder")
    assert result.exit_code == 0, result.output
    picture = tmp_path / "new" / "folder" / "demo.png"
    assert f"Picture: {picture}" in result.output
    assert list(picture.parent.iterdir()) == [picture]
    assert matplotlib.image.imread(picture).shape == (980, 1400, 4)

    rows = re.findall(
        r"│ +(\d+) │ +(\d+) │ +([+-]1) │ +([\d.]+) │ +([\d.]+) │ +([\d.]+) │", result.output
    )
    picked = outcome.result
    assert [int(row[0]) for row in rows] == list(range(1, 11))
    assert [int(row[1]) for row in rows] == picked.order[:10].tolist()
    for i, (_, k, label, gain, loss, score) in enumerate(rows):
        assert int(label) == outcome.y[int(k)]
        assert float(gain) == pytest.approx(picked.gains[i], abs=6e-5)
        assert float(loss) == pytest.approx(outcome.human_loss[int(k)], abs=6e-5)
        assert float(score) == pytest.approx(picked.scores[i], abs=6e-5)
    assert f"{picked.initial_value:.4f}" in result.output
    assert f"= {picked.initial_value - picked.value:.4f}" in result.output
    assert f"{picked.n_exact} solved exactly" in result.output
    for line in outcome.certificate.summary().splitlines():
        assert line in result.output


def test_json(quick, outcome, tmp_path):
    result = quick("demo", "--json", "--out", tmp_path)
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    assert [pick["sample"] for pick in told["picks"]] == outcome.result.order.tolist()
    assert told["machine_loss_before"] - told["machine_loss_after"] - told[
        "human_loss_after"
    ] == pytest.approx(told["value"])
    assert told["value"] <= told["certificate"]["upper_bound"]
    assert told["picture"] == str(tmp_path / "demo.png")
    assert (tmp_path / "demo.png").exists()


def test_another_draw_in_which_no_line_helps_says_so(run, tmp_path):
    result = run("demo", "--out", tmp_path, "--seed", 2)
    assert result.exit_code == 0, result.output
    assert "no line helps after the deferral" in result.output
    assert (tmp_path / "demo.png").exists()
    assert result.stderr == ""  # no progress bar where nobody watches


def assert_one_line_of_complaint(result, *parts):
    assert result.exit_code == 1
    assert isinstance(result.exception, SystemExit)
    assert len(result.stderr.strip().splitlines()) == 1
    for part in ("deferlearn demo: ", *parts):
        assert part in result.stderr


def test_folder_that_is_a_file(quick, tmp_path):
    path = tmp_path / "taken"
    path.write_text("mine")
    assert_one_line_of_complaint(quick("demo", "--out", path), "cannot use", "--out", str(path))
    assert path.read_text() == "mine"


def test_folder_that_cannot_be_written(quick, tmp_path, monkeypatch):
    def refuse(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(command, "write_atomically", refuse)
    result = quick("demo", "--out", tmp_path)
    assert_one_line_of_complaint(result, "cannot write", "--out", "Permission denied")
    assert list(tmp_path.iterdir()) == []


def test_without_matplotlib(quick, tmp_path, monkeypatch):
    monkeypatch.setattr(command, "find_spec", lambda name: None)
    assert_one_line_of_complaint(quick("demo", "--out", tmp_path), "pip install 'deferlearn[cli]'")


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
