"""Errors of machine, human and team by class and by the values of each column."""

import itertools
from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deferlearn._utils.types import Array
from deferlearn.tables.cases import Cases
from deferlearn.tables.cells import clean_text, numbers
from deferlearn.tables.decisions import WHO, Decisions

# How many columns are shown, and how many values of a column.
MAX_COLUMNS = 12
MAX_VALUES = 6
QUARTERS = (0.0, 0.25, 0.5, 0.75, 1.0)
MISSING, OTHERS = "(missing)", "(others)"


def errors_by_column(
    decisions: Decisions, cases: Cases, columns: dict[str, str]
) -> list[dict[str, Any]]:
    """Errors by class and by the values of the model's columns; columns of numbers by quarters.

    Parameters
    ----------
    decisions : Decisions
        The answers of machine and human, and who decides.
    cases : Cases
        The cases.
    columns : dict
        The model's columns and their kinds; the first twelve are used.

    Returns
    -------
    rows : list of dict
        With the keys column, value, cases, deferred, and machine, human and team for their errors.
    """
    # Grades keep their order.
    order = list(cases.classes) if len(cases.classes) > 2 else None
    rows = _rows("truth", decisions.truth.astype(object), decisions, order)
    for name, kind in list(columns.items())[:MAX_COLUMNS]:
        column = cases.features.column(name)
        parts = quarters(numbers(column, name)) if kind == "number" else common(clean_text(column))
        rows += _rows(name, parts, decisions)
    return rows


def quarters(values: Array) -> NDArray[Any]:
    """The quarter that each number lies in, as text.

    Parameters
    ----------
    values : ndarray of float
        NaN stands for a missing value.

    Returns
    -------
    words : ndarray of str

    Examples
    --------
    >>> import numpy as np
    >>> from deferlearn.report.errors_by_column import quarters
    >>> quarters(np.array([1.0, 2.0, 3.0, 4.0, np.nan])).tolist()
    ['1 to 1.75', '1.75 to 2.5', '2.5 to 3.25', '3.25 to 4', '(missing)']
    """
    known = np.isfinite(values)
    words = np.full(len(values), MISSING, dtype=object)
    if not known.any():
        return words
    ends = np.unique(np.quantile(values[known], QUARTERS))
    if len(ends) == 1:
        words[known] = f"{ends[0]:.4g}"
        return words
    place = np.clip(np.searchsorted(ends, values[known], side="right") - 1, 0, len(ends) - 2)
    names = [f"{low:.4g} to {high:.4g}" for low, high in itertools.pairwise(ends)]
    words[known] = np.array(names, dtype=object)[place]
    return words


def common(column: Any) -> NDArray[Any]:
    """The most common texts as they are; the rest as "(others)"."""
    texts = [MISSING if text is None else str(text) for text in column.to_pylist()]
    kept = {text for text, _ in Counter(texts).most_common(MAX_VALUES)} | {MISSING}
    return np.array([text if text in kept else OTHERS for text in texts], dtype=object)


def _rows(
    column: str, parts: NDArray[Any], decisions: Decisions, order: list[str] | None = None
) -> list[dict[str, Any]]:
    rows = []
    for value in order or _in_order(parts):
        own = decisions.read & (parts == value)
        n = int(own.sum())
        if n:
            row = {"column": column, "value": value, "cases": n}
            row["deferred"] = float(decisions.deferred[own].mean())
            row |= {who: float(decisions.wrong(who)[own].mean()) for who in WHO}
            rows.append(row)
    return rows


def _in_order(parts: NDArray[Any]) -> list[str]:
    """Numbers first, in their order, then texts by the alphabet; missing and other values come last."""

    def key(text: str) -> tuple[bool, bool, float, str]:
        try:
            return text in (MISSING, OTHERS), False, float(text.split(" to ")[0]), text
        except ValueError:
            return text in (MISSING, OTHERS), True, 0.0, text

    return sorted(set(parts.tolist()), key=key)
