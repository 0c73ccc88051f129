"""Errors about tables and files; each message is one line that says what to correct."""


class TableError(ValueError):
    """A table, a file or a setting cannot be used; the message says why and what to do.

    Examples
    --------
    >>> from deferlearn.tables import TableError
    >>> raise TableError("cases.csv has no column 'diagnosis'")
    Traceback (most recent call last):
    deferlearn.tables.errors.TableError: cases.csv has no column 'diagnosis'
    """


class CellError(TableError):
    """A cell cannot be read as a value of its column.

    Parameters
    ----------
    column : str
        Name of the column.
    row : int
        Position of the row, from 0.
    value : str
        What the cell holds.
    problem : str
        What is wrong with the cell, and what to do; it continues "which ...".

    Examples
    --------
    >>> from deferlearn.tables.errors import CellError
    >>> print(CellError("age", 3, "4,5", "is not a number").moved(100))
    column 'age' holds '4,5' in row 104 (not counting the header), which is not a number
    """

    def __init__(self, column: str, row: int, value: str, problem: str) -> None:
        super().__init__(
            f"column {column!r} holds {value!r} in row {row + 1} (not counting the header), "
            f"which {problem}"
        )
        self.column, self.row, self.value, self.problem = column, row, value, problem

    def moved(self, rows: int) -> "CellError":
        """The same error in a larger table, in which this part begins after so many rows."""
        return CellError(self.column, self.row + rows, self.value, self.problem)
