"""`deferlearn apply`: a model and a table in, decisions out, and answers back."""

import csv
import gzip
import json
import zipfile

import numpy as np
import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.linear_model import LogisticRegression
from typer.testing import CliRunner

import deferlearn
from case_tables import make_cases, read_csv, write_csv
from deferlearn.cli import apply as command
from deferlearn.cli.app import app
from deferlearn.tables import fit_table, open_table, select_cases
from deferlearn.tables.routed import COLUMNS

ROLES = ("--label", "diagnosis", "--human", "reader_1", "--human", "reader_2", "--id", "id")
QUICK = ("--alpha", "0.1", "--no-evaluate", "--drop", "patient")
FEATURES = ("size", "dose", "age", "site")


def invoke(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    cases = write_csv(folder / "cases.csv", make_cases())
    result = invoke("fit", cases, *ROLES, *QUICK, "--out", folder / "model.skops")
    assert result.exit_code == 0, result.output
    return folder / "model.skops"


@pytest.fixture
def run(monkeypatch):
    # Wide enough that rich breaks no line.
    monkeypatch.setenv("COLUMNS", "300")
    return invoke


@pytest.fixture
def new():
    columns = make_cases(60, seed=1)
    return {name: columns[name] for name in ("id", *FEATURES)}


@pytest.fixture
def path(tmp_path, new):
    return write_csv(tmp_path / "new.csv", new)


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


# -- what is decided --------------------------------------------------------------------------


def test_each_case_with_answer_score_and_reason(run, model, path, new, tmp_path):
    out = tmp_path / "routed.csv"
    result = run("apply", model, path, "--out", out, "--chunk-rows", 7)
    assert result.exit_code == 0, result.output
    rows = read_csv(out)
    assert list(rows[0]) == ["id", *FEATURES, *COLUMNS]
    team = deferlearn.load(model)
    for name, cells in new.items():
        assert [row[name] for row in rows] == ["" if c is None else str(c) for c in cells]
    assert [row["machine_answer"] for row in rows] == team.predict(new).tolist()
    assert [row["deferred"] == "true" for row in rows] == team.defer(new).tolist()
    scores = [float(row["deferral_score"]) for row in rows]
    np.testing.assert_allclose(scores, team.deferral_score(new), rtol=1e-12)
    for row in rows:
        assert row["reason"].startswith(f"{row['taken_by']}: ")
        assert row["model_version"].startswith("deferlearn-")
    deferred = int(team.defer(new).sum())
    assert f"{deferred} ({deferred / 60:.1%})" in result.stdout
    assert f"Result: {out}" in result.stdout


def test_json_tells_the_same(run, model, path, tmp_path):
    out = tmp_path / "routed.csv"
    words = ("apply", model, path, "--out", out, "--audit", 0.5, "--seed", 3, "--json")
    told = json.loads(run(*words).stdout)
    rows = read_csv(out)
    assert told["rows"] == 60
    assert told["deferred"] == sum(row["deferred"] == "true" for row in rows)
    assert told["audited"] == sum(row["audit"] == "true" for row in rows) > 0
    assert told["machine"] == sum(row["taken_by"] == "machine" for row in rows)
    assert (told["seed"], told["rule"], told["notes"]) == (3, "one by one", [])
    first = out.read_bytes()
    assert json.loads(run(*words).stdout)["audited"] == told["audited"]
    assert out.read_bytes() == first


def test_a_lot_without_seed_is_told_and_can_be_drawn_again(run, model, path, tmp_path):
    out = tmp_path / "routed.csv"
    words = ("apply", model, path, "--out", out, "--audit", 0.5, "--json")
    seed = json.loads(run(*words).stdout)["seed"]
    first = out.read_bytes()
    run(*words, "--seed", seed)
    assert out.read_bytes() == first


@pytest.mark.parametrize(
    ("words", "budget"),
    [
        (("--batch",), 0.2),
        (("--budget", "0.35"), 0.35),
        (("--budget", "25%"), 0.25),
        (("--budget", "7"), 7),
    ],
)
def test_batches(run, model, path, new, tmp_path, words, budget):
    out = tmp_path / "routed.csv"
    result = run("apply", model, path, "--out", out, *words, "--chunk-rows", 11)
    assert result.exit_code == 0, result.output
    rows = read_csv(out)
    expected = deferlearn.load(model).defer_top(new, budget)
    assert [row["deferred"] == "true" for row in rows] == expected.tolist()
    assert sorted(int(row["rank"]) for row in rows) == list(range(1, 61))
    assert "batch" in result.stdout


def test_parquet_in_and_out(run, model, path, new, tmp_path):
    pq.write_table(pa.table(new), tmp_path / "new.parquet")
    out = tmp_path / "routed.parquet"
    assert run("apply", model, tmp_path / "new.parquet", "--out", out).exit_code == 0
    assert run("apply", model, path, "--out", tmp_path / "routed.csv").exit_code == 0
    typed, text = pq.read_table(out), read_csv(tmp_path / "routed.csv")
    assert typed.schema.field("age").type == pa.int64()
    assert typed["deferral_score"].to_pylist() == [float(row["deferral_score"]) for row in text]
    assert typed["taken_by"].to_pylist() == [row["taken_by"] for row in text]


def test_european_files_come_back_european(run, model, path, new, tmp_path):
    new["size"] = [str(cell).replace(".", ",") for cell in new["size"]]
    new["dose"] = [str(cell).replace(".", ",") for cell in new["dose"]]
    european = write_csv(tmp_path / "e.csv", new, delimiter=";")
    out, plain = tmp_path / "e_out.csv", tmp_path / "out.csv"
    words = ("--delimiter", ";", "--decimal", ",")
    assert run("apply", model, european, "--out", out, *words).exit_code == 0
    assert run("apply", model, path, "--out", plain).exit_code == 0
    with open(out, newline="") as file:
        rows = list(csv.DictReader(file, delimiter=";"))
    expected = [row["deferral_score"].replace(".", ",") for row in read_csv(plain)]
    assert [row["deferral_score"] for row in rows] == expected
    assert [row["size"] for row in rows] == new["size"]


def test_new_categories_and_extra_columns_are_no_error(run, model, tmp_path, new):
    new["site"][:3] = ["Paris", "Lyon", "Paris"]
    new["diagnosis"] = ["ill"] * 60
    new["free text"] = ["any, thing\n"] * 60
    path = write_csv(tmp_path / "new.csv", new)
    out = tmp_path / "routed.csv"
    result = run("apply", model, path, "--out", out)
    assert result.exit_code == 0, result.output
    assert (
        "Column 'site' has 3 cells with a category that did not occur in training" in result.stdout
    )
    assert "'Paris'" in result.stdout
    assert [row["free text"] for row in read_csv(out)] == new["free text"]


def test_cells_that_a_spreadsheet_would_run_are_made_safe(run, model, tmp_path, new):
    new["id"] = ["=HYPERLINK(1)", "+1+1", "-2+3", "@SUM(1)", "\tx", "-5", "-1.5e3", *new["id"][7:]]
    new["=cmd"] = ["-7"] * 60
    path = write_csv(tmp_path / "new.csv", new)
    out = tmp_path / "routed.csv"
    assert run("apply", model, path, "--out", out).exit_code == 0
    rows = read_csv(out)
    assert [row["id"] for row in rows[:7]] == [
        "'=HYPERLINK(1)",
        "'+1+1",
        "'-2+3",
        "'@SUM(1)",
        "'\tx",
        "-5",
        "-1.5e3",
    ]
    assert {row["'=cmd"] for row in rows} == {"-7"}
    assert any(float(row["size"]) < 0 for row in rows)


def test_models_fitted_in_python_are_applied_too(run, path, new, tmp_path):
    columns = make_cases()
    del columns["patient"]
    cases = select_cases(columns, "diagnosis", humans=["reader_1", "reader_2"], identifier="id")
    team = fit_table(cases, alpha=0.1)
    stored, out, tasks = (tmp_path / name for name in ("team.skops", "out.csv", "tasks.json"))
    deferlearn.save(team, stored)
    result = run("apply", stored, path, "--out", out, "--batch", "--label-studio", tasks)
    assert result.exit_code == 0, result.output
    assert [row["deferred"] == "true" for row in read_csv(out)] == team.defer_top(new).tolist()
    team.card_["format"] = 0
    deferlearn.save(team, stored)
    result = run("apply", stored, path, "--out", out)
    assert result.exit_code == 2
    assert "another version" in result.stderr


# -- cases that the model was never meant for ------------------------------------------------


def test_another_unit_is_told_and_the_budget_is_kept(run, model, tmp_path, new):
    """Nothing was said about this before, and the machine's error was expected to be 0."""
    new["size"] = [1000 * size for size in new["size"]]
    path, out = write_csv(tmp_path / "new.csv", new), tmp_path / "routed.csv"
    told = json.loads(run("apply", model, path, "--out", out, "--json").stdout)
    assert told["unusual"] > 50
    assert told["rule"] == "batch"
    assert told["deferred"] == told["unusual_deferred"] == 12
    assert any("would have exceeded the budget of 20.0%" in note for note in told["notes"])
    assert any("'size' looks as if its values were multiplied" in note for note in told["notes"])
    rows = read_csv(out)
    assert sum(row["deferred"] == "true" for row in rows) == 12
    assert all(row["unusual"] == "true" for row in rows if row["deferred"] == "true")
    words = ("--exceed-budget", "--json")
    told = json.loads(run("apply", model, path, "--out", out, *words).stdout)
    assert told["unusual_deferred"] == told["unusual"]
    assert told["rule"] == "one by one"
    words = ("--no-defer-unusual", "--json")
    told = json.loads(run("apply", model, path, "--out", out, *words).stdout)
    assert told["deferred"] == deferlearn.load(model).defer(new).sum()


def test_a_column_that_is_suddenly_empty_is_told(run, model, tmp_path, new):
    new["dose"] = [None] * 60
    path = write_csv(tmp_path / "new.csv", new)
    text = run("apply", model, path, "--out", tmp_path / "out.csv").stdout
    assert "60 of 60 cases are unusual" in text
    assert "'dose' is missing (never in training)" in text
    assert "Column 'dose' is empty in 100% of the cases, and was in 0%" in text


# -- Label Studio, there and back -------------------------------------------------------------


def test_from_tasks_to_answers_to_another_model(run, model, tmp_path, new):
    """What goes to humans comes back as answers that a second fit takes."""
    columns = make_cases(60, seed=1)
    cases = {name: columns[name] for name in ("id", *FEATURES, "diagnosis")}
    path = write_csv(tmp_path / "new.csv", cases)
    out, tasks = tmp_path / "routed.csv", tmp_path / "tasks.json"
    words = ("--budget", "0.5", "--audit", 0.3, "--seed", 1, "--label-studio", tasks)
    result = run("apply", model, path, "--out", out, *words)
    assert result.exit_code == 0, result.output
    rows, written = read_csv(out), json.loads(tasks.read_text())
    taken = [row["id"] for row in rows if row["taken_by"] == "human"]
    assert [task["data"]["id"] for task in written] == taken
    assert str(len(taken)) in result.stdout
    assert (
        "diagnosis" not in written[0]["data"]["case"]
    )  # the truth is not shown to those who answer
    assert "<Choices" in (tmp_path / "tasks.xml").read_text()

    said = dict(zip(columns["id"], columns["reader_1"], strict=True))
    for task in written:
        choice = {"from_name": "answer", "value": {"choices": [said[task["data"]["id"]]]}}
        task["annotations"] = [{"result": [choice], "completed_by": {"email": "ann@example.org"}}]
    export = tmp_path / "export.json"
    export.write_text(json.dumps(written))
    answers = tmp_path / "answers.csv"
    result = run("import-answers", export, "--out", answers, "--json")
    assert json.loads(result.stdout)["readers"] == {"ann@example.org": len(taken)}
    assert [row["answer"] for row in read_csv(answers)] == [said[name] for name in taken]

    stored = []
    fit = ("fit", path, "--label", "diagnosis", "--id", "id", *QUICK[:3], "--out", tmp_path / "m2")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(deferlearn, "save", lambda model, path: stored.append(model), raising=False)
        for source in (("--answers", answers), ("--label-studio", export)):
            result = run(*fit, *source)
            assert result.exit_code == 0, result.output
    wide, direct = stored
    assert wide.card_["readers"] == direct.card_["readers"]
    assert wide.card_["readers"][0]["answers"] == len(taken)
    np.testing.assert_array_equal(wide.deferral_score(new), direct.deferral_score(new))


# -- mistakes ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "words", "parts"),
    [
        ({"age": None}, (), ["no column 'age'", "which the model needs"]),
        ({"age": None, "site": None}, (), ["no column 'age' (nor 'site')"]),
        ({"age": ["old"] * 60}, (), ["'old' in row 1", "not a finite number", "new.csv"]),
        ({"size": ["1.5"] * 50 + ["1,5"] * 10}, ("--chunk-rows", "20"), ["'1,5' in row 51"]),
        ({"size": ["1.500"] * 60}, ("--decimal", ","), ["'1.500' in row 1", "comma"]),
        ({"rank": [1] * 60}, (), ["has a column 'rank'", "rename"]),
        ({}, ("--budget", "2.5"), ["--budget 2.5"]),
        ({}, ("--budget", "half"), ["--budget half"]),
        ({}, ("--delimiter", "ab"), ["one character"]),
        ({}, ("--label-studio", "t.json", "--id", "nose"), ["no column 'nose'", "--id"]),
        ({}, ("--label-studio", "no/such/folder.json"), ["cannot write no/such/folder.json"]),
    ],
)
def test_mistakes(run, model, tmp_path, new, monkeypatch, changes, words, parts):
    monkeypatch.chdir(tmp_path)
    columns = {k: v for k, v in {**new, **changes}.items() if v is not None}
    path = write_csv(tmp_path / "new.csv", columns)
    (tmp_path / "routed.csv").write_text("of yesterday")
    before = content_of(tmp_path)
    result = run("apply", model, path, "--out", tmp_path / "routed.csv", *words)
    assert_mistake(result, tmp_path, before, "deferlearn apply: ", *parts)


