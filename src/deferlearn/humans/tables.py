"""Answers in long tables: one row per answer, with the columns case, reader and answer."""

from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deferlearn._utils.checks import plain
from deferlearn._utils.types import Array, Bools, Labels
from deferlearn.humans.answers import as_array, as_objects, find_missing
from deferlearn.humans.losses import loss_from_labels, loss_from_scores

KINDS = ("labels", "scores")


def loss_from_table(
    table: Any,
    y: ArrayLike,
    *,
    case: str = "case",
    reader: str | None = "reader",
    answer: str = "answer",
    cases: ArrayLike | None = None,
    kind: str = "labels",
    shrinkage: float | str = 1.0,
    classes: ArrayLike | None = None,
    human_bound: float | None = None,
) -> Array:
    """One loss per case from a long table of answers, made steadier where a case has few answers.

    One answer says little about how hard its case is: a reader who errs at random on half of the cases
    looks hopeless on these and perfect on the others. So a case with m answers, whose losses add up to
    s, gets ``(s + k a) / (m + k)``: its own average, drawn towards the average a of its class as if
    k further answers had the loss a each. The average a is that of the cases' own means.

    Parameters
    ----------
    table : DataFrame, dict of columns or structured array
        One row per answer. Other columns are ignored. A row whose answer is missing (NaN, None,
        pandas' NA) counts as no answer.
    y : array-like of shape (n_samples,)
        True labels, of any two classes.
    case, reader, answer : str, default="case", "reader", "answer"
        Names of the columns. A reader who answered a case twice is an error, and so is an answer by
        a reader without a name. With ``reader=None`` readers are not looked at, and each row counts.
    cases : array-like of shape (n_samples,), default=None
        Names of the rows of y in the column `case`, such as ``y.index``. With None that column holds
        the positions 0, 1, ..., n_samples - 1.
    kind : {"labels", "scores"}, default="labels"
        Whether answers are labels (loss 0 if right, 2 if wrong) or scores h (loss [1 - y h]_+).
    shrinkage : float or "auto", default=1
        The strength k; 0 is none. "auto" estimates it in each class by empirical Bayes, as the
        variance of the answers to one case over the variance between cases. The strength is 1 where
        no case has a second answer, and every case gets the average where cases differ no more than
        by chance.
    classes : pair of labels, default=None
        The (negative, positive) class, where y need not hold both.
    human_bound : float, default=None
        Scores beyond it are an error; for ``kind="scores"`` only.

    Returns
    -------
    loss : ndarray of shape (n_samples,)
        One non-negative number per case. A case without an answer gets the average of its class, and
        a warning says how many there are.

    Examples
    --------
    >>> from deferlearn.humans import loss_from_table
    >>> table = {
    ...     "case": [0, 0, 1, 2, 2],
    ...     "reader": ["Ann", "Bob", "Ann", "Ann", "Bob"],
    ...     "answer": ["sick", "well", "sick", "well", "well"],
    ... }
    >>> loss_from_table(table, ["sick", "sick", "well"], shrinkage=0)
    array([1., 0., 0.])
    >>> loss_from_table(table, ["sick", "sick", "well"])  # towards 0.5, the average of "sick"
    array([0.83333333, 0.25      , 0.        ])
    """
    if kind not in KINDS:
        raise ValueError(f"kind={kind!r} is not known; use one of {KINDS}")
    truth = as_array(y)
    names = np.arange(len(truth)) if cases is None else as_array(cases)
    if names.shape != truth.shape:
        raise ValueError(
            f"cases has {len(names)} entries and y has {len(truth)}: give one per sample"
        )
    rows, readers, answers = _read(table, names, case, reader, answer)
    if reader is not None:
        _refuse_repeats(rows, readers, names)
    matrix = _spread(len(truth), rows, _places(rows), answers)
    if kind == "scores":
        return loss_from_scores(matrix, truth, human_bound, classes=classes, shrinkage=shrinkage)
    return loss_from_labels(matrix, truth, classes=classes, shrinkage=shrinkage)


