"""Label Studio: tasks out, answers in."""

import io
import json
import xml.etree.ElementTree as ET

import pyarrow as pa
import pytest

from deferlearn.tables import TableError, read_label_studio
from deferlearn.tables.labelstudio import CASE, QUESTION, TaskWriter, labelling_setup

ROUTED = {
    "machine_answer": ["a", "b", "a", "b"],
    "decision_value": [-0.5, 3.0, 0.1, -0.2],
    "deferral_score": [1.0, -1.0, 2.0, 0.5],
    "audit": [False, False, False, True],
    "taken_by": ["human", "machine", "human", "human"],
    "reason": ["r1", "r2", "r3", "r4"],
    "model_version": ["m"] * 4,
}
CASES = {"name": ["p", "q", "r", "ß"], "size": ["1", "2", "", "4"], "truth": ["a"] * 4}


def tasks(identifier="name", split=2, predictions=True):
    file = io.BytesIO()
    writer = TaskWriter(file, identifier, ["truth", "reader"], predictions)
    for rows in (slice(0, split), slice(split, None)):
        part = [{k: v[rows] for k, v in table.items()} for table in (CASES, ROUTED)]
        writer.write(*map(pa.table, part))
    writer.close()
    assert writer.count == 3
    return json.loads(file.getvalue())


def test_tasks_hold_data_predictions_and_scores():
    written = tasks()
    assert [task["data"]["id"] for task in written] == ["p", "r", "ß"]
    assert [task["data"]["audit"] for task in written] == [False, False, True]
    assert written[0]["data"] == {
        "id": "p",
        "case": {"name": "p", "size": "1"},  # not the truth
        "deferral_score": 1.0,
        "audit": False,
        "reason": "r1",
    }
    (prediction,) = written[0]["predictions"]
    assert (prediction["model_version"], prediction["score"]) == ("m", 0.5)
    assert prediction["result"][0]["value"] == {"choices": ["a"]}


def test_by_default_nothing_of_the_machine_is_in_a_task():
    """Label Studio shows predictions, and people agree with what they are shown."""
    for task in tasks(predictions=False):
        assert task.keys() == {"data"}
        assert task["data"].keys() == {"id", "case"}


def test_rows_name_cases_that_have_no_name():
    for split in (0, 1, 2, 4):
        assert [task["data"]["id"] for task in tasks(None, split)] == ["1", "3", "4"]


def test_no_task_is_an_empty_list():
    file = io.BytesIO()
    TaskWriter(file).close()
    assert json.loads(file.getvalue()) == []


def test_setup_names_what_the_tasks_name():
    """Label Studio drops predictions whose names differ from the setup's."""
    view = ET.fromstring(labelling_setup(['<a & "b">', "c"]))
    table, choices = view.find("Table"), view.find("Choices")
    result = tasks()[0]["predictions"][0]["result"][0]
    assert result["from_name"] == choices.get("name") == QUESTION
    assert result["to_name"] == choices.get("toName") == table.get("name") == CASE
    assert table.get("value") == f"${CASE}"
    assert CASE in tasks()[0]["data"]
    assert [choice.get("value") for choice in choices] == ['<a & "b">', "c"]


def annotation(answer, who=1, **more):
    result = {
        "from_name": QUESTION,
        "to_name": CASE,
        "type": "choices",
        "value": {"choices": [answer]},
    }
    return {"result": [result] if answer else [], "completed_by": who, **more}


def export(path, *annotations, data=None):
    task = {"id": 1, "data": {"id": "p"} if data is None else data, "annotations": annotations}
    path.write_text(json.dumps([task]))
    return path


def test_answers_come_back(tmp_path):
    written = tasks()
    for number, task in enumerate(written):
        task["annotations"] = [
            annotation("a", {"id": 3, "email": "ann@example.org"}),
            annotation("b", 7),
            annotation("b", 8, was_cancelled=True),
        ]
        task["id"] = number
    (tmp_path / "e.json").write_text(json.dumps(written))
    assert read_label_studio(tmp_path / "e.json") == {
        "case": ["p", "p", "r", "r", "ß", "ß"],
        "reader": ["ann@example.org", "7"] * 3,
        "answer": ["a", "b"] * 3,
    }


def test_of_two_answers_by_one_reader_the_latest_counts(tmp_path):
    path = export(
        tmp_path / "e.json",
        annotation("a", updated_at="2024-02-01T10:00:00Z"),
        annotation("b", updated_at="2024-01-01T10:00:00Z"),
        annotation(None, 2),
    )
    assert read_label_studio(path) == {"case": ["p"], "reader": ["1"], "answer": ["a"]}


def test_other_names_of_case_and_question(tmp_path):
    path = export(tmp_path / "e.json", annotation("a"), data={"image": 12})
    assert read_label_studio(path, case="image")["case"] == ["12"]
    with pytest.raises(TableError, match="no answers to the question 'other'"):
        read_label_studio(path, case="image", question="other")
    with pytest.raises(TableError, match=r"task 1 has no data\.id"):
        read_label_studio(path)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "is not a JSON file"),
        ("{", "is not a JSON file"),
        ("[]", "no answers"),
        ('{"a": 1}', "not an export of annotated tasks"),
        ('[{"id": 1, "answer": "a", "annotation_id": 2}]', "not JSON-MIN"),
        ('["a"]', "not an export of annotated tasks"),
        ("[" * 100_000, "is not a JSON file"),
    ],
)
def test_what_is_no_export(tmp_path, content, says):
    path = tmp_path / "e.json"
    path.write_text(content)
    with pytest.raises(TableError, match=says):
        read_label_studio(path)


def test_an_answer_with_two_choices_is_refused(tmp_path):
    both = annotation("a")
    both["result"][0]["value"]["choices"] = ["a", "b"]
    with pytest.raises(TableError, match="2 choices"):
        read_label_studio(export(tmp_path / "e.json", both))
    with pytest.raises(TableError, match="No such file"):
        read_label_studio(tmp_path / "none.json")


@pytest.mark.parametrize(
    "result",
    [
        5,
        "answer",
        {"from_name": QUESTION},
        [QUESTION],
        [{"from_name": QUESTION, "value": ["a"]}],
        [{"from_name": QUESTION, "value": {"choices": "a"}}],
        [{"from_name": QUESTION, "value": {"choices": {"a": 1}}}],
        [{"from_name": QUESTION, "value": None}],
    ],
)
def test_results_of_another_shape_are_no_answers(tmp_path, result):
    path = export(tmp_path / "e.json", {"result": result, "completed_by": 1})
    with pytest.raises(TableError, match="no answers"):
        read_label_studio(path)


@pytest.mark.parametrize("place", ["case", "reader", "answer"])
def test_halves_of_characters_are_refused(tmp_path, place):
    words = {"case": "p", "reader": "r", "answer": "a"} | {place: "\ud800"}
    answers = annotation(words["answer"], words["reader"])
    path = export(tmp_path / "e.json", answers, data={"id": words["case"]})
    with pytest.raises(TableError, match="task 1 holds characters that are not text"):
        read_label_studio(path)


def test_how_sure_the_machine_is_of_several_classes():
    """The probability of its answer; without a score if that is not known, which JSON cannot say."""
    routed = {k: v for k, v in ROUTED.items() if k != "decision_value"}
    routed["probability"] = [0.4, 0.5, float("nan"), 0.9]
    file = io.BytesIO()
    writer = TaskWriter(file, "name", predictions=True)
    writer.write(pa.table(CASES), pa.table(routed))
    writer.close()
    found = [task["predictions"][0].get("score") for task in json.loads(file.getvalue())]
    assert found == [0.4, None, 0.9]
