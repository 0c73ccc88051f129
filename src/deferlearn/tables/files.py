"""Tables in files: CSV and parquet, read whole or in chunks, every cell as it stands there."""

from __future__ import annotations

import codecs
import hashlib
import os
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from deferlearn.tables.errors import TableError

# Bytes of a CSV file that are parsed at a time: a row must fit into it, and memory holds a few of them.
BLOCK = 2**20
# Rows at a time where the caller does not say.
CHUNK_ROWS = 20_000
PARQUET, ZIP = b"PAR1", b"PK\x03\x04"
DELIMITERS = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";"}
DECIMALS = (".", ",")


@dataclass(frozen=True)
class TableFile:
    r"""A CSV or parquet file, opened far enough to know its columns.

    Cells of a CSV file are text, exactly as they stand there; what they mean is decided later, and the
    same way for every part of a file. A parquet file keeps its types.

    Parameters
    ----------
    path : Path
        The file.
    header : tuple of str
        Names of the columns as they stand there.
    delimiter : str
        What separates cells in a CSV file.
    decimal : {".", ","}
        What separates decimals in a CSV file.
    encoding : str
        Of a CSV file.
    parquet : bool
        Whether it is one.

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

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns, without blanks around them."""
        return self.header if self.parquet else tuple(name.strip() for name in self.header)

    def chunks(self, rows: int = CHUNK_ROWS) -> Iterator[Any]:
        """Arrow tables of so many rows each, the last one of what is left; memory holds one at a time.

        Parameters
        ----------
        rows : int, default=20000
            Number of rows.

        Yields
        ------
        table : pyarrow.Table
        """
        import pyarrow as pa

        waiting: list[Any] = []
        count = 0
        for batch in self._batches(rows):
            while batch.num_rows:
                part = batch.slice(0, rows - count)
                batch = batch.slice(part.num_rows)
                waiting.append(part)
                count += part.num_rows
                if count == rows:
                    yield pa.Table.from_batches(waiting).combine_chunks()
                    waiting, count = [], 0
        if waiting:
            yield pa.Table.from_batches(waiting).combine_chunks()

    def read(self) -> Any:
        """The whole table.

        Returns
        -------
        table : pyarrow.Table
        """
        import pyarrow as pa

        batches = list(self._batches(CHUNK_ROWS))
        if not batches:
            raise TableError(f"{self.path} has columns, but no rows")
        return pa.Table.from_batches(batches).combine_chunks()

    def sha256(self) -> str:
        """The file's checksum."""
        return sha256_of(self.path)

    def require(self, names: list[str], why: str) -> None:
        """Refuse a file without these columns.

        Parameters
        ----------
        names : list of str
            Names of columns.
        why : str
            What they are needed for; a part of the message.
        """
        missing = [name for name in names if name not in self.columns]
        if not missing:
            return
        also = f" (nor {', '.join(map(repr, missing[1:6]))})" if len(missing) > 1 else ""
        raise TableError(
            f"{self.path} has no column {missing[0]!r}{also}, {why}; it has "
            f"{_listed(self.columns)}{self._separator_hint()}"
        )

    def _separator_hint(self) -> str:
        if self.parquet or len(self.columns) > 1:
            return ""
        other = next((c for c in ";\t|," if c != self.delimiter and c in self.columns[0]), None)
        if other is None:
            return ""
        shown = "tab" if other == "\t" else other
        return f". Cells seem to be separated by something else: --delimiter '{shown}'"

    def _batches(self, rows: int) -> Iterator[Any]:
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            if self.parquet:
                with pq.ParquetFile(self.path) as file:
                    for batch in file.iter_batches(batch_size=rows):
                        yield batch
                return
            last = None
            with _open_csv(self, {name: pa.string() for name in self.header}) as reader:
                for batch in reader:
                    last = batch if batch.num_rows else last
                    yield batch.rename_columns(list(self.columns))
        except (pa.ArrowException, UnicodeError, OSError) as error:
            raise _unreadable(self, error) from error
        if last is not None:
            self._refuse_open_quote(str(last.column(last.num_columns - 1)[-1]))

    def _refuse_open_quote(self, cell: str) -> None:
        """A quote that is never closed takes the rest of the file into one cell, without any error.

        A last cell of several lines is quoted, so that a file which is whole ends with a quote.
        """
        if "\n" not in cell:
            return
        with open(self.path, "rb") as file:
            file.seek(-min(os.path.getsize(self.path), 64), os.SEEK_END)
            tail = file.read().rstrip(b"\r\n\0")
        if self.path.suffix in (".gz", ".bz2", ".zst", ".lz4") or tail.endswith(b'"'):
            return
        begin = cell.splitlines()[0][:40]
        raise TableError(f"{self.path} ends inside a quoted cell, which begins with {begin!r}")


