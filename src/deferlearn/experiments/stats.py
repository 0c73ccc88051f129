"""Means with 95% t-intervals, and paired differences, with the same splits for both sides."""

from collections.abc import Sequence
from typing import Any

import pandas as pd

from deferlearn.evaluation.intervals import t_interval


def summary(rows: pd.DataFrame, by: Sequence[str], values: Sequence[str]) -> pd.DataFrame:
    """One line per group: the number of runs, and mean, low and high of each value.

    Parameters
    ----------
    rows : DataFrame
        One row per run.
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
        One row per seed, in any order; only seeds that both have are compared.
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
        Columns in which both sides must agree, such as the budget.
    methods : sequence of (method, policy)
        Methods that are compared.
    baselines : sequence of str
        What they are compared with; this may be another method, with the same policy.
    values : sequence of str
        Columns to compare.

    Returns
    -------
    lines : DataFrame
        One line per group, method and baseline.
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
    names = (name, f"{name}_low", f"{name}_high")
    return dict(zip(names, map(float, t_interval(values)), strict=True))
