"""Whether a claim holds, by the 95% intervals of its cases.

With one split there are no intervals: then the numbers themselves are compared, and the verdict says so.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pandas as pd

from deferlearn.experiments.config import Config

Cases: TypeAlias = Sequence[bool] | pd.Series


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper, and what our numbers say.

    Attributes
    ----------
    experiment : str
        The experiment whose tables judge it.
    text : str
        The claim.
    verdict : str
        "holds", "holds in part", "does not hold", with "on one split" if there was only one.
    numbers : str
        The numbers behind the verdict.
    """

    experiment: str
    text: str
    verdict: str
    numbers: str


def below_zero(lines: pd.DataFrame, value: str) -> pd.Series:
    """Which lines are shown to be negative; with one run, which are negative at all."""
    high = lines[f"{value}_high"]
    return (high < 0) | (high.isna() & (lines[value] < 0))


def above_zero(lines: pd.DataFrame, value: str) -> pd.Series:
    """Which lines are shown to be positive; with one run, which are positive at all."""
    low = lines[f"{value}_low"]
    return (low > 0) | (low.isna() & (lines[value] > 0))


def verdict(agreeing: Cases, config: Config) -> str:
    """The verdict of a claim about several cases; a claim without cases cannot be judged.

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
        return "cannot be judged"
    word = "holds" if cases.all() else "holds in part" if cases.any() else "does not hold"
    return f"{word}, on one split" if config.splits == 1 else word