@pytest.mark.parametrize("content", [b"", b"size,dose,age,site\n", b"\xff\xff\n1\n", b"PK\x03\x04"])
def test_files_that_cannot_be_read(run, model, tmp_path, content):
    path = tmp_path / "new.csv"
    path.write_bytes(content)
    before = content_of(tmp_path)
    for words in ((), ("--batch",)):
        result = run("apply", model, path, "--out", tmp_path / "out.csv", *words)
        assert_mistake(result, tmp_path, before, "deferlearn apply: ", str(path))


def test_a_row_that_is_too_long_far_down_changes_nothing(run, model, tmp_path, path):
    path.write_text(path.read_text() + "one,too,many,cells,in,here\n")
    before = content_of(tmp_path)
    result = run("apply", model, path, "--out", tmp_path / "out.csv")
    assert_mistake(
        result, tmp_path, before, "row 62 of", "has 6 cells, but the header has 5 columns"
    )


def test_wrong_and_tampered_models(run, model, path, tmp_path):
    with zipfile.ZipFile(model) as old, zipfile.ZipFile(tmp_path / "tampered.skops", "w") as new:
        for name in old.namelist():
            content = old.read(name)
            new.writestr(
                name, content.replace(b"ill", b"sad") if name == "schema.json" else content
            )
    (tmp_path / "changed.skops").write_bytes(model.read_bytes().replace(b"PK", b"KP", 1))
    (tmp_path / "cut.skops").write_bytes(model.read_bytes()[:-400])
    (tmp_path / "text.skops").write_text("a model")
    deferlearn.save(LogisticRegression(), tmp_path / "other.skops")
    before = content_of(tmp_path)
    for name, says in (
        ("tampered", "no model that deferlearn.save has written"),
        ("changed", "does not match its checksum"),
        ("cut", "damaged"),
        ("text", "no model that deferlearn.save has written"),
        ("other", "a model that `deferlearn fit` did not write"),
        ("missing", "No such file"),
    ):
        file = tmp_path / f"{name}.skops"
        result = run("apply", file, path, "--out", tmp_path / "out.csv")
        assert_mistake(result, tmp_path, before, str(file), says)


