"""Several experts on the command line: `fit --expert`, `apply --capacity`, and tasks that name them."""

import json

import pytest
from typer.testing import CliRunner

import deferlearn
from case_tables import make_cases, read_csv, write_csv
from deferlearn.cli.app import app
from deferlearn.tables import load_decider

FEATURES = ("size", "dose", "age", "site")
EXPERTS = ("--expert", "reader_1=0.05", "--expert", "reader_2=12")
ROLES = ("--label", "diagnosis", "--id", "id", "--drop", "patient", "--alpha", "0.1")


def invoke(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture(autouse=True)
def wide(monkeypatch):
    monkeypatch.setenv("COLUMNS", "300")  # wide enough that rich breaks no line


def made(n=120):
    columns = make_cases(n)
    for row in range(0, n, 3):
        columns["reader_1"][row] = None
    return columns


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("experts")
    cases = write_csv(folder / "cases.csv", made())
    result = CliRunner().invoke(
        app,
        ["fit", str(cases), *ROLES, *EXPERTS, "--out", str(folder / "model.skops")],
        env={"COLUMNS": "300"},
    )
    assert result.exit_code == 0, result.output
    return folder / "model.skops", result


@pytest.fixture
def model(fitted):
    return fitted[0]


@pytest.fixture
def new(tmp_path):
    columns = make_cases(60, seed=1)
    return write_csv(tmp_path / "new.csv", {name: columns[name] for name in ("id", *FEATURES)})


def assert_mistake(result, *parts):
    assert result.exit_code == 2, result.output
    (line,) = result.stderr.strip().splitlines()
    for part in parts:
        assert part in line


def test_fit_prints_what_each_expert_is_worth(fitted):
    path, result = fitted
    card = deferlearn.load(path).card_
    for row, capacity in zip(card["experts"], ("5.0% of the cases", "12 cases"), strict=True):
        (line,) = [one for one in result.stdout.splitlines() if f"│ {row['expert']} " in one]
        cells = [cell.strip() for cell in line.strip("│").split("│")]
        assert cells == [
            row["expert"],
            str(row["answers"]),
            f"{row['error']:.3f}",
            f"{row['low']:.3f} to {row['high']:.3f}",
            row["verdict"],
            capacity,
            f"{row['price']:.3f}",
        ]
    assert "errors avoided per further case" in result.stdout
    assert not {"reader_1", "reader_2"} & set(card["columns"])
    errors = card["errors"]
    assert errors["team"]["cases"] < 120  # reader_1 has gaps
    assert 0 < errors["team"]["wrong"] <= errors["machine"]["wrong"]
    assert f"Errors on {errors['team']['cases']} held-out cases" in result.stdout
    assert "without an answer of the expert to whom they go" in result.output


def test_apply_names_the_expert_one_by_one(model, new, tmp_path):
    out, tasks = tmp_path / "routed.csv", tmp_path / "tasks.json"
    words = ("apply", model, new, "--out", out, "--label-studio", tasks, "--json")
    result = invoke(*words)
    assert result.exit_code == 0, result.output
    rows = read_csv(out)
    who = load_decider(model).decide([{k: row[k] or None for k in FEATURES} for row in rows]).expert
    assert [row["expert"] for row in rows] == who.tolist()
    told = json.loads(result.stdout)
    assert told["rule"] == "one by one"
    for load in told["experts"]:
        assert load["cases"] == sum(row["expert"] == load["expert"] for row in rows)
    assert sum(load["cases"] for load in told["experts"]) == told["deferred"] > 0
    for row in rows:
        assert row["reason"].startswith(f"{row['expert'] or 'machine'}: ")
    named = {task["data"]["id"]: task["data"]["expert"] for task in json.loads(tasks.read_text())}
    assert named == {row["id"]: row["expert"] for row in rows if row["expert"]}


def test_apply_keeps_hard_capacities(model, new, tmp_path):
    out = tmp_path / "routed.csv"
    capacity = ("--capacity", "reader_1=5", "--capacity", "reader_2=5%")
    result = invoke("apply", model, new, "--out", out, *capacity)
    assert result.exit_code == 0, result.output
    experts = [row["expert"] for row in read_csv(out)]
    assert (experts.count("reader_1"), experts.count("reader_2")) == (5, 3)
    lines = [line.replace(" ", "") for line in result.stdout.splitlines()]
    assert "│reader_1│5│8.3%│5│" in lines
    assert "│reader_2│3│5.0%│3│" in lines


def test_a_batch_has_the_capacities_of_the_model(model, new, tmp_path):
    out = tmp_path / "routed.csv"
    told = json.loads(invoke("apply", model, new, "--out", out, "--batch", "--json").stdout)
    assert told["rule"] == "batch"
    assert [load["limit"] for load in told["experts"]] == [3, 6]
    assert all(load["cases"] <= load["limit"] for load in told["experts"])


def test_unusual_cases_do_not_flood_the_experts(model, tmp_path):
    columns = make_cases(60, seed=1)
    columns["size"][:30] = [900.0] * 30
    new = write_csv(tmp_path / "new.csv", {name: columns[name] for name in FEATURES})
    words = ("apply", model, new, "--out", tmp_path / "routed.csv", "--json")
    told = json.loads(invoke(*words).stdout)
    assert told["rule"] == "batch"
    assert [load["cases"] for load in told["experts"]] == [3, 6]
    assert any("would have exceeded the budget" in note for note in told["notes"])
    told = json.loads(invoke(*words, "--exceed-budget").stdout)
    assert told["unusual_deferred"] == 30


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (("--capacity", "reader_3=4"), ("'reader_3'", "it knows 'reader_1', 'reader_2'")),
        (("--capacity", "reader_1=many"), ("--capacity reader_1: many must be a share",)),
        (("--capacity", "reader_1=-1"), ("--capacity reader_1: -1 must be a share",)),
        (("--capacity", "reader_1=1.5"), ("--capacity reader_1: 1.5 must be a share",)),
        (("--capacity", "reader_1"), ("must be a name and a capacity",)),
        (("--capacity", "=3"), ("must be a name and a capacity",)),
        (("--capacity", "reader_1=3", "--capacity", "reader_1=4"), ("names 'reader_1' twice",)),
        (("--capacity", "reader_1=0"), ("no time to any expert",)),
        (("--use-full-budget",), ("--use-full-budget is for a model without --expert",)),
    ],
)
def test_mistakes_of_apply(model, new, tmp_path, words, parts):
    out = tmp_path / "routed.csv"
    assert_mistake(invoke("apply", model, new, "--out", out, *words), *parts)
    assert not out.exists()


