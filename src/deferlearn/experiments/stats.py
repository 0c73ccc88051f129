"""Means with 95% t-intervals, and paired differences: the same splits for both sides."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

CONFIDENCE = 0.95


def t_interval(values: Any, confidence: float = CONFIDENCE) -> tuple[float, float, float]:
    """Mean, and lower and upper end of its t-interval; NaN for what the values do not tell.

    One value tells nothing of the interval, and none nothing at all.

    Parameters
    ----------
    values : array-like of shape (n,)
        One number a split or draw.
    confidence : float, default=0.95
        Level of the interval.

    Returns
    -------
    mean, low, high : float

    Examples
    --------
    >>> from deferlearn.experiments.stats import t_interval
    >>> [round(x, 3) for x in t_interval([1.0, 2.0, 3.0])]
    [2.0, -0.484, 4.484]
    """
    numbers = np.asarray(values, dtype=np.float64)
    mean = float(numbers.mean()) if len(numbers) else float("nan")
    if len(numbers) < 2:
        return mean, float("nan"), float("nan")
    width = stats.t.ppf((1 + confidence) / 2, len(numbers) - 1)
    half = float(width * numbers.std(ddof=1) / np.sqrt(len(numbers)))
    return mean, mean - half, mean + half


def summary(rows: pd.DataFrame, by: Sequence[str], values: Sequence[str]) -> pd.DataFrame:
    """One line a group: how many runs, and mean, low and high of each value.

    Parameters
    ----------
    rows : DataFrame
        A row a run.
    by : sequence of str
        Columns that make a group.
    values : sequence of str
        Columns to average.

    Returns
    -------
    lines : DataFrame
        Groups in the order in which they appear.
    """
    lines = []
    for names, group in rows.groupby(list(by), sort=False, dropna=False):
        line: dict[str, Any] = dict(zip(by, names, strict=True))
        line["runs"] = len(group)
        for value in values:
            line |= _ends(value, group[value])
        lines.append(line)
    return pd.DataFrame(lines)


def paired(own: pd.DataFrame, other: pd.DataFrame, values: Sequence[str]) -> dict[str, Any]:
    """Mean, low and high of own minus other, seed by seed.

    Parameters
    ----------
    own, other : DataFrame
        A row a seed, in any order; only seeds that both have are compared.
    values : sequence of str
        Columns to compare.

    Returns
    -------
    line : dict
        `runs`; and for each value `value`, `value_low`, `value_high`.

    Examples
    --------
    >>> import pandas as pd
    >>> from deferlearn.experiments.stats import paired
    >>> own = pd.DataFrame({"seed": [0, 1], "error": [0.25, 0.5]})
    >>> other = pd.DataFrame({"seed": [1, 0], "error": [0.75, 0.5]})
    >>> paired(own, other, ["error"])
    {'runs': 2, 'error': -0.25, 'error_low': -0.25, 'error_high': -0.25}
    """
    own, other = own.set_index("seed"), other.set_index("seed")
    seeds = own.index.intersection(other.index)
    line: dict[str, Any] = {"runs": len(seeds)}
    for value in values:
        line |= _ends(value, own.loc[seeds, value] - other.loc[seeds, value])
    return line


def differences(
    rows: pd.DataFrame,
    within: Sequence[str],
    methods: Sequence[tuple[str, str]],
    baselines: Sequence[str],
    values: Sequence[str],
) -> pd.DataFrame:
    """Method minus baseline, split by split, with the interval of the mean difference.

    Parameters
    ----------
    rows : DataFrame
        With the columns `method`, `policy` and `seed`.
    within : sequence of str
        Columns in which both sides agree, such as the budget.
    methods : sequence of (method, policy)
        Whose rows are compared.
    baselines : sequence of str
        With whose; one of them may itself be a method, with the same policy.
    values : sequence of str
        Columns to compare.

    Returns
    -------
    lines : DataFrame
        A line for each group, method and baseline.
    """
    lines = []
    for names, group in rows.groupby(list(within), sort=False):
        for method, policy in methods:
            own = _of(group, method, policy)
            for baseline in baselines:
                if baseline == method:
                    continue
                other = _of(group, baseline, policy)
                if own.empty or other.empty:
                    continue
                line: dict[str, Any] = dict(zip(within, names, strict=True))
                line |= {"method": method, "policy": policy, "minus": baseline}
                lines.append(line | paired(own, other, values))
    return pd.DataFrame(lines)


def _of(group: pd.DataFrame, method: str, policy: str) -> pd.DataFrame:
    return group[(group["method"] == method) & group["policy"].isin([policy, ""])]


def _ends(name: str, values: Any) -> dict[str, float]:
    mean, low, high = t_interval(values)
    return {name: mean, f"{name}_low": low, f"{name}_high": high}
