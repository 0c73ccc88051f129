"""A selection as a few arrays: a file has an entry for each object, a sweep thousands of rounds."""

from dataclasses import fields
from typing import Any

import numpy as np

from deferlearn.selection import Iteration, SelectionResult


def pack(result: SelectionResult) -> dict[str, Any]:
    """A dict of plain values, arrays and dicts of the same kind."""
    packed = {field.name: getattr(result, field.name) for field in fields(SelectionResult)}
    packed["iterations"] = {
        name: np.array([getattr(i, name) for i in result.iterations]) for name in Iteration._fields
    }
    packed["members"] = [pack(member) for member in result.members]
    return packed


def unpack(packed: dict[str, Any]) -> SelectionResult:
    """The result that was packed."""
    columns = packed["iterations"]
    rows = zip(*(column.tolist() for column in columns.values()), strict=True)
    iterations = [Iteration(**dict(zip(columns, row, strict=True))) for row in rows]
    made = {"iterations": iterations, "members": [unpack(member) for member in packed["members"]]}
    return SelectionResult(**packed | made)
