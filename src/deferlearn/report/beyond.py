"""Whether more new numbers are beyond the range of the training cases than chance brings."""

import numpy as np
from scipy.special import gammaln


def beyond_by_chance(beyond: int, new: int, known: int) -> float:
    """How likely so many of the new numbers are beyond all known ones on one side, if nothing has changed.

    If all numbers are of one kind, each order of them is as likely as any other. So this is the
    probability that the outermost ``beyond`` of all numbers are new (Rosenbaum 1954). Where numbers are
    equal, it is less likely still.

    Parameters
    ----------
    beyond : int
        How many of the new numbers are beyond.
    new, known : int
        How many new and known numbers there are.

    Returns
    -------
    p_value : float

    Examples
    --------
    >>> from deferlearn.report.beyond import beyond_by_chance
    >>> round(beyond_by_chance(1, 10, 90), 3), round(beyond_by_chance(2, 10, 90), 4)
    (0.1, 0.0091)
    """
    if not 0 < beyond <= new:
        return 1.0
    everything = new + known
    ways = gammaln(new + 1) - gammaln(new - beyond + 1)
    return float(np.exp(ways - gammaln(everything + 1) + gammaln(everything - beyond + 1)))
