"""Workbooks of Excel: the same table as from CSV, and text that stays text."""

import datetime
import sys
import zipfile

import openpyxl
import pyarrow as pa
import pytest

from deferlearn.tables import TableError, open_table
from deferlearn.tables.excel import ExcelWriter


def workbook(path, *rows):
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    book.create_sheet("other").append(["not read"])
    book.save(path)
    return path


def test_cells_are_those_of_a_csv_file(tmp_path):
    day = datetime.datetime(2024, 5, 31)
    path = workbook(
        tmp_path / "t.xlsx",
        ["id", " size", "ok", "seen", "note"],
        ["007", 1.5, True, day, None],
        [],
        [8, 3.0, False, day.replace(hour=9), "=1+1"[1:]],
    )
    file = open_table(path, delimiter=";", decimal=",")
    assert file.columns == ("id", "size", "ok", "seen", "note")
    assert file.decimal == "."  # numbers are numbers in a workbook
    expected = {
        "id": ["007", "8"],
        "size": ["1.5", "3"],
        "ok": ["TRUE", "FALSE"],
        "seen": ["2024-05-31", "2024-05-31 09:00:00"],
        "note": ["", "1+1"],
    }
    assert file.read().to_pydict() == expected
    assert [chunk.num_rows for chunk in file.chunks(1)] == [1, 1]


def test_what_is_written_is_read_and_nothing_is_a_formula(tmp_path):
    path = tmp_path / "t.xlsx"
    table = pa.table({"a": ["=1+1", "007", "12", "x\x00y", None], "b": [0.5, None, -1.0, 2.0, 3.0]})
    with open(path, "wb") as file:
        writer = ExcelWriter(file)
        writer.write(table.slice(0, 2))
        writer.write(table.slice(2))
        writer.close()
    sheet = openpyxl.load_workbook(path).active
    assert [cell.data_type for cell in sheet["A"]] == ["s", "s", "s", "n", "s", "n"]
    assert sheet["A2"].value == "=1+1"
    assert open_table(path).read().to_pydict() == {
        "a": ["=1+1", "007", "12", "x y", ""],
        "b": ["0.5", "", "-1", "2", "3"],
    }


def test_files_that_are_no_tables(tmp_path, monkeypatch):
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("a.txt", "a")
    with pytest.raises(TableError, match="is an archive"):
        open_table(tmp_path / "a.zip")
    path = workbook(tmp_path / "empty.xlsx")
    with pytest.raises(TableError, match="its first sheet has no cells"):
        open_table(path)
    path = workbook(tmp_path / "long.xlsx", ["a", "b"], [1, 2, 3])
    with pytest.raises(TableError, match=r"row 2 of .* has 3 cells, but the header has 2"):
        open_table(path).read()
    damaged = tmp_path / "damaged.xlsx"
    with zipfile.ZipFile(damaged, "w") as archive:
        archive.writestr("xl/workbook.xml", "<")
    with pytest.raises(TableError, match="cannot read"):
        open_table(damaged)
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(TableError, match=r"deferlearn\[excel\]"):
        open_table(path)


def test_a_sheet_has_an_end(tmp_path, monkeypatch):
    monkeypatch.setattr("deferlearn.tables.excel.MAX_ROWS", 3)
    with open(tmp_path / "t.xlsx", "wb") as file, pytest.raises(TableError, match="at most 3 rows"):
        ExcelWriter(file).write(pa.table({"a": [1, 2, 3]}))
