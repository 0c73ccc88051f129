"""The one place that knows how lambda, mu and C belong together."""

from typing import TypeVar

from deferlearn._utils.types import Array

Weight = TypeVar("Weight", float, Array)


def mu_from_alpha(alpha: float, total_weight: Weight) -> Weight:
    """``mu = 2 * alpha * m``: the weight of ``|w|^2 / 2`` against the sum of hinge losses.

    The paper writes ``lambda * m * |w|^2``, with lambda our ``alpha`` and m the number of kept samples
    (the sum of their weights). scikit-learn's C is ``1 / mu``, so it changes with every removal.

    Examples
    --------
    >>> mu_from_alpha(0.5, 10)
    10.0
    """
    return 2.0 * alpha * total_weight
