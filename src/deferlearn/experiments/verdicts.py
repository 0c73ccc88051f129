"""Whether a claim holds: what the 95% intervals of its cases say, in words.

With one split there are no intervals: then the numbers themselves are compared, and the verdict says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from deferlearn.experiments.config import Config

# How the page explains it.
MEANING = """\
A claim **holds** where the 95% intervals say so in every case that it speaks of, **holds in part** where
they do in some, and **does not hold** where they do in none: they say the contrary, or cannot tell.
A claim about most cases holds for a data set where they do in more than half of its cases. How large a
"large margin" must be is not judged: see the numbers. Nothing is corrected for many comparisons."""
MEANING_OF_ONE_SPLIT = """\
One split has no intervals: a claim **holds** where the numbers agree with it in every case that it speaks
of, **holds in part** where they do in some, and **does not hold** where they do in none. A difference of a
few test cases is within what another split may bring: see the repeated protocol."""


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper, and what our numbers say.

    Attributes
    ----------
    experiment : str
        Whose tables judge it.
    text : str
        The claim.
    verdict : str
        "holds", "holds in part", "does not hold", with "on one split" if there was one only.
    numbers : str
        Why.
    """

    experiment: str
    text: str
    verdict: str
    numbers: str


def below_zero(lines: pd.DataFrame, value: str) -> pd.Series:
    """Which lines are certainly negative; with one run, which are negative at all."""
    high = lines[f"{value}_high"]
    return (high < 0) | (high.isna() & (lines[value] < 0))


def above_zero(lines: pd.DataFrame, value: str) -> pd.Series:
    """Which lines are certainly positive; with one run, which are positive at all."""
    low = lines[f"{value}_low"]
    return (low > 0) | (low.isna() & (lines[value] > 0))


def verdict(agreeing: Sequence[bool] | pd.Series, config: Config) -> str:
    """The verdict of a claim about several cases; one without cases cannot be judged.

    Examples
    --------
    >>> from deferlearn.experiments import Config
    >>> from deferlearn.experiments.verdicts import verdict
    >>> verdict([True, False], Config.preset())
    'holds in part'
    >>> verdict([True, True], Config.preset("published"))
    'holds, on one split'
    """
    cases = np.asarray(agreeing, dtype=bool)
    if not len(cases):
        return "cannot be told"
    word = "holds" if cases.all() else "holds in part" if cases.any() else "does not hold"
    return f"{word}, on one split" if config.splits == 1 else word


def with_interval(line: pd.Series, value: str, digits: int = 3) -> str:
    """A mean with its interval, as "0.123 [0.100, 0.200]"."""
    mean, low, high = (line[f"{value}{end}"] for end in ("", "_low", "_high"))
    if np.isnan(low):
        return f"{mean:.{digits}f}"
    return f"{mean:.{digits}f} [{low:.{digits}f}, {high:.{digits}f}]"
