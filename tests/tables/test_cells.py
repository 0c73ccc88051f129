"""Cells: numbers against Python's float, formulas against what spreadsheets run."""

import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deferlearn.tables.cells import (
    MISSING,
    NotPlain,
    clean_text,
    label_of,
    label_text,
    number_of,
    numbers,
    safe_text,
    with_points,
)
from deferlearn.tables.errors import CellError, TableError

finite = st.floats(allow_nan=False, allow_infinity=False)
TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=6)
# Much of it looks like formulas and numbers.
SUSPICIOUS = st.text(st.sampled_from("=+-@\t\r\n\0 ＝＋－＠\u00a0'09.eE1a,"), max_size=6)


@settings(deadline=None)
@given(st.lists(st.one_of(finite, st.none()), min_size=1, max_size=8))
def test_numbers_are_those_that_python_reads(values):
    forms = (repr, lambda v: f" {v!r} ", lambda v: f"{v:+.17e}", lambda v: f"{v:.17E}")
    for form in forms:
        cells = ["NA" if value is None else form(value) for value in values]
        expected = [np.nan if value is None else float(form(value)) for value in values]
        np.testing.assert_array_equal(numbers(pa.array(cells), "x"), expected)
    typed = numbers(pa.chunked_array([pa.array(values, pa.float64())]), "x")
    np.testing.assert_array_equal(typed, [np.nan if v is None else v for v in values])


@settings(deadline=None)
@given(st.one_of(TEXT, SUSPICIOUS))
def test_a_cell_is_a_number_missing_or_refused(cell):
    """Whatever Python does not read as a finite number is refused, unless it says that it is missing."""
    try:
        (value,) = numbers(pa.array([cell]), "x")
    except CellError:
        return
    if math.isnan(value):
        assert cell.strip().lower() in MISSING
    else:
        assert float(cell.strip()) == value


@pytest.mark.parametrize(
    "cell", ["inf", "-inf", "-nan", "1e999", "1,5", "0x1", "1_000", "١", "ten"]
)
def test_what_is_no_number(cell):
    with pytest.raises(CellError, match="row 2 ") as error:
        numbers(pa.array(["1", cell, "2"]), "age")
    assert repr(cell) in str(error.value)
    assert "'age'" in str(error.value)
    assert "row 12 " in str(error.value.moved(10))
    assert isinstance(error.value, TableError)


def test_infinite_numbers_of_typed_columns_are_refused_too():
    with pytest.raises(CellError, match="row 2"):
        numbers(pa.array([1.0, np.inf]), "x")


def test_missing_and_labels():
    column = pa.array(
        ["", " ", "NA", "n/a", "NaN", "NULL", "<NA>", None, "none", "1.0", " 01 ", "-3.00"]
    )
    assert clean_text(column).to_pylist() == [None] * 8 + ["none", "1.0", "01", "-3.00"]
    assert label_text(column).to_pylist() == [None] * 8 + ["none", "1", "01", "-3"]
    # A column of whole numbers with gaps, as pandas writes it, means the same as one without.
    assert label_text(pa.array([1.0, None, 0.0])).to_pylist() == ["1", None, "0"]
    # Python, R and Arrow write booleans in three ways.
    assert label_text(pa.array([True, None])).to_pylist() == ["true", None]
    texts = pa.array(["True", "FALSE", " false", "Truely", None])
    assert label_text(texts).to_pylist() == ["true", "false", "false", "Truely", None]
    assert label_text(pa.array(["a", "b"]).dictionary_encode()).to_pylist() == ["a", "b"]


def spreadsheet_runs(cell):
    """By the rules that OWASP gives, and full-width signs; what is a number is no formula."""
    try:
        float(cell.replace(",", ".", 1))
        plain = not any(c in cell for c in "_naif\t\r\n\0 \u00a0")  # nan, inf, 1_0 and blanks
        if plain:
            return False
    except ValueError:
        pass
    return cell[:1] in ("\t", "\r", "\n", "\0") or cell.lstrip(" \t\r\n\u00a0")[:1] in tuple(
        "=+-@＝＋－＠"
    )


@settings(deadline=None, max_examples=300)
@given(st.one_of(TEXT, SUSPICIOUS))
def test_no_cell_runs_and_others_stay_as_they_are(cell):
    safe, gap, again = safe_text(pa.array([cell, None, cell])).to_pylist()
    assert (gap, again) == (None, safe)
    if cell and spreadsheet_runs(cell):
        assert safe == "'" + cell
    elif not cell[:1].isspace() and cell[:1] not in "\ufeff":
        assert safe == cell
    assert not safe or not spreadsheet_runs(safe)