def test_places_that_cannot_be_written(run, model, path, tmp_path):
    before = content_of(tmp_path)
    for out in (tmp_path, tmp_path / "no" / "out.csv", path / "out.csv"):
        result = run("apply", model, path, "--out", out)
        assert_mistake(result, tmp_path, before, f"cannot write {out}")
    for words in (("--out", path), ("--out", tmp_path / "o", "--label-studio", tmp_path / "o")):
        result = run("apply", model, path, *words)
        assert_mistake(result, tmp_path, before, "would be overwritten")


def test_a_disk_that_fills_up_leaves_the_old_result(run, model, path, tmp_path, monkeypatch):
    out = tmp_path / "out.csv"
    out.write_text("old")
    before = content_of(tmp_path)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("deferlearn.tables.writing.CsvWriter.write", full)
    result = run("apply", model, path, "--out", out)
    assert result.exit_code == 1
    assert result.stderr.strip().count("\n") == 0
    assert "No space left on device" in result.stderr
    assert content_of(tmp_path) == before


def test_ctrl_c_leaves_nothing(run, model, path, tmp_path, monkeypatch):
    before = content_of(tmp_path)

    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("deferlearn.tables.writing.CsvWriter.write", stop)
    result = run("apply", model, path, "--out", tmp_path / "out.csv")
    assert result.exit_code == 130
    assert content_of(tmp_path) == before


