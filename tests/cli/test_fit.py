"""`deferlearn fit` from end to end: a table in, a model out, and one line for every mistake."""

import hashlib
import json
import re

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.model_selection import StratifiedGroupKFold
from sklearn.preprocessing import StandardScaler
from typer.testing import CliRunner

import deferlearn
from case_tables import make_cases, write_csv
from deferlearn import AssistedSVC
from deferlearn.cli import fit as command
from deferlearn.cli.app import app
from deferlearn.tables import TabularTeam, fit_table, select_cases
from deferlearn.tables.held_out import cross_validated_errors
from deferlearn.teams import TeamCV

ROLES = ("--label", "diagnosis", "--human", "reader_1", "--human", "reader_2", "--id", "id")
QUICK = ("--alpha", "0.1", "--no-evaluate", "--no-certify")


@pytest.fixture
def run(monkeypatch):
    # Wide enough that rich breaks no line.
    monkeypatch.setenv("COLUMNS", "300")
    return lambda *words: CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture
def stored(monkeypatch):
    """Models that would be stored, by name."""
    models = {}
    monkeypatch.setattr(
        deferlearn, "save", lambda model, path: models.update({path.name: model}), raising=False
    )
    return models


@pytest.fixture
def cases(tmp_path):
    return write_csv(tmp_path / "cases.csv", make_cases())


def test_a_model_that_knows_where_it_comes_from(run, cases, tmp_path):
    out = tmp_path / "model.skops"
    columns = make_cases()
    columns["seen"] = [f"2024-01-{i % 28 + 1:02d}" for i in range(80)]
    columns["note"] = [f"text {i}" for i in range(80)]
    write_csv(cases, columns)
    result = run("fit", cases, *ROLES, "--group", "patient", *QUICK, "--out", out, "--json")
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    model = deferlearn.load(out)
    assert isinstance(model, TabularTeam)
    card = model.card_
    assert told == {"model": str(out), **card}
    assert card["files"]["cases"] == {
        "name": "cases.csv",
        "sha256": hashlib.sha256(cases.read_bytes()).hexdigest(),
    }
    assert card["columns"] == {
        "size": "number",
        "dose": "number",
        "age": "number",
        "site": "category",
    }
    assert set(card["dropped"]) == {"seen", "note"}
    assert card["classes"] == ["ill", "well"]
    assert (card["label"], card["identifier"], card["group"]) == ("diagnosis", "id", "patient")
    assert (card["groups"], card["budget"], card["seed"], card["alpha"]) == (40, 0.2, 0, 0.1)
    assert card["versions"]["deferlearn"] == deferlearn.__version__
    assert [row["reader"] for row in card["readers"]] == ["reader_1", "reader_2"]
    wrong = [a != b for a, b in zip(columns["reader_1"], columns["diagnosis"], strict=True)]
    assert card["readers"][0]["error"] == np.mean(wrong)
    # What comes back from the file answers as the same fit in Python does.
    again = fit_table(
        select_cases(
            columns, "diagnosis", humans=["reader_1", "reader_2"], identifier="id", group="patient"
        ),
        alpha=0.1,
    )
    new = {k: v for k, v in make_cases(20, 3).items() if k in card["columns"]}
    np.testing.assert_array_equal(model.decision_function(new), again.decision_function(new))
    np.testing.assert_array_equal(model.defer(new), again.defer(new))


def test_the_same_from_csv_parquet_and_long_answers(run, stored, tmp_path):
    columns = make_cases()
    write_csv(tmp_path / "c.csv", columns)
    pq.write_table(pa.table(columns), tmp_path / "c.parquet")
    bare = {name: cells for name, cells in columns.items() if not name.startswith("reader")}
    write_csv(tmp_path / "bare.csv", bare)
    long = {
        "id": columns["id"] * 2,
        "who": ["reader_1"] * 80 + ["reader_2"] * 80,
        "said": columns["reader_1"] + columns["reader_2"],
    }
    write_csv(tmp_path / "a.csv", long)
    roles = ("--label", "diagnosis", "--drop", "patient")
    answers = (
        "--answers",
        tmp_path / "a.csv",
        "--case",
        "id",
        "--reader",
        "who",
        "--answer",
        "said",
    )
    variants = {
        "csv": ("c.csv", *ROLES, "--drop", "patient"),
        "parquet": ("c.parquet", *ROLES, "--drop", "patient"),
        "long": ("bare.csv", *roles, *answers),
    }
    new = make_cases(20, 3)
    decisions = {}
    for name, (file, *words) in variants.items():
        out = tmp_path / f"{name}.skops"
        result = run("fit", tmp_path / file, *words, *QUICK, "--out", out)
        assert result.exit_code == 0, result.output
        model = stored[out.name]
        decisions[name] = (model.decision_function(new), model.deferral_score(new))
    np.testing.assert_array_equal(decisions["csv"], decisions["parquet"])
    np.testing.assert_array_equal(decisions["csv"], decisions["long"])


