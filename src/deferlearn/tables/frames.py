"""Columns as they come, in DataFrames and dicts, made into Arrow tables."""

from __future__ import annotations

from typing import Any

from deferlearn.tables.errors import TableError


def as_table(data: Any) -> Any:
    """An Arrow table from what holds named columns: a DataFrame, a dict, an Arrow table or batch.

    Parameters
    ----------
    data : pyarrow.Table, DataFrame, dict of columns, or what offers the Arrow interface
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
            f"a table must be a DataFrame, a dict of columns or a pyarrow.Table whose columns hold one "
            f"type each, got {type(data).__name__}: {error}"
        ) from error
