"""What a column is taken for, and why it is left out."""

import datetime

import pyarrow as pa
import pytest

from deferlearn.tables.columns import IDENTIFIER, describe
from deferlearn.tables.errors import CellError

N = 60
MANY = [f"word {i}" for i in range(N)]


def column(values):
    return pa.chunked_array([pa.array(values)])


@pytest.mark.parametrize(
    ("name", "values", "kind"),
    [
        ("age", ["61", "", "48.5"] * 20, "number"),
        ("age", [61, None, 48] * 20, "number"),
        ("price", ["1e3", "-2", "+.5"] * 20, "number"),
        ("code", [5, 3, 9] * 20, "number"),
        ("constant with gaps", ["7", "7", "NA"] * 20, "number"),
        ("smoker", ["TRUE", "false", ""] * 20, "boolean"),
        ("smoker", [True, False, None] * 20, "boolean"),
        ("smoker", ["yes", "no", "yes"] * 20, "category"),
        ("site", ["Oslo", "Rome", "none"] * 20, "category"),
        ("site", pa.array(["Oslo", "Rome", None] * 20).dictionary_encode(), "category"),
        ("only where known", ["yes", "", ""] * 20, "category"),
        ("stage", ["1", "2", "3b"] * 20, "category"),
        ("hospital_id", [1, 2, 3] * 20, "number"),
        ("year", list(range(1990, 2020)) * 2, "number"),
        ("measured", [float(i) ** 1.5 for i in range(N)], "number"),
    ],
)
def test_kinds(name, values, kind):
    found = describe(name, column(values))
    assert found.kind == kind, found
    assert not found.reason


@pytest.mark.parametrize(
    ("name", "values", "says"),
    [
        ("x", [None, "", "NA"] * 20, "empty"),
        ("x", ["same"] * N, "constant, 'same'"),
        ("x", [3] * N, "constant, '3'"),
        ("x", [True] * N, "constant"),
        ("x", MANY, "60 different values in 60 rows"),
        ("x", [f"w{i}" for i in range(51)] * 2, "51 different values in 102 rows"),
        ("", list(range(N)), "counts the rows"),
        ("n", list(range(1, N + 1)), "counts the rows"),
        ("case_id", [i * 7 % 1000 for i in range(N)], "identifier, by its name"),
        ("PatientID", [str(i * 7 % 1000) for i in range(N)], "identifier, by its name"),
        ("seen", ["2024-05-01", "2023-1-31 10:00", "2024/05/01"] * 20, "dates"),
        ("seen", ["31.12.2023", "1/2/24", ""] * 20, "dates"),
        ("seen", ["10:30", "11:45:10", "9:05"] * 20, "dates"),
        ("seen", [datetime.date(2024, 5, i % 28 + 1) for i in range(N)], "dates"),
        ("size", ["1,5", "2,25", "3"] * 20, "--decimal ,"),
        ("size", ["1.5", "2.5", "3", "4", "5", "?"] * 10, "mostly numbers, but also '?'"),
        ("lists", [[1], [2]] * 30, "cells of the type list"),
        ("bytes", [b"\xff", b"\x00"] * 30, "cells of the type binary"),
    ],
)
def test_left_out(name, values, says):
    found = describe(name, column(values))
    assert found.kind is None, found
    assert says in found.reason


def test_the_user_has_the_last_word():
    assert describe("x", column(MANY), "category").categories == tuple(sorted(MANY))
    assert describe("case_id", column(list(range(N))), "number").kind == "number"
    assert describe("level", column(["0150", "0151"] * 30)).kind == "number"
    assert describe("zip", column(["0150", "0151"] * 30), "category").categories == ("0150", "0151")
    with pytest.raises(CellError, match="'word 0'"):
        describe("x", column(MANY), "number")


def test_whole_numbers_with_gaps_are_the_same_categories():
    assert describe("x", column(["1.0", "2.0", "", "a", "b"]), "category").categories == (
        *("1", "2"),
        *("a", "b"),
    )


def test_names_of_identifiers():
    for name in ("id", "ID", "case_id", "case id", "patientId", "PatientID", "uuid", "row.uuid"):
        assert IDENTIFIER.fullmatch(name), name
    for name in ("paid", "acid", "width", "identity", "ideal", "valid", "COVID", "Plaid"):
        assert not IDENTIFIER.fullmatch(name), name


@pytest.mark.parametrize(
    "name", ["zip", "PLZ", "home_postcode", "ZIP code", "postal code", "Phone"]
)
def test_codes_are_not_numbers_to_be_averaged(name):
    assert describe(name, column(["0150", "0151"] * 30)).kind == "category"
    found = describe(name, column([str(10_000 + 7 * i) for i in range(60)]))
    assert (found.kind, "code by its name" in found.reason) == (None, True)
    assert describe(name, column(["0150", "0151"] * 30), "number").kind == "number"
    assert describe("zipper width", column(["1", "2", "3"] * 10)).kind == "number"
