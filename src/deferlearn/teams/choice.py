"""Which candidate to take: the best, or a simpler one that cannot be told from it."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from deferlearn._utils.types import Array, Bools

# A mean gap this small, relative to the scores or to the gaps that cancel in it, is none: sums of the
# same costs in another order differ as much.
TIE = 1e-12


def choose(
    mean: Array,
    order: NDArray[np.int64],
    gaps: Any,
    n_standard_errors: float,
    unassisted: Bools | None = None,
) -> int:
    """The candidate of the first group whose best one nearly ties with the best of all.

    If it does no better than a candidate without assistance, that is chosen: no human time for a tie.

    Parameters
    ----------
    mean : ndarray of shape (n_candidates,)
        Mean scores, larger is better. Among equals of a group the first wins.
    order : ndarray of shape (n_candidates,)
        The group of each candidate, such as its policy. Groups with smaller numbers are preferred.
    gaps : callable
        Of two candidates: by how much the first is ahead of the second in each independent part of the
        data (a case, a group of cases, or a fold), as an array whose mean is the gap of the scores.
    n_standard_errors : float
        How many standard errors of the mean gap are a near-tie.
    unassisted : ndarray of bool of shape (n_candidates,), default=None
        Which candidates never ask a human.

    Returns
    -------
    index : int
    """
    candidates = np.arange(len(mean))
    size = float(np.abs(mean).max())

    def as_good(candidate: int, best: int) -> bool:
        gap = np.asarray(gaps(best, candidate), dtype=np.float64)
        return bool(gap.mean() <= TIE * max(size, float(np.abs(gap).mean())))

    def first_best(among: NDArray[np.int64]) -> int:
        best = int(among[np.argmax(mean[among])])
        return next(int(k) for k in among if as_good(int(k), best))

    best = first_best(candidates)
    chosen = best
    for group in np.unique(order):
        candidate = first_best(np.flatnonzero(order == group))
        if candidate == best:
            break
        gap = np.asarray(gaps(best, candidate), dtype=np.float64)
        error = gap.std(ddof=1) / np.sqrt(len(gap)) if len(gap) > 1 else 0.0
        # A candidate that is ahead in a single case is ahead by exactly one standard error.
        if gap.mean() <= n_standard_errors * error * (1.0 + TIE):
            chosen = candidate
            break
    for k in [] if unassisted is None else candidates[unassisted]:
        if as_good(int(k), chosen):
            return int(k)
    return chosen


def by_group(values: Array, groups: NDArray[Any] | None) -> Array:
    """Sums over groups, scaled so that their mean is that of the values: groups are independent."""
    if groups is None:
        return values
    _, place = np.unique(groups, return_inverse=True)
    sums = np.bincount(place, weights=values)
    return np.asarray(sums * (len(sums) / len(values)), dtype=np.float64)