def answers_from_table(
    table: Any,
    cases: ArrayLike | int,
    *,
    case: str = "case",
    reader: str = "reader",
    answer: str = "answer",
) -> tuple[Labels, list[Any]]:
    """Make a long table of answers wide: one row per case, one column per reader.

    This is the shape that ``fit(X, y, human_labels=...)`` and `majority_labels` take.

    Parameters
    ----------
    table : DataFrame, dict of columns or structured array
        One row per answer, as in `loss_from_table`.
    cases : array-like of shape (n_samples,) or int
        Names of the cases in the column `case`, in the order wanted; a number n stands for
        0, 1, ..., n - 1.
    case, reader, answer : str, default="case", "reader", "answer"
        Names of the columns.

    Returns
    -------
    answers : ndarray of shape (n_samples, n_readers)
        None where a reader gave no answer; numbers come as floats with NaN there.
    readers : list
        Names of the columns, in the order in which they first appear in the table.

    Examples
    --------
    >>> from deferlearn.humans import answers_from_table
    >>> table = {
    ...     "image": ["b", "a", "b"],
    ...     "doctor": ["Ann", "Bob", "Bob"],
    ...     "grade": [1, -1, -1],
    ... }
    >>> answers_from_table(table, ["a", "b"], case="image", reader="doctor", answer="grade")
    (array([[nan, -1.],
           [ 1., -1.]]), ['Ann', 'Bob'])
    """
    names = np.arange(cases) if isinstance(cases, int | np.integer) else as_array(cases)
    rows, readers, answers = _read(table, names, case, reader, answer)
    _refuse_repeats(rows, readers, names)
    columns: dict[Any, int] = {}
    places = np.array([columns.setdefault(name, len(columns)) for name in readers], dtype=np.intp)
    return _spread(len(names), rows, places, answers), list(columns)


def _read(
    table: Any, names: Labels, case: str, reader: str | None, answer: str
) -> tuple[NDArray[np.intp], list[Any], Labels]:
    """Row of y, reader and answer of each answer that was given."""
    columns = {name: _column(table, name) for name in (case, reader, answer) if name is not None}
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"the columns have different lengths: {lengths}")
    _refuse_nameless(find_missing(names), "cases", "case")
    position = {name: row for row, name in enumerate(names.tolist())}
    if len(position) != len(names):
        raise ValueError("cases must be different from each other: some name occurs twice")
    given = ~find_missing(columns[answer])
    _refuse_nameless(find_missing(columns[case]), f"the column {case!r}", "case")
    if reader is not None:
        # A row without an answer needs no reader: it is a case that no reader has seen.
        _refuse_nameless(find_missing(columns[reader]) & given, f"the column {reader!r}", "reader")
    called = columns[case].tolist()
    strangers = list(dict.fromkeys(name for name in called if name not in position))
    if strangers:
        raise ValueError(
            f"the table has answers to cases that are not among those of y ({len(strangers)} in all), "
            f"such as {plain(strangers[0])!r}: leave them out, or name the rows of y by cases="
        )
    rows = np.array([position[name] for name in called], dtype=np.intp)[given]
    readers = [] if reader is None else as_objects(columns[reader])[given].tolist()
    return rows, readers, columns[answer][given]


def _column(table: Any, name: str) -> Labels:
    if isinstance(table, np.ndarray):
        known = table.dtype.names
    else:
        known = getattr(table, "columns", table if hasattr(table, "keys") else None)
    if known is None:
        raise ValueError(
            "table must be a DataFrame, a dict of columns or a structured array, got "
            f"{type(table).__name__}"
        )
    if name not in known:
        raise ValueError(f"the table has no column {name!r}, only {', '.join(map(repr, known))}")
    column = as_array(table[name])
    if column.ndim != 1:
        raise ValueError(f"the column {name!r} must have one dimension, got {column.shape}")
    return column


def _refuse_nameless(missing: Bools, where: str, whom: str) -> None:
    """NaN is not equal to itself, so repeats cannot be found where a name is missing."""
    if missing.any():
        raise ValueError(
            f"{where} names no {whom} in {missing.sum()} of {len(missing)} rows, the first of them row "
            f"{np.flatnonzero(missing)[0]}: fill in the names, or leave these rows out"
        )


def _refuse_repeats(rows: NDArray[np.intp], readers: list[Any], names: Labels) -> None:
    for (row, reader), count in Counter(zip(rows.tolist(), readers, strict=True)).items():
        if count > 1:
            raise ValueError(
                f"reader {plain(reader)!r} answered case {plain(names[row])!r} more than once: keep "
                "one answer, or give each reading a reader's name of its own"
            )


def _places(rows: NDArray[np.intp]) -> NDArray[np.intp]:
    """How many answers to the same case come before each: its column, with as few columns as needed."""
    order = np.argsort(rows, kind="stable")
    starts = np.searchsorted(rows[order], rows[order])
    places = np.empty(len(rows), dtype=np.intp)
    places[order] = np.arange(len(rows)) - starts
    return places


def _spread(
    n_samples: int, rows: NDArray[np.intp], places: NDArray[np.intp], answers: Labels
) -> Labels:
    """Answers in a matrix with gaps; at least one column, so that it has the shape of answers."""
    shape = (n_samples, max(1, int(places.max(initial=0)) + 1))
    entries = as_array(answers.tolist())
    numeric = entries.dtype.kind in "biuf"
    matrix = np.full(shape, np.nan if numeric else None, dtype=float if numeric else object)
    matrix[rows, places] = entries
    return matrix
