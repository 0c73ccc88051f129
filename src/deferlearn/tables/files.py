"""Read tables from CSV, parquet and Excel files, whole or in chunks, with every cell as it is there."""

import codecs
import hashlib
import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

from deferlearn._utils.words import listed
from deferlearn.tables.errors import TableError
from deferlearn.tables.excel import is_workbook, sheet_rows
from deferlearn.tables.frames import missing_columns, nearest_first
from deferlearn.tables.opening import BLOCK, open_csv, open_parquet, readable

# Rows per chunk.
CHUNK_ROWS = 20_000
PARQUET, ZIP = b"PAR1", b"PK\x03\x04"
DELIMITERS = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";"}
DECIMALS = (".", ",")
COMPRESSED = (".gz", ".bz2", ".zst", ".lz4")


@dataclass(frozen=True)
class TableFile:
    r"""A CSV, parquet or Excel file whose columns are known and whose rows are not read yet.

    Cells of a CSV file are text, exactly as in the file, and so are cells of a workbook; what they mean is
    decided later, in the same way for every chunk. Columns of a parquet file keep their types.

    Parameters
    ----------
    path : Path
        The file.
    header : tuple of str
        Names of the columns as they are in the file.
    delimiter : str
        The character between cells of a CSV file.
    decimal : {".", ","}
        The decimal separator of numbers in text.
    encoding : str
        Encoding of a CSV file.
    parquet : bool
        Whether it is a parquet file.
    excel : bool
        Whether it is a workbook of Excel, of which the first sheet is read.
    marked : bool
        Whether a CSV file begins with a byte order mark, as Excel writes it.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from deferlearn.tables import open_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "cases.csv"
    ...     _ = path.write_text("id,age\n007,61\n008,\n")
    ...     file = open_table(path)
    ...     table = file.read()
    >>> file.columns, table.column("id").to_pylist(), table.column("age").to_pylist()
    (('id', 'age'), ['007', '008'], ['61', ''])
    """

    path: Path
    header: tuple[str, ...]
    delimiter: str = ","
    decimal: str = "."
    encoding: str = "utf8"
    parquet: bool = False
    excel: bool = False
    marked: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns, without the blanks around them."""
        return self.header if self.parquet else tuple(name.strip() for name in self.header)

    def chunks(self, rows: int = CHUNK_ROWS) -> Iterator[Any]:
        """Read the file in chunks of equal size; memory holds one chunk at a time.

        Parameters
        ----------
        rows : int, default=20000
            Number of rows per chunk; the last chunk may be smaller.

        Yields
        ------
        table : pyarrow.Table
        """
        import pyarrow as pa

        waiting = None
        for batch in self._batches(rows):
            part = pa.Table.from_batches([batch])
            waiting = part if waiting is None else pa.concat_tables([waiting, part])
            while waiting.num_rows >= rows:
                yield waiting.slice(0, rows).combine_chunks()
                waiting = waiting.slice(rows)
        if waiting is not None and waiting.num_rows:
            yield waiting.combine_chunks()

    def read(self) -> Any:
        """Read the whole table.

        Returns
        -------
        table : pyarrow.Table
        """
        import pyarrow as pa

        batches = list(self._batches(CHUNK_ROWS))
        if not batches:
            raise TableError(f"{self.path} has columns, but no rows")
        return pa.Table.from_batches(batches).combine_chunks()

    def require(self, names: list[str], why: str) -> None:
        """Refuse a file that lacks one of these columns.

        Parameters
        ----------
        names : list of str
            Names of columns.
        why : str
            Why they are needed; a part of the message.
        """
        missing = missing_columns(names, self.columns)
        if missing:
            wanted = next(name for name in names if name not in self.columns)
            known = listed([repr(name) for name in nearest_first(wanted, self.columns)])
            raise TableError(
                f"{self.path} has no column {missing}, {why}; it has {known}{self._separator_hint()}"
            )

    def _separator_hint(self) -> str:
        if self.parquet or len(self.columns) > 1:
            return ""
        for other in ";\t|,":
            if other != self.delimiter and other in self.columns[0]:
                shown = "tab" if other == "\t" else other
                return (
                    f". Another character seems to separate the cells: pass --delimiter '{shown}'"
                )
        return ""

    def _batches(self, rows: int) -> Iterator[Any]:
        import pyarrow as pa

        last = None
        with readable(self):
            if self.parquet:
                with open_parquet(self) as file:
                    yield from file.iter_batches(batch_size=rows)
                return
            if self.excel:
                yield from self._sheet_batches(rows)
                return
            with open_csv(self, {name: pa.string() for name in self.header}) as reader:
                for batch in reader:
                    last = batch if batch.num_rows else last
                    yield batch.rename_columns(list(self.columns))
        if last is not None:
            self._refuse_open_quote(str(last.column(last.num_columns - 1)[-1]))

    def _sheet_batches(self, rows: int) -> Iterator[Any]:
        import pyarrow as pa

        lines = sheet_rows(self.path)
        next(lines)
        while part := list(islice(lines, rows)):
            arrays = [pa.array(cells, pa.string()) for cells in zip(*part, strict=True)]
            yield pa.RecordBatch.from_arrays(arrays, names=list(self.columns))

    def estimated_rows(self) -> int | None:
        """About how many rows there are, from the size of the file; None if it is compressed."""
        if self.parquet:
            with readable(self), open_parquet(self) as file:
                return int(file.metadata.num_rows)
        if self.excel or self.path.suffix in COMPRESSED:
            return None
        with open(self.path, "rb") as file:
            head = file.read(BLOCK)
        return max(head.count(b"\n") * os.path.getsize(self.path) // max(len(head), 1) - 1, 1)

    def _refuse_open_quote(self, cell: str) -> None:
        """A quote that is never closed puts the rest of the file into one cell, without an error of Arrow.

        A last cell of several lines is quoted, so a complete file ends with a quote.
        """
        if "\n" not in cell:
            return
        with open(self.path, "rb") as file:
            file.seek(-min(os.path.getsize(self.path), 64), os.SEEK_END)
            tail = file.read().rstrip(b"\r\n\0")
        if self.path.suffix in COMPRESSED or tail.endswith(b'"'):
            return
        begin = cell.splitlines()[0][:40]
        raise TableError(
            f"{self.path} ends inside a quoted cell, which begins with {begin!r}: close the quote"
        )


def open_table(
    path: str | os.PathLike[str],
    *,
    delimiter: str | None = None,
    decimal: str = ".",
    encoding: str = "utf8",
) -> TableFile:
    """Open a file and read the names of its columns.

    Parameters
    ----------
    path : path-like
        A CSV file, which may be compressed (.csv.gz), a parquet file, or a workbook of Excel (.xlsx), of
        which the first sheet is read.
    delimiter : str or None, default=None
        The character between cells of a CSV file; None means a tab for .tsv files and a comma otherwise.
    decimal : {".", ","}, default="."
        The decimal separator of numbers in text. It is never guessed.
    encoding : str, default="utf8"
        Encoding of a CSV file.

    Returns
    -------
    file : TableFile

    Raises
    ------
    TableError
        If the file cannot be read, is empty, or has two columns with the same name.
    """
    path = Path(path)
    if decimal not in DECIMALS:
        raise TableError(f"decimal={decimal!r} must be a point or a comma")
    check_encoding(encoding)
    delimiter = delimiter_of(path, delimiter)
    try:
        with open(path, "rb") as file:
            head = file.read(4)
    except OSError as error:
        raise TableError(f"cannot read {path}: {error.strerror}") from error
    if not head:
        raise TableError(f"{path} is empty")
    if head[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE) and "16" not in encoding:
        raise TableError(f"{path} is not text in the encoding {encoding!r}: try --encoding utf-16")
    parquet, excel = head == PARQUET, head == ZIP
    if excel:
        return _open_sheet(TableFile(path, (), excel=True))
    marked = head.startswith(codecs.BOM_UTF8)
    file_ = TableFile(path, (), delimiter, decimal, encoding, parquet, marked=marked)
    with readable(file_), open_parquet(file_) if parquet else open_csv(file_, {}) as opened:
        names = (opened.schema_arrow if parquet else opened.schema).names
    return _named(replace(file_, header=tuple(names)))


def _open_sheet(file: TableFile) -> TableFile:
    if not is_workbook(file.path):
        raise TableError(f"{file.path} is an archive, not a table: unpack it, or save it as CSV")
    header = next(sheet_rows(file.path), None)
    if header is None:
        raise TableError(f"{file.path} is empty: its first sheet has no cells")
    return _named(replace(file, header=tuple(header)))


def _named(file_: TableFile) -> TableFile:
    """The file, if all of its columns have different names."""
    twice = [name for name, count in Counter(file_.columns).items() if count > 1]
    if twice:
        raise TableError(
            f"{file_.path} has more than one column named {twice[0]!r}: rename all but one"
        )
    return file_


def delimiter_of(path: Path, delimiter: str | None = None) -> str:
    r"""The character between the cells of a CSV file.

    Parameters
    ----------
    path : Path
        The file.
    delimiter : str or None, default=None
        A character, or a word for one; None means a tab for .tsv files and a comma otherwise.

    Returns
    -------
    delimiter : str
        One character.

    Examples
    --------
    >>> from pathlib import Path
    >>> from deferlearn.tables.files import delimiter_of
    >>> [delimiter_of(Path(name)) for name in ("a.csv", "a.tsv")], delimiter_of(Path("a"), "tab")
    ([',', '\t'], '\t')
    """
    if delimiter is None:
        delimiter = "\t" if ".tsv" in path.suffixes else ","
    delimiter = DELIMITERS.get(delimiter, delimiter)
    if len(delimiter) != 1 or not delimiter.isascii() or delimiter in "\"'\r\n":
        raise TableError(f"delimiter={delimiter!r} must be one character, or the word tab")
    return delimiter


def check_encoding(encoding: str) -> None:
    """Refuse an encoding that does not exist.

    Parameters
    ----------
    encoding : str
        Name of an encoding, such as utf8 or latin-1.
    """
    try:
        "".encode(encoding)
    except (LookupError, ValueError):  # a name that contains a zero byte
        raise TableError(f"encoding={encoding!r} is not known; try utf8 or latin-1") from None


def read_table(path: str | os.PathLike[str], **options: Any) -> Any:
    """Read a whole table from a CSV or parquet file.

    Parameters
    ----------
    path : path-like
        The file.
    **options
        Options of `open_table`.

    Returns
    -------
    table : pyarrow.Table
        Cells of a CSV file are text.
    """
    return open_table(path, **options).read()


def sha256_of(path: str | os.PathLike[str]) -> str:
    """The checksum of a file.

    Parameters
    ----------
    path : path-like
        The file.

    Returns
    -------
    digest : str
        64 hexadecimal digits.
    """
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
