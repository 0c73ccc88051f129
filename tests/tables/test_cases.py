"""Cases out of tables: truth, answers wide and long, groups; and what is refused."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from case_tables import make_cases
from deferlearn.tables import TableError, select_cases

HUMANS = ["reader_1", "reader_2"]


def long_table(columns, readers=HUMANS):
    """One row per answer, in an order of its own."""
    rows = [
        (name, reader, answer)
        for reader in readers
        for name, answer in zip(columns["id"], columns[reader], strict=True)
        if answer is not None
    ]
    order = np.random.default_rng(0).permutation(len(rows))
    case, reader, answer = zip(*(rows[i] for i in order), strict=True)
    return {"case": case, "reader": reader, "answer": answer}


def without_readers(columns):
    return {name: values for name, values in columns.items() if name not in HUMANS}


def test_special_columns_are_no_features():
    columns = make_cases()
    cases = select_cases(columns, "diagnosis", humans=HUMANS, identifier="id", group="patient")
    assert cases.features.column_names == ["size", "dose", "age", "site"]
    assert cases.truth.tolist() == columns["diagnosis"]
    assert cases.answers[:, 0].tolist() == columns["reader_1"]
    assert cases.groups.tolist() == columns["patient"]
    assert cases.classes == ("ill", "well")
    assert len(cases) == 80


def test_long_answers_are_the_wide_ones():
    columns = make_cases()
    columns["reader_1"][3] = None
    wide = select_cases(columns, "diagnosis", humans=HUMANS, identifier="id")
    long = select_cases(
        without_readers(columns), "diagnosis", answers=long_table(columns), identifier="id"
    )
    order = [long.readers.index(reader) for reader in wide.readers]
    assert long.answers[:, order].tolist() == wide.answers.tolist()


def test_long_answers_fill_the_gaps_of_wide_ones():
    columns = make_cases()
    full = list(columns["reader_1"])
    columns["reader_1"] = [a if i % 2 else None for i, a in enumerate(full)]
    more = {"case": columns["id"][::2], "reader": ["reader_1"] * 40, "answer": full[::2]}
    cases = select_cases(columns, "diagnosis", humans=["reader_1"], answers=more, identifier="id")
    assert cases.answers[:, 0].tolist() == full
    more["answer"] = [*full[1:2], *full[2::2]]
    more["case"] = [columns["id"][1], *columns["id"][2::2]]
    more["answer"][0] = "ill" if full[1] == "well" else "well"
    with pytest.raises(TableError, match="two answers to the case in row 2"):
        select_cases(columns, "diagnosis", humans=["reader_1"], answers=more, identifier="id")


def test_rows_without_a_label_are_left_out():
    columns = make_cases()
    columns["diagnosis"][:5] = ["", "NA", None, " ", "nan"]
    cases = select_cases(columns, "diagnosis", answers=long_table(columns), identifier="id")
    assert (len(cases), cases.n_unlabelled) == (75, 5)
    assert cases.features["size"].to_pylist() == columns["size"][5:]
    assert cases.answers.shape == (75, 2)


def test_answers_with_gaps_mean_the_same_numbers():
    """A gap makes decimals of a reader's whole numbers; they are the labels all the same."""
    cases = select_cases(
        {"x": [1, 2, 3], "y": ["1", "0", "1"], "r": ["1.0", "", "0.0"]}, "y", humans=["r"]
    )
    assert cases.answers[:, 0].tolist() == ["1", None, "0"]


def test_errors_of_readers_and_of_their_majority():
    columns = {
        "x": [1, 2, 3, 4],
        "y": ["a", "b", "a", "b"],
        "r": ["a", "a", None, None],
        "s": ["a", "b", "b", None],
    }
    cases = select_cases(columns, "y", humans=["r", "s"])
    assert [(row["answers"], row["wrong"], row["error"]) for row in cases.reader_errors()] == [
        (2, 1, 0.5),
        (3, 1, 1 / 3),
    ]
    answers, read = cases.human_answers(np.array(["?"] * 4))
    assert answers.tolist() == ["a", "a", "b", "?"]  # a tie goes to the first reader
    assert read.tolist() == [True, True, True, False]


def test_a_reader_without_answers_has_no_error():
    cases = select_cases({"x": [1, 2], "y": ["a", "b"], "r": ["a", "a"]}, "y", humans=["r"])
    # As those of a desk at which nobody has answered yet.
    (nobody,) = replace(cases, answers=np.full((2, 1), None, dtype=object)).reader_errors()
    assert nobody == {"reader": "r", "answers": 0, "wrong": 0, "error": None}