def test_it_says_what_it_did(run, stored, cases, tmp_path):
    columns = make_cases()
    columns["reader_1"] = [None if i % 8 == 0 else a for i, a in enumerate(columns["reader_1"])]
    columns["diagnosis"][79] = ""
    columns["constant"] = ["[bold]x"] * 80  # rich would take it for markup
    write_csv(cases, columns)
    out = tmp_path / "model.skops"
    words = ("--label", "diagnosis", "--human", "reader_1", "--id", "id", "--drop", "reader_2")
    result = run("fit", cases, *words, "--out", out)
    assert result.exit_code == 0, result.output
    text = result.stdout
    assert "tuned for the team" in text
    assert "79, and 1 without a label, left out" in text
    assert re.search(r"number columns +│ 3: size, dose, age", text)
    assert "constant, '[bold]x'" in text
    assert re.search(r"left out: reader_2 +│ dropped on request", text)
    assert "20.0% of the cases" in text
    assert "Errors on 69 held-out cases" in text
    assert "Note: no answer was given for 10 of 79 cases" in text
    assert "a little too low" in text
    assert f"Model: {out}" in text
    assert "Fitting machine and policy on 79 cases" in result.stderr
    model = stored[out.name]
    card = model.card_
    assert isinstance(model.team, TeamCV)
    assert set(card["errors"]) == {"machine", "human", "team"}
    best = model.team.best_params_
    assert best["machine"] == "blend"
    assert card["machine"] == "the mean of " + ", ".join(best["members"])
    assert card["errors"]["human"]["error"] == card["readers"][0]["error"]


def test_errors_on_cases_left_out_are_those_of_a_plain_loop():
    """By the estimator itself on numbers alone, so that columns need no learning but their scale."""
    columns = make_cases(100, seed=5)
    table = {k: columns[k] for k in ("patient", "size", "dose", "diagnosis", "reader_1")}
    cases = select_cases(table, "diagnosis", humans=["reader_1"], group="patient")
    errors = cross_validated_errors(fit_table(cases, alpha=0.1, seed=3), cases, seed=3)
    X = np.array([columns["size"], columns["dose"]]).T
    y, human = np.array(columns["diagnosis"]), np.array(columns["reader_1"])
    machine, team = y.copy(), y.copy()
    folds = StratifiedGroupKFold(5, shuffle=True, random_state=3)
    for train, test in folds.split(X, y, columns["patient"]):
        scaler = StandardScaler().fit(X[train])
        clf = AssistedSVC(budget=0.2, alpha=0.1, cv=None, random_state=3)
        clf.fit(scaler.transform(X[train]), y[train], human_labels=human[train])
        machine[test] = clf.predict(scaler.transform(X[test]))
        team[test] = clf.predict_assisted(scaler.transform(X[test]), human[test], batch=True)
    assert errors["machine"]["error"] == np.mean(machine != y)
    assert errors["team"]["error"] == np.mean(team != y)
    assert errors["human"]["error"] == np.mean(human != y)
    assert errors["team"]["lower"] < errors["team"]["error"] < errors["team"]["upper"]


def test_cases_of_one_group_stay_in_one_fold(monkeypatch):
    columns = make_cases()
    cases = select_cases(columns, "diagnosis", humans=["reader_1"], group="patient")
    seen = []
    fit = AssistedSVC.fit

    def watched(self, *arguments, **options):
        seen.append(self.cv)
        return fit(self, *arguments, **options)

    monkeypatch.setattr(AssistedSVC, "fit", watched)
    fit_table(cases, alpha=0.1)
    for train, test in seen[0]:
        assert not set(cases.groups[train]) & set(cases.groups[test])


