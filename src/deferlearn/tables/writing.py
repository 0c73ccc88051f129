"""Write results to files chunk by chunk, and move the files to their places when all are complete."""

import codecs
import os
import re
import shutil
import sys
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self

from deferlearn._utils.atomic import open_partial
from deferlearn.tables.cells import raw_text, safe_text
from deferlearn.tables.errors import TableError
from deferlearn.tables.excel import SUFFIX, ExcelWriter

PARQUET_SUFFIXES = (".parquet", ".pq")
# Stands for the standard output.
STDOUT = Path("-")


class StagedFiles:
    """Files that appear together at the end of a `with` block, or not at all.

    Until then they have temporary names in the same folders. After an error they are removed, and the old
    files stay.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from deferlearn.tables.writing import StagedFiles
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with StagedFiles() as files:
    ...         _ = files.open(Path(folder) / "a.txt").write(b"all of it")
    ...         before = (Path(folder) / "a.txt").exists()
    ...     before, (Path(folder) / "a.txt").read_bytes()
    (False, b'all of it')
    """

    def __init__(self) -> None:
        self._files: list[tuple[Path, Path, BinaryIO]] = []
        self._stdout: Any = None

    def __enter__(self) -> Self:
        return self

    def open(self, path: str | os.PathLike[str]) -> BinaryIO:
        """Open a file for writing that will be at this path.

        Parameters
        ----------
        path : path-like
            The final path; an existing file is replaced at the end. The folder must exist. "-" is the
            standard output, to which all is written at the end.

        Returns
        -------
        file : binary file
        """
        path = Path(path)
        if path == STDOUT:
            self._stdout = tempfile.TemporaryFile()  # noqa: SIM115 - closed when the block ends
            return self._stdout
        try:
            if path.is_dir():
                raise TableError(f"cannot write {path}: it is a folder")
            # A rename would replace it for every program on the machine.
            if path.exists() and not path.is_file():
                raise TableError(f"cannot write {path}: it is a device or a pipe, not a file")
            partial, file = open_partial(path)
        except OSError as error:
            raise TableError(f"cannot write {path}: {error.strerror}") from error
        self._files.append((path, partial, file))
        return file

    def restart(self) -> None:
        """Forget what was written so far; the files can be opened again."""
        for _, partial, file in self._files:
            file.close()
            partial.unlink(missing_ok=True)
        self._files.clear()
        if self._stdout is not None:
            self._stdout.close()
            self._stdout = None

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
                if self._stdout is not None:
                    self._stdout.seek(0)
                    shutil.copyfileobj(self._stdout, sys.stdout.buffer)
                    sys.stdout.flush()
        finally:
            self.restart()


