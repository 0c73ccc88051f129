"""Several classes and grades on the command line: fit, apply, report, scores per class."""

import json

import numpy as np
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import deferlearn
from case_tables import STAGES, make_stages, read_csv, write_csv
from deferlearn.cli.app import app
from deferlearn.tables import load_decider
from deferlearn.tables.routed import added_columns
from deferlearn.teams.decider import Decider
from html_page import Page

ROLES = ("--label", "stage", "--human", "reader_1", "--human", "reader_2", "--id", "id")
GRADES = ("--grades", "none<mild<moderate<severe")
QUICK = ("--alpha", "0.1", "--no-evaluate", "--no-certify")
TEN = tuple(f"class {i}" for i in range(10))
KINDS = {"three": ("a", "b", "c"), "grades": STAGES, "ten": TEN}


@pytest.fixture
def run(monkeypatch):
    monkeypatch.setenv("COLUMNS", "300")
    return lambda *words: CliRunner().invoke(app, [str(word) for word in words])


def fitted(run, folder, columns, *words):
    """The model of a table; `run` must succeed."""
    cases, model = write_csv(folder / "cases.csv", columns), folder / "model.skops"
    result = run("fit", cases, *ROLES, *words, "--out", model)
    assert result.exit_code == 0, result.output
    return model


@pytest.mark.parametrize("kind", KINDS)
def test_fit_and_apply(run, tmp_path, kind):
    labels = KINDS[kind]
    columns = make_stages(120, labels=labels)
    model = fitted(run, tmp_path, columns, *QUICK, *(GRADES if kind == "grades" else ()))
    new = {name: columns[name] for name in ("id", "size", "dose", "site")}
    out = tmp_path / "routed.csv"
    result = run("apply", model, write_csv(tmp_path / "new.csv", new), "--out", out)
    assert result.exit_code == 0, result.output
    rows = read_csv(out)
    assert list(rows[0]) == [*new, *added_columns(labels)]
    team = deferlearn.load(model)
    answers = [row["machine_answer"] for row in rows]
    assert answers == team.predict(new).tolist()
    assert [row["deferred"] == "true" for row in rows] == team.defer(new).tolist()
    chance = team.predict_proba(new)
    place = {label: k for k, label in enumerate(team.team.classes_.tolist())}
    expected = [chance[row, place[answer]] for row, answer in enumerate(answers)]
    np.testing.assert_allclose([float(row["probability"]) for row in rows], expected, rtol=1e-9)
    assert f"machine's answer '{answers[0]}' with probability" in rows[0]["reason"]
    # One row alone is decided as all of them are, without scikit-learn.
    decider = load_decider(model)
    assert isinstance(decider.team, Decider)
    one = decider.decide({name: column[7] for name, column in new.items()})
    assert one.machine_answer.tolist() == answers[7:8]
    np.testing.assert_allclose(one.probabilities[0], chance[7], rtol=1e-9)
    assert decider.card_["classes"] == list(labels if kind == "grades" else sorted(labels))
    assert decider.card_["graded"] == (kind == "grades")


def test_grades_are_in_the_order_given(run, tmp_path):
    columns = make_stages()
    cases = write_csv(tmp_path / "cases.csv", columns)
    result = run("fit", cases, *ROLES, *GRADES, *QUICK, "--out", tmp_path / "m.skops")
    assert result.exit_code == 0, result.output
    assert "none: 40 < mild: 40 < moderate: 40 < severe: 40" in result.output
    team = deferlearn.load(tmp_path / "m.skops").team
    assert team.classes_.tolist() == list(STAGES)
    assert team.decision_function(np.zeros((1, 4))).shape == (1, 3)  # a machine per step