def test_numbers_with_commas_are_read_when_said(run, stored, tmp_path):
    columns = make_cases()
    with_commas = {
        name: [str(c).replace(".", ",") if name in ("size", "dose") else c for c in cells]
        for name, cells in columns.items()
    }
    path = write_csv(tmp_path / "c.csv", with_commas, delimiter=";")
    out = tmp_path / "m.skops"
    words = ("fit", path, *ROLES, "--group", "patient", *QUICK, "--out", out, "--delimiter", ";")
    result = run(*words)
    assert result.exit_code == 0, result.output
    assert "it seems to hold numbers with decimal commas: pass --decimal ," in result.stdout
    assert run(*words, "--decimal", ",").exit_code == 0
    expected = fit_table(
        select_cases(
            columns, "diagnosis", humans=["reader_1", "reader_2"], identifier="id", group="patient"
        ),
        alpha=0.1,
    )
    new = make_cases(20, 3)
    np.testing.assert_array_equal(
        stored[out.name].decision_function(new), expected.decision_function(new)
    )


def test_without_answers_it_says_so(run, stored, cases, tmp_path):
    out = tmp_path / "m.skops"
    words = ("--label", "diagnosis", "--drop", "reader_1", "--drop", "reader_2", "--id", "id")
    result = run("fit", cases, *words, *QUICK, "--out", out)
    assert result.exit_code == 0, result.output
    assert "humans are taken to be always right" in result.stdout


def test_the_certificate_is_computed_if_it_takes_seconds(run, stored, cases, tmp_path, monkeypatch):
    computed = []
    monkeypatch.setattr(AssistedSVC, "certify", lambda team: computed.append(team))
    words = ("fit", cases, *ROLES, "--alpha", "0.1", "--no-evaluate", "--out", tmp_path / "m.skops")
    note = (
        "No certificate was computed: with more than 79 cases it can take minutes. Pass --certify"
    )
    for most, option, expected, said in (
        (80, (), 1, False),
        (80, ("--no-certify",), 0, False),
        (79, (), 0, True),
        (79, ("--certify",), 1, False),
    ):
        monkeypatch.setattr(command, "MAX_CERTIFIED", most)
        computed.clear()
        result = run(*words, *option)
        assert result.exit_code == 0, result.output
        assert len(computed) == expected
        assert (note in result.stdout) == said
        if computed:
            assert computed == [stored["m.skops"].chosen]


# -- mistakes ---------------------------------------------------------------------------------


def changed(**columns):
    return {**make_cases(), **columns}


def assert_mistake(result, folder, before, *parts):
    """One line on stderr, exit code 2, no traceback, and a folder as it was."""
    assert result.exit_code == 2, result.output
    assert isinstance(result.exception, SystemExit)
    (line,) = result.stderr.strip().splitlines()
    assert line.startswith("deferlearn ")
    for part in parts:
        assert part in line
    assert result.stdout == ""
    assert content_of(folder) == before


def content_of(folder):
    return {p: p.read_bytes() for p in folder.rglob("*") if p.is_file()}