def test_a_table_that_was_routed_already(model, tmp_path):
    columns = {name: make_cases(10)[name] for name in FEATURES}
    new = write_csv(tmp_path / "new.csv", {**columns, "expert": ["Ann"] * 10})
    result = invoke("apply", model, new, "--out", tmp_path / "routed.csv")
    assert_mistake(result, "has a column 'expert', which the result needs")


def test_a_model_without_experts_has_no_capacities(new, tmp_path):
    cases = write_csv(tmp_path / "cases.csv", make_cases())
    path = tmp_path / "model.skops"
    humans = ("--human", "reader_1", "--human", "reader_2", "--no-evaluate")
    assert invoke("fit", cases, *ROLES, *humans, "--out", path).exit_code == 0
    result = invoke("apply", path, new, "--out", tmp_path / "r.csv", "--capacity", "reader_1=3")
    assert_mistake(result, "'reader_1'", "model of several experts", "--expert")


def test_a_report_on_several_experts(model, tmp_path):
    columns = make_cases(60, seed=1)
    cases = write_csv(tmp_path / "cases.csv", columns)
    result = invoke("report", model, cases, "--out", tmp_path / "report.html", "--json")
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    assert [row["expert"] for row in told["experts"]["rows"]] == ["reader_1", "reader_2"]
    assert told["errors"]["team"]["cases"] == 60
    assert ">The experts</h2>" in (tmp_path / "report.html").read_text(encoding="utf-8")


def fit_mistake(tmp_path, columns, *words):
    cases = write_csv(tmp_path / "cases.csv", columns)
    result = invoke("fit", cases, *ROLES, *words, "--out", tmp_path / "model.skops")
    assert not (tmp_path / "model.skops").exists()
    return result


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (("--expert", "reader_1=0.1", "--human", "reader_2"), ("--human or --expert, not both",)),
        (("--expert", "reader_9=0.1"), ("no column 'reader_9', given by --expert",)),
        (("--expert", "reader_1=lots"), ("--expert reader_1: lots must be a share",)),
        (("--expert", "reader_1"), ("must be a name and a capacity",)),
        (("--expert", "reader_1=0", "--expert", "reader_2=0.0"), ("no time to any expert",)),
        ((*EXPERTS, "--certify"), ("--certify is not possible with --expert",)),
        ((*EXPERTS, "--budget", "2.5"), ("--budget 2.5 must be a share",)),
        (("--expert", "reader_1=0.1"), ("reader_2",)),  # looks like a reader who was forgotten
    ],
)
def test_mistakes_of_fit(tmp_path, words, parts):
    assert_mistake(fit_mistake(tmp_path, made(30), *words), *parts)


def test_answers_outside_the_classes_and_experts_without_any(tmp_path):
    columns = made(30)
    columns["reader_2"][4] = "maybe"
    assert_mistake(fit_mistake(tmp_path, columns, *EXPERTS), "'reader_2'", "'maybe'", "'ill'")
    columns["reader_2"] = [None] * 30
    result = fit_mistake(tmp_path, columns, *EXPERTS)
    assert_mistake(result, "reader 'reader_2' answered none of the cases")


def test_answers_of_experts_from_a_long_table(tmp_path):
    columns = made(60)
    said = columns.pop("reader_2")
    long = {"id": columns["id"], "reader": ["Dr. B"] * 60, "answer": said}
    answers = write_csv(tmp_path / "answers.csv", long)
    cases = write_csv(tmp_path / "cases.csv", columns)
    words = ("fit", cases, *ROLES, "--answers", answers, "--case", "id", "--json", "--no-evaluate")
    words = (*words, "--out", tmp_path / "model.skops", "--expert", "reader_1=0.1")
    result = invoke(*words, "--expert", "Dr. B=0.2")
    assert result.exit_code == 0, result.output
    card = json.loads(result.stdout)
    assert [(e["expert"], e["answers"]) for e in card["experts"]] == [
        ("reader_1", 40),
        ("Dr. B", 60),
    ]
    assert_mistake(invoke(*words), "the reader 'Dr. B' has answers, but no capacity")
    result = invoke(*words, "--expert", "Dr. B=0.2", "--expert", "Dr. C=0.1")
    assert_mistake(result, "the expert 'Dr. C' has no answers")


def test_a_budget_limits_all_experts_together(tmp_path):
    cases = write_csv(tmp_path / "cases.csv", made(60))
    words = ("fit", cases, *ROLES, *EXPERTS, "--budget", "10%", "--json", "--no-evaluate")
    card = json.loads(invoke(*words, "--out", tmp_path / "model.skops").stdout)
    assert card["budget"] == pytest.approx(0.1)
    assert card["deferral_rate"] <= 0.1 + 1e-9
