"""DataFrames and dicts of columns as Arrow tables."""

from collections.abc import Iterable
from typing import Any

from deferlearn._utils.words import listed
from deferlearn.tables.errors import TableError


def as_table(data: Any) -> Any:
    """Convert a DataFrame, a dict of columns, or an Arrow table or batch to an Arrow table.

    Parameters
    ----------
    data : pyarrow.Table, DataFrame, dict of columns, or an object with the Arrow interface
        The columns.

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
    try:
        if type(data).__module__.split(".")[0] == "pandas":
            return pa.Table.from_pandas(data, preserve_index=False)
        return pa.table(data)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise TableError(
            f"a table must be a DataFrame, a dict of columns or a pyarrow.Table, with one type per "
            f"column; got {type(data).__name__}: {error}"
        ) from error


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