def test_probabilities_on_request(run, tmp_path):
    columns = make_stages()
    model = fitted(run, tmp_path, columns, *QUICK, *GRADES)
    out, tasks = tmp_path / "routed.parquet", tmp_path / "tasks.json"
    words = (
        "--budget",
        "9",
        "--probabilities",
        "--label-studio",
        tasks,
        "--with-predictions",
        "--out",
        out,
    )
    result = run("apply", model, tmp_path / "cases.csv", *words)
    assert result.exit_code == 0, result.output
    table = pq.read_table(out)
    names = [f"probability_{stage}" for stage in STAGES]
    assert table.column_names[-4:] == names
    chances = np.column_stack([table[name].to_pylist() for name in names])
    np.testing.assert_allclose(chances.sum(axis=1), 1.0)
    said = [STAGES.index(answer) for answer in table["machine_answer"].to_pylist()]
    assert chances[np.arange(160), said].tolist() == table["probability"].to_pylist()
    # Tasks for readers: all grades to choose from, in their order, and how sure the machine is.
    found = json.loads(tasks.read_text(encoding="utf-8"))
    assert len(found) == 9
    setup = tasks.with_suffix(".xml").read_text(encoding="utf-8")
    assert [setup.index(f'"{stage}"') for stage in STAGES] == sorted(
        setup.index(f'"{stage}"') for stage in STAGES
    )
    for task in found:
        (prediction,) = task["predictions"]
        assert 0.0 < prediction["score"] <= 1.0
        assert "reader_1" not in task["data"]["case"]
    # Their answers come back as those of a reader.
    for task in found:
        choice = {"from_name": "answer", "type": "choices", "value": {"choices": ["severe"]}}
        task["annotations"] = [{"completed_by": 3, "result": [choice]}]
    export = tmp_path / "export.json"
    export.write_text(json.dumps(found), encoding="utf-8")
    words = ("--label", "stage", "--id", "id", "--label-studio", export, *GRADES, *QUICK)
    words = (*words, "--drop", "reader_1", "--drop", "reader_2")
    result = run("fit", tmp_path / "cases.csv", *words, "--out", tmp_path / "again.skops")
    assert result.exit_code == 0, result.output
    result = run("import-answers", export, "--out", tmp_path / "answers.csv")
    assert result.exit_code == 0, result.output
    assert {row["answer"] for row in read_csv(tmp_path / "answers.csv")} == {"severe"}


def test_two_classes_have_probabilities_too(run, tmp_path):
    columns = make_stages(80, labels=("ill", "well"))
    model = fitted(run, tmp_path, columns, *QUICK)
    out = tmp_path / "routed.csv"
    result = run("apply", model, tmp_path / "cases.csv", "--probabilities", "--out", out)
    assert result.exit_code == 0, result.output
    rows = read_csv(out)
    assert list(rows[0])[-2:] == ["probability_ill", "probability_well"]
    for row in rows:
        chance = float(row[f"probability_{row['machine_answer']}"])
        assert chance >= 0.5
    taken = columns | {"probability_ill": [0.5] * 80}
    result = run("apply", model, write_csv(tmp_path / "t.csv", taken), "--out", tmp_path / "o.csv")
    assert result.exit_code == 0, result.output
    words = ("--probabilities", "--out", tmp_path / "o.csv")
    result = run("apply", model, tmp_path / "t.csv", *words)
    assert result.exit_code == 2
    assert "has a column 'probability_ill', which the result needs" in result.output


def test_scores_of_each_class(run, tmp_path):
    columns = make_stages()
    level = np.array([STAGES.index(stage) for stage in columns["stage"]])
    rng = np.random.default_rng(0)
    scores = np.exp(-np.abs(np.arange(4) - level[:, None] - 0.4 * rng.normal(size=(160, 1))))
    scores /= scores.sum(axis=1, keepdims=True)
    names = [f"ai_{stage}" for stage in STAGES]
    columns |= {name: scores[:, k].tolist() for k, name in enumerate(names)}
    options = [word for name in names for word in ("--machine-score", name)]
    model = fitted(run, tmp_path, columns, *GRADES, "--no-evaluate", *options)
    out = tmp_path / "routed.csv"
    result = run("apply", model, tmp_path / "cases.csv", "--out", out)
    assert result.exit_code == 0, result.output
    answers = [row["machine_answer"] for row in read_csv(out)]
    # Each score belongs to its own grade, although another order is that of the alphabet.
    right = np.mean([a == s for a, s in zip(answers, columns["stage"], strict=True)])
    assert right > 0.8
    page = tmp_path / "report.html"
    words = ("--refit-cases", "0", "--out", page)
    result = run("report", model, tmp_path / "cases.csv", *words)
    assert result.exit_code == 0, result.output
    for given, message in [
        (
            options[:4],
            "2 columns of machine scores are given, but there are 4 classes: give one column",
        ),
        (options[:2], "1 column of machine scores is given, but there are 4 classes"),
        ([*options, "--machine-score", "dose"], "5 columns of machine scores are given"),
    ]:
        words = (*ROLES, *GRADES, *given, "--out", tmp_path / "none.skops")
        result = run("fit", tmp_path / "cases.csv", *words)
        assert result.exit_code == 2
        assert message in result.output
        assert "in the order 'none', 'mild', 'moderate', 'severe'" in result.output
    without = {name: column for name, column in columns.items() if name != "ai_mild"}
    new = write_csv(tmp_path / "new.csv", without)
    result = run("apply", model, new, "--out", tmp_path / "none.csv")
    assert result.exit_code == 2
    assert "no column 'ai_mild', which the model needs" in result.output


def test_two_scores_for_two_classes(run, tmp_path):
    columns = make_stages(80, labels=("ill", "well"))
    cases = write_csv(tmp_path / "cases.csv", columns)
    words = ("--machine-score", "size", "--machine-score", "dose", "--out", tmp_path / "m.skops")
    result = run("fit", cases, *ROLES, *words)
    assert result.exit_code == 2
    assert "one is needed: the score of 'well'" in result.output