def open_table(
    path: str | os.PathLike[str],
    *,
    delimiter: str | None = None,
    decimal: str = ".",
    encoding: str = "utf8",
) -> TableFile:
    """Find out what a file is and which columns it has, without reading all of it.

    Parameters
    ----------
    path : path-like
        A CSV file, also a compressed one (.csv.gz), or a parquet file.
    delimiter : str or None, default=None
        What separates cells; None is a tab for files named .tsv, and else a comma.
    decimal : {".", ","}, default="."
        What separates decimals. It is never guessed.
    encoding : str, default="utf8"
        Of a CSV file.

    Returns
    -------
    file : TableFile

    Raises
    ------
    TableError
        If the file cannot be read, is empty, or has two columns of one name.
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
    if head == ZIP:
        raise TableError(f"{path} is no CSV file, but a workbook or an archive: save it as CSV")
    file_ = TableFile(path, (), delimiter, decimal, encoding, head == PARQUET)
    file_ = replace(file_, header=tuple(_names(file_)))
    twice = [name for name, count in Counter(file_.columns).items() if count > 1]
    if twice:
        raise TableError(f"{path} has more than one column named {twice[0]!r}: rename all but one")
    return file_


def delimiter_of(path: Path, delimiter: str | None = None) -> str:
    r"""What separates the cells of a CSV file.

    Parameters
    ----------
    path : Path
        The file; those named .tsv have tabs unless told otherwise.
    delimiter : str or None, default=None
        A character, or a word for one.

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
    """Refuse what is no encoding of text.

    Parameters
    ----------
    encoding : str
        Such as utf8 or latin-1.
    """
    try:
        "".encode(encoding)
    except (LookupError, ValueError):  # a name with a zero in it is no name
        raise TableError(f"encoding={encoding!r} is not known; try utf8 or latin-1") from None


def read_table(path: str | os.PathLike[str], **options: Any) -> Any:
    """A whole table from a CSV or parquet file.

    Parameters
    ----------
    path : path-like
        The file.
    **options
        As in `open_table`.

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


def _names(file: TableFile) -> list[str]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        if file.parquet:
            with pq.ParquetFile(file.path) as opened:
                return list(opened.schema_arrow.names)
        with _open_csv(file, {}) as reader:
            return list(reader.schema.names)
    except (pa.ArrowException, UnicodeError, OSError) as error:
        raise _unreadable(file, error) from error


def _open_csv(file: TableFile, types: dict[str, Any]) -> Any:
    from pyarrow import csv

    # One thread: then errors know their row, and memory holds few blocks.
    return csv.open_csv(
        file.path,
        read_options=csv.ReadOptions(
            use_threads=False,
            block_size=BLOCK,
            encoding=file.encoding,
        ),
        parse_options=csv.ParseOptions(delimiter=file.delimiter, newlines_in_values=True),
        convert_options=csv.ConvertOptions(column_types=types, strings_can_be_null=False),
    )


def _unreadable(file: TableFile, error: BaseException) -> TableError:
    path, encoding = file.path, file.encoding
    if isinstance(error, OSError) and error.strerror:
        return TableError(f"cannot read {path}: {error.strerror}")
    text = " ".join(str(error).split())
    if "Empty CSV" in text:
        return TableError(f"{path} is empty, or has names of columns and nothing else")
    if isinstance(error, UnicodeError) or "invalid UTF8" in text:
        return TableError(
            f"{path} is not text in the encoding {encoding!r}: say which, such as --encoding latin-1"
        )
    if "straddling" in text:
        return TableError(
            f"{path} has a row of more than {BLOCK // 2**20} MB: is a quote never closed?"
        )
    wrong = re.search(r"Row #(\d+): Expected (\d+) columns, got (\d+)", text)
    if wrong is None:
        return TableError(f"cannot read {path}: {text[:300]}")
    row, expected, got = wrong.groups()
    hint = "" if expected != "1" else f". Is {file.delimiter!r} what separates them (--delimiter)?"
    return TableError(
        f"row {row} of {path}, counting the header, has {got} cells, but there are {expected} names of "
        f"columns{hint}"
    )


def _listed(names: tuple[str, ...], most: int = 12) -> str:
    shown = ", ".join(repr(name) for name in names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"
