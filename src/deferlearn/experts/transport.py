"""Who takes which case: the best assignment under hard capacities, and the prices that explain it.

Case i gains ``gain[i, e]`` if option e takes it instead of the machine. Each option takes at most
``capacity[e]`` cases, all of them together at most ``total``, and a case goes to one option or stays with
the machine (gain 0). The linear programme of this transportation problem has a solution in whole numbers.
Its dual has a price per option: no case could gain by another option at these prices.
"""

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.optimize import linprog, minimize

from deferlearn._utils.types import Array

# Whom a case goes to, as a place among the options; the machine's place.
Places = NDArray[np.int64]
MACHINE = -1
# A programme with more columns than this is first made smaller by prices.
MANY = 20_000
# These are found on a part of so many cases before all cases are looked at, more and more exactly: shares
# of the largest gain.
PILOT_CASES, SOFTNESS = 2000, (1e-2, 1e-2, 1e-3)
# A column enters if at these prices it is within this share of the best of its case.
WIDTH = 0.01
# What a column may gain at prices that count as optimal, as a share of the largest gain.
SLACK = 1e-9


class Assignment(NamedTuple):
    """An assignment of cases, and the prices at which nobody could do better.

    Attributes
    ----------
    chosen : ndarray of int of shape (n_cases,)
        The place of the option that takes each case; `MACHINE` is -1.
    prices : ndarray of shape (n_options,)
        What one more case for each option would be worth; 0 where capacity is left.
    common : float
        What one more case for any of them would be worth, on top of the prices.
    gain : float
        The sum of the gains.
    bound : float
        No assignment gains more, by weak duality at these prices.
    """

    chosen: Places
    prices: Array
    common: float
    gain: float
    bound: float


def transport(gain: Array, capacity: Array, total: float) -> Assignment:
    """Find the assignment with the largest sum of gains under hard capacities.

    Only the columns of a case that could matter at the present prices enter the linear programme; those
    that could gain at its own prices are added, until none could.

    Parameters
    ----------
    gain : ndarray of shape (n_cases, n_options)
        What each option gains on each case over the machine.
    capacity : ndarray of shape (n_options,)
        The most cases that each option takes: whole numbers, or any for prices on average.
    total : float
        The most cases that all of them take.

    Returns
    -------
    assignment : Assignment

    Examples
    --------
    >>> import numpy as np
    >>> from deferlearn.experts.transport import transport
    >>> gain = np.array([[0.5, 0.4], [0.6, 0.1], [-0.1, 0.2]])
    >>> found = transport(gain, np.array([1, 2]), total=3)
    >>> found.chosen
    array([1, 0, 1])
    >>> found.gain == found.bound
    True
    """
    n, n_options = gain.shape
    capacity = np.minimum(np.asarray(capacity, dtype=np.float64), n)
    total = min(float(total), float(n), float(capacity.sum()))
    usable = gain > 0
    if not usable.any():
        return Assignment(np.full(n, MACHINE), np.zeros(n_options), 0.0, 0.0, 0.0)
    slack = SLACK * float(gain.max())
    columns = usable
    if gain.size > MANY:
        columns = usable & (
            _reduced(gain, _first_prices(gain, capacity, total)) >= -WIDTH * gain.max()
        )
    while True:
        flow, prices, common = _solve(gain, columns, capacity, total)
        duals = np.maximum((gain - prices - common).max(axis=1, where=columns, initial=0.0), 0.0)
        missing = usable & ~columns & (gain - prices - common > duals[:, None] + slack)
        if not missing.any():
            break
        columns |= missing
    chosen = np.full(n, MACHINE)
    rows, options = np.nonzero(columns)
    # Capacities that are no whole numbers leave one case in parts; it stays with the machine.
    taken = flow > 1 - 1e-6
    chosen[rows[taken]] = options[taken]
    won = float(gain[rows[taken], options[taken]].sum())
    bound = bound_at(gain, capacity, total, prices, common)
    return Assignment(chosen, prices, common, won, max(bound, won))


def bound_at(
    gain: Array, capacity: Array, total: float, prices: Array, common: float = 0.0
) -> float:
    """The most that any assignment can gain, by weak duality: true at all prices that are not negative."""
    best = np.maximum((gain - prices).max(axis=1) - common, 0.0)
    return float(best.sum() + prices @ capacity + common * total)


def _first_prices(gain: Array, capacity: Array, total: float) -> Array:
    """Prices near the best ones: those of a smooth problem, in which near-ties are shared out.

    The dual function has a corner at every case that is undecided. With the largest gain over the options
    replaced by a soft maximum it has none, and comes closer as the softness goes to zero.
    """
    n, n_options = gain.shape
    prices = np.zeros(n_options + 1)
    for step, softness in zip((max(1, n // PILOT_CASES), 1, 1), SOFTNESS, strict=True):
        part = gain[::step]
        width = softness * float(gain.max())
        most = np.append(capacity, total) / n
        found = minimize(
            _soft_dual,
            prices,
            args=(part, most, width),
            jac=True,
            method="L-BFGS-B",
            bounds=[(0.0, None)] * len(prices),
            options={"maxiter": 100},
        )
        prices = found.x
    return np.asarray(prices[:-1] + prices[-1])


def _soft_dual(prices: Array, gain: Array, most: Array, width: float) -> tuple[float, Array]:
    """The soft dual function per case, and its gradient: capacity less expected load."""
    net = (gain - prices[:-1] - prices[-1]) / width
    top = np.maximum(net.max(axis=1), 0.0)
    np.exp(net - top[:, None], out=net)
    whole = net.sum(axis=1) + np.exp(-top)
    load = (net / whole[:, None]).mean(axis=0)
    value = float(most @ prices + width * np.mean(top + np.log(whole)))
    return value, most - np.append(load, load.sum())


def _reduced(gain: Array, prices: Array) -> Array:
    """What each column gains at these prices less than the best of its case: 0 is best."""
    net = gain - prices
    return np.asarray(net - np.maximum(net.max(axis=1, keepdims=True), 0.0))


def _solve(
    gain: Array, columns: NDArray[np.bool_], capacity: Array, total: float
) -> tuple[Array, Array, float]:
    """The programme on some columns: the flow in each, the prices, and the price of the total."""
    n, n_options = gain.shape
    rows, options = np.nonzero(columns)
    m = len(rows)
    each = np.arange(m)
    matrix = sp.csr_array(
        (
            np.ones(3 * m),
            (
                np.concatenate([rows, n + options, np.full(m, n + n_options)]),
                np.concatenate([each, each, each]),
            ),
        ),
        shape=(n + n_options + 1, m),
    )
    most = np.concatenate([np.ones(n), capacity, [total]])
    found = linprog(
        -gain[rows, options],
        A_ub=matrix,
        b_ub=most,
        bounds=(0, None),
        method="highs-ipm" if m > MANY // 2 else "highs-ds",
    )
    if not found.success:
        raise RuntimeError(f"The assignment could not be solved: {found.message}")
    prices = np.maximum(-np.asarray(found.ineqlin.marginals)[n:], 0.0)
    return np.asarray(found.x), prices[:-1], float(prices[-1])
