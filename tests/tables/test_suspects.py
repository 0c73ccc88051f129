"""Columns that are no features: forgotten readers, copies of the truth, names of patients."""

import numpy as np
import pytest

from case_tables import make_cases
from deferlearn.tables import TableError, select_cases
from deferlearn.tables.suspects import check_forgotten_readers, group_hints, telling_columns


def cases_of(**more):
    return select_cases({**make_cases(), **more}, "diagnosis", humans=["reader_1"])


def test_a_forgotten_reader_is_asked_about():
    """With one --human alone, the other reader silently became a feature."""
    with pytest.raises(
        TableError, match=r"'reader_2' .* reader answered\? .* --human reader_2.*--keep"
    ):
        check_forgotten_readers(cases_of(), [])
    check_forgotten_readers(cases_of(), ["reader_2"])


def test_gaps_and_spellings_do_not_hide_a_reader():
    said = [None if i % 3 else " ill " if i % 2 else "well" for i in range(80)]
    with pytest.raises(TableError, match=r"'Dr. B' .* --human .Dr. B."):
        check_forgotten_readers(cases_of(**{"Dr. B": said}), ["reader_2"])


def test_a_feature_of_noughts_and_ones_is_a_reader_only_if_it_agrees_with_the_truth():
    table = make_cases()
    truth = np.array([int(label == "ill") for label in table["diagnosis"]])
    smoker = np.random.default_rng(0).integers(0, 2, 80)
    reader = np.where(np.arange(80) % 10, truth, 1 - truth)
    plain = {"size": table["size"], "truth": truth, "smoker": smoker}
    check_forgotten_readers(select_cases(plain, "truth"), [])
    with pytest.raises(TableError, match="'reader'"):
        check_forgotten_readers(select_cases({**plain, "reader": reader}, "truth"), [])


def test_a_column_that_tells_the_truth_is_noted():
    truth = np.array(make_cases()["diagnosis"])
    code = np.where(truth == "ill", "C34", "Z00")
    cases = cases_of(code=code)
    (note,) = telling_columns(cases, ["code", "site", "size"])
    assert "'code' by itself tells the truth in 100.0%" in note
    rare = np.where(np.arange(80) == 0, "ill", "well")
    table = {"truth": rare, "site": make_cases()["site"]}
    assert telling_columns(select_cases(table, "truth"), ["site"]) == []


def test_repeated_patients_hint_at_groups():
    (note,) = group_hints(cases_of())
    assert "'patient' has 40 values in 80 cases" in note
    assert "--group patient" in note
    table = {**make_cases(), "patient age": make_cases()["age"]}
    assert group_hints(select_cases(table, "diagnosis", group="patient")) == []
    del table["patient"]
    assert group_hints(select_cases(table, "diagnosis")) == []
