"""What mistakes cost: the matrix that a user gives, its errors, and its way into team and card."""

import json
from pathlib import Path

import numpy as np
import pytest

import deferlearn
from case_tables import STAGES, make_cases, make_stages, write_csv
from deferlearn._utils.units import COSTS, ERRORS, GRADES, unit_of
from deferlearn.cli._files import costs_file
from deferlearn.tables import Router, TableError, fit_table, select_cases
from deferlearn.tables.costs import costs_of, read_costs
from deferlearn.tables.decisions import Decisions
from deferlearn.tables.held_out import cross_validated_errors
from deferlearn.teams import AssistedSVCCV

# Of no answer the cost is that of another.
ROWS = [[0, 1, 2, 3], [4, 0, 5, 6], [7, 8, 0, 9], [10, 11, 12, 0]]
GIVEN = {"classes": list(STAGES), "costs": ROWS}
# Some cases have no answer, of which a fit warns.
pytestmark = pytest.mark.filterwarnings("ignore:no answer was given")


def test_rows_follow_the_classes_whatever_order_they_are_given_in():
    turned = costs_of(GIVEN, STAGES[::-1])
    for row, truth in enumerate(STAGES[::-1]):
        for column, said in enumerate(STAGES[::-1]):
            assert turned[row][column] == ROWS[STAGES.index(truth)][STAGES.index(said)]


@pytest.mark.parametrize("form", ["csv", "decimal comma", "json", "inline"])
def test_forms_of_a_matrix(tmp_path, form):
    """A table may have its rows and columns in any order."""
    path, written = tmp_path / "costs.csv", {}
    text = json.dumps({"classes": ["a", "b", "1"], "costs": [[0, 0.5, 2], [3, 0, 4], [5, 6, 0]]})
    if form == "inline":
        path = f"  {text}"
    elif form == "json":
        path = path.with_suffix(".json")
        path.write_text(text, encoding="utf-8")
    elif form == "csv":
        write_csv(path, {"": ["1", "a", "b"], "b": [6, 0.5, 0], "1": [0, 2, 4], "a": [5, 0, 3]})
    else:
        path.write_text("truth;a;b;1.0\nb;3;0;4\na;0;0,5;2\n1;5;6;0\n", encoding="utf-8")
        written = {"delimiter": ";", "decimal": ","}
    found = costs_of(read_costs(str(path), written), ["1", "a", "b"])
    assert found == ((0, 5, 6), (2, 0, 0.5), (4, 3, 0))


def test_arrays_and_numbers_of_numpy():
    expected = costs_of(GIVEN, STAGES)
    for costs in (np.array(ROWS), [np.array(row, dtype=np.float32) for row in ROWS]):
        assert costs_of({"classes": np.array(STAGES), "costs": costs}, STAGES) == expected
    scalars = [[np.int64(cell) for cell in row] for row in ROWS]
    found = costs_of({"classes": STAGES, "costs": scalars}, STAGES)
    assert found == expected
    assert type(found[0][0]) is float


def test_a_json_file_of_windows(tmp_path):
    path = tmp_path / "COSTS.JSON"
    path.write_text(json.dumps(GIVEN), encoding="utf-8-sig")
    assert read_costs(str(path), {}) == GIVEN


def test_a_list_is_no_name_of_a_file():
    with pytest.raises(TableError, match="the cost matrix is not a JSON object such as"):
        read_costs(" [[0, 1], [8, 0]]", {})
    assert costs_file(" [[0, 1], [8, 0]]") == costs_file('{"classes": []}') == []
    assert costs_file("costs.json") == [Path("costs.json")]


def test_points_where_commas_are_decimal(tmp_path):
    path = tmp_path / "costs.csv"
    path.write_text("truth;a;b\na;0;1.5\nb;1;0\n", encoding="utf-8")
    with pytest.raises(TableError, match=r"'1\.5' in a cell, but its decimal mark is ','"):
        read_costs(str(path), {"delimiter": ";", "decimal": ","})


