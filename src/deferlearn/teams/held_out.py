"""Fit on some rows, ask about the others: the one place where samples are held out.

A *split* is a pair of row positions, those to fit on and those held out. Everything in this package that
fits on the rows outside a fold and looks at the fold goes through `held_out`.
"""

import warnings
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold, check_cv

from deferlearn._utils.jobs import call_each
from deferlearn._utils.types import Index

Split = tuple[Index, Index]
Result = TypeVar("Result")


def held_out(
    work: Callable[..., Result],
    splits: Sequence[Split],
    *shared: Any,
    each: Sequence[Any] | None = None,
    n_jobs: int | None = None,
) -> list[Result]:
    """What ``work(train, test, *shared)`` returns for each split, in their order.

    Parameters
    ----------
    work : callable
        Fits on the rows ``train`` and looks at the rows ``test``. It must be picklable if jobs are to run
        in other processes.
    splits : sequence of (train, test)
        Row positions.
    *shared
        Further arguments, the same for every split.
    each : sequence or None, default=None
        One value per split, as the last argument of ``work``.
    n_jobs : int or None, default=None
        How many splits to work on at a time, as in joblib.

    Returns
    -------
    results : list

    Examples
    --------
    >>> import numpy as np
    >>> from deferlearn.teams.held_out import held_out
    >>> rows = np.arange(4)
    >>> y = np.array([1.0, 2.0, 3.0, 6.0])
    >>> held_out(lambda train, test, y: float(y[train].mean()), [(rows[1:], rows[:1])], y)
    [3.6666666666666665]
    """
    own = [()] * len(splits) if each is None else [(value,) for value in each]
    calls = ((train, test, *shared, *more) for (train, test), more in zip(splits, own, strict=True))
    return call_each(work, calls, n_jobs)


def splitter_of(cv: Any, y: ArrayLike, groups: ArrayLike | None, random_state: Any) -> Any:
    """The splitter that `cv` stands for; a number means shuffled, stratified folds of whole groups."""
    if isinstance(cv, int | np.integer) and not isinstance(cv, bool):
        kind = StratifiedKFold if groups is None else StratifiedGroupKFold
        return kind(n_splits=int(cv), shuffle=True, random_state=random_state)
    return check_cv(cv, y, classifier=True)


def splits_of(
    cv: Any, X: Any, y: ArrayLike, groups: ArrayLike | None = None, random_state: Any = None
) -> list[Split]:
    """The splits of a splitter, or of a number of stratified folds; groups are never torn apart."""
    splitter = splitter_of(cv, y, groups, random_state)
    with warnings.catch_warnings():
        # A class with fewer samples than folds is absent from some of them, which callers can handle.
        warnings.filterwarnings("ignore", "The least populated class", UserWarning)
        return [(np.asarray(a), np.asarray(b)) for a, b in splitter.split(X, y, groups)]