@pytest.mark.parametrize(
    ("grades", "parts"),
    [
        ("none<mild<severe", ["'stage' holds 'moderate' in row", "is none of the grades"]),
        ("none<mild<moderate<severe<fatal", ["no case in the label column 'stage'", "'fatal'"]),
        ("none<mild<mild<severe", ["the grade 'mild' is named 2 times"]),
        ("none<mild<<severe", ["none may be empty"]),
        ("none", ["must be two labels or more"]),
    ],
)
def test_mistakes_in_grades(run, tmp_path, grades, parts):
    cases = write_csv(tmp_path / "cases.csv", make_stages())
    result = run("fit", cases, *ROLES, "--grades", grades, "--out", tmp_path / "m.skops")
    assert result.exit_code == 2
    for part in parts:
        assert part in result.output
    assert not (tmp_path / "m.skops").exists()


def test_a_reader_who_names_an_unknown_class(run, tmp_path):
    columns = make_stages()
    columns["reader_2"][11] = "dreadful"
    cases = write_csv(tmp_path / "cases.csv", columns)
    result = run("fit", cases, *ROLES, *GRADES, "--out", tmp_path / "m.skops")
    assert result.exit_code == 2
    assert "column 'reader_2' holds 'dreadful' in row 12" in result.output
    assert "is none of the classes 'none', 'mild', 'moderate', 'severe'" in result.output


def test_a_grade_whose_cases_are_all_of_one_group(run, tmp_path):
    """Without this group there is nothing to learn the grade from; the model is made all the same."""
    columns = make_stages(100)
    stages = enumerate(columns["stage"])
    columns["patient"] = ["one" if stage == "severe" else f"p{i}" for i, stage in stages]
    cases = write_csv(tmp_path / "cases.csv", columns)
    words = (*GRADES, "--group", "patient", "--alpha", "0.1", "--no-certify")
    result = run("fit", cases, *ROLES, *words, "--out", tmp_path / "m.skops")
    assert result.exit_code == 0, result.output
    assert "The errors on held-out cases are not known" in result.output
    assert "no sample of 'severe'" in result.output


COSTS = {"classes": list(STAGES), "costs": [[0, 1, 1, 1], [1, 0, 1, 1], [2, 2, 0, 1], [9, 6, 3, 0]]}


@pytest.fixture
def costs(tmp_path):
    """A table of the costs, whose rows and columns are in another order than the grades."""
    order = [2, 0, 3, 1]
    rows = {"truth": [STAGES[k] for k in order]}
    for said in reversed(range(4)):
        rows[STAGES[said]] = [COSTS["costs"][k][said] for k in order]
    return write_csv(tmp_path / "costs.csv", rows)


