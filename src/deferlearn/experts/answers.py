"""Answers of several experts, as a matrix with names: from a wide or a long table, or an array."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deferlearn.experts.capacity import name_text
from deferlearn.humans import answers_from_table
from deferlearn.humans.answers import as_array, check_answers, find_missing
from deferlearn.humans.coding import Codes, codes_among

# The columns of a long table.
LONG = ("case", "expert", "answer")
NO_ANSWER = -1


@dataclass(frozen=True)
class ExpertAnswers:
    """What each expert said of each sample.

    Attributes
    ----------
    names : tuple of str
        The experts.
    labels : ndarray of shape (n_samples, n_experts)
        Answers in the labels of y; None, NaN or NA where there is none.
    """

    names: tuple[str, ...]
    labels: NDArray[Any]

    def codes(self, classes: NDArray[Any]) -> Codes:
        """The answers as places among the classes, `NO_ANSWER` (-1) where there is none."""
        missing = find_missing(self.labels)
        codes = np.full(self.labels.shape, NO_ANSWER, dtype=np.int64)
        for e, name in enumerate(self.names):
            # A class in the place of gaps, so that an error names the row of the whole column.
            filled = [
                classes[0] if gap else answer
                for answer, gap in zip(self.labels[:, e].tolist(), missing[:, e], strict=True)
            ]
            found = codes_among(as_array(filled), classes, f"answers of {name!r}")
            codes[~missing[:, e], e] = found[~missing[:, e]]
        return codes


def read_answers(answers: Any, n_samples: int, names: Sequence[str], cases: Any) -> ExpertAnswers:
    """Check a table or a matrix of answers, and name its columns.

    Parameters
    ----------
    answers : DataFrame, dict of columns or array-like
        A column per expert with a row per sample; or a long table with the columns case, expert and
        answer. An array has its columns in the order of the names.
    n_samples : int
        The number of samples.
    names : sequence of str
        Names of the experts, of whom all must be known.
    cases : array-like or None
        Names of the samples in the column "case" of a long table; None: 0, 1, ....

    Returns
    -------
    ExpertAnswers
        Its columns are in the order of ``names``, which those without any answer keep, too.
    """
    found = _columns_of(answers, n_samples, names, cases)
    stray = [name for name in found if name not in names]
    if stray:
        raise ValueError(
            f"answers has the expert {stray[0]!r}, for whom there is no capacity: give one, which is 0 for "
            f"an expert who takes no new cases. Capacities are for {list(names)}."
        )
    nothing: NDArray[Any] = np.full(n_samples, None, dtype=object)
    columns = [found.get(name, nothing) for name in names]
    for name, column in zip(names, columns, strict=True):
        if len(column) != n_samples:
            raise ValueError(
                f"answers of {name!r} has {len(column)} rows, but there are {n_samples} samples: give one "
                "row per sample, empty where the expert gave no answer, or a long table with the columns "
                f"{', '.join(LONG)}."
            )
    labels = columns[0][:, None] if len(columns) == 1 else _side_by_side(columns)
    return ExpertAnswers(tuple(names), labels)


def case_names(X: Any) -> Any:
    """The names of the cases in a long table of answers: the index of a DataFrame, else None."""
    index = getattr(X, "index", None)
    return index if hasattr(index, "equals") else None


def _columns_of(
    answers: Any, n_samples: int, names: Sequence[str], cases: Any
) -> dict[str, NDArray[Any]]:
    """The columns of answers by the names of the experts."""
    columns = getattr(answers, "columns", None)
    if isinstance(answers, Mapping):
        columns = list(answers)
    if columns is None:
        matrix = check_answers(as_array(answers), "answers")
        if matrix.shape[1] != len(names):
            raise ValueError(
                f"answers has {matrix.shape[1]} columns, but there are capacities for {len(names)} "
                f"experts, {list(names)}: an array has one column each, in this order."
            )
        return dict(zip(names, matrix.T, strict=True))
    if set(LONG) <= {str(name) for name in columns}:
        known = n_samples if cases is None else cases
        matrix, experts = answers_from_table(answers, known, reader="expert")
        return {name_text(name): column for name, column in zip(experts, matrix.T, strict=True)}
    return {name_text(name): as_array(answers[name]) for name in columns}


def _side_by_side(columns: list[NDArray[Any]]) -> NDArray[Any]:
    """Columns of one matrix, which is numeric if all of them are; masked cells are no answers."""
    masked = any(isinstance(column, np.ma.MaskedArray) for column in columns)
    if not masked and all(column.dtype.kind in "iufb" for column in columns):
        return np.column_stack(columns)
    out = np.empty((len(columns[0]), len(columns)), dtype=object)
    for place, column in enumerate(columns):
        out[:, place] = column
        out[np.ma.getmaskarray(column), place] = None
    return out
