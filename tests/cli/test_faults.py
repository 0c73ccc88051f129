"""Strange names, links, cards and a full memory: one line each, and no traceback."""

import os

import numpy as np
import pytest
from typer.testing import CliRunner

import deferlearn
from case_tables import make_cases, write_csv
from deferlearn._utils.words import printable
from deferlearn.cli import _errors, report
from deferlearn.cli.app import app
from deferlearn.tables import fit_table, load_decider, select_cases
from deferlearn.tables.decider import FORMAT
from deferlearn.tables.errors import TableError


def run(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Cases, and the model fitted on them."""
    folder = tmp_path_factory.mktemp("models")
    cases = write_csv(folder / "cases.csv", make_cases())
    words = ("--label", "diagnosis", "--human", "reader_1", "--human", "reader_2", "--id", "id")
    quick = ("--drop", "patient", "--alpha", "0.1", "--no-evaluate")
    result = run("fit", cases, *words, *quick, "--out", folder / "model.skops")
    assert result.exit_code == 0, result.output
    return folder


def assert_one_line(result, *parts):
    assert result.exit_code in (1, 2), result.output
    assert isinstance(result.exception, SystemExit)
    lines = result.stderr.strip().splitlines()
    assert lines[-1].startswith("deferlearn ")
    for part in parts:
        assert part in lines[-1]


@pytest.mark.parametrize("command", ["report", "apply"])
def test_an_output_that_is_a_link_to_itself(folder, tmp_path, command):
    loop = tmp_path / "loop.html"
    loop.symlink_to(loop)
    result = run(command, folder / "model.skops", folder / "cases.csv", "--out", loop)
    assert_one_line(result, "loop.html")


def test_a_model_whose_name_is_not_utf8(folder, tmp_path):
    name = os.fsdecode(os.fsencode(tmp_path) + b"/mod\xe9l.skops")
    try:
        with open(name, "wb") as file:
            file.write((folder / "model.skops").read_bytes())
    except OSError:
        pytest.skip("this file system takes UTF-8 names only")
    out = tmp_path / "report.html"
    fast = ("--refit-cases", "0", "--out", out)
    result = run("report", name, folder / "cases.csv", "--label", "diagnosis", *fast)
    assert result.exit_code == 0, result.output
    assert "mod\\udce9l.skops" in out.read_text(encoding="utf-8")


def test_too_little_memory(folder, tmp_path, monkeypatch):
    def full(*_):
        raise MemoryError

    monkeypatch.setattr(report, "check_paths", full)
    words = (folder / "model.skops", folder / "cases.csv", "--out", tmp_path / "a.html")
    assert_one_line(run("report", *words), "not enough memory", "nothing was changed")


def test_too_little_memory_in_long_work(capsys):
    import typer

    with pytest.raises(typer.Exit), _errors.resumable("bench"):
        raise MemoryError
    assert "not enough memory" in capsys.readouterr().err


def test_names_do_not_act_on_the_terminal(tmp_path):
    table = make_cases()
    name = "size\x1b]0;owned\x07\x1b[2J"
    table = {name if column == "size" else column: cells for column, cells in table.items()}
    assert name in table
    cases = write_csv(tmp_path / "cases.csv", table)
    dropped = [
        word for name in ("patient", "id", "reader_1", "reader_2") for word in ("--drop", name)
    ]
    words = ("--label", "diagnosis", *dropped, "--alpha", "0.1")
    out = tmp_path / "model.skops"
    result = run("fit", cases, *words, "--no-evaluate", "--out", out)
    assert result.exit_code == 0, result.output
    assert "\x1b" not in result.stdout
    assert "\x1b" not in result.stderr
    assert "\x07" not in result.output
    wrong = run("fit", cases, "--label", "a\x1b[2J", "--out", out)
    assert_one_line(wrong, "a\\x1b[2J")
    assert "\x1b" not in wrong.stderr


def test_printable():
    assert printable("caf\xe9 \u2192 \U0001f600") == "caf\xe9 \u2192 \U0001f600"
    assert printable("a\tb\nc") == "a\tb\nc"
    assert printable("\x9b31m\x7f\r") == "\\x9b31m\\x7f\\r"
    printable("\udcff").encode("utf-8")


@pytest.mark.parametrize("broken", [None, [], {"format": FORMAT}, {"format": FORMAT, "rows": 3}])
def test_a_broken_card(tmp_path, broken):
    size = np.random.default_rng(0).normal(size=60)
    table = {"size": size, "truth": np.where(size > 0, "ill", "well")}
    model = fit_table(select_cases(table, "truth"), alpha=0.1)
    model.card_ = broken
    path = tmp_path / "model.skops"
    deferlearn.save(model, path)
    if not isinstance(broken, dict):
        with pytest.raises(TableError, match=r"model\.skops cannot be read: its card"):
            load_decider(path)
    write_csv(tmp_path / "cases.csv", {name: list(cells) for name, cells in table.items()})
    words = (path, tmp_path / "cases.csv", "--out", tmp_path / "out.csv")
    for command in ("apply", "report"):
        assert_one_line(run(command, *words), "model.skops cannot be read: its card")


def test_a_data_file_that_is_another_one(tmp_path, capsys):
    """Commands report it in one line, like a file that cannot be read."""
    import typer

    from deferlearn.datasets._files import RemoteFile, read_verified

    (tmp_path / "data.bin").write_bytes(b"something else")
    file = RemoteFile("data.bin", "0" * 64)
    with pytest.raises(typer.Exit), _errors.resumable("bench"):
        read_verified(file, tmp_path, download_if_missing=False)
    assert "data.bin is not the file it should be" in capsys.readouterr().err