@pytest.mark.parametrize("words", [("--audit", "2"), ("--seed", "-1"), ("--chunk-rows", "0")])
def test_options_out_of_range(run, model, path, tmp_path, words):
    result = run("apply", model, path, "--out", tmp_path / "out.csv", *words)
    assert result.exit_code == 2
    assert words[0] in result.stderr


def test_help_has_examples(run):
    text = " ".join(run("apply", "--help").output.split())
    for line in command.EXAMPLES.split("\n\n"):
        assert " ".join(line.split()) in text


@pytest.mark.parametrize("words", [(), ("--batch",)])
def test_a_number_that_cannot_be_computed_with_is_told_with_its_row(run, model, tmp_path, words):
    columns = make_cases(30, seed=2)
    columns["size"][25] = 1e308
    path = write_csv(tmp_path / "new.csv", columns)
    before = content_of(tmp_path)
    out = tmp_path / "out.csv"
    result = run("apply", model, path, "--chunk-rows", 10, *words, "--out", out)
    assert_mistake(result, tmp_path, before, "'size'", "1e+308", "row 26 ", "so far from")


def test_tasks_are_blind_and_need_names(run, model, path, tmp_path, new):
    out, tasks = tmp_path / "out.csv", tmp_path / "tasks.json"
    words = ("apply", model, path, "--out", out, "--batch", "--label-studio", tasks)
    told = run(*words, "--json").stdout
    assert not any("--id" in note for note in json.loads(told)["notes"])  # the model's identifier
    assert all(task.keys() == {"data"} for task in json.loads(tasks.read_text()))
    run(*words, "--with-predictions")
    assert all("predictions" in task for task in json.loads(tasks.read_text()))
    del new["id"]
    write_csv(path, new)
    assert any("--id" in note for note in json.loads(run(*words, "--json").stdout)["notes"])