def test_without_answers_humans_are_right():
    cases = select_cases({"x": [1, 2], "y": ["a", "b"]}, "y")
    answers, read = cases.human_answers(np.array(["?", "?"]))
    assert answers.tolist() == ["a", "b"]
    assert read.all()
    assert cases.reader_errors() == []


BASE = {"id": ["1", "2", "3"], "x": [1, 2, 3], "y": ["a", "b", "a"], "r": ["a", "a", None]}
LONG = {"case": ["1"], "reader": ["ann"], "answer": ["a"]}


@pytest.mark.parametrize(
    ("changes", "options", "says"),
    [
        ({}, {"label": "z"}, "no column 'z', given as label"),
        ({}, {"humans": ["z"]}, "no column 'z', given as human"),
        ({}, {"humans": "r"}, "must be a list"),
        ({}, {"group": "z"}, "no column 'z', given as group"),
        ({}, {"humans": ["y"]}, "'y' is given as label and as human"),
        ({}, {"group": "y"}, "'y' is given as label and as group"),
        ({"y": ["a"] * 3}, {}, "only one class, 'a'"),
        ({"y": ["a", "b", "b"]}, {"grades": ["b"]}, "must be two labels or more"),
        ({"y": ["a", "b", "b"]}, {"grades": "ab"}, "grades='ab' must be a list of labels"),
        ({"y": ["a", "b", "c"]}, {"grades": ["b", "a"]}, "'y' holds 'c' in row 3"),
        ({"y": ["a", "b", "b"]}, {"grades": ["c", "b", "a"]}, "has the grade 'c'"),
        ({"y": ["a", "b", "c"]}, {"classes": ["b", "a"]}, "none of the model's classes 'b', 'a'"),
        ({"y": [None] * 3}, {"grades": ["b", "a"]}, "'y' is empty"),
        ({"y": [None] * 3}, {}, "'y' is empty"),
        ({"r": ["a", "maybe", None]}, {}, "'r' holds 'maybe' in row 2"),
        ({"r": [None] * 3}, {}, "reader 'r' answered none"),
        ({"x": ["p", "", "q"]}, {"group": "x"}, "'x' is empty in row 2"),
        ({}, {"answers": LONG, "identifier": None}, "answers need an identifier"),
        ({"id": ["1", "1", "2"]}, {"answers": LONG}, "more than one case '1'"),
        ({"id": ["1", None, "2"]}, {"answers": LONG}, "'id' is empty in row 2"),
        ({}, {"answers": {**LONG, "case": ["9"]}}, "such as '9'"),
        ({}, {"answers": {"case": ["1"], "answer": ["a"]}}, "answers have no column 'reader'"),
        ({}, {"answers": {**LONG, "answer": ["?"]}}, "'ann' holds '?'"),
        (
            {},
            {"answers": {"case": ["1"] * 2, "reader": ["ann"] * 2, "answer": ["a"] * 2}},
            "more than once",
        ),
    ],
)
def test_what_is_refused(changes, options, says):
    arguments = {"label": "y", "humans": ["r"], "identifier": "id", **options}
    with pytest.raises(TableError) as error:
        select_cases(pa.table({**BASE, **changes}), **arguments)
    assert says in str(error.value)


def test_names_that_were_guarded_against_spreadsheets_are_known_again():
    """`import-answers` puts an apostrophe before what would run as a formula."""
    table = {"id": ["-1a", "'-2b", "'=c", "=c"], "x": [1, 2, 3, 4], "truth": ["=y", "n", "=y", "n"]}
    answers = {
        "case": ["'-1a", "'-2b", "'=c", "=c"],
        "reader": ["'=r"] * 4,
        "answer": ["'=y", "n", "n", "=y"],
    }
    cases = select_cases(table, "truth", answers=answers, identifier="id")
    assert cases.answers[:, 0].tolist() == ["=y", "n", "n", "=y"]
    answers["case"][0] = "'-9"
    with pytest.raises(TableError, match="'-9"):
        select_cases(table, "truth", answers=answers, identifier="id")


def test_booleans_in_three_spellings_are_two_classes():
    table = {"x": [1, 2, 3, 4], "truth": ["True", "FALSE", "true", "False"]}
    table["doctor"] = [True, False, None, True]
    cases = select_cases(table, "truth", humans=["doctor"])
    assert cases.classes == ("false", "true")
    assert cases.reader_errors()[0]["wrong"] == 1
