"""What the columns of the training cases looked like, and which new cases look different.

A model may meet cases that it was never meant for: another unit, an empty column, a new scanner. Its
answers to them are worth nothing, however sure it seems. A case is *unusual* if one of its cells is:

- a number beyond the range of the training cases by more than a margin. The margin of an end is the spread
  on that side (from the median to the first or last tenth of the cases) plus the distance between the two
  outermost values. Columns that are closer to symmetric on a logarithmic scale are measured on it.
- missing in a column that had no gap in training;
- a category that did not occur in training.

The margins of all columns are widened until, of the training cases themselves, at most a share
`FALSE_ALARMS` would have been unusual if each had come as a new case after the others. Likewise, gaps and
new categories count only where the training cases show that they are rare: the share of values that
occurred once estimates how often new ones come (Good and Turing). Cases of the same kind as the training
cases are therefore rarely unusual, whatever the distributions of the columns are.

The module needs numpy only, and looks at one case in microseconds.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from deferlearn._utils.types import Array, Bools
from deferlearn._utils.words import listed

# The share of the training cases that may be unusual by each of the three rules.
FALSE_ALARMS = 0.0025
# With too few cases to estimate such a share, margins are this many times those that include all of them.
FEW_CASES_FACTOR = 2.0
# From the median to this share of the cases at each end, it is one spread.
TAIL = 0.1
# Values at which the distribution of a column is known.
MAX_MARKS = 64
# Bounds are a little wider, because equal numbers can differ by rounding.
ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class Guard:
    """Knows what each column looked like in training; `learn_guard` makes it.

    It sees cases as codes, which `deferlearn.tables.encoding.Encoding.codes` reads: numbers as they are,
    categories as their positions, -1 for an unknown category, NaN for a gap.

    Attributes
    ----------
    columns : list of str
        Names of the columns, in the order of their codes.
    categories : dict
        The categories of each column that has them.
    rows : int
        Number of training cases.
    low, high : ndarray of shape (n_columns,)
        Codes below or above are unusual.
    least, most : ndarray of shape (n_columns,)
        The smallest and the largest number in training; NaN for categories.
    full : ndarray of bool of shape (n_columns,)
        Whether a gap is unusual.
    gaps : ndarray of shape (n_columns,)
        The share of gaps in training.
    marks : list of ndarray
        For each column some of its values: numbers, or all categories.
    shares : list of ndarray
        The share of the training values up to each mark; of categories the share of each.
    commonest : ndarray of shape (n_columns,)
        The share of the value that occurred most often.
    """

    columns: list[str]
    categories: dict[str, list[str]]
    rows: int
    low: Array
    high: Array
    least: Array
    most: Array
    full: Bools
    gaps: Array
    marks: list[Array]
    shares: list[Array]
    commonest: Array

    def strange(self, codes: Array) -> Bools:
        """Which cells are unusual.

        Parameters
        ----------
        codes : ndarray of shape (n_cases, n_columns)
            Cases.

        Returns
        -------
        strange : ndarray of bool of shape (n_cases, n_columns)
        """
        strange: Bools = (codes < self.low) | (codes > self.high)
        return strange | (np.isnan(codes) & self.full)

    def reasons(self, codes: Array, strange: Bools) -> list[str]:
        """Why each case is unusual, with column, value and range; empty for usual cases.

        Parameters
        ----------
        codes : ndarray of shape (n_cases, n_columns)
            Cases.
        strange : ndarray of bool of shape (n_cases, n_columns)
            What `strange` says about them.

        Returns
        -------
        reasons : list of str
        """
        reasons = [""] * len(codes)
        for row in np.flatnonzero(strange.any(axis=1)).tolist():
            places = np.flatnonzero(strange[row]).tolist()
            reasons[row] = listed([self.cell(place, codes[row, place]) for place in places], most=3)
        return reasons

    def cell(self, place: int, code: float) -> str:
        """An unusual cell in words.

        Parameters
        ----------
        place : int
            Position of the column.
        code : float
            The cell.

        Returns
        -------
        words : str
        """
        name = repr(self.columns[place])
        if np.isnan(code):
            return f"{name} is missing (never in training)"
        if self.columns[place] in self.categories:
            return f"{name} has a category that did not occur in training"
        return f"{name} is {code:.6g} ({self.seen(place)} in training)"

    def seen(self, place: int) -> str:
        """The range of a column of numbers in training, in words."""
        return f"{self.least[place]:.6g} to {self.most[place]:.6g}"


def learn_guard(
    columns: Sequence[str], categories: Mapping[str, Sequence[str]], codes: Array
) -> Guard:
    """Learn from the training cases what their columns look like.

    Parameters
    ----------
    columns : sequence of str
        Names of the columns.
    categories : mapping
        The categories of each column that has them.
    codes : ndarray of shape (n_cases, n_columns)
        The training cases.

    Returns
    -------
    Guard

    Examples
    --------
    >>> import numpy as np
    >>> from deferlearn.tables.guard import learn_guard
    >>> rng = np.random.default_rng(0)
    >>> cases = np.column_stack([rng.normal(170, 10, 500), rng.integers(0, 3, 500)])
    >>> guard = learn_guard(["height", "site"], {"site": ["Bonn", "Oslo", "Rome"]}, cases)
    >>> new = np.array([[180.0, 2.0], [1.8, 2.0], [175.0, -1.0]])
    >>> for reason in guard.reasons(new, guard.strange(new)):
    ...     print(reason or "usual")
    usual
    'height' is 1.8 (131.006 to 200.66 in training)
    'site' has a category that did not occur in training
    """
    rows, n_columns = codes.shape
    missing = np.isnan(codes)
    n_gaps = missing.sum(axis=0)
    category = np.array([name in categories for name in columns], dtype=bool)
    least, most = np.full((2, n_columns), np.nan)
    low, high = np.full(n_columns, -np.inf), np.full(n_columns, np.inf)
    values = [codes[~missing[:, place], place] for place in range(n_columns)]
    places = [place for place in range(n_columns) if not category[place] and len(values[place])]
    for place in places:
        least[place], most[place] = values[place].min(), values[place].max()
    ends = _ends([(values[place], np.flatnonzero(~missing[:, place])) for place in places], rows)
    if places:
        low[places], high[places] = ends
    low[_closed(values, category, rows)] = 0.0  # the code of an unknown category is below
    marks, shares, commonest = [], [], np.zeros(n_columns)
    for place, column in enumerate(values):
        kept, share, commonest[place] = _distribution(column, bool(category[place]))
        marks.append(kept)
        shares.append(share)
    rare_gaps = int((n_gaps == 1).sum()) <= FALSE_ALARMS * rows
    return Guard(
        columns=list(columns),
        categories={name: list(labels) for name, labels in categories.items()},
        rows=rows,
        low=low,
        high=high,
        least=least,
        most=most,
        full=(n_gaps == 0) & rare_gaps,
        gaps=n_gaps / max(rows, 1),
        marks=marks,
        shares=shares,
        commonest=commonest,
    )


def _ends(columns: list[tuple[Array, Any]], rows: int) -> tuple[list[float], list[float]]:
    """The lowest and highest usual number of each column.

    Each column is given by its values and their rows. For each end of a column, the row that holds the
    outermost value is compared with what would be expected without that row.
    """
    excess = np.zeros(rows)
    logs, firsts, lasts, margins = [], [], [], []
    for values, own in columns:
        log, scaled = _scaled(values)
        order = np.argsort(scaled, kind="stable")
        ordered = scaled[order]
        below, above = _spreads(scaled, ordered)
        both = []
        for outermost, spread, row in (
            (ordered[:3], below, own[order[0]]),
            (ordered[::-1][:3], above, own[order[-1]]),
        ):
            gap, *further = (*np.abs(np.diff(outermost)), 0.0, 0.0)
            both.append(spread + gap)
            if gap > 0:
                without = spread + further[0]
                excess[row] = max(excess[row], gap / without if without > 0 else np.inf)
        logs.append(log)
        firsts.append(ordered[0])
        lasts.append(ordered[-1])
        margins.append(both)
    allowed = int(FALSE_ALARMS * (rows + 1))
    finite = np.sort(excess[np.isfinite(excess)])[::-1]
    allowed = max(allowed - int(np.isinf(excess).sum()), 0)
    factor = 1.0
    if len(finite):
        factor = max(1.0, finite[allowed] if allowed else FEW_CASES_FACTOR * finite[0])
    low, high = [], []
    for log, first, last, margin in zip(logs, firsts, lasts, margins, strict=True):
        one, other = first - factor * margin[0], last + factor * margin[1]
        with np.errstate(over="ignore"):
            one, other = (np.exp(one), np.exp(other)) if log else (one, other)
        low.append(float(one - ROUNDING * abs(one)))
        high.append(float(other + ROUNDING * abs(other)))
    return low, high


def _scaled(values: Array) -> tuple[bool, Array]:
    """Values as they are, or their logarithms if these are closer to symmetric."""
    if values.min() <= 0:
        return False, values
    logs = np.log(values)
    return (True, logs) if _skewness(logs) < _skewness(values) else (False, values)


def _skewness(values: Array) -> float:
    scale = float(np.abs(values).max()) or 1.0  # cubes of large numbers overflow
    centred = values / scale - np.mean(values / scale)
    deviation = float(np.sqrt(np.mean(centred**2)))
    return abs(float(np.mean((centred / deviation) ** 3))) if deviation > 0 else 0.0


def _spreads(values: Array, ordered: Array) -> tuple[float, float]:
    """How far the values reach below and above their median, without the outermost ones."""
    first, median, last = np.quantile(ordered, [TAIL, 0.5, 1 - TAIL])
    below, above = float(median - first), float(last - median)
    with np.errstate(over="ignore"):
        other = max(below, above) or float(np.std(values))
    return below or other, above or other


def _closed(values: list[Array], category: Bools, rows: int) -> list[int]:
    """The columns in which an unknown category is unusual: hardly any category occurred only once."""
    singles = {
        place: int((np.unique(values[place], return_counts=True)[1] == 1).sum())
        for place in np.flatnonzero(category).tolist()
    }
    closed, total = [], 0
    for place, count in sorted(singles.items(), key=lambda item: item[1]):
        total += count
        if len(values[place]) and total <= FALSE_ALARMS * rows:
            closed.append(place)
    return closed


def _distribution(values: Array, category: bool) -> tuple[Array, Array, float]:
    """Some values of a column, the shares up to them (or of them), and the largest share of a value."""
    if not len(values):
        return np.empty(0), np.empty(0), 0.0
    distinct, counts = np.unique(values, return_counts=True)
    largest = float(counts.max() / len(values))
    if category:
        return distinct, counts / len(values), largest
    kept = np.arange(len(distinct))
    if len(kept) > MAX_MARKS:
        levels = np.linspace(0, 1, MAX_MARKS) * len(values)
        kept = np.unique(np.minimum(np.searchsorted(np.cumsum(counts), levels), len(distinct) - 1))
    return distinct[kept], np.cumsum(counts)[kept] / len(values), largest