class CsvWriter:
    """Writes tables to a CSV file in which no cell runs as a formula when a spreadsheet opens it.

    Parameters
    ----------
    file : binary file
        The file to write to.
    delimiter : str, default=","
        The character between cells.
    decimal : {".", ","}, default="."
        The decimal separator of numbers; text stays as it is.
    encoding : str, default="utf8"
        The encoding. With utf-8-sig, the file begins with a byte order mark, by which Excel knows UTF-8.

    Examples
    --------
    >>> import io
    >>> import pyarrow as pa
    >>> from deferlearn.tables.writing import CsvWriter
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

    def __init__(
        self, file: BinaryIO, delimiter: str = ",", decimal: str = ".", encoding: str = "utf8"
    ) -> None:
        self._file, self._delimiter, self._decimal = file, delimiter, decimal
        self._encoding, self._begun = encoding, False
        self._encoder = codecs.getincrementalencoder(encoding)()

    def write(self, table: Any) -> None:
        """Add rows; the first call also writes the header.

        Parameters
        ----------
        table : pyarrow.Table
            The rows; every table must have the same columns.
        """
        import pyarrow as pa

        if not self._begun:
            self._begun = True
            names = [safe_text(pa.array([name])) for name in table.column_names]
            self._file.write(self._encoded(csv_lines(names, self._delimiter)))
        lines = csv_lines([self._text(c) for c in table.columns], self._delimiter)
        self._file.write(self._encoded(lines))

    def _encoded(self, lines: bytes) -> bytes:
        if codecs.lookup(self._encoding).name == "utf-8":
            return lines
        try:
            return self._encoder.encode(lines.decode())
        except UnicodeEncodeError as error:
            wrong = error.object[error.start : error.end]
            raise TableError(
                f"{wrong!r} cannot be written in the encoding {self._encoding!r}: choose another"
            ) from error

    def close(self) -> None:
        """Do nothing: all rows are written, and the file itself stays open."""

    def _text(self, column: Any) -> Any:
        import pyarrow as pa
        import pyarrow.compute as pc

        if not pa.types.is_floating(column.type):
            return safe_text(column)
        text = raw_text(column)
        return text if self._decimal == "." else pc.replace_substring(text, ".", self._decimal)


def csv_lines(columns: list[Any], delimiter: str = ",") -> bytes:
    r"""Lines of a CSV file, made column by column, which is several times as fast as cell by cell.

    Parameters
    ----------
    columns : list of pyarrow.Array
        Texts of equal length; null is an empty cell.
    delimiter : str, default=","
        The character between cells.

    Returns
    -------
    lines : bytes
        Lines with their ends; cells are quoted where necessary.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from deferlearn.tables.writing import csv_lines
    >>> csv_lines([pa.array(["a", "b"]), pa.array(["1,5", None])])
    b'a,"1,5"\nb,\n'
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    special = "[" + re.escape(delimiter) + '"\r\n]'
    cells = []
    for column in columns:
        # Lines of a chunk can exceed the 2 GB that Arrow's usual strings hold together.
        text = pc.fill_null(pc.cast(column, pa.large_string()), "")
        quote = pc.match_substring_regex(text, special)
        if len(columns) == 1:
            quote = pc.or_(quote, pc.equal(text, ""))  # readers skip an empty line
        if pc.any(quote).as_py():
            doubled = pc.replace_substring(text, '"', '""')
            mark = pa.scalar('"', pa.large_string())
            empty = pa.scalar("", pa.large_string())
            quoted = pc.binary_join_element_wise(mark, doubled, mark, empty)
            text = pc.if_else(quote, quoted, text)
        cells.append(text)
    lines = pc.binary_join_element_wise(*cells, pa.scalar(delimiter, pa.large_string()))
    return "".join(f"{line}\n" for line in lines.to_pylist()).encode()


class ParquetWriter:
    """Writes tables to a parquet file.

    Parameters
    ----------
    file : binary file
        The file to write to.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._writer: Any = None

    def write(self, table: Any) -> None:
        """Add rows.

        Parameters
        ----------
        table : pyarrow.Table
            The rows; every table must have the same columns.
        """
        import pyarrow.parquet as pq

        if self._writer is None:
            self._writer = pq.ParquetWriter(self._file, table.schema)
        self._writer.write_table(table)

    def close(self) -> None:
        """Write the end; the file itself stays open."""
        if self._writer is not None:
            self._writer.close()


def table_writer(
    path: Path,
    file: BinaryIO,
    delimiter: str = ",",
    decimal: str = ".",
    encoding: str = "utf8",
) -> CsvWriter | ParquetWriter | ExcelWriter:
    """The writer for a path: parquet for .parquet and .pq, Excel for .xlsx, CSV otherwise.

    Parameters
    ----------
    path : Path
        The final path.
    file : binary file
        The file to write to.
    delimiter, decimal : str
        The separators of a CSV file; a .tsv file always has tabs.
    encoding : str, default="utf8"
        The encoding of a CSV file.

    Returns
    -------
    CsvWriter, ParquetWriter or ExcelWriter
    """
    if path.suffix in PARQUET_SUFFIXES:
        return ParquetWriter(file)
    if path.suffix == SUFFIX:
        return ExcelWriter(file)
    return CsvWriter(file, "\t" if path.suffix == ".tsv" else delimiter, decimal, encoding)
