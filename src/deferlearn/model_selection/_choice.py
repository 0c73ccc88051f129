"""Which candidate to take: the best, or a simpler one that cannot be told from it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

# Numbers this close, relative to the larger, are equal: sums of the same costs in another order.
TIE = 1e-12


def choose(mean: Array, policy: NDArray[np.int64], gaps: Any, near_tie: float) -> int:
    """The candidate of the first policy whose best one nearly ties with the best of all.

    Parameters
    ----------
    mean : ndarray of shape (n_candidates,)
        Mean scores, larger is better. Among equals of a policy the first wins.
    policy : ndarray of shape (n_candidates,)
        Place of each candidate's policy, the simplest first.
    gaps : callable
        Of two candidates: by how much the first is ahead of the second in each independent part of the
        data (a case, a group of cases, or a fold), as an array whose mean is the gap of the scores.
    near_tie : float
        How many standard errors of the mean gap are a near-tie.

    Returns
    -------
    index : int
    """
    close = TIE * float(np.abs(mean).max())
    best = _first_best(mean, close)
    for place in np.unique(policy):
        own = np.flatnonzero(policy == place)
        candidate = int(own[_first_best(mean[own], close)])
        if candidate == best:
            return best
        gap = np.asarray(gaps(best, candidate), dtype=np.float64)
        error = gap.std(ddof=1) / np.sqrt(len(gap)) if len(gap) > 1 else 0.0
        # Who is ahead in one case alone is ahead by exactly one standard error.
        if gap.mean() <= near_tie * error * (1.0 + TIE):
            return candidate
    return best


def _first_best(mean: Array, close: float) -> int:
    return int(np.argmax(mean >= mean.max() - close))


def by_group(values: Array, groups: NDArray[Any] | None) -> Array:
    """Sums over groups, scaled so that their mean is that of the values: groups are independent."""
    if groups is None:
        return values
    _, place = np.unique(groups, return_inverse=True)
    sums = np.bincount(place, weights=values)
    return np.asarray(sums * (len(sums) / len(values)), dtype=np.float64)