# -- formats -----------------------------------------------------------------------------------


def test_excel_in_and_out(run, model, path, new, tmp_path):
    book = openpyxl.Workbook()
    book.active.append(list(new))
    for row in zip(*new.values(), strict=True):
        book.active.append(row)
    book.save(tmp_path / "new.xlsx")
    out = tmp_path / "routed.xlsx"
    result = run("apply", model, tmp_path / "new.xlsx", "--out", out, "--chunk-rows", 17)
    assert result.exit_code == 0, result.output
    run("apply", model, path, "--out", tmp_path / "routed.csv")
    header, *rows = openpyxl.load_workbook(out).active.iter_rows(values_only=True)
    assert header == (*new, *COLUMNS)
    found = [dict(zip(header, row, strict=True)) for row in rows]
    expected = read_csv(tmp_path / "routed.csv")
    assert [row["reason"] for row in found] == [row["reason"] for row in expected]
    assert [row["deferral_score"] for row in found] == [
        pytest.approx(float(row["deferral_score"])) for row in expected
    ]
    assert [row["age"] for row in found] == new["age"]


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16", "utf-8-sig"])
def test_the_encoding_that_comes_in_goes_out(run, model, path, new, tmp_path, encoding):
    new["site"] = ["Århus"] * 60
    write_csv(path, new)
    path.write_bytes(path.read_text(encoding="utf-8").encode(encoding))
    out = tmp_path / "out.csv"
    words = () if encoding == "utf-8-sig" else ("--encoding", encoding)
    result = run("apply", model, path, "--out", out, "--chunk-rows", 25, *words)
    assert result.exit_code == 0, result.output
    content = out.read_bytes()
    assert content.startswith("id".encode(encoding))  # with the mark, which Excel needs
    text = content.decode(encoding)
    assert text.count("Århus") == 60
    assert text.count("\ufeff") == 0


