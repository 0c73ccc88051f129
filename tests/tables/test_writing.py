"""Files written whole or not at all, and CSV that Python reads back."""

import csv
import io
import os
import stat

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deferlearn.tables import TableError
from deferlearn.tables.cells import safe_text
from deferlearn.tables.writing import CsvWriter, StagedFiles, csv_lines, table_writer

CELLS = st.one_of(st.none(), st.text(st.characters(exclude_categories=("Cs",)), max_size=6))


@settings(deadline=None, max_examples=60)
@given(
    rows=st.lists(st.tuples(CELLS, st.floats(allow_nan=False)), min_size=1, max_size=8),
    split=st.integers(0, 8),
)
def test_python_reads_back_what_was_written(rows, split):
    table = pa.table(
        {
            "=text": pa.array([cell for cell, _ in rows], pa.string()),
            "number": pa.array([number for _, number in rows], pa.float64()),
        }
    )
    file = io.BytesIO()
    writer = CsvWriter(file)
    for part in (table.slice(0, split), table.slice(split)):
        writer.write(part)
    writer.close()
    read = list(csv.reader(io.StringIO(file.getvalue().decode(), newline="")))
    assert read[0] == ["'=text", "number"]
    safe = safe_text(pa.array([cell or "" for cell, _ in rows])).to_pylist()
    assert [text for text, _ in read[1:]] == safe
    assert [float(number) for _, number in read[1:]] == [number for _, number in rows]


@settings(deadline=None, max_examples=60)
@given(
    rows=st.integers(1, 3).flatmap(
        lambda width: st.lists(
            st.lists(CELLS, min_size=width, max_size=width), min_size=1, max_size=6
        )
    ),
    delimiter=st.sampled_from(",;\t|^"),
)
def test_lines_are_read_back_by_python(rows, delimiter):
    """Python 3.11's own writer leaves a lone carriage return without quotes, which its reader loses."""
    columns = [pa.array(cells, pa.string()) for cells in zip(*rows, strict=True)]
    lines = io.StringIO(csv_lines(columns, delimiter).decode(), newline="")
    read = list(csv.reader(lines, delimiter=delimiter))
    assert read == [[cell or "" for cell in row] for row in rows]


def test_decimal_commas_where_they_are_asked_for():
    file = io.BytesIO()
    writer = CsvWriter(file, delimiter=";", decimal=",")
    writer.write(pa.table({"a": ["1.5"], "b": [1.5], "c": pa.array([None], pa.float64())}))
    writer.close()
    assert file.getvalue() == b"a;b;c\n1.5;1,5;\n"


def test_names_decide_the_format(tmp_path):
    table = pa.table({"a": [1, None], "b": ["=x", "y"]})
    for name in ("t.parquet", "t.tsv", "t.csv"):
        with StagedFiles() as files:
            writer = table_writer(tmp_path / name, files.open(tmp_path / name))
            writer.write(table.slice(0, 1))
            writer.write(table.slice(1))
            writer.close()
    assert pq.read_table(tmp_path / "t.parquet").to_pydict() == table.to_pydict()
    assert (tmp_path / "t.tsv").read_text() == "a\tb\n1\t'=x\n\ty\n"
    assert (tmp_path / "t.csv").read_text() == "a,b\n1,'=x\n,y\n"


def test_all_files_appear_at_once(tmp_path):
    old, new = tmp_path / "old", tmp_path / "new"
    old.write_bytes(b"before")
    with StagedFiles() as files:
        files.open(old).write(b"after")
        files.open(new).write(b"new")
        assert old.read_bytes() == b"before"
        assert not new.exists()
    assert (old.read_bytes(), new.read_bytes()) == (b"after", b"new")
    assert sorted(tmp_path.iterdir()) == [new, old]


@pytest.mark.parametrize("failure", [OSError("disk full"), KeyboardInterrupt()])
def test_nothing_changes_after_a_failure(tmp_path, failure):
    old = tmp_path / "old"
    old.write_bytes(b"before")

    def fail():
        with StagedFiles() as files:
            files.open(old).write(b"after")
            raise failure

    with pytest.raises(type(failure)):
        fail()
    assert old.read_bytes() == b"before"
    assert list(tmp_path.iterdir()) == [old]


def test_places_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    for path in (tmp_path, tmp_path / "no" / "file", tmp_path / "file" / "file"):
        with StagedFiles() as files, pytest.raises(TableError, match="cannot write"):
            files.open(path)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_device_or_a_pipe_is_not_replaced(tmp_path):
    """To rename a file over /dev/null would take it away from the whole machine."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(TableError, match="a device or a pipe"), StagedFiles() as files:
        files.open(pipe)
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert list(tmp_path.iterdir()) == [pipe]


def test_a_name_that_is_too_long(tmp_path):
    with pytest.raises(TableError, match="name too long"), StagedFiles() as files:
        files.open(tmp_path / ("x" * 300))
