r"""Intervals for means over cases, which may come in groups, and for many paired differences at once.

Every number of the report is a mean over cases :math:`v_1, \dots, v_n` of something between two ends: an
error is 0 or 1, a difference of errors lies between -1 and 1, a case that was tested several times has the
mean of its tests. Two things make the textbook's interval too narrow:

- Few errors. If a human erred on none of 50 cases, the spread of the 50 is 0, and the truth may be 5%.
  One imagined case is added at either end. For differences that is the adjusted interval of Bonett and
  Price (2012) for paired proportions, for shares Laplace's.
- Groups. The cases of a patient are alike. The variance is that of the groups' sums; what it exceeds the
  variance of independent cases by (the design effect) divides the number of cases that imagined ones
  are added to.

A machine brings a third: its errors on the cases depend on the training cases too, which all folds share,
and no estimate of that part is without bias (Bengio and Grandvalet, 2004). `widening` is the correction of
Nadeau and Bengio (2003), a variance of :math:`\sigma^2 / n + \sigma^2 / n_{train}`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Floats = NDArray[np.float64]
Index = NDArray[np.intp]
Ends = tuple[float, float]

# For the critical value of several intervals at once. The same draws each time: the value is an
# integral, and its error of 0.01 or so must not differ between two calls.
DRAWS = 20_000
SEED = 0
# Numbers to hold at a time while drawing.
BLOCK = 2_000_000
# Directions of the correlation that are there by rounding only.
ROUNDING = 1e-12


@dataclass(frozen=True)
class Interval:
    """A mean, and an interval for what it estimates."""

    mean: float
    low: float
    high: float

    def columns(self, name: str) -> dict[str, float]:
        """As three columns of a table."""
        return {name: self.mean, f"{name}_low": self.low, f"{name}_high": self.high}


NOTHING = Interval(float("nan"), float("nan"), float("nan"))


def share_interval(count: int, n: int, confidence: float = 0.95) -> Ends:
    """The exact interval of Clopper and Pearson for a share of independent cases.

    Parameters
    ----------
    count, n : int
        The share is `count` of `n`.
    confidence : float, default=0.95
        Level of the interval.

    Returns
    -------
    lower, upper : float
        Its ends.

    Examples
    --------
    >>> from deferlearn.evaluation.intervals import share_interval
    >>> [round(end, 3) for end in share_interval(1, 10)]
    [0.003, 0.445]
    """
    found = stats.binomtest(count, n).proportion_ci(confidence, method="exact")
    return float(found.low), float(found.high)


def single_critical(group: Index, confidence: float) -> float:
    """Standard errors to either side that one interval needs: Student's t, by the number of groups."""
    n_groups = len(np.unique(group))
    if n_groups < 2:
        return float("inf")
    return float(stats.t.isf((1 - confidence) / 2, n_groups - 1))


def joint_critical(values: Floats, group: Index, confidence: float) -> float:
    """The same for the means of several rows, so that all intervals hold together.

    It is the quantile of the largest of correlated t variables in absolute value, which is less than
    Bonferroni's: neighbouring budgets defer much the same cases.
    """
    n_groups = len(np.unique(group))
    if len(values) == 1 or n_groups < 2:
        return single_critical(group, confidence)
    sums = _sums(values - values.mean(axis=1, keepdims=True), group)
    size = np.sqrt((sums**2).sum(axis=1))
    # A row without any spread says nothing of the others: independent of them.
    unit = np.divide(sums, size[:, None], out=np.zeros_like(sums), where=size[:, None] > 0)
    correlation = unit @ unit.T
    np.fill_diagonal(correlation, 1.0)
    largest = _largest(correlation, n_groups - 1)
    # Never below what a single one needs, which the draws may miss by a little.
    return max(float(np.quantile(largest, confidence)), single_critical(group, confidence))


def _largest(correlation: Floats, freedom: int) -> Floats:
    """Draws of the largest of correlated t variables in absolute value."""
    weights, axes = np.linalg.eigh(correlation)
    used = weights > ROUNDING  # all pairs of a few budgets have few directions
    root = axes[:, used] * np.sqrt(weights[used])
    rng = np.random.default_rng(SEED)
    normal = rng.standard_normal((DRAWS, root.shape[1]))
    scale = np.sqrt(rng.chisquare(freedom, DRAWS) / freedom)
    parts = np.array_split(normal, max(1, DRAWS * len(root) // BLOCK))
    return np.concatenate([np.abs(part @ root.T).max(axis=1) for part in parts]) / scale


def mean_interval(
    values: Floats, group: Index, ends: Ends, critical: float, widening: float = 1.0
) -> Interval:
    """The mean over the cases with its interval, cut off at the ends.

    Parameters
    ----------
    values : ndarray of shape (n,)
        One number a case.
    group : ndarray of int of shape (n,)
        Cases with the same number belong together.
    ends : (float, float)
        Between which the values of a case can lie.
    critical : float
        Standard errors to either side.
    widening : float, default=1
        Factor of the variance.

    Returns
    -------
    interval : Interval
        NaN throughout without a case; as wide as the ends with a single group.
    """
    n = len(values)
    if n == 0:
        return NOTHING
    mean = float(values.mean())
    low, high = ends
    if not np.isfinite(critical):
        return Interval(mean, low, high)
    effective = n / _design_effect(values, group)
    # Moments of the cases and the two imagined ones together.
    whole = effective + 2.0
    centre = (effective * mean + low + high) / whole
    square = (effective * float(np.mean(values**2)) + low**2 + high**2) / whole
    error = np.sqrt(max(square - centre**2, 0.0) / whole * widening)
    half = critical * float(error)
    return Interval(mean, max(low, min(centre - half, mean)), min(high, max(centre + half, mean)))


def _design_effect(values: Floats, group: Index) -> float:
    """How many grouped cases tell as much as one independent case; at least 1."""
    away = values - values.mean()
    alone = float((away**2).sum())
    if alone <= 0.0:
        # Cases that are all the same say nothing about how alike those of a group are: take them as one.
        return len(values) / len(np.unique(group))
    together = float((_sums(away[None, :], group) ** 2).sum())
    return max(1.0, together / alone)


def _sums(values: Floats, group: Index) -> Floats:
    """Sums over each group, a row for each row of values."""
    codes = np.unique(group, return_inverse=True)[1]
    return np.array([np.bincount(codes, weights=row) for row in values])
