"""Open files by Arrow, and say in plain words why one cannot be read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from deferlearn._utils.words import counted
from deferlearn.tables.errors import TableError

if TYPE_CHECKING:
    from deferlearn.tables.files import TableFile

# Bytes of a CSV file that are parsed at a time. A row must fit into a block; memory holds a few blocks.
BLOCK = 2**20


@contextmanager
def readable(file: TableFile) -> Iterator[None]:
    """Raise a `TableError` with a hint if the file cannot be read."""
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, UnicodeError, OSError) as error:
        raise _unreadable(file, error) from error


def open_parquet(file: TableFile) -> Any:
    """The parquet file."""
    import pyarrow.parquet as pq

    return pq.ParquetFile(file.path)


def open_csv(file: TableFile, types: dict[str, Any]) -> Any:
    """A reader of a CSV file, block by block, with columns of these types."""
    from pyarrow import csv

    # With one thread errors know their row, and memory holds few blocks.
    return csv.open_csv(
        file.path,
        read_options=csv.ReadOptions(use_threads=False, block_size=BLOCK, encoding=file.encoding),
        parse_options=csv.ParseOptions(delimiter=file.delimiter, newlines_in_values=True),
        convert_options=csv.ConvertOptions(column_types=types, strings_can_be_null=False),
    )


def _unreadable(file: TableFile, error: BaseException) -> TableError:
    path, encoding = file.path, file.encoding
    if isinstance(error, OSError) and error.strerror:
        return TableError(f"cannot read {path}: {error.strerror}")
    text = " ".join(str(error).split())
    if "Empty CSV" in text:
        return TableError(f"{path} is empty, or has a header but no rows")
    if isinstance(error, UnicodeError) or "invalid UTF8" in text:
        return TableError(
            f"{path} is not text in the encoding {encoding!r}: try another, such as --encoding latin-1"
        )
    if "straddling" in text:
        return TableError(
            f"{path} has a row of more than {BLOCK // 2**20} MB: check that every quote is closed"
        )
    wrong = re.search(r"Row #(\d+): Expected (\d+) columns, got (\d+)", text)
    if wrong is None:
        return TableError(f"cannot read {path}: {text[:300]}")
    row, expected, got = map(int, wrong.groups())
    hint = f": does {file.delimiter!r} separate the cells (--delimiter)?" if expected == 1 else ""
    return TableError(
        f"row {row} of {path}, counting the header, has {counted(got, 'cell')}, but the header has "
        f"{counted(expected, 'column')}{hint}"
    )
