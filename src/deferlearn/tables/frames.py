"""DataFrames and dicts of columns as Arrow tables."""

from collections.abc import Iterable, Mapping
from difflib import SequenceMatcher
from typing import Any

from deferlearn._utils.words import listed
from deferlearn.tables.errors import TableError

# Two names are similar if this share of their letters matches.
SIMILAR = 0.5


def as_table(data: Any) -> Any:
    """Convert a DataFrame, a dict of columns, cases, or an Arrow table or batch to an Arrow table.

    Parameters
    ----------
    data : pyarrow.Table, DataFrame, dict of columns, or an object with the Arrow interface
        The columns. Also one case, as a dict of its cells, or a list of such cases.

    Returns
    -------
    table : pyarrow.Table

    Examples
    --------
    >>> from deferlearn.tables import as_table
    >>> as_table({"age": [61, None], "site": ["A", "B"]}).column_names
    ['age', 'site']
    """
    import pyarrow as pa

    if isinstance(data, pa.Table):
        return data
    cases = _cases(data)
    if cases is not None:
        # A name that one case has, and others do not, is a mistake that must not become a gap.
        names = dict.fromkeys(name for case in cases for name in case)
        for name in names:
            if any(name not in case for case in cases):
                raise TableError(f"some of the cases have no {name!r}: give None for a gap")
        data = {name: [case[name] for case in cases] for name in names}
    try:
        if _is_frame(data):
            return pa.Table.from_pandas(data, preserve_index=False)
        return pa.table(data)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise TableError(
            f"a table must be a DataFrame, a dict of columns or a pyarrow.Table, with one type per "
            f"column; got {type(data).__name__}: {error}"
        ) from error


def cases_of(data: Any, most: int) -> list[Mapping[str, Any]] | None:
    """The rows of a small table as dicts of their cells; None if it is large, or not of this kind.

    Parameters
    ----------
    data : object
        What `as_table` takes.
    most : int
        Number of rows of a DataFrame up to which it is converted. Lists of cases have any number.

    Returns
    -------
    cases : list of dict or None

    Examples
    --------
    >>> from deferlearn.tables.frames import cases_of
    >>> cases_of({"age": 61, "site": "A"}, 1), cases_of({"age": [61, 62]}, 1)
    ([{'age': 61, 'site': 'A'}], None)
    """
    if (
        _is_frame(data)
        and hasattr(data, "columns")
        and len(data) <= most
        and data.columns.is_unique
    ):
        rows = data.to_numpy(dtype=object).tolist()
        return [dict(zip(data.columns, row, strict=True)) for row in rows]
    return _cases(data)


def _cases(data: Any) -> list[Mapping[str, Any]] | None:
    """Cases that were given as dicts of their cells."""
    if isinstance(data, list) and data and all(isinstance(case, Mapping) for case in data):
        return data
    if isinstance(data, Mapping) and data and all(map(_is_cell, data.values())):
        return [data]
    return None


def _is_cell(value: Any) -> bool:
    """Whether it is one cell, and not a column of them."""
    return isinstance(value, str | bytes) or not hasattr(value, "__len__")


def _is_frame(data: Any) -> bool:
    return type(data).__module__.split(".")[0] == "pandas"


def nearest_first(name: str, known: Iterable[str]) -> list[str]:
    """Names with those first that are similar to a name, so that a list of many shows the likely one.

    Parameters
    ----------
    name : str
        A name that was not found, perhaps because of a typing error.
    known : iterable of str
        The names that there are.

    Returns
    -------
    names : list of str
        Similar names, then the others in their order.

    Examples
    --------
    >>> from deferlearn.tables.frames import nearest_first
    >>> nearest_first("diagnose", ["id", "size", "Diagnosis"])
    ['Diagnosis', 'id', 'size']
    """

    def likeness(other: str) -> float:
        return SequenceMatcher(None, name.casefold(), other.casefold()).ratio()

    known = list(known)
    similar = sorted((other for other in known if likeness(other) > SIMILAR), key=likeness)
    return [*reversed(similar), *(other for other in known if other not in similar)]


def missing_columns(names: Iterable[str], known: Iterable[str]) -> str:
    """Name the columns that are missing, for a message; empty if all are there.

    Parameters
    ----------
    names : iterable of str
        Columns that are needed.
    known : iterable of str
        Columns that are there.

    Returns
    -------
    words : str

    Examples
    --------
    >>> from deferlearn.tables.frames import missing_columns
    >>> missing_columns(["age", "size", "site"], ["size"])
    "'age' (nor 'site')"
    """
    missing = [repr(name) for name in names if name not in set(known)]
    if len(missing) < 2:
        return "".join(missing)
    return f"{missing[0]} (nor {listed(missing[1:], most=5)})"
