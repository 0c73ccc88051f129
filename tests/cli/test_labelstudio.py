"""`deferlearn import-answers`: Label Studio's export in, a long table of answers out."""

import json

import pytest
from typer.testing import CliRunner

from case_tables import make_cases, read_csv, write_csv
from deferlearn.cli import labelstudio as command
from deferlearn.cli.app import app


def invoke(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture
def run(monkeypatch):
    # Wide enough that rich breaks no line.
    monkeypatch.setenv("COLUMNS", "300")
    return invoke


def content_of(folder):
    return {p: p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def assert_mistake(result, folder, before, *parts):
    """One line on stderr, exit code 2, no traceback, and a folder as it was."""
    assert result.exit_code == 2, result.output
    assert isinstance(result.exception, SystemExit)
    (line,) = result.stderr.strip().splitlines()
    for part in parts:
        assert part in line
    assert result.stdout == ""
    assert content_of(folder) == before


def test_import_prints_who_answered(run, tmp_path):
    choice = {"from_name": "answer", "value": {"choices": ["a"]}}
    task = {"data": {"id": "=1"}, "annotations": [{"result": [choice], "completed_by": 4}]}
    (tmp_path / "e.json").write_text(json.dumps([task]))
    result = run("import-answers", tmp_path / "e.json", "--out", tmp_path / "a.csv")
    assert result.exit_code == 0, result.output
    assert read_csv(tmp_path / "a.csv") == [{"case": "'=1", "reader": "4", "answer": "a"}]


def test_import_of_what_is_no_export(run, tmp_path):
    (tmp_path / "e.json").write_text("[{}]")
    before = content_of(tmp_path)
    result = run("import-answers", tmp_path / "e.json", "--out", tmp_path / "a.csv")
    assert_mistake(result, tmp_path, before, "deferlearn import-answers: ", "JSON-MIN")
    result = run("import-answers", tmp_path / "e.json", "--out", tmp_path / "e.json")
    assert_mistake(result, tmp_path, before, "would be overwritten")


def test_answers_are_written_as_the_cases_are(run, tmp_path):
    """Else no command could read both: --delimiter and --encoding hold for cases and answers."""
    columns = make_cases(40)
    word = {"ill": "krank ä", "well": "gesund"}
    cases = {name: columns[name] for name in ("id", "size", "dose")}
    cases["diagnosis"] = [word[label] for label in columns["diagnosis"]]
    path = tmp_path / "cases.csv"
    write_csv(path, cases, delimiter=";")
    path.write_bytes(path.read_text(encoding="utf-8").encode("latin-1"))
    tasks = [
        {"data": {"id": name}, "annotations": [_annotation(word[label], 'Jürgen "J"')]}
        for name, label in zip(columns["id"], columns["reader_1"], strict=True)
    ]
    (tmp_path / "e.json").write_text(json.dumps(tasks))
    written = ("--delimiter", ";", "--encoding", "latin-1")
    answers = tmp_path / "a.csv"
    result = run("import-answers", tmp_path / "e.json", *written, "--out", answers)
    assert result.exit_code == 0, result.output
    words = ("--label", "diagnosis", "--answers", answers, "--id", "id", *written)
    quick = ("--alpha", "0.1", "--no-evaluate", "--out", tmp_path / "m.skops", "--json")
    result = run("fit", path, *words, *quick)
    assert result.exit_code == 0, result.output
    (reader,) = json.loads(result.stdout)["readers"]
    wrong = sum(a != b for a, b in zip(columns["reader_1"], columns["diagnosis"], strict=True))
    assert (reader["reader"], reader["answers"], reader["wrong"]) == ('Jürgen "J"', 40, wrong)
    # Written otherwise, the message says that both are read alike.
    assert run("import-answers", tmp_path / "e.json", "--out", answers).exit_code == 0
    before = content_of(tmp_path)
    result = run("fit", path, *words, *quick)
    assert_mistake(
        result, tmp_path, before, "a.csv has no column 'case'", "in the format of the cases"
    )


def _annotation(answer, who):
    choice = {"from_name": "answer", "to_name": "case", "type": "choices"}
    return {"completed_by": who, "result": [{**choice, "value": {"choices": [answer]}}]}


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--encoding", "latin-1"), "'€' cannot be written in the encoding 'latin-1'"),
        (("--encoding", "nonsense"), "encoding='nonsense'"),
        (("--delimiter", ";;"), "delimiter=';;'"),
    ],
)
def test_answers_that_cannot_be_written_so(run, tmp_path, words, says):
    task = {"data": {"id": 1}, "annotations": [_annotation("€", "r")]}
    (tmp_path / "e.json").write_text(json.dumps([task]))
    before = content_of(tmp_path)
    result = run("import-answers", tmp_path / "e.json", *words, "--out", tmp_path / "a.csv")
    assert_mistake(result, tmp_path, before, says)


def test_help_has_examples(run):
    text = " ".join(run("import-answers", "--help").output.split())
    for line in command.EXAMPLES.split("\n\n"):
        assert " ".join(line.split()) in text
