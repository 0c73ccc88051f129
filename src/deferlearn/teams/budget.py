"""A budget as a number of cases, and as a share of them."""

from numbers import Integral, Real
from typing import Any

import numpy as np

from deferlearn._utils.checks import plain

# Guards floor(budget * n) against 0.29 * 100 = 28.999999999999996.
ROUNDING = 1e-9


def count_of(budget: Any, n: int, what: str = "samples") -> int:
    """How many of n a budget stands for: a fraction (float) or a number (int)."""
    if isinstance(budget, bool | np.bool_) or not isinstance(budget, Real):
        raise ValueError(
            f"budget={plain(budget)!r} must be a fraction (float in [0, 1]) or a number of {what} (int)."
        )
    if isinstance(budget, Integral):
        if not 0 <= int(budget) <= n:
            raise ValueError(
                f"budget={budget} is a number of {what} and must be between 0 and {n}, their number "
                "here; for a fraction give a float."
            )
        return int(budget)
    if not 0.0 <= float(budget) <= 1.0:
        raise ValueError(
            f"budget={plain(budget)!r} is a fraction of the {what} and must be in [0, 1]."
        )
    return int(np.floor(float(budget) * n + ROUNDING))


def share_of(budget: Any, n: int) -> float:
    """The share of n that a checked budget stands for."""
    return int(budget) / n if isinstance(budget, Integral) else float(budget)
