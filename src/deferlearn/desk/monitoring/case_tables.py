"""Stored cases as a table: cells come as numbers and as text, and a column has one kind only."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from deferlearn._utils.types import Array
from deferlearn.tables import TableDecider
from deferlearn.tables.cells import label_of, number_of


def case_table(
    contents: Sequence[Mapping[str, Any]], numbers: Iterable[str], categories: Iterable[str]
) -> dict[str, list[Any]]:
    """The columns of some cases, each of one kind.

    Parameters
    ----------
    contents : sequence of mapping
        The fields of the cases, which a model has read before.
    numbers, categories : iterable of str
        The columns. A field that a case does not have is a gap.

    Returns
    -------
    table : dict of list

    Examples
    --------
    >>> from deferlearn.desk.monitoring.case_tables import case_table
    >>> case_table([{"age": "61", "site": 1.0}, {"age": 48}], ["age"], ["site"])
    {'age': [61.0, 48.0], 'site': ['1', None]}
    """
    table: dict[str, list[Any]] = {}
    for name in numbers:
        cells = (number_of(one.get(name)) for one in contents)
        table[name] = [None if np.isnan(cell) else cell for cell in cells]
    for name in categories:
        table[name] = [label_of(one.get(name)) for one in contents]
    return table


def codes_of(decider: TableDecider, contents: Sequence[Mapping[str, Any]]) -> Array:
    """The codes of some cases, as the guard of a model sees them."""
    encoding = decider.encoder
    numbers = [*encoding.numbers, *encoding.scores]
    codes, _ = encoding.codes(case_table(contents, numbers, encoding.categories))
    return codes
