"""`deferlearn report` from end to end: a model and a table in, one page out, one line for every mistake."""

import hashlib
import json
import shlex
from html import unescape

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import deferlearn
from case_tables import make_cases, write_csv
from deferlearn.cli.app import app
from deferlearn.report import measure
from deferlearn.tables import fit_table, select_cases

READERS = ("reader_1", "reader_2")
# Without verdict and curves, which take their time and are tested once.
FAST = ("--refit-cases", "0")


def invoke(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture
def run(monkeypatch):
    # Wide enough that rich breaks no line.
    monkeypatch.setenv("COLUMNS", "300")
    return invoke


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A folder with cases and the model fitted on them."""
    folder = tmp_path_factory.mktemp("trained")
    cases = write_csv(folder / "cases.csv", make_cases())
    words = ("--label", "diagnosis", "--human", "reader_1", "--human", "reader_2", "--id", "id")
    quick = ("--alpha", "0.1", "--no-evaluate", "--drop", "patient")
    result = invoke("fit", cases, *words, *quick, "--out", folder / "model.skops")
    assert result.exit_code == 0, result.output
    return folder


@pytest.fixture
def model(trained):
    return trained / "model.skops"


@pytest.fixture
def new(tmp_path):
    return write_csv(tmp_path / "new.csv", make_cases(60, seed=3))


def content_of(folder):
    return {p: p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def sha256(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_the_whole_report_of_the_cases_it_was_fitted_on(run, trained, model, tmp_path):
    out, cases = tmp_path / "report.html", trained / "cases.csv"
    words = (cases, "--label", "diagnosis", "--human", "reader_1", "--group", "patient")
    result = run("report", model, *words, "--quick", "--seed", 5, "--out", out)
    assert result.exit_code == 0, result.output
    assert "Does it pay to ask humans?" in result.stdout
    assert "teams fitted without the case" in result.stdout
    assert f"Report: {out}" in result.stdout
    for stage in ("fitted without them", "Other budgets: fitting", "one case at a time"):
        assert stage in result.stderr
    page = out.read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert sha256(model) in page
    assert page.count(sha256(cases)) == 2  # of these cases, and of those that the model knows
    # The command in the report makes the same report.
    again = tmp_path / "again.html"
    command = unescape(page.partition("<pre><code>")[2].partition("</code>")[0])
    program, name, *rest = shlex.split(command)
    assert (program, name) == ("deferlearn", "report")
    assert rest[rest.index("--out") + 1] == str(out)
    rest[rest.index("--out") + 1] = str(again)
    assert run("report", *rest).exit_code == 0
    assert _undated(again.read_text(encoding="utf-8"), again) == _undated(page, out)


def test_the_command_names_only_what_was_asked_for(run, model, new, tmp_path):
    """Without columns of humans, it once had --human '()', which is no column."""
    out = tmp_path / "report.html"
    assert run("report", model, new, *FAST, "--out", out).exit_code == 0
    command = unescape(out.read_text(encoding="utf-8").partition("<pre><code>")[2])
    words = shlex.split(command.partition("</code>")[0])
    assert words[2:] == [str(model), str(new), "--out", str(out), *FAST, "--seed", "0"]


def _undated(page, path):
    start, _, rest = page.replace(str(path), "PATH").partition("<dt>report written</dt>")
    return start + rest.partition("</dl>")[2]


def test_quiet_says_nothing_but_notes(run, model, new, tmp_path):
    out = tmp_path / "report.html"
    loud = run("report", model, new, "--out", out, *FAST)
    quiet = run("report", model, new, "--out", out, *FAST, "--quiet")
    assert (quiet.exit_code, quiet.stdout) == (0, "")
    notes = [line for line in loud.stdout.splitlines() if line.startswith("Note: ")]
    assert quiet.stderr.splitlines() == notes
    assert out.exists()


def test_json_tells_the_numbers(run, model, new, tmp_path):
    out = tmp_path / "report.html"
    result = run("report", model, new, *FAST, "--out", out, "--json")
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    team = deferlearn.load(model)
    columns = make_cases(60, seed=3)
    truth = np.array(columns["diagnosis"])
    assert told["errors"]["machine"]["share"] == np.mean(team.predict(columns) != truth)
    assert told["rate"]["observed"]["count"] == team.defer(columns).sum()
    assert told["judged_by"] == "the stored model"
    assert [row["reader"] for row in told["cases"]["readers"]] == list(READERS)
    assert told["provenance"]["files"]["cases"] == {"name": "new.csv", "sha256": sha256(new)}
    assert told["provenance"]["seed"] == 0
    assert told["refits"]["skipped"] == "it was not asked for"
    assert told["report"] == str(out)


def test_the_same_from_parquet_long_answers_and_decimal_commas(run, model, new, tmp_path):
    columns = make_cases(60, seed=3)
    pq.write_table(pa.table(columns), tmp_path / "new.parquet")
    bare = {name: cells for name, cells in columns.items() if name not in READERS}
    write_csv(tmp_path / "bare.csv", bare)
    long = {
        "id": columns["id"] * 2,
        "who": ["reader_1"] * 60 + ["reader_2"] * 60,
        "said": columns["reader_1"] + columns["reader_2"],
    }
    write_csv(tmp_path / "long.csv", long)
    commas = {
        name: [str(c).replace(".", ",") if name in ("size", "dose") else c for c in cells]
        for name, cells in columns.items()
    }
    write_csv(tmp_path / "commas.csv", commas, delimiter=";")
    long_words = ("--answers", tmp_path / "long.csv", "--case", "id", "--reader", "who")
    variants = (
        (new,),
        (tmp_path / "new.parquet",),
        (tmp_path / "bare.csv", *long_words, "--answer", "said"),
        (tmp_path / "commas.csv", "--delimiter", ";", "--decimal", ","),
    )
    found = []
    for words in variants:
        result = run("report", model, *words, *FAST, "--out", tmp_path / "r.html", "--json")
        assert result.exit_code == 0, result.output
        told = json.loads(result.stdout)
        found.append(
            {key: told[key] for key in ("effect", "errors", "confusion", "together", "rate")}
        )
    assert found == [found[0]] * 4


def test_what_to_know_is_noted(run, model, tmp_path):
    columns = make_cases(60, seed=3)
    columns["site"][0] = "<Paris>"
    for reader in READERS:
        columns[reader][:5] = [None] * 5
    path = write_csv(tmp_path / "new.csv", columns)
    result = run("report", model, path, *FAST, "--out", tmp_path / "r.html")
    assert result.exit_code == 0, result.output
    assert "Note: 5 cases that no human has answered are not judged." in result.stdout
    assert "such as '<Paris>'" in result.stdout
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "&lt;Paris&gt;" in page
    assert "<Paris>" not in page


# -- mistakes ---------------------------------------------------------------------------------


def assert_mistake(result, folder, before, *parts):
    """One line on stderr, exit code 2, no traceback, and a folder as it was."""
    assert result.exit_code == 2, result.output
    assert isinstance(result.exception, SystemExit)
    (line,) = result.stderr.strip().splitlines()
    for part in parts:
        assert part in line
    assert result.stdout == ""
    assert content_of(folder) == before


@pytest.mark.parametrize(
    ("change", "words", "parts"),
    [
        ({}, ("--label", "truth"), ("no column 'truth'", "--label")),
        ({"diagnosis": None}, (), ("no column 'diagnosis'", "the model's label")),
        ({}, ("--human", "doctor"), ("no column 'doctor'", "--human")),
        ({}, ("--human", "site"), ("'site'", "a feature of the model")),
        ({}, ("--group", "ward"), ("no column 'ward'", "--group")),
        ({}, ("--subgroup", "ward"), ("no column 'ward'", "--subgroup")),
        ({}, ("--id", "name"), ("no column 'name'", "--id")),
        ({"size": None}, (), ("no column 'size'", "which the model needs")),
        ({"reader_1": None, "reader_2": None}, (), ("--human", "--answers")),
        ({"reader_1": ["perhaps"] * 60}, (), ("'perhaps'", "row 1", "'ill' and 'well'")),
        ({"reader_1": [""] * 60, "reader_2": None}, (), ("answered none of the cases",)),
        ({"diagnosis": ["ill"] * 60}, (), ("only one class",)),
        (
            {"diagnosis": ["a", "b"] * 30, "reader_1": ["a"] * 60, "reader_2": None},
            (),
            ("'a' and 'b'", "'ill' and 'well'"),
        ),
        ({"size": ["large"] * 60}, (), ("'large'", "row 1")),
        ({}, ("--answers", "nowhere.csv"), ("nowhere.csv",)),
        ({}, ("--delimiter", "::"), ("delimiter",)),
    ],
)
def test_mistakes_in_the_cases(run, model, tmp_path, change, words, parts):
    columns = make_cases(60, seed=3)
    columns = {k: v for k, v in {**columns, **change}.items() if v is not None}
    path = write_csv(tmp_path / "new.csv", columns)
    before = content_of(tmp_path)
    result = run("report", model, path, *words, *FAST, "--out", tmp_path / "r.html")
    assert_mistake(result, tmp_path, before, *parts)


def test_mistakes_in_the_files(run, model, new, tmp_path):
    (tmp_path / "text.skops").write_text("no model")
    (tmp_path / "empty.csv").write_text("")
    before = content_of(tmp_path)
    out = tmp_path / "r.html"
    for words, part in (
        ((tmp_path / "none.skops", new, "--out", out), "none.skops"),
        ((tmp_path / "text.skops", new, "--out", out), "text.skops"),
        ((model, tmp_path / "none.csv", "--out", out), "none.csv"),
        ((model, tmp_path / "empty.csv", "--out", out), "is empty"),
        ((model, new, "--out", new), "would be overwritten"),
        ((model, new, "--out", tmp_path), "folder"),
        ((model, new, "--out", tmp_path / "no" / "r.html"), "cannot write"),
    ):
        assert_mistake(run("report", *words, *FAST), tmp_path, before, part)


def test_stopped_or_broken_it_leaves_the_old_report(run, model, new, tmp_path, monkeypatch):
    out = tmp_path / "r.html"
    out.write_text("the old one")
    before = content_of(tmp_path)

    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(measure, "who_errs_where", stop)
    result = run("report", model, new, *FAST, "--out", out)
    assert result.exit_code == 130
    assert "nothing was changed" in result.stderr
    assert content_of(tmp_path) == before

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(measure, "who_errs_where", full)
    result = run("report", model, new, *FAST, "--out", out)
    assert result.exit_code == 1
    assert "No space left" in result.stderr
    assert content_of(tmp_path) == before


@pytest.mark.slow
def test_a_tuned_model_without_a_selection_says_that_nothing_is_certified(run, tmp_path):
    columns = {k: v for k, v in make_cases(60).items() if k != "patient"}
    cases = select_cases(columns, "diagnosis", humans=READERS, identifier="id")
    model = fit_table(cases)
    deferlearn.save(model, tmp_path / "m.skops")
    path = write_csv(tmp_path / "c.csv", columns)
    out = tmp_path / "r.html"
    result = run("report", tmp_path / "m.skops", path, "--jobs", 2, "--out", out, "--json")
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    assert told["model"]["tuned"]
    words = " ".join(told["certificate"]["words"])
    assert "team" in told["curves"], told["refits"]
    assert ("nothing to certify" in words) == (type(model.chosen).__name__ != "AssistedSVC")
