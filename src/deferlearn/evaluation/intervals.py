r"""All confidence intervals of the package: of shares, of means over splits, of means over cases.

- `share_interval`: exact interval of Clopper and Pearson, or Wilson's, for a share of independent cases.
- `t_interval`: Student's interval for the mean of a few independent numbers, such as one per split.
- `mean_interval`: interval for a mean over cases, which may come in groups; with `single_critical` if it
  stands alone, with `joint_critical` if several intervals have to hold together.
- `gap_interval`: interval for the difference between two means of different cases, from their intervals.

The intervals of means over cases are those of the assistance report. Each of its numbers is a mean over
cases :math:`v_1, \dots, v_n` of something between two ends: an error is 0 or 1, a difference of errors lies
between -1 and 1, a case that was tested several times has the mean of its tests. Two things make the
textbook's interval too narrow:

- Few errors. If a human made no error on 50 cases, the spread of the 50 is 0, although the true error may
  be 5%. One imagined case is added at either end. For differences this is the adjusted interval of Bonett
  and Price (2012) for paired proportions, for shares it is Laplace's.
- Groups. The cases of a patient are alike. The variance is that of the groups' sums. The factor by which
  it exceeds the variance of independent cases (the design effect) divides the number of cases to which
  the imagined ones are added.

A machine adds a third: its errors also depend on the training cases, which all folds share, and no
estimate of that part is without bias (Bengio and Grandvalet, 2004). `widening` is the correction of
Nadeau and Bengio (2003), a variance of :math:`\sigma^2 / n + \sigma^2 / n_{train}`.
"""

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from deferlearn._utils.types import Array, Bools, Index

Ends = tuple[float, float]

# The level of an interval unless another one is asked for.
CONFIDENCE = 0.95
# Draws for the critical value of several intervals at once. They are the same in every call: the value is
# an integral, and its error of about 0.01 must not differ between two calls.
DRAWS = 20_000
SEED = 0
# Most numbers held in memory at a time while drawing.
BLOCK = 2_000_000
# Eigenvalues of a correlation matrix below this are rounding errors.
ROUNDING = 1e-12


@dataclass(frozen=True)
class Interval:
    """A mean, and an interval for what it estimates."""

    mean: float
    low: float
    high: float

    def columns(self, name: str) -> dict[str, float]:
        """The three numbers as columns of a table."""
        return {name: self.mean, f"{name}_low": self.low, f"{name}_high": self.high}


NOTHING = Interval(float("nan"), float("nan"), float("nan"))


def share_interval(
    count: int,
    n: int,
    confidence: float = CONFIDENCE,
    *,
    method: Literal["exact", "wilson"] = "exact",
) -> tuple[float, float]:
    """Interval for the share behind `count` of `n` independent cases.

    Parameters
    ----------
    count : int
        How many of the cases count, such as the wrong answers.
    n : int
        Number of cases, at least 1.
    confidence : float, default=0.95
        Level of the interval.
    method : {"exact", "wilson"}, default="exact"
        The interval of Clopper and Pearson, which holds at least as often as its level says, or the shorter
        one of Wilson, which holds that often on average and suits many intervals side by side.

    Returns
    -------
    lower, upper : float
        The ends of the interval.

    Examples
    --------
    >>> from deferlearn.evaluation.intervals import share_interval
    >>> [round(end, 3) for end in share_interval(0, 50)]
    [0.0, 0.071]
    >>> [round(end, 3) for end in share_interval(5, 50, method="wilson")]
    [0.043, 0.214]
    """
    lower, upper = stats.binomtest(count, n).proportion_ci(confidence, method=method)
    return float(lower), float(upper)