@pytest.mark.parametrize(
    ("columns", "words", "parts"),
    [
        ({}, ("--label", "nose"), ["no column 'nose'", "--label"]),
        ({}, ("--label", "diagnosis", "--human", "nose"), ["no column 'nose'", "--human"]),
        ({}, ("--label", "diagnosis", "--id", "nose"), ["no column 'nose'", "--id"]),
        ({}, ("--label", "diagnosis", "--group", "nose"), ["no column 'nose'", "--group"]),
        ({}, ("--label", "diagnosis", "--drop", "nose"), ["no column 'nose'", "--drop"]),
        ({}, ("--label", "diagnosis", "--number", "nose"), ["no column 'nose'"]),
        ({}, ("--label", "diagnosis", "--human", "diagnosis"), ["label and as human"]),
        ({"diagnosis": ["ill"] * 80}, ROLES, ["only one class, 'ill'"]),
        ({"diagnosis": ["a", "b", "c", "d"] * 20}, ROLES, ["none of the classes 'a', 'b'"]),
        ({"diagnosis": ["ill"] * 78 + ["well"] * 2}, ROLES, ["'well' has 2 of 80 cases"]),
        ({"reader_1": ["perhaps"] * 80}, ROLES, ["'perhaps' in row 1", "neither of the classes"]),
        ({"reader_1": [None] * 80}, ROLES, ["'reader_1' answered none"]),
        ({}, (*ROLES, "--budget", "1.5"), ["--budget 1.5"]),
        ({}, (*ROLES, "--budget", "many"), ["--budget many"]),
        ({}, (*ROLES, "--budget", "9" * 5000), ["--budget 999", "whole number"]),
        ({"size": [1e308] * 79 + [-1e308]}, ROLES, ["'size'", "row 1 ", "too large"]),
        ({}, (*ROLES, "--budget", "81"), ["budget=81", "80"]),
        ({}, (*ROLES, "--alpha", "-1"), ["alpha=-1", "positive"]),
        ({}, (*ROLES, "--number", "site"), ["column 'site' holds"]),
        ({}, (*ROLES, "--group", "site"), ["only 2 groups"]),
        ({}, (*ROLES, "--decimal", "x"), ["decimal='x'"]),
        ({}, (*ROLES, "--delimiter", ";"), ["no column 'diagnosis'", "--delimiter ','"]),
        ({}, (*ROLES, "--encoding", "x"), ["encoding='x'"]),
        ({}, (*ROLES, "--label-studio", "no.json"), ["cannot read no.json"]),
        ({}, (*ROLES[:-2], "--label-studio", "no.json"), ["--id"]),
        ({}, (*ROLES, "--answers", "no.csv"), ["cannot read no.csv"]),
        ({}, (*ROLES, "--answers", "a.csv", "--label-studio", "b.json"), ["not both"]),
    ],
)
def test_mistakes(run, tmp_path, columns, words, parts):
    path = write_csv(tmp_path / "cases.csv", changed(**columns))
    before = content_of(tmp_path)
    result = run("fit", path, *words, "--out", tmp_path / "m.skops")
    assert_mistake(result, tmp_path, before, "deferlearn fit: ", *parts)


@pytest.mark.parametrize("content", [b"", b"a,b\n", b"\xff\xfe\x00", b"PK\x03\x04", b"a,b\n1\n"])
def test_files_that_cannot_be_read(run, tmp_path, content):
    path = tmp_path / "cases.csv"
    path.write_bytes(content)
    before = content_of(tmp_path)
    result = run("fit", path, "--label", "b", "--out", tmp_path / "m.skops")
    assert_mistake(result, tmp_path, before, "deferlearn fit: ", str(path))


def test_nothing_to_learn_from(run, tmp_path):
    cases = {k: v for k, v in make_cases().items() if k in ("id", "diagnosis")}
    path = write_csv(tmp_path / "cases.csv", {**cases, "k": [1] * 80})
    before = content_of(tmp_path)
    result = run("fit", path, "--label", "diagnosis", "--out", tmp_path / "m.skops")
    assert_mistake(result, tmp_path, before, "no column can be used as a feature", "'k': constant")


def test_places_that_cannot_be_written(run, cases, tmp_path):
    before = content_of(tmp_path)
    for out in (tmp_path, tmp_path / "no" / "m.skops", cases / "m.skops"):
        result = run("fit", cases, *ROLES, "--out", out)
        assert_mistake(result, tmp_path, before, f"cannot write {out}")
    result = run("fit", cases, *ROLES, "--out", cases)
    assert_mistake(result, tmp_path, before, "would be overwritten")


