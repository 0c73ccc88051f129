"""Cells of a table: which are missing, which are numbers, and which a spreadsheet would run."""

import math
import re
from typing import Any

import numpy as np

from deferlearn._utils.types import Array, Bools
from deferlearn.tables.errors import CellError

# In lower case. "none" is not among them, because a class or a category may have this name.
MISSING = ("", "na", "n/a", "#n/a", "nan", "null", "<na>", "nat")

NUMBER = r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?"
# With a decimal comma. A point in such a cell could mean thousands or decimals.
COMMA_NUMBER = r"[+-]?(\d+,?\d*|,\d+)([eE][+-]?\d+)?"

# The beginnings that spreadsheets take for a formula, also in full width and after blanks. Control
# characters are included because some programs drop them and look at what follows.
FORMULA = "^([ \t\r\n\v\f\u00a0\ufeff]*[=+@＝＋－＠-]|[\t\r\n\0])"
# Numbers, with a point or a comma, are harmless in every spreadsheet.
PLAIN = rf"^({NUMBER}|{COMMA_NUMBER})$"


# What is read cell by cell: numbers as most programs write them, and whole numbers up to this size.
PLAIN_NUMBER = re.compile(r"-?[0-9]{1,300}(\.[0-9]{1,300})?([eE][+-]?[0-9]{1,3})?")
WHOLE_WITH_POINT = re.compile(r"([+-]?[0-9]+)\.0+")
LARGEST_WHOLE = 2**31


class NotPlain(Exception):
    """A cell of an unusual kind, which only pyarrow reads."""


def raw_text(column: Any) -> Any:
    """Cells of an Arrow column as they would be written in a CSV file; null stays null."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if pa.types.is_string(column.type):
        return column
    try:
        return pc.cast(column, pa.string())
    except (
        pa.ArrowInvalid,
        pa.ArrowNotImplementedError,
    ):  # bytes that are not text, lists, records
        return pa.array([None if v is None else str(v) for v in column.to_pylist()], pa.string())


def clean_text(column: Any) -> Any:
    """Cells without the blanks around them; null where a value is missing."""
    import pyarrow as pa
    import pyarrow.compute as pc

    text = pc.utf8_trim_whitespace(raw_text(column))
    # Most cells are longer than any word for "missing": only short ones are looked up.
    short = pc.less_equal(pc.binary_length(text), max(map(len, MISSING)))
    if pc.any(short).as_py():
        missing = pc.is_in(pc.utf8_lower(text), pa.array(MISSING))
        text = pc.if_else(missing, pa.scalar(None, pa.string()), text)
    return text


def label_text(column: Any) -> Any:
    """Like `clean_text`, with one spelling per value: 1.0 becomes 1, True and TRUE become true.

    Programs write whole numbers as decimals if a column has gaps, and spell booleans in different ways.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    text = pc.replace_substring_regex(clean_text(column), r"^([+-]?\d+)\.0+$", r"\1")
    lower = pc.utf8_lower(text)
    return pc.if_else(pc.is_in(lower, pa.array(["true", "false"])), lower, text)


def is_number(text: Any) -> Any:
    """Which cells of clean text are finite numbers; null stays null."""
    import pyarrow as pa
    import pyarrow.compute as pc

    shaped = pc.match_substring_regex(text, f"^{NUMBER}$")
    values = pc.cast(pc.if_else(shaped, text, pa.scalar(None, pa.string())), pa.float64())
    return pc.and_(shaped, pc.fill_null(pc.is_finite(values), False))  # 1e999 has the shape only


