"""Folds of a fit or a search: held-out rows that together hold every row once."""

from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from deferlearn._utils.checks import plain
from deferlearn._utils.types import Index
from deferlearn.humans.answers import find_missing
from deferlearn.teams.held_out import Split, splits_of


def random_folds(cv: Any, X: Any, y: NDArray[Any], seed: int) -> list[Index]:
    """Folds for the threshold of a team.

    A number of folds deals the rows out at random, and not by class or by what was deferred: the held-out
    rows must differ from the others as much as new cases do.
    """
    n = len(y)
    if isinstance(cv, Integral):
        dealt = check_random_state(seed).permutation(n)
        k = min(int(cv), n)
        return [np.sort(dealt[i::k]) for i in range(k)]
    return _checked([test for _, test in splits_of(cv, X, y)], n, cv)


def stratified_folds(cv: Any, X: Any, y: NDArray[Any], groups: Any, seed: int) -> list[Index]:
    """Folds for a search; a number of folds is lowered where a class or the groups are fewer."""
    if groups is not None:
        _check_groups(groups, len(y))
    if isinstance(cv, Integral):
        smallest = int(np.unique(y, return_counts=True)[1].min())
        k = min(int(cv), smallest) if smallest > 1 else 2
        cv = k if groups is None else min(k, len(np.unique(groups)))
    folds = _checked([test for _, test in splits_of(cv, X, y, groups, seed)], len(y), cv)
    folds = [fold for fold in folds if len(fold)]
    if len(folds) < 2:
        raise ValueError(f"cv={cv!r} holds out all rows at once, which leaves none to learn from.")
    return folds


def splits_from(folds: list[Index], n: int) -> list[Split]:
    """The folds as pairs (train, test) of rows."""
    splits = []
    for fold in folds:
        rest = np.ones(n, dtype=bool)
        rest[fold] = False
        splits.append((np.flatnonzero(rest), fold))
    return splits


def _checked(folds: list[Index], n: int, cv: Any) -> list[Index]:
    """Refuse folds that do not hold out every one of n rows exactly once."""
    counts = np.bincount(np.concatenate(folds), minlength=n)
    if (counts != 1).any():
        row = int(np.flatnonzero(counts != 1)[0])
        raise ValueError(
            f"cv={cv!r} must hold out every row exactly once, but holds out row {row} "
            f"{int(counts[row])} times."
        )
    return folds


def _check_groups(groups: NDArray[Any], n: int) -> None:
    if groups.shape != (n,):
        raise ValueError(
            f"groups has the shape {groups.shape}, but y has {n} rows: give one group per row."
        )
    missing = find_missing(groups)
    if missing.any():
        raise ValueError(
            f"groups has no value for row {int(np.flatnonzero(missing)[0])}; a case that belongs to no "
            "other case needs a group of its own."
        )
    if len(np.unique(groups)) < 2:
        raise ValueError(
            f"groups has one group, {plain(groups[0])!r}, for all rows: no fold can be held out."
        )
