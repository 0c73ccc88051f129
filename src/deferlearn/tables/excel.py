"""Read and write workbooks of Excel (.xlsx), by openpyxl.

Cells become text, as if the sheet had been saved as CSV with decimal points; dates become 2024-05-31.
"""

import re
import zipfile
from collections.abc import Iterator
from datetime import date, datetime, time
from pathlib import Path
from typing import Any, BinaryIO

from deferlearn.tables.errors import TableError

SUFFIX = ".xlsx"
# A sheet of Excel has no more rows.
MAX_ROWS = 2**20
# What XML cannot hold.
CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f]")
NUMBER = re.compile(r"-?(0|[1-9]\d{0,14})(\.\d{1,15})?")


def is_workbook(path: Path) -> bool:
    """Whether a zip archive is a workbook of Excel.

    Parameters
    ----------
    path : Path
        The file.

    Returns
    -------
    bool
    """
    try:
        with zipfile.ZipFile(path) as archive:
            return "xl/workbook.xml" in archive.namelist()
    except (zipfile.BadZipFile, OSError):
        return False


def sheet_rows(path: Path) -> Iterator[list[str]]:
    """The rows of the first sheet as text, the header first; empty rows are left out.

    Parameters
    ----------
    path : Path
        The workbook.

    Yields
    ------
    cells : list of str
        As many as the header has.
    """
    openpyxl = _openpyxl(path)
    try:
        book = openpyxl.load_workbook(path, read_only=True, data_only=True)
    except Exception as error:  # openpyxl raises errors of many kinds for damaged files
        raise TableError(f"cannot read {path}: {error}") from error
    try:
        width: int | None = None
        for number, row in enumerate(book.worksheets[0].iter_rows(values_only=True), start=1):
            cells = [_text(value) for value in row]
            while cells and cells[-1] == "" and (width is None or len(cells) > width):
                cells.pop()
            if not any(cells):
                continue
            if width is None:
                width = len(cells)
            if len(cells) > width:
                raise TableError(
                    f"row {number} of {path} has {len(cells)} cells, but the header has {width} columns"
                )
            yield cells + [""] * (width - len(cells))
    finally:
        book.close()


def _openpyxl(path: Path) -> Any:
    try:
        import openpyxl
    except ModuleNotFoundError as error:
        raise TableError(
            f"{path} is a workbook of Excel, which needs openpyxl: pip install 'deferlearn[excel]', or "
            "save it as CSV"
        ) from error
    return openpyxl


def _text(value: Any) -> str:
    """A cell as a CSV file would have it."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
    if isinstance(value, datetime):
        plain = value.time() == time()
        return value.date().isoformat() if plain else value.isoformat(" ", "seconds")
    if isinstance(value, date | time):
        return value.isoformat()
    return str(value)


class ExcelWriter:
    """Writes tables to the only sheet of a workbook; text never becomes a formula.

    Parameters
    ----------
    file : binary file
        The file to write to, when the writer is closed.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._openpyxl = _openpyxl(Path("the result"))
        self._tables: list[Any] = []
        self._rows = 0

    def write(self, table: Any) -> None:
        """Add rows.

        Parameters
        ----------
        table : pyarrow.Table
            The rows; every table must have the same columns.
        """
        self._rows += table.num_rows
        if self._rows >= MAX_ROWS:  # the header is a row, too
            raise TableError(
                f"a sheet of Excel has at most {MAX_ROWS:,} rows: write .csv or .parquet"
            )
        self._tables.append(table)

    def close(self) -> None:
        """Write the workbook; the file itself stays open."""
        import pyarrow as pa

        from deferlearn.tables.cells import (
            raw_text,
        )  # with numpy, which mistakes in options need not

        book = self._openpyxl.Workbook(write_only=True)
        sheet = book.create_sheet("cases")
        for number, table in enumerate(self._tables):
            if not number:
                sheet.append([self._cell(sheet, name) for name in table.column_names])
            columns = [
                raw_text(column).to_pylist()
                if pa.types.is_string(column.type)
                else column.to_pylist()
                for column in table.columns
            ]
            for row in zip(*columns, strict=True):
                sheet.append([self._cell(sheet, value) for value in row])
        book.save(self._file)

    def _cell(self, sheet: Any, value: Any) -> Any:
        if not isinstance(value, str):
            return value
        if NUMBER.fullmatch(value):
            return float(value)
        cell = self._openpyxl.cell.WriteOnlyCell(sheet, value=CONTROL.sub(" ", value))
        cell.data_type = "s"  # and not a formula, whatever its beginning is
        return cell
