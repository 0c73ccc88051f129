"""What a column is: a number, a category, yes or no; or nothing that a machine should learn from.

The rules, in this order. Each column that is left out is named with the reason.

1. Nothing in it, or bytes, lists and records: left out.
2. Dates and times: left out. What matters about them (an age, days since) is a number to be computed first.
3. ``true`` and ``false`` only, in any case of letters: yes or no.
4. Numbers only: a number; left out if constant, if they count the rows, or if they are whole numbers,
   hardly ever repeated, in a column named like an identifier (``id``, ``case_id``, ``PatientID``).
5. Numbers with decimal commas: left out, with a hint. They are never guessed: 1,234 can mean two things.
6. Mostly numbers: left out, with a word that stands in the way.
7. Other text: a category; left out if constant, or with more than 50 different values, or more than half as
   many as there are rows, which makes it free text or an identifier.

A constant column with gaps stays: whether a value is missing can tell something.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import numpy as np

from deferlearn.tables.cells import COMMA_NUMBER, clean_text, is_number, label_text, numbers

NUMBER, BOOLEAN, CATEGORY = "number", "boolean", "category"
BOOLEANS = ("false", "true")

# Beyond so many values a column hardly holds categories; each would get too few rows to learn from.
MAX_CATEGORIES = 50
# A column in which so large a share of the cells are numbers was meant to hold numbers.
MOSTLY = 0.8
# As names of columns: id, case_id, patient id, PatientID, uuid; not paid or acid.
IDENTIFIER = re.compile(r"(?i:id|uid|uuid|guid|.*[_ .\-](id|uid|uuid|guid))|.*[a-z](Id|ID)")
DATE = r"^(\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.](\d{4}|\d{2}))([ T].*)?$"
CLOCK = r"^\d{1,2}:\d{2}(:\d{2}(\.\d+)?)?$"


class Column(NamedTuple):
    """What was found out about a column.

    Attributes
    ----------
    kind : {"number", "boolean", "category"} or None
        None if the column is left out.
    reason : str
        Why it is left out.
    categories : tuple of str
        Of a category, in their order.
    """

    kind: str | None
    reason: str = ""
    categories: tuple[str, ...] = ()


def describe(
    name: str, column: Any, as_kind: str | None = None, max_categories: int = MAX_CATEGORIES
) -> Column:
    """Find out what a column is.

    Parameters
    ----------
    name : str
        Its name.
    column : pyarrow.ChunkedArray
        Its cells.
    as_kind : {"number", "category"} or None, default=None
        What the user says it is; None follows the rules.
    max_categories : int, default=50
        More values are no categories.

    Returns
    -------
    Column

    Examples
    --------
    >>> import pyarrow as pa
    >>> from deferlearn.tables.columns import describe
    >>> describe("site", pa.chunked_array([["Oslo", "Rome", "Oslo", "Rome", None]]))
    Column(kind='category', reason='', categories=('Oslo', 'Rome'))
    >>> describe("when", pa.chunked_array([["2024-05-01", "2024-05-02"]])).reason
    'dates: turn what matters about them into a number'
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if as_kind == NUMBER:
        numbers(column, name)  # says which cell is none
        return Column(NUMBER)
    text = clean_text(column)
    given = pc.drop_null(text)
    if len(given) == 0:
        return Column(None, "empty")
    if as_kind == CATEGORY:
        return Column(CATEGORY, categories=_categories(column))
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    bytes_ = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary)
    if pa.types.is_nested(kind) or any(is_kind(kind) for is_kind in bytes_):
        return Column(None, f"cells of the type {kind}")
    if (
        pa.types.is_temporal(kind)
        or _share(given, DATE) >= MOSTLY
        or _share(given, CLOCK) >= MOSTLY
    ):
        return Column(None, "dates: turn what matters about them into a number")
    distinct = pc.count_distinct(given).as_py()
    gaps = len(given) < len(text)
    if distinct == 1 and not gaps:
        return Column(None, f"constant, {given[0].as_py()!r}")
    if pc.all(pc.is_in(pc.utf8_lower(given), pa.array(BOOLEANS))).as_py():
        return Column(BOOLEAN, categories=BOOLEANS)
    numeric = is_number(given)
    share = pc.mean(pc.cast(numeric, pa.float64())).as_py()
    if share == 1.0:
        return _number(name, column, distinct, len(text), max_categories)
    if _share(given, f"^{COMMA_NUMBER}$") >= MOSTLY:
        return Column(None, "numbers with decimal commas? Then say --decimal ,")
    if share >= MOSTLY:
        word = given[pc.index(numeric, False).as_py()].as_py()
        return Column(None, f"numbers, but also {word!r}: leave such cells empty")
    if _too_many(distinct, len(text), max_categories):
        what = f"{distinct} different values in {len(text)} rows"
        return Column(None, f"{what}: an identifier, free text, or too many categories")
    return Column(CATEGORY, categories=_categories(column))


def _number(name: str, column: Any, distinct: int, n_rows: int, max_categories: int) -> Column:
    values = numbers(column, name)
    whole = bool(np.all(values == np.round(values)))  # False where a cell is missing
    with np.errstate(over="ignore"):  # the encoder refuses such numbers
        counts = whole and n_rows > 2 and bool(np.all(np.diff(values) == 1.0))
    if counts:
        return Column(None, "it counts the rows")
    named = IDENTIFIER.fullmatch(name) is not None
    if whole and named and _too_many(distinct, n_rows, max_categories):
        return Column(None, f"an identifier by its name and its {distinct} different values")
    return Column(NUMBER)


def _too_many(distinct: int, n_rows: int, max_categories: int) -> bool:
    return distinct > max_categories or distinct > n_rows / 2


def _categories(column: Any) -> tuple[str, ...]:
    import pyarrow.compute as pc

    return tuple(sorted(pc.unique(pc.drop_null(label_text(column))).to_pylist()))


def _share(text: Any, pattern: str) -> float:
    import pyarrow as pa
    import pyarrow.compute as pc

    return float(pc.mean(pc.cast(pc.match_substring_regex(text, pattern), pa.float64())).as_py())