def t_interval(values: ArrayLike, confidence: float = CONFIDENCE) -> tuple[Any, Any, Any]:
    """Mean over the first axis, and the ends of its interval by Student's t.

    Parameters
    ----------
    values : array-like of shape (n,) or (n, m)
        One row per independent run, such as a split or draw.
    confidence : float, default=0.95
        Level of the interval.

    Returns
    -------
    mean, lower, upper : float or ndarray of shape (m,)
        The ends are NaN if there are fewer than two runs, the mean is NaN if there are none.

    Examples
    --------
    >>> from deferlearn.evaluation.intervals import t_interval
    >>> [round(float(x), 3) for x in t_interval([1.0, 2.0, 3.0])]
    [2.0, -0.484, 4.484]
    """
    numbers = np.asarray(values, dtype=np.float64)
    n, unknown = len(numbers), np.full(numbers.shape[1:], np.nan)[()]
    if n < 2:
        return (numbers[0] if n else unknown), unknown, unknown
    mean = numbers.mean(axis=0)
    half = t_quantile(confidence, n - 1) * numbers.std(axis=0, ddof=1) / np.sqrt(n)
    return mean, mean - half, mean + half


def t_quantile(confidence: float, freedom: int) -> float:
    """Standard errors to either side of the mean, by the degrees of freedom; infinite without any."""
    return float(stats.t.isf((1 - confidence) / 2, freedom)) if freedom > 0 else float("inf")


def single_critical(group: Index, confidence: float) -> float:
    """Standard errors to either side that one interval needs: Student's t, by the number of groups."""
    return t_quantile(confidence, len(np.unique(group)) - 1)


def joint_critical(values: Array, group: Index, confidence: float) -> float:
    """Standard errors that the means of several rows need so that all intervals hold together.

    This is the quantile of the largest of correlated t variables in absolute value. It is smaller than
    Bonferroni's, because neighbouring budgets defer much the same cases.
    """
    n_groups = len(np.unique(group))
    if len(values) == 1 or n_groups < 2:
        return single_critical(group, confidence)
    sums = _sums(values - values.mean(axis=1, keepdims=True), group)
    size = np.sqrt((sums**2).sum(axis=1))
    # A row without any spread says nothing about the others: it counts as independent of them.
    unit = np.divide(sums, size[:, None], out=np.zeros_like(sums), where=size[:, None] > 0)
    correlation = unit @ unit.T
    np.fill_diagonal(correlation, 1.0)
    largest = _largest(correlation, n_groups - 1)
    # Never below what a single interval needs, which the draws may miss by a little.
    return max(float(np.quantile(largest, confidence)), single_critical(group, confidence))