def with_cell(row, column, value):
    rows = [list(row) for row in ROWS]
    rows[row][column] = value
    return {"classes": list(STAGES), "costs": rows}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            with_cell(1, 2, -5),
            "cost of the answer 'moderate' to a case of 'mild' is -5: give a fin",
        ),
        (with_cell(1, 2, float("nan")), "to a case of 'mild' is nan: give a finite number"),
        (with_cell(1, 2, float("inf")), "to a case of 'mild' is inf: give a finite number"),
        (with_cell(1, 2, 10**400), "to a case of 'mild' is too large: give a finite number"),
        (with_cell(1, 2, np.True_), "to a case of 'mild' is "),
        (with_cell(1, 2, "5"), "to a case of 'mild' is '5': give a number, 0 or larger"),
        (with_cell(1, 2, True), "to a case of 'mild' is True: give a number"),
        (with_cell(1, 1, 1), "but a right answer costs nothing: give 0 on the diagonal"),
        (GIVEN | {"costs": [[0] * 4, *ROWS[1:]]}, "only zeros for cases of 'none'"),
        (
            GIVEN | {"costs": ROWS[:3]},
            "has 3 rows, but names 4 classes: give a row for each of 'no",
        ),
        (GIVEN | {"costs": [ROWS[0][:3], *ROWS[1:]]}, "has 3 numbers in its row for 'none', but"),
        (GIVEN | {"costs": [7, *ROWS[1:]]}, "has no numbers in its row for 'none'"),
        (GIVEN | {"costs": 7}, "has no rows, but names 4 classes"),
        (GIVEN | {"classes": [*STAGES[:3], "dire"]}, "names the class 'dire', but the classes of"),
        (
            GIVEN | {"classes": list(STAGES[:3])},
            "lacks the class 'severe': it needs a row and a col",
        ),
        (GIVEN | {"classes": [*STAGES, "mild"]}, "names the class 'mild' 2 times: name it once"),
        (GIVEN | {"classes": "none"}, "must be a list of labels, got 'none'"),
        ({"costs": ROWS}, "the cost matrix must be a JSON object such as"),
        (ROWS, "the cost matrix must be a JSON object such as"),
    ],
)
def test_mistakes_in_a_matrix(given, message):
    with pytest.raises(TableError) as caught:
        costs_of(given, STAGES)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("truth,a,b\na,0,1\n", "has the class 'b' never as a row and once as a column"),
        ("truth,a,b\na,0,1\nb,1,0\nb,1,0\n", "has the class 'b' twice as a row and once as a col"),
        ("truth,a,b\na,0,\nb,1,0\n", "the answer 'b' to a case of 'a' is '': give a number"),
        ("truth,a,b\na,0,one\nb,1,0\n", "the answer 'b' to a case of 'a' is 'one': give a number"),
    ],
)
def test_mistakes_in_a_table_of_costs(tmp_path, text, message):
    path = tmp_path / "costs.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(TableError) as caught:
        costs_of(read_costs(str(path), {}), ["a", "b"])
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("costs.json", None, "costs.json: No such file"),
        ("costs.csv", None, "costs.csv: No such file"),
        ("costs.json", "[[0, 1], [1, 0]]", "costs.json is not a JSON object such as"),
        ("costs.csv", "truth;a;b\na;0;1\nb;1;0\n", "only one column, 'truth;a;b', but a cost"),
        ("costs.json", "{", "costs.json is not a JSON object such as"),
    ],
)
def test_files_that_cannot_be_read(tmp_path, name, content, message):
    if content is not None:
        (tmp_path / name).write_text(content, encoding="utf-8")
    with pytest.raises(TableError, match=message):
        read_costs(str(tmp_path / name), {})