def test_a_disk_that_fails_keeps_the_old_model(run, cases, tmp_path, monkeypatch):
    out = tmp_path / "m.skops"
    out.write_bytes(b"old")

    def refuse(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(deferlearn, "save", refuse, raising=False)
    result = run("fit", cases, *ROLES, *QUICK, "--out", out)
    assert result.exit_code == 1
    assert "No space left" in result.stderr.splitlines()[-1]
    assert out.read_bytes() == b"old"


def test_defects_are_not_hidden(run, cases, tmp_path, monkeypatch):
    def broken(*_, **__):
        raise RuntimeError("a defect")

    monkeypatch.setattr("deferlearn.tables.fit_table", broken)
    result = run("fit", cases, *ROLES, "--out", tmp_path / "m.skops")
    assert result.exit_code == 1
    assert isinstance(result.exception, RuntimeError)


def test_ctrl_c_is_one_line(run, cases, tmp_path, monkeypatch):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("deferlearn.tables.fit_table", stop)
    before = content_of(tmp_path)
    result = run("fit", cases, *ROLES, "--out", tmp_path / "m.skops")
    assert result.exit_code == 130
    assert result.stderr.splitlines()[-1] == "deferlearn fit: stopped; nothing was changed"
    assert content_of(tmp_path) == before


def test_without_pyarrow(run, cases, tmp_path, monkeypatch):
    monkeypatch.setattr("deferlearn.cli._errors.find_spec", lambda name: None)
    result = run("fit", cases, *ROLES, "--out", tmp_path / "m.skops")
    assert result.exit_code == 1
    assert "pip install 'deferlearn[cli]'" in result.stderr


def test_help_has_examples(run):
    text = run("fit", "--help").output
    for line in command.EXAMPLES.split("\n\n"):
        assert " ".join(line.split()) in " ".join(text.split())


def test_a_forgotten_reader_is_a_mistake_unless_it_is_kept(run, stored, cases, tmp_path):
    words = ("--label", "diagnosis", "--human", "reader_1", "--id", "id", "--group", "patient")
    before = {p: p.read_bytes() for p in tmp_path.iterdir()}
    result = run("fit", cases, *words, *QUICK, "--out", tmp_path / "m.skops")
    assert_mistake(result, tmp_path, before, "'reader_2'", "--human reader_2", "--keep", "--drop")
    result = run("fit", cases, *words, *QUICK, "--keep", "reader_2", "--out", tmp_path / "m.skops")
    assert result.exit_code == 0, result.output
    assert stored["m.skops"].card_["columns"]["reader_2"] == "category"


def test_a_wrong_name_is_answered_with_the_nearest(run, tmp_path):
    columns = {f"measure {i}": list(range(80)) for i in range(30)} | make_cases()
    path = write_csv(tmp_path / "c.csv", columns)
    result = run("fit", path, "--label", "Diagnose", "--out", tmp_path / "m.skops")
    assert "no column 'Diagnose', given by --label; it has 'diagnosis', " in result.stderr


def test_many_cases_are_judged_by_a_sample_and_it_is_said(run, stored, tmp_path, monkeypatch):
    monkeypatch.setattr("deferlearn.tables.held_out.MAX_CASES", 60)
    cases = write_csv(tmp_path / "cases.csv", make_cases())
    words = ("--group", "patient", "--alpha", "0.1", "--out", tmp_path / "m.skops", "--json")
    told = json.loads(run("fit", cases, *ROLES, *words).stdout)
    assert told["errors"]["team"]["cases"] <= 60
    assert any("a random sample of 60 of the 80 cases" in note for note in told["notes"])


def test_without_a_human_none_is_judged(run, stored, tmp_path):
    columns = {k: v for k, v in make_cases().items() if not k.startswith("reader")}
    cases = write_csv(tmp_path / "cases.csv", columns)
    words = ("--label", "diagnosis", "--id", "id", "--group", "patient", "--alpha", "0.1")
    result = run("fit", cases, *words, "--out", tmp_path / "m.skops")
    assert result.exit_code == 0, result.output
    assert "machine" in result.stdout
    assert "│ human" not in result.stdout
    assert "│ team" not in result.stdout
    assert "Note: No human was given to fit" in result.stdout
    assert "which goes with --alpha" in result.stdout


def test_answers_to_other_cases_are_told_in_the_words_of_the_command(run, stored, tmp_path):
    columns = make_cases()
    bare = {k: v for k, v in columns.items() if not k.startswith("reader")}
    cases = write_csv(tmp_path / "cases.csv", bare)
    long = {"case": [*columns["id"], "17"], "reader": ["a"] * 81}
    answers = write_csv(tmp_path / "a.csv", {**long, "answer": [*columns["reader_1"], "ill"]})
    words = ("fit", cases, "--label", "diagnosis", "--group", "patient", "--answers", answers)
    words = (*words, "--id", "id", *QUICK, "--out", tmp_path / "m.skops")
    result = run(*words)
    assert result.exit_code == 2
    for part in ("1 answer of 81", "'id' does not have", "'17'", "--ignore-unknown", "--id"):
        assert part in result.stderr
    assert run(*words, "--ignore-unknown").exit_code == 0
    assert stored["m.skops"].card_["readers"][0]["answers"] == 80