def numbers(column: Any, name: str) -> Array:
    """Numbers of a column, NaN where a cell is missing.

    Raises
    ------
    CellError
        If a cell holds anything else.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = column.type
    if pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_decimal(kind):
        values = _as_floats(pc.cast(column, pa.float64(), safe=False))
        _refuse(np.isinf(values), values, name)
        return values
    text = clean_text(column)
    try:
        values = _as_floats(pc.cast(text, pa.float64()))
        words = np.asarray(pc.is_null(text)) != np.isnan(values)  # Arrow reads "-nan" as a number
        wrong = words | np.isinf(values)
    except pa.ArrowInvalid:
        wrong = ~np.asarray(pc.fill_null(is_number(text), True))
    _refuse(wrong, text, name)
    return values


def _as_floats(column: Any) -> Array:
    import pyarrow as pa

    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    return np.array(column.to_numpy(zero_copy_only=False), dtype=np.float64)


def _refuse(wrong: Bools, cells: Any, name: str) -> None:
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        raise CellError(
            name,
            row,
            str(cells[row]),
            "is not a finite number: correct it, or leave the cell empty",
        )


def number_of(cell: Any) -> float:
    """The number in a cell, as `numbers` reads it; NaN if it is missing.

    Raises
    ------
    NotPlain
        If the cell is neither missing nor a number of the usual kind. It may still be valid.

    Examples
    --------
    >>> from deferlearn.tables.cells import number_of
    >>> [number_of(cell) for cell in (3, 2.5, "7", " -1e3 ", "n/a", None)]
    [3.0, 2.5, 7.0, -1000.0, nan, nan]
    """
    cell = cell.item() if isinstance(cell, np.generic) else cell
    if cell is None:
        return math.nan
    if isinstance(cell, float):
        if not math.isinf(cell):
            return cell
    elif isinstance(cell, str):
        text = cell.strip(" ")
        if PLAIN_NUMBER.fullmatch(text) and math.isfinite(float(text)):
            return float(text)
        if text.lower() in MISSING:
            return math.nan
    elif type(cell) is int and abs(cell) < LARGEST_WHOLE:
        return float(cell)
    raise NotPlain


def label_of(cell: Any) -> str | None:
    """The label in a cell, as `label_text` reads it; None if it is missing.

    Raises
    ------
    NotPlain
        If the cell is of an unusual kind.

    Examples
    --------
    >>> from deferlearn.tables.cells import label_of
    >>> [label_of(cell) for cell in (" Oslo", True, "TRUE", 3.0, "3.0", 3, "NA")]
    ['Oslo', 'true', 'true', '3', '3', '3', None]
    """
    if isinstance(cell, np.floating) and cell.dtype != np.float64:
        raise NotPlain  # Arrow spells numbers of single precision in as few digits as tell them apart
    cell = cell.item() if isinstance(cell, np.generic) else cell
    if cell is None:
        return None
    if isinstance(cell, str) and cell.isprintable():
        text = cell.strip(" ")
        lower = text.lower()
        if lower in MISSING:
            return None
        whole = WHOLE_WITH_POINT.fullmatch(text)
        return whole[1] if whole else lower if lower in ("true", "false") else text
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, float) and math.isnan(cell):
        return None
    # Other decimals, and -0.0, have several spellings.
    if isinstance(cell, int) or (isinstance(cell, float) and cell.is_integer()):
        negative_zero = cell == 0 and math.copysign(1.0, cell) < 0
        if abs(cell) < LARGEST_WHOLE and not negative_zero:
            return str(int(cell))
    raise NotPlain


def with_points(table: Any, names: list[str], decimal: str = ",") -> Any:
    """Write the numbers of some columns with a decimal point and without marks of thousands.

    It is decided for each column what its commas and points are. In a file with decimal commas, the
    numbers of a column may have decimal commas (0,5), with points for thousands if some number shows that
    they are (1.728,03), or decimal points throughout (0.5). In a file with decimal points it is the other
    way round, but there decimal commas are not accepted.

    Parameters
    ----------
    table : pyarrow.Table
        The table.
    names : list of str
        Columns that may hold numbers.
    decimal : {",", "."}, default=","
        The decimal separator of the file.

    Returns
    -------
    table : pyarrow.Table

    Raises
    ------
    CellError
        If a number can mean two things, such as 1.234 in a file with decimal commas.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    for name in names:
        place = table.schema.get_field_index(name)
        if place < 0 or not pa.types.is_string(table.schema.field(place).type):
            continue
        column = table.column(place)
        if not pc.any(pc.match_substring(column, ",")).as_py() and (
            decimal == "." or not pc.any(pc.match_substring(column, ".")).as_py()
        ):
            continue
        text = clean_text(column)
        table = table.set_column(place, name, _plain_numbers(name, text, decimal))
    return table


def _plain_numbers(name: str, text: Any, decimal: str) -> Any:
    """The cells of a column, with numbers written in the usual way."""
    import pyarrow.compute as pc

    other = "." if decimal == "," else ","
    mark = rf"\{other}"
    own = COMMA_NUMBER if decimal == "," else NUMBER
    grouped = pc.match_substring_regex(text, rf"^[+-]?\d{{1,3}}({mark}\d{{3}})+(\{decimal}\d*)?$")
    # Both marks, or several groups: here the other mark can only stand for thousands.
    proof = pc.and_(
        grouped,
        pc.match_substring_regex(text, rf"{mark}\d{{3}}({mark}|\{decimal})"),
    )
    plain = pc.match_substring_regex(text, f"^{own}$")
    if pc.any(proof).as_py():
        text = pc.if_else(grouped, pc.replace_substring(text, other, ""), text)
        plain = pc.or_(plain, grouped)
    if decimal == ".":
        return text
    points = pc.and_(pc.match_substring(text, "."), pc.match_substring_regex(text, f"^{NUMBER}$"))
    if pc.any(points).as_py():
        commas = pc.any(pc.and_(plain, pc.match_substring(text, ","))).as_py()
        clear = pc.any(pc.and_(points, pc.invert(grouped))).as_py()
        if commas or not clear:
            wrong = points if not commas else pc.and_(points, pc.invert(pc.and_(grouped, proof)))
            row = pc.index(wrong, True).as_py()
            raise CellError(
                name,
                row,
                text[row].as_py(),
                "has a point although decimals have commas, and can mean two things: write all numbers "
                "of the column in one way, without marks of thousands",
            )
    return pc.if_else(plain, pc.replace_substring(text, ",", "."), text)


def safe_text(column: Any) -> Any:
    """The text of an Arrow column, with an apostrophe before each cell that a spreadsheet would run.

    Numbers stay as they are, also negative ones; null stays null.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from deferlearn.tables.cells import safe_text
    >>> safe_text(pa.array(["=1+1", "-5", "-5 mg", "@home", "plain"])).to_pylist()
    ["'=1+1", '-5', "'-5 mg", "'@home", 'plain']
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    text = raw_text(column)
    formula = pc.match_substring_regex(text, FORMULA)
    if not pc.any(formula).as_py():
        return text
    formula = pc.and_(formula, pc.invert(pc.match_substring_regex(text, PLAIN)))
    quoted = pc.binary_join_element_wise(pa.scalar("'"), text, pa.scalar(""))
    return pc.if_else(formula, quoted, text)
