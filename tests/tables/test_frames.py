"""Tables from DataFrames and dicts of columns."""

import pytest

from deferlearn.tables import TableError, as_table


def test_tables_from_what_holds_columns():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"a": [1, 2], "b": ["x", None]}, index=[5, 6])
    assert as_table(frame).to_pydict() == {"a": [1, 2], "b": ["x", None]}
    assert as_table({"a": [1]}).num_rows == 1
    for wrong in ({"a": [1, "x"]}, {"a": [1], "b": [1, 2]}, 3, [[1, 2]]):
        with pytest.raises(TableError, match="must be a DataFrame"):
            as_table(wrong)