def test_a_cost_matrix_from_fit_to_apply(run, tmp_path, costs):
    cases, path = write_csv(tmp_path / "cases.csv", make_stages()), tmp_path / "m.skops"
    words = (*ROLES, *GRADES, "--alpha", "0.1", "--no-certify", "--cost-matrix")
    result = run("fit", cases, *words, costs, "--out", path)
    assert result.exit_code == 0, result.output
    assert "the answer 'none' to a case of 'severe' costs 9, the most" in result.output
    assert "mean cost" in result.output
    card = deferlearn.load(path).card_
    assert card["cost_matrix"] == COSTS
    assert card["files"]["cost_matrix"]["name"] == "costs.csv"
    assert deferlearn.load(path).team.cost_matrix[3][0] == 9
    # The same as JSON on the command line; it is no file.
    again = tmp_path / "again.skops"
    result = run("fit", cases, *words, json.dumps(COSTS), "--out", again, "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["cost_matrix"] == COSTS
    assert found["errors"] == card["errors"]
    assert set(found["files"]) == {"cases"}
    size = {"id": ["a", "b"], "size": [-1.0, 2.0], "dose": [0.0, 0.0], "site": ["Oslo", "Rome"]}
    answers = [deferlearn.load(one).predict(size).tolist() for one in (path, again)]
    assert answers[0] == answers[1]


def test_a_report_by_costs(run, tmp_path, costs):
    model = fitted(run, tmp_path, make_stages(), *QUICK, *GRADES, "--cost-matrix", costs)
    page, new = tmp_path / "report.html", write_csv(tmp_path / "new.csv", make_stages(90, seed=1))
    result = run("report", model, new, "--quick", "--out", page, "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    team, rows = deferlearn.load(model), read_csv(new)
    place = {stage: k for k, stage in enumerate(STAGES)}
    kept = [row for row in rows if row["reader_1"] or row["reader_2"]]
    table = {name: [row[name] for row in kept] for name in ("id", "size", "dose", "site")}
    said = team.predict(table)
    each = [
        COSTS["costs"][place[row["stage"]]][place[s]] for row, s in zip(kept, said, strict=True)
    ]
    assert found["effect"]["cost"]["machine"] == pytest.approx(np.mean(each))
    assert "the cost of errors" in found["effect"]["headline"]
    assert f"from {1000 * np.mean(each):,.0f} to" in found["effect"]["headline"]
    assert found["assistance"]["measure"] == "cost"
    assert found["assistance"]["settings"]["cost_matrix"] == COSTS["costs"]
    text = page.read_text(encoding="utf-8")
    assert "cost minus its machine" in text
    (rows,) = (rows for name, rows in Page(text).tables().items() if "Costs of answers" in name)
    assert rows == [
        ["truth", *STAGES],
        *([s, *map(str, r)] for s, r in zip(STAGES, COSTS["costs"], strict=True)),
    ]
    assert "All errors count the same" not in text


def test_evaluate_takes_a_cost_matrix(run, tmp_path, costs):
    cases = write_csv(tmp_path / "cases.csv", make_stages(120))
    model = tmp_path / "m.skops"
    words = (*ROLES, "--alpha", "0.1", "--quick", "--cost-matrix", costs, "--model", model)
    result = run("evaluate", cases, *words, "--out", tmp_path / "r.html")
    assert result.exit_code == 0, result.output
    card = deferlearn.load(model).card_
    assert card["classes"] == sorted(STAGES)
    assert card["cost_matrix"]["costs"][3][2] == 9  # severe, taken for none
    assert f"--cost-matrix {costs}" in (tmp_path / "r.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ('{"classes": ["none"], "costs": [[0]]}', "the cost matrix lacks the class 'mild'"),
        ('{"classes": ["None"], "costs": [[0]]}', "names the class 'None', but the classes of the"),
        ('{"classes":', "the cost matrix is not a JSON object such as"),
        ("nowhere.csv", "cannot read nowhere.csv: No such file"),
        (json.dumps(COSTS).replace("9", "-9"), "to a case of 'severe' is -9: give a finite number"),
        (json.dumps(COSTS).replace("9", "NaN"), "to a case of 'severe' is nan: give a finite num"),
        (
            json.dumps(COSTS).replace("[9, ", "["),
            "3 numbers in its row for 'severe', but there are",
        ),
    ],
)
def test_mistakes_in_a_cost_matrix(run, tmp_path, given, message):
    cases = write_csv(tmp_path / "cases.csv", make_stages())
    words = (*ROLES, *GRADES, *QUICK, "--cost-matrix", given, "--out", tmp_path / "m.skops")
    result = run("fit", cases, *words)
    assert result.exit_code == 2
    assert message in result.output
    assert result.output.count("\n") == 1
    assert not (tmp_path / "m.skops").exists()


def test_a_model_does_not_replace_the_file_of_its_costs(run, tmp_path, costs):
    cases = write_csv(tmp_path / "cases.csv", make_stages())
    result = run("fit", cases, *ROLES, *QUICK, "--cost-matrix", costs, "--out", costs)
    assert result.exit_code == 2
    assert "would be overwritten" in result.output


def test_a_report_of_two_grades(run, tmp_path):
    """Of two grades, answers are off by one or not at all: nothing but errors is counted."""
    columns = make_stages(100, labels=("well", "ill"))
    model = fitted(run, tmp_path, columns, *QUICK, "--grades", "well<ill")
    words = ("--quick", "--out", tmp_path / "r.html", "--json")
    result = run("report", model, tmp_path / "cases.csv", *words)
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["effect"]["grades"] is None
    assert found["assistance"] is not None


def test_too_many_classes(run, tmp_path):
    columns = make_stages(400, labels=tuple(f"l{i}" for i in range(60)))
    cases = write_csv(tmp_path / "cases.csv", columns)
    result = run("fit", cases, *ROLES, "--out", tmp_path / "m.skops")
    assert result.exit_code == 2
    assert "holds 60 classes" in result.output
    assert "more than 50: merge classes" in result.output


def test_report(run, tmp_path):
    model = fitted(run, tmp_path, make_stages(), *QUICK, *GRADES)
    page = tmp_path / "report.html"
    new = write_csv(tmp_path / "new.csv", make_stages(100, seed=1))
    words = ("--quick", "--out", page, "--json")
    result = run("report", model, new, *words)
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert set(found["measures"]["team"]) == {"macro_f1", "grade_error", "quadratic_kappa"}
    assert [row["class"] for row in found["classes"]] == list(STAGES)
    assert found["assistance"]["settings"]["graded"] is True
    text = page.read_text(encoding="utf-8")
    assert "quadratic kappa" in text
    assert "sensitivity" not in text.partition("<main>")[2].partition("cases-data")[0]