def test_negative_numbers_stay_numbers():
    cells = ["-5", "-0.5", "-1e-3", "+3", "-.5", "-0,5", "-5 mg", "--5", "-", "=A1", "-1+1"]
    assert safe_text(pa.array(cells)).to_pylist() == [
        *cells[:6],
        "'-5 mg",
        "'--5",
        "'-",
        "'=A1",
        "'-1+1",
    ]
    assert safe_text(pa.array([-5, None])).to_pylist() == ["-5", None]


def test_decimal_commas_become_points_where_they_are_said_to_be():
    table = pa.table({"a": ["1,5", "-2", "", "x,y"], "b": ["1,5"] * 4, "c": [1.5] * 4})
    changed = with_points(table, ["a", "c"])
    assert changed["a"].to_pylist() == ["1.5", "-2", None, "x,y"]
    assert changed["b"].to_pylist() == ["1,5"] * 4
    assert changed["c"].to_pylist() == [1.5] * 4


def test_a_point_among_decimal_commas_is_refused():
    with pytest.raises(CellError, match=r"'1.234' in row 2 .* has a point"):
        with_points(pa.table({"a": ["1,5", "1.234"]}), ["a"])
    with pytest.raises(CellError, match=r"'2.5' in row 3 .* has a point"):
        with_points(pa.table({"a": ["1.728,03", "1.234", "2.5"]}), ["a"])
    with pytest.raises(CellError, match=r"'1.234' in row 1 .* can mean two things"):
        with_points(pa.table({"a": ["1.234", "5.678"]}), ["a"])


def test_what_a_mark_means_is_decided_by_column():
    """The advice went in a circle: a column with commas needed --decimal , and one with points did not."""
    table = pa.table(
        {
            "commas": ["0,5", "12", "-3,25"],
            "points": ["0.5", "1.234", "-3.25"],
            "thousands": ["1.728,03", "1.234", "0,5"],
            "millions": ["1.234.567", "1.234", "7"],
        }
    )
    changed = with_points(table, table.column_names)
    assert changed["commas"].to_pylist() == ["0.5", "12", "-3.25"]
    assert changed["points"].to_pylist() == ["0.5", "1.234", "-3.25"]
    assert changed["thousands"].to_pylist() == ["1728.03", "1234", "0.5"]
    assert changed["millions"].to_pylist() == ["1234567", "1234", "7"]
    english = pa.table({"a": ["1,728.03", "1,234", "0.5"], "b": ["1,234", "5,678", "x,y"]})
    changed = with_points(english, ["a", "b"], ".")
    assert changed["a"].to_pylist() == ["1728.03", "1234", "0.5"]
    assert changed["b"].to_pylist() == ["1,234", "5,678", "x,y"]


# -- cell by cell, as a single case is read ----------------------------------------------------

CELLS = st.one_of(
    TEXT,
    SUSPICIOUS,
    st.text(st.sampled_from("truefalsTRUEFALSnaNA/<># .0-"), max_size=6),
    finite.map(repr),
    finite.map(lambda value: f"{value:.3f}"),
    st.integers(-(2**70), 2**70),
    st.integers(-5, 5).map(lambda value: f" {value}.0"),
    st.integers(-5, 5).map(float),
    st.floats(),
    st.floats(width=32).map(np.float32),
    st.integers(-(2**40), 2**40).map(np.int64),
    st.booleans(),
    st.none(),
)


def alone(read, *arguments):
    """What is read, or nothing if the cell is left to Arrow, or refused by it."""
    try:
        return read(*arguments)
    except (NotPlain, CellError, OverflowError, pa.ArrowException):
        return "nothing"


@settings(deadline=None, max_examples=500)
@given(CELLS)
def test_a_cell_alone_is_read_as_in_a_column(cell):
    number = alone(number_of, cell)
    if number != "nothing":
        np.testing.assert_array_equal(number, numbers(pa.array([cell]), "x")[0])
    label = alone(label_of, cell)
    if label != "nothing":
        assert label == label_text(pa.array([cell]))[0].as_py()


@pytest.mark.parametrize(
    "cell", ["x", float("inf"), True, 2**80, b"1", [1], "1,5", "1e999", "\u00a01"]
)
def test_cells_that_are_no_plain_numbers(cell):
    with pytest.raises(NotPlain):
        number_of(cell)


@pytest.mark.parametrize(
    "cell", [0.5, -0.0, 2**80, 1e30, b"1", [1], "a\tb", "\u2003a", np.float32(135715216.0)]
)
def test_cells_that_are_no_plain_labels(cell):
    with pytest.raises(NotPlain):
        label_of(cell)
