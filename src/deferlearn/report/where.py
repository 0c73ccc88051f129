"""Who errs where: machine and human in each part of the cases, by the values of each column."""

import itertools
from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deferlearn._utils.types import Array, Index
from deferlearn.report.estimates import Family, Row, share
from deferlearn.tables.cases import Cases
from deferlearn.tables.cells import clean_text, numbers
from deferlearn.tables.decisions import WHO, Decisions

# How many columns are compared, and how many values of a column.
MAX_COLUMNS = 12
MAX_VALUES = 6
# Parts with fewer cases show nothing, and would make the intervals of all others longer.
MIN_CASES = 10
QUARTERS = (0.0, 0.25, 0.5, 0.75, 1.0)
MISSING, OTHERS = "(missing)", "(others)"
# How many parts are shown at once from either end; the others are one click away.
FROM_EACH_END = 6


def who_errs_where(
    judged: Decisions, group: Index, cases: Cases, columns: dict[str, str]
) -> list[Row]:
    """Errors by the values of the model's columns; columns of numbers by quarters.

    All comparisons are one family: their intervals hold together.

    Parameters
    ----------
    judged : Decisions
        The answers of machine and human, and who decides.
    group : ndarray of int
        The group of each case.
    cases : Cases
        The cases.
    columns : dict
        The model's columns and their kinds; the first twelve are used.

    Returns
    -------
    rows : list of dict
        For each part with ten cases or more, from the one where humans do best, compared with the machine,
        to the one where they do worst. With the keys column, value, cases, deferred, machine, human and
        team (the errors), change (the human's errors minus the machine's) and gap (the machine's errors
        minus those in all other cases; None if there are none).
    """
    found = []
    for name, kind in list(columns.items())[:MAX_COLUMNS]:
        column = cases.features.column(name)
        parts = quarters(numbers(column, name)) if kind == "number" else common(clean_text(column))
        places = [(value, parts[judged.read] == value) for value in values_in_order(parts)]
        found += [(name, value, part) for value, part in places if part.sum() >= MIN_CASES]
    own = group[judged.read]
    wrong = {who: judged.wrong(who)[judged.read] for who in WHO}
    machine, human = (wrong[who].astype(np.float64) for who in ("machine", "human"))
    family = Family(own)
    for _, _, part in found:
        family.within(human - machine, part)
        if not part.all():
            family.against_rest(machine, part)
    compared = iter(family.rows())
    rows = [
        {
            "column": name,
            "value": value,
            "cases": int(part.sum()),
            "deferred": share(judged.deferred[judged.read][part], own[part]),
            **{who: share(wrong[who][part], own[part]) for who in WHO},
            "change": next(compared),
            "gap": None if part.all() else next(compared),
        }
        for name, value, part in found
    ]
    return sorted(rows, key=lambda row: row["change"]["difference"])


def telling_rows(rows: list[Row]) -> list[Row]:
    """Where humans do best and where they do worst, compared with the machine."""
    middle = max(len(rows) - FROM_EACH_END, FROM_EACH_END)
    return rows[:FROM_EACH_END] + rows[middle:]


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
    >>> from deferlearn.report.where import quarters
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


def values_in_order(parts: NDArray[Any]) -> list[str]:
    """Numbers first, in their order, then texts by the alphabet; missing and other values come last."""

    def key(text: str) -> tuple[bool, bool, float, str]:
        try:
            return text in (MISSING, OTHERS), False, float(text.split(" to ")[0]), text
        except ValueError:
            return text in (MISSING, OTHERS), True, 0.0, text

    return sorted(set(parts.tolist()), key=key)