def _largest(correlation: Array, freedom: int) -> Array:
    """Draws of the largest of correlated t variables in absolute value."""
    weights, axes = np.linalg.eigh(correlation)
    used = weights > ROUNDING  # differences of all pairs of a few budgets span few directions
    root = axes[:, used] * np.sqrt(weights[used])
    rng = np.random.default_rng(SEED)
    normal = rng.standard_normal((DRAWS, root.shape[1]))
    scale = np.sqrt(rng.chisquare(freedom, DRAWS) / freedom)
    parts = np.array_split(normal, max(1, DRAWS * len(root) // BLOCK))
    return np.concatenate([np.abs(part @ root.T).max(axis=1) for part in parts]) / scale


def mean_interval(
    values: Array, group: Index, ends: Ends, critical: float, widening: float = 1.0
) -> Interval:
    """The mean over the cases with its interval, cut off at the ends.

    Parameters
    ----------
    values : ndarray of shape (n,)
        One number per case.
    group : ndarray of int of shape (n,)
        Cases with the same number belong together.
    ends : (float, float)
        The smallest and the largest value that a case can have.
    critical : float
        Standard errors to either side, from `single_critical` or `joint_critical`.
    widening : float, default=1
        Factor of the variance.

    Returns
    -------
    interval : Interval
        All three numbers are NaN if there is no case. With a single group the interval reaches from one
        end to the other.
    """
    n = len(values)
    if n == 0:
        return NOTHING
    mean = float(values.mean())
    low, high = ends
    if not np.isfinite(critical):
        return Interval(mean, low, high)
    effective = n / design_effect(values, group)
    # Moments of the cases together with the two imagined ones.
    whole = effective + 2.0
    centre = (effective * mean + low + high) / whole
    square = (effective * float(np.mean(values**2)) + low**2 + high**2) / whole
    error = np.sqrt(max(square - centre**2, 0.0) / whole * widening)
    half = critical * float(error)
    return Interval(mean, max(low, min(centre - half, mean)), min(high, max(centre + half, mean)))


def gap_interval(one: Interval, other: Interval) -> Interval:
    """The difference between the means of two separate sets of cases, from the intervals of both.

    The distances from means to ends are added as squares (Newcombe's hybrid method). That is right for
    independent sets; groups with cases in both sets make the interval longer than it needs to be.

    Parameters
    ----------
    one, other : Interval
        Of the two sets, at the same level.

    Returns
    -------
    interval : Interval
        For the mean of `one` minus that of `other`.

    Examples
    --------
    >>> from deferlearn.evaluation.intervals import Interval, gap_interval
    >>> gap = gap_interval(Interval(0.5, 0.2, 0.6), Interval(0.1, 0.0, 0.5))
    >>> round(gap.mean, 3), round(gap.low, 3), round(gap.high, 3)
    (0.4, -0.1, 0.541)
    """
    mean = one.mean - other.mean
    below = np.hypot(one.mean - one.low, other.high - other.mean)
    above = np.hypot(one.high - one.mean, other.mean - other.low)
    return Interval(mean, mean - float(below), mean + float(above))


def auc_interval(
    scores: Array, positive: Bools, group: Index, confidence: float = CONFIDENCE
) -> Interval:
    """The area under the ROC curve with its interval: how often a positive case has the higher score.

    DeLong's variance, in which the terms of a group are added before they are squared (as Obuchowski's
    for grouped cases), on the scale of log odds, so that the interval stays between 0 and 1.

    Parameters
    ----------
    scores : ndarray of shape (n,)
        The higher, the more a case looks like a positive one.
    positive : ndarray of bool of shape (n,)
        Which cases are positive; there must be both kinds.
    group : ndarray of int of shape (n,)
        Cases with the same number belong together.
    confidence : float, default=0.95
        Level of the interval.

    Returns
    -------
    interval : Interval
        Where the scores part the classes without a mistake nothing is known of the variance: the ends
        are then those of `share_interval`, as if each group of the rarer kind were one case.

    Examples
    --------
    >>> import numpy as np
    >>> from deferlearn.evaluation.intervals import auc_interval
    >>> scores = np.r_[np.arange(20.0), np.arange(8.0, 28.0)]
    >>> found = auc_interval(scores, np.arange(40) >= 20, np.arange(40))
    >>> round(found.mean, 3), round(found.low, 3), round(found.high, 3)
    (0.82, 0.656, 0.916)
    """
    ranks = stats.rankdata(scores)
    m, n = int(positive.sum()), int((~positive).sum())
    # How often each case stands on the right side of one of the other kind; ties count half.
    above = (ranks[positive] - stats.rankdata(scores[positive])) / n
    below = 1.0 - (ranks[~positive] - stats.rankdata(scores[~positive])) / m
    area = float(above.mean())
    influence = np.empty(len(scores))
    influence[positive], influence[~positive] = (above - area) / m, (below - area) / n
    sums = _sums(influence[None, :], group)[0]
    error = math.sqrt(float((sums**2).sum()) * len(sums) / max(len(sums) - 1, 1))
    if error == 0.0 or not 0.0 < area < 1.0:
        rarer = min(len(np.unique(group[positive])), len(np.unique(group[~positive])))
        return Interval(area, *share_interval(round(area * rarer), rarer, confidence))
    half = single_critical(group, confidence) * error / (area * (1.0 - area))
    odds = math.log(area / (1.0 - area))
    return Interval(area, *(1.0 / (1.0 + math.exp(-end)) for end in (odds - half, odds + half)))


def design_effect(values: Array, group: Index) -> float:
    """How many grouped cases tell as much as one independent case, at least 1."""
    away = values - values.mean()
    alone = float((away**2).sum())
    if alone <= 0.0:
        # Where all values are equal, they do not tell how alike a group is: a group counts as one case.
        return len(values) / len(np.unique(group))
    together = float((_sums(away[None, :], group) ** 2).sum())
    return max(1.0, together / alone)


def _sums(values: Array, group: Index) -> Array:
    """Sums over each group, one row per row of values."""
    codes = np.unique(group, return_inverse=True)[1]
    return np.array([np.bincount(codes, weights=row) for row in values])
