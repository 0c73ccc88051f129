"""Decide what a column is: a number, a category, a boolean, or not a feature.

The rules apply in this order. Each column that is left out is listed with the reason.

1. Empty columns, and bytes, lists or records: left out.
2. Dates and times: left out. Compute a number from them first, such as an age or the days since an event.
3. Only ``true`` and ``false``, in upper or lower case: a boolean.
4. Only numbers: a number. The column is left out if it is constant, if it counts the rows, or if it is
   named like an identifier (``id``, ``case_id``, ``PatientID``) and holds whole numbers that hardly repeat.
   Whole numbers in a column named like a code (``postcode``, ``zip``, ``PLZ``, ``phone``) are no
   quantities: the column is a category, or left out if there are too many of them.
5. Numbers with decimal commas: left out, with a hint. Commas are never guessed: 1,234 can mean two things.
6. Mostly numbers: left out, with the first word among them.
7. Other text: a category. The column is left out if it is constant, or has more than 50 different values or
   more than half as many as there are rows, which suggests free text or an identifier.

A constant column with gaps is kept, because it can matter whether a value is missing.
"""

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from deferlearn._utils.words import counted
from deferlearn.tables.cells import COMMA_NUMBER, clean_text, is_number, label_text, numbers

NUMBER, BOOLEAN, CATEGORY = "number", "boolean", "category"
BOOLEANS = ("false", "true")

# With more values, each category would have too few rows to learn from.
MAX_CATEGORIES = 50
# A column is meant to hold numbers if at least this share of its cells are numbers.
MOSTLY = 0.8
# Matches id, case_id, patient id, PatientID and uuid, but not paid or acid.
IDENTIFIER = re.compile(r"(?i:id|uid|uuid|guid|.*[_ .\-](id|uid|uuid|guid))|.*[a-z](Id|ID)")
# Whole numbers that stand for places or devices, and cannot be averaged.
CODE = re.compile(
    r"(?i:.*[_ .\-])?(?i:post_?(al)? ?codes?|postleitzahl|plz|zip( ?codes?)?|phone|fax|iban)"
)
DATE = r"^(\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.](\d{4}|\d{2}))([ T].*)?$"
CLOCK = r"^\d{1,2}:\d{2}(:\d{2}(\.\d+)?)?$"


class Column(NamedTuple):
    """What a column is.

    Attributes
    ----------
    kind : {"number", "boolean", "category"} or None
        None if the column is left out.
    reason : str
        Why the column is left out.
    categories : tuple of str
        The categories of a category or boolean column, in alphabetical order.
    """

    kind: str | None
    reason: str = ""
    categories: tuple[str, ...] = ()


def describe(
    name: str, column: Any, as_kind: str | None = None, max_categories: int = MAX_CATEGORIES
) -> Column:
    """Decide what a column is.

    Parameters
    ----------
    name : str
        Name of the column.
    column : pyarrow.ChunkedArray
        Cells of the column.
    as_kind : {"number", "category"} or None, default=None
        What to take the column for, whatever the rules say; None follows the rules.
    max_categories : int, default=50
        Text columns with more different values are left out.

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
    'dates: compute a number from them first'
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if as_kind == NUMBER:
        numbers(column, name)  # raises an error for the first cell that is not a number
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
        return Column(None, "dates: compute a number from them first")
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
        return Column(
            None,
            "it seems to hold numbers with decimal commas: pass --decimal , (columns with decimal points "
            "stay as they are)",
        )
    if share >= MOSTLY:
        word = given[pc.index(numeric, False).as_py()].as_py()
        return Column(None, f"mostly numbers, but also {word!r}: leave such cells empty")
    if _too_many(distinct, len(text), max_categories):
        values = counted(distinct, "different value")
        rows = counted(len(text), "row")
        return Column(None, f"{values} in {rows}: an identifier, free text, or too many categories")
    return Column(CATEGORY, categories=_categories(column))


def _number(name: str, column: Any, distinct: int, n_rows: int, max_categories: int) -> Column:
    values = numbers(column, name)
    whole = bool(np.all(values == np.round(values)))  # False where a cell is missing
    with np.errstate(over="ignore"):  # the encoder refuses numbers of this size
        counts = whole and n_rows > 2 and bool(np.all(np.diff(values) == 1.0))
    if counts:
        return Column(None, "it counts the rows")
    if CODE.fullmatch(name) and bool(np.all((values == np.round(values)) | np.isnan(values))):
        if not _too_many(distinct, n_rows, max_categories):
            return Column(CATEGORY, categories=_categories(column))
        values_ = counted(distinct, "different value")
        return Column(
            None, f"a code by its name, with {values_}: not a quantity (--number overrides)"
        )
    named = IDENTIFIER.fullmatch(name) is not None
    if whole and named and _too_many(distinct, n_rows, max_categories):
        return Column(
            None, f"an identifier, by its name and its {counted(distinct, 'different value')}"
        )
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


def score_names(machine_score: str | Sequence[str] | None) -> list[str]:
    """The columns with a machine's scores, none or more, from one name, several or None.

    Parameters
    ----------
    machine_score : str, sequence of str or None
        As a model's card has it.

    Returns
    -------
    names : list of str

    Examples
    --------
    >>> from deferlearn.tables.columns import score_names
    >>> score_names(None), score_names("ai"), score_names(["ai_ill", "ai_well"])
    ([], ['ai'], ['ai_ill', 'ai_well'])
    """
    if machine_score is None:
        return []
    return [machine_score] if isinstance(machine_score, str) else list(machine_score)
