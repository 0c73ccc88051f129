"""Reading CSV and parquet: against Python's own reader, in chunks of any size, and what cannot be read."""

import csv
import gzip
import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from case_tables import make_cases, write_csv
from deferlearn.tables import TableError, open_table, read_table
from deferlearn.tables.files import sha256_of

# Arrow ends a line at each of these; Python's csv module keeps them inside quotes as they are, and so does
# Arrow. Surrogates are no text.
CELLS = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), max_size=8)


@settings(deadline=None, max_examples=60)
@given(
    rows=st.lists(st.tuples(CELLS, CELLS, CELLS), min_size=1, max_size=12),
    size=st.integers(1, 13),
    delimiter=st.sampled_from(",;\t|"),
)
def test_every_cell_comes_back_as_it_was_written(tmp_path_factory, rows, size, delimiter):
    text = io.StringIO(newline="")
    writer = csv.writer(text, delimiter=delimiter, quoting=csv.QUOTE_ALL)
    writer.writerows([("a", "b", "c"), *rows])
    path = tmp_path_factory.mktemp("csv") / "t.csv"
    path.write_bytes(text.getvalue().encode())
    file = open_table(path, delimiter=delimiter)
    chunks = list(file.chunks(size))
    assert [chunk.num_rows for chunk in chunks[:-1]] == [size] * (len(chunks) - 1)
    read = [tuple(row.values()) for chunk in chunks for row in chunk.to_pylist()]
    assert read == rows
    assert file.read().to_pylist() == pa.concat_tables(chunks).to_pylist()


def test_rows_cross_the_blocks_that_are_parsed(tmp_path, monkeypatch):
    monkeypatch.setattr("deferlearn.tables.opening.BLOCK", 200)
    cases = make_cases(60)
    file = open_table(write_csv(tmp_path / "t.csv", cases))
    read = [row for chunk in file.chunks(7) for row in chunk.column("id").to_pylist()]
    assert read == cases["id"]


def test_parquet_keeps_its_types_and_comes_in_chunks(tmp_path):
    path = tmp_path / "t.anything"
    pq.write_table(pa.table({"n": range(10), "t": [True] * 10}), path, row_group_size=4)
    file = open_table(path)
    assert file.parquet
    chunks = list(file.chunks(3))
    assert [chunk.num_rows for chunk in chunks] == [3, 3, 3, 1]
    assert [n for chunk in chunks for n in chunk.column("n").to_pylist()] == list(range(10))


def test_compressed_and_tab_separated_files(tmp_path):
    path = tmp_path / "t.tsv.gz"
    path.write_bytes(gzip.compress(b"a\tb\n1\t2\n"))
    assert read_table(path).to_pydict() == {"a": ["1"], "b": ["2"]}


def test_names_lose_blanks_and_byte_order_marks(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(b"\xef\xbb\xbfa , b\n1,2\n")
    assert open_table(path).columns == ("a", "b")
    assert read_table(path).column_names == ["a", "b"]


def test_other_encodings_are_read_when_named(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes("a\né\n".encode("latin-1"))
    assert read_table(path, encoding="latin-1").to_pydict() == {"a": ["é"]}
    path.write_bytes("a\né\n".encode("utf-16"))
    assert read_table(path, encoding="utf-16").to_pydict() == {"a": ["é"]}


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "is empty"),
        (b"\n\n", "is empty"),
        (b"a,b\n", "no rows"),
        (b"a,b\n1,2,3\n", "row 2 of"),
        (b"a,b\n1,2\n3\n", "has 1 cell, but the header has 2 columns"),
        (b"a,b,a\n1,2,3\n", "more than one column named 'a'"),
        (b"a,b\n1,\xff\n", "--encoding latin-1"),
        ("a\n1\n".encode("utf-16"), "--encoding utf-16"),
        (b'a,b\n1,"x\n2,3\n', "ends inside a quoted cell, which begins with 'x'"),
        (b"PK\x03\x04workbook", "save it as CSV"),
        (b"PAR1 and nothing else", "cannot read"),
    ],
)
def test_files_that_cannot_be_read(tmp_path, content, says):
    path = tmp_path / "t.csv"
    path.write_bytes(content)
    with pytest.raises(TableError) as error:
        open_table(path).read()
    assert says in str(error.value)
    assert str(path) in str(error.value)


@pytest.mark.parametrize("content", [b'a,b\n1,"x\ny"\n', b'a,b\n1,"x\ny"', b'a,b\n1,"x\ny"\r\n'])
def test_a_last_cell_of_two_lines_is_no_open_quote(tmp_path, content):
    path = tmp_path / "t.csv"
    path.write_bytes(content)
    assert read_table(path).column("b").to_pylist() == ["x\ny"]


def test_no_file_and_a_folder(tmp_path):
    with pytest.raises(TableError, match="No such file"):
        open_table(tmp_path / "none.csv")
    with pytest.raises(TableError, match="cannot read"):
        open_table(tmp_path)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"delimiter": ";;"}, "one character"),
        ({"delimiter": '"'}, "one character"),
        ({"decimal": "'"}, "a point or a comma"),
        ({"encoding": "klingon"}, "not known"),
    ],
)
def test_options_that_make_no_sense(tmp_path, options, says):
    path = write_csv(tmp_path / "t.csv", {"a": [1]})
    with pytest.raises(TableError, match=says):
        open_table(path, **options)


def test_missing_columns_are_named_with_those_that_are_there(tmp_path):
    file = open_table(write_csv(tmp_path / "t.csv", {"a": [1], "b": [2]}))
    file.require(["a", "b"], "needed")
    with pytest.raises(TableError, match=r"no column 'c' \(nor 'd'\), needed; it has 'a', 'b'$"):
        file.require(["c", "a", "d"], "needed")


def test_another_delimiter_is_suspected_not_guessed(tmp_path):
    file = open_table(write_csv(tmp_path / "t.csv", {"a": [1], "b": [2]}, delimiter=";"))
    assert file.columns == ("a;b",)
    with pytest.raises(TableError, match="--delimiter ';'"):
        file.require(["a"], "needed")


def test_checksum_is_that_of_the_bytes(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(b"a\n1\n")
    # Of `printf 'a\n1\n' | sha256sum`.
    assert sha256_of(path).startswith("309b0e45a73d3fc5")


def test_a_row_that_is_too_long_is_told(tmp_path):
    path = tmp_path / "long.csv"
    path.write_text(f"a,b\n1,2\n3,{'x' * 3_000_000}\n4,5\n")
    with pytest.raises(TableError, match=r"long.csv has a row of more than 1 MB"):
        read_table(path)


def test_rows_of_another_length_are_told_with_a_hint_where_cells_are_separated_otherwise(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("a;b\n1,5;2\n")
    with pytest.raises(
        TableError,
        match=r"row 2 of .*a.csv, .* has 2 cells, but the header has 1 column: .*--delimiter",
    ):
        read_table(path)
    path.write_text("a,b\n1,2\n1,2,3\n")
    with pytest.raises(
        TableError, match=r"row 3 of .*a.csv, .* has 3 cells, but the header has 2 columns"
    ) as error:
        read_table(path)
    assert "--delimiter" not in str(error.value)
