"""Held-out folds: stratified, of whole groups, together every row once."""

from __future__ import annotations

import warnings
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold, check_cv

from deferlearn._utils.checks import plain
from deferlearn.humans.answers import find_missing
from deferlearn.teams.crossfit import check_partition, rest_of

Index = NDArray[np.int64]


def folds_of(cv: Any, X: Any, y: NDArray[Any], groups: Any, seed: int) -> list[Index]:
    """The rows of each fold; a number of folds is lowered where a class or the groups are fewer."""
    if groups is not None:
        _check_groups(groups, len(y))
    splitter = cv
    if isinstance(cv, Integral):
        smallest = int(np.unique(y, return_counts=True)[1].min())
        k = min(int(cv), smallest) if smallest > 1 else 2
        k = k if groups is None else min(k, len(np.unique(groups)))
        kind = StratifiedKFold if groups is None else StratifiedGroupKFold
        splitter = kind(k, shuffle=True, random_state=seed)
    splitter = check_cv(splitter, y, classifier=True)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The least populated class", UserWarning)
        folds = [np.asarray(test) for _, test in splitter.split(X, y, groups)]
    check_partition(folds, len(y), cv)
    folds = [fold for fold in folds if len(fold)]
    if len(folds) < 2:
        raise ValueError(f"cv={cv!r} holds out all rows at once, which leaves none to learn from.")
    return folds


def _check_groups(groups: NDArray[Any], n: int) -> None:
    if groups.shape != (n,):
        raise ValueError(
            f"groups has the shape {groups.shape}, but y has {n} rows: give one a row."
        )
    missing = find_missing(groups)
    if missing.any():
        raise ValueError(
            f"groups has none for row {int(np.flatnonzero(missing)[0])}; a case that belongs to no other "
            "needs a group of its own."
        )
    if len(np.unique(groups)) < 2:
        raise ValueError(
            f"groups has one group, {plain(groups[0])!r}, for all rows: no fold can be held out."
        )


def splits_of(folds: list[Index], n: int) -> list[tuple[Index, Index]]:
    """The folds as scikit-learn takes them: (train, test) for each."""
    return [(rest_of(fold, n), fold) for fold in folds]