@pytest.mark.parametrize("graded", [False, True])
def test_the_team_has_the_costs_in_the_order_of_its_classes(graded, tmp_path):
    order = list(STAGES) if graded else None
    cases = select_cases(
        make_stages(), "stage", humans=["reader_1"], grades=order, cost_matrix=GIVEN
    )
    model = fit_table(cases, alpha=0.1, drop=["id", "reader_2"])
    for which, truth in enumerate(model.team.classes_.tolist()):
        for place, said in enumerate(model.team.classes_.tolist()):
            cost = model.team.cost_matrix[which][place]
            assert cost == ROWS[STAGES.index(truth)][STAGES.index(said)]
    deferlearn.save(model, tmp_path / "m.skops")
    card = deferlearn.load(tmp_path / "m.skops").card_
    assert costs_of(card["cost_matrix"], STAGES) == costs_of(GIVEN, STAGES)
    assert card["cost_matrix"]["classes"] == card["classes"]
    assert unit_of(card) == COSTS


@pytest.mark.parametrize("grades", [None, ["well", "ill"], ["ill", "well"]])
def test_costs_of_two_classes(grades):
    """Two grades have the order of the alphabet in a team, whichever order they are given in."""
    given = {"classes": ["well", "ill"], "costs": [[0, 1], [20, 0]]}  # ill cases that are missed
    cases = select_cases(
        make_cases(), "diagnosis", humans=["reader_1"], grades=grades, cost_matrix=given
    )
    model = fit_table(cases, alpha=0.1, drop=["id", "patient", "reader_2"])
    assert model.team.classes_.tolist() == ["ill", "well"]
    assert model.team.cost_matrix == ((0, 20), (1, 0))
    errors = cross_validated_errors(model, cases)
    plain = fit_table(
        select_cases(make_cases(), "diagnosis", humans=["reader_1"]),
        alpha=0.1,
        drop=["id", "patient", "reader_2"],
    )
    truth = np.array(make_cases()["diagnosis"])
    missed = [
        np.sum(one.predict(cases.features)[truth == "ill"] == "well") for one in (model, plain)
    ]
    assert missed[0] < missed[1]
    assert errors["machine"]["cost"] >= errors["machine"]["error"]


def test_costs_of_decisions_by_hand():
    decisions = Decisions(
        truth=np.array(["none", "severe", "mild"]),
        machine=np.array(["none", "mild", "severe"]),
        human=np.array(["mild", "severe", "severe"]),
        deferred=np.array([False, True, False]),
        read=np.array([True, True, False]),
    )
    found = decisions.costs(STAGES, costs_of(GIVEN, STAGES))
    assert {who: own.tolist() for who, own in found.items()} == {
        "machine": [0, 11],
        "human": [1, 0],
        "team": [0, 0],
    }


@pytest.mark.parametrize(
    ("grades", "costs", "words", "unit"),
    [
        (None, None, "expected errors", ERRORS),
        (STAGES, None, "expected grades off", GRADES),
        (STAGES, GIVEN, "expected cost", COSTS),
        (None, GIVEN, "expected cost", COSTS),
    ],
)
def test_reasons_name_what_is_expected_in_its_unit(monkeypatch, grades, costs, words, unit):
    def make(budget, *, alpha, seed, n_jobs, folds, scored, grades, costs):
        classes = "auto" if grades is None else list(grades)
        return AssistedSVCCV(
            budget,
            alphas=[0.1],
            policies=["advantage"],
            cv=folds,
            random_state=seed,
            classes=classes,
            cost_matrix=costs,
        )

    monkeypatch.setattr("deferlearn.tables.team.make_team", make)
    cases = select_cases(
        make_stages(), "stage", humans=["reader_1"], grades=grades, cost_matrix=costs
    )
    model = fit_table(cases, drop=["id", "reader_2"])
    assert unit_of(model.card_) == unit
    ((_, routed),) = Router(model).route(lambda: [cases.features])
    machine, human = model.chosen.expected_errors(model.encoder.transform(cases.features))
    for reason, one, other in zip(routed["reason"].to_pylist(), machine, human, strict=True):
        assert reason.endswith(f"; {words}: machine {one:.2g}, human {other:.2g}")
    # What is expected is on the scale that the words say: grades or costs, not shares of cases.
    assert (max(machine.max(), human.max()) > 1) == (unit == COSTS)
