"""Results in files: written chunk by chunk beside their final place, and moved there when all is done."""

from __future__ import annotations

import csv
import io
import os
import uuid
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self

from deferlearn.tabular.cells import raw_text, safe_cell, safe_cells
from deferlearn.tabular.errors import TableError

PARQUET_SUFFIXES = (".parquet", ".pq")


class StagedFiles:
    """Files that appear together at the end of a `with` block, or not at all.

    Until then they have other names in the same folders; after an error they are removed, and what was
    there before stays.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from deferlearn.tabular.writing import StagedFiles
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with StagedFiles() as files:
    ...         _ = files.open(Path(folder) / "a.txt").write(b"all of it")
    ...         before = (Path(folder) / "a.txt").exists()
    ...     before, (Path(folder) / "a.txt").read_bytes()
    (False, b'all of it')
    """

    def __init__(self) -> None:
        self._files: list[tuple[Path, Path, BinaryIO]] = []

    def __enter__(self) -> Self:
        return self

    def open(self, path: str | os.PathLike[str]) -> BinaryIO:
        """A file to write to, which will be at this path.

        Parameters
        ----------
        path : path-like
            Where it shall be; an existing file is replaced in the end. Its folder must exist.

        Returns
        -------
        file : binary file
        """
        path = Path(path)
        if path.is_dir():
            raise TableError(f"cannot write {path}: it is a folder")
        partial = path.with_name(f".{path.name}.{uuid.uuid4().hex}.partial")
        try:
            file = open(partial, "xb")  # noqa: SIM115 - closed when the block ends
        except OSError as error:
            raise TableError(f"cannot write {path}: {error.strerror}") from error
        self._files.append((path, partial, file))
        return file

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            for _, _, file in self._files:
                file.close()
            if kind is None:
                for path, partial, _ in self._files:
                    os.replace(partial, path)
        finally:
            for _, partial, file in self._files:
                file.close()
                partial.unlink(missing_ok=True)


class CsvWriter:
    """Writes tables to a CSV file, so that no cell runs as a formula when a spreadsheet opens it.

    Parameters
    ----------
    file : binary file
        Where to.
    delimiter : str, default=","
        Between cells.
    decimal : {".", ","}, default="."
        Of the numbers that are written; text stays as it is.

    Examples
    --------
    >>> import io
    >>> import pyarrow as pa
    >>> from deferlearn.tabular.writing import CsvWriter
    >>> file = io.BytesIO()
    >>> writer = CsvWriter(file)
    >>> writer.write(pa.table({"note": ["=A1", "fine"], "change": [-0.5, None]}))
    >>> writer.close()
    >>> print(file.getvalue().decode())
    note,change
    '=A1,-0.5
    fine,
    <BLANKLINE>
    """

    def __init__(self, file: BinaryIO, delimiter: str = ",", decimal: str = ".") -> None:
        self._text = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=False)
        self._writer = csv.writer(self._text, delimiter=delimiter, lineterminator="\n")
        self._decimal = decimal
        self._begun = False

    def write(self, table: Any) -> None:
        """Add rows; the first ones bring the names of the columns.

        Parameters
        ----------
        table : pyarrow.Table
            All with the same columns.
        """
        if not self._begun:
            self._writer.writerow([safe_cell(name) for name in table.column_names])
            self._begun = True
        self._writer.writerows(zip(*map(self._cells, table.columns), strict=True))

    def close(self) -> None:
        """Write what is left; the file itself stays open."""
        self._text.flush()
        self._text.detach()

    def _cells(self, column: Any) -> list[str | None]:
        import pyarrow as pa

        if not pa.types.is_floating(column.type):
            return safe_cells(column)
        cells: list[str | None] = raw_text(column).to_pylist()
        if self._decimal == ".":
            return cells
        return [cell if cell is None else cell.replace(".", self._decimal) for cell in cells]


class ParquetWriter:
    """Writes tables to a parquet file.

    Parameters
    ----------
    file : binary file
        Where to.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._writer: Any = None

    def write(self, table: Any) -> None:
        """Add rows.

        Parameters
        ----------
        table : pyarrow.Table
            All with the same columns.
        """
        import pyarrow.parquet as pq

        if self._writer is None:
            self._writer = pq.ParquetWriter(self._file, table.schema)
        self._writer.write_table(table)

    def close(self) -> None:
        """Write what is left; the file itself stays open."""
        if self._writer is not None:
            self._writer.close()


def table_writer(
    path: Path, file: BinaryIO, delimiter: str = ",", decimal: str = "."
) -> CsvWriter | ParquetWriter:
    """The writer for a path: parquet if its name says so, else CSV.

    Parameters
    ----------
    path : Path
        The name to go by.
    file : binary file
        Where to.
    delimiter, decimal : str
        Of a CSV file.

    Returns
    -------
    CsvWriter or ParquetWriter
    """
    if path.suffix in PARQUET_SUFFIXES:
        return ParquetWriter(file)
    return CsvWriter(file, "\t" if path.suffix == ".tsv" else delimiter, decimal)