def test_the_result_can_go_to_another_program(run, model, path, tmp_path):
    out = tmp_path / "out.csv"
    run("apply", model, path, "--out", out)
    result = run("apply", model, path, "--out", "-")
    assert result.stdout_bytes == out.read_bytes()
    assert "deferred to humans" in result.stderr
    result = run("apply", model, path, "--out", "-", "--json")
    assert result.stdout_bytes == out.read_bytes()
    assert json.loads(result.stderr)["rows"] == 60


def test_quiet_commands_print_notes_only(run, model, path, new, tmp_path):
    result = run("apply", model, path, "--out", tmp_path / "out.csv", "--quiet")
    assert (result.exit_code, result.output) == (0, "")
    new["dose"] = [None] * 60
    write_csv(path, new)
    result = run("apply", model, path, "--out", tmp_path / "out.csv", "-q")
    assert result.stdout == ""
    assert "Note: 60 of 60 cases are unusual" in result.stderr
    assert run("apply", model, path, "--out", tmp_path / "out.csv").stdout != ""


def test_progress_knows_how_many_rows_there_are(path, new, tmp_path):
    assert abs(open_table(path).estimated_rows() - 60) <= 1
    pq.write_table(pa.table(new), tmp_path / "new.parquet")
    assert open_table(tmp_path / "new.parquet").estimated_rows() == 60
    (tmp_path / "new.csv.gz").write_bytes(gzip.compress(path.read_bytes()))
    assert open_table(tmp_path / "new.csv.gz").estimated_rows() is None
