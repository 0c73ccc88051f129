"""Who takes which case: the best assignment under hard capacities, and the prices that explain it.

Case i gains ``gain[i, o]`` if option o takes it instead of the machine. An option is an expert, or several
who read a case one after the other. Each expert takes at most ``capacity[e]`` cases, all options
together at most ``total``, and a case goes to one option or stays with the machine (gain 0). With one
expert per option this is a transportation problem, whose linear programme has a solution in whole
numbers. Its dual has a price per expert: at these prices no case could gain by another option.
"""

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.optimize import linprog, minimize

from deferlearn._utils.types import Array, Bools

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
# The flow above which a case counts as placed.
WHOLE = 1 - 1e-6


class Assignment(NamedTuple):
    """An assignment of cases, and the prices at which nobody could do better.

    Attributes
    ----------
    chosen : ndarray of int of shape (n_cases,)
        The place of the option that takes each case; `MACHINE` is -1.
    prices : ndarray of shape (n_experts,)
        What one more case for each expert would be worth; 0 where capacity is left.
    common : float
        What one more case for any option would be worth, on top of the prices.
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


class _Problem(NamedTuple):
    gain: Array
    capacity: Array
    total: float
    usage: Array

    def net(self, prices: Array, common: float) -> Array:
        """What each column gains after the prices of its option."""
        return np.asarray(self.gain - self.usage @ prices - common)


def transport(gain: Array, capacity: Array, total: float, usage: Array | None = None) -> Assignment:
    """Find the assignment with the largest sum of gains under hard capacities.

    Only the columns of a case that could matter at the present prices enter the linear programme; those
    that could gain at its own prices are added, until none could.

    Parameters
    ----------
    gain : ndarray of shape (n_cases, n_options)
        What each option gains on each case over the machine.
    capacity : ndarray of shape (n_experts,)
        The most cases that each expert takes: whole numbers, or any for prices on average.
    total : float
        The most cases that all options take.
    usage : ndarray of shape (n_options, n_experts) or None, default=None
        How many cases of each expert's capacity an option uses; None: options are the experts. Otherwise
        a few cases of the programme's solution may be split; they are placed one by one, and the
        assignment may fall short of the bound by a little.

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
    >>> round(found.gain, 6), round(found.bound, 6)
    (1.2, 1.2)
    """
    gain, capacity, usage = _checked(gain, capacity, total, usage)
    n = len(gain)
    capacity = np.minimum(capacity, n * max(1.0, usage.max()))
    # What all capacities together allow is a limit, too, which helps to find prices.
    each = float(usage.sum(axis=1).min())
    implied = float(total) >= float(capacity.sum()) / each
    total = min(float(total), float(n), float(capacity.sum()) / each)
    usable = gain > 0
    if not usable.any():
        return Assignment(np.full(n, MACHINE), np.zeros(len(capacity)), 0.0, 0.0, 0.0)
    # The solver's tolerances are absolute numbers, and the unit of gains is the user's.
    unit = float(gain.max())
    gain = gain / unit
    problem = _Problem(gain, capacity, total, usage)
    columns = usable
    if gain.size > MANY:
        net = problem.net(*_first_prices(problem))
        lead = net - np.maximum(net.max(axis=1, keepdims=True), 0.0)
        columns = usable & (lead >= -WIDTH)
    while True:
        flow, prices, common = _solve(problem, columns)
        net = problem.net(prices, common)
        duals = np.maximum(net.max(axis=1, where=columns, initial=0.0), 0.0)
        missing = usable & ~columns & (net > duals[:, None] + SLACK)
        if not missing.any():
            break
        columns = columns | missing
    chosen = _place(problem, columns, flow)
    placed = np.flatnonzero(chosen >= 0)
    won = float(gain[placed, chosen[placed]].sum())
    bound = float(duals.sum() + prices @ capacity + common * total)
    if implied:  # then it is the experts' time that is short, and not a budget
        prices, common = prices + common / each, 0.0
    return Assignment(chosen, unit * prices, unit * common, unit * won, unit * max(bound, won))


def place_all(cost: Array, capacity: Array, total: float) -> Assignment:
    """Place as many cases as there is room for, at the smallest sum of costs.

    Parameters
    ----------
    cost : ndarray of shape (n_cases, n_experts)
        What it costs if an expert takes a case; it may be negative.
    capacity : ndarray of shape (n_experts,)
        The most cases that each expert takes.
    total : float
        The most cases that all of them take.

    Returns
    -------
    assignment : Assignment
        Its gains are those over the largest cost.

    Examples
    --------
    >>> import numpy as np
    >>> from deferlearn.experts.transport import place_all
    >>> place_all(np.array([[0.9, 0.5], [0.1, 0.4]]), np.array([1, 1]), total=2).chosen
    array([1, 0])
    """
    if not len(cost):
        return transport(cost, capacity, total)
    # Every expert may take every case. So if a case is left out while there is room, it could be placed
    # without moving others: it is enough that each placement is worth a little more than nothing. A larger
    # reward would make differences between experts small beside it, and hard to tell for the solver.
    least = 0.01 * (float(np.ptp(cost)) or 1.0)
    return transport(float(cost.max()) + least - cost, capacity, total)


def _checked(
    gain: Array, capacity: Array, total: float, usage: Array | None
) -> tuple[Array, Array, Array]:
    """The arrays of an assignment as numbers, if they fit together."""
    gain, capacity = (np.asarray(values, dtype=np.float64) for values in (gain, capacity))
    if gain.ndim != 2 or gain.shape[1] == 0:
        raise ValueError(
            f"gain is of the shape {gain.shape}, but must be (n_cases, n_options), with one option or more."
        )
    usage = np.eye(gain.shape[1]) if usage is None else np.asarray(usage, dtype=np.float64)
    if usage.shape != (gain.shape[1], capacity.size) or capacity.ndim != 1:
        raise ValueError(
            f"gain has {gain.shape[1]} options, usage is of the shape {usage.shape}, and capacity of the "
            f"shape {capacity.shape}: usage must be (n_options, n_experts), and without it there must be "
            "one capacity per option."
        )
    for name, values, least in (
        ("gain", gain, -np.inf),
        ("capacity", capacity, 0.0),
        ("usage", usage, 0.0),
        ("total", np.asarray(total, dtype=np.float64), 0.0),
    ):
        if np.isnan(values).any() or (values < least).any():
            raise ValueError(f"{name} must hold numbers{', 0 or larger' if least == 0 else ''}.")
    if np.isinf(gain).any() or np.isinf(usage).any():
        raise ValueError("gain and usage must be finite.")
    if not (usage.sum(axis=1) > 0).all():
        raise ValueError("usage must be above 0 for at least one expert of each option.")
    return gain, capacity, usage


def _place(problem: _Problem, columns: Bools, flow: Array) -> Places:
    """The options that take cases as a whole; cases in parts go where there is room left."""
    rows, options = np.nonzero(columns)
    chosen = np.full(len(problem.gain), MACHINE)
    whole = flow > WHOLE
    chosen[rows[whole]] = options[whole]
    left = problem.capacity - problem.usage[options[whole]].sum(axis=0)
    room = problem.total - float(whole.sum())
    parts = np.flatnonzero(~whole & (flow > 1 - WHOLE))
    for part in parts[np.argsort(-problem.gain[rows[parts], options[parts]], kind="stable")]:
        row, option = rows[part], options[part]
        used = problem.usage[option]
        if chosen[row] == MACHINE and room >= WHOLE and (used <= left + 1e-9).all():
            chosen[row] = option
            left, room = left - used, room - 1.0
    return chosen


def _first_prices(problem: _Problem) -> tuple[Array, float]:
    """Prices near the best ones: those of a smooth problem, in which near-ties are shared out.

    The dual function has a corner at every case that is undecided. With the largest gain over the options
    replaced by a soft maximum it has none, and comes closer as the softness goes to zero.
    """
    n = len(problem.gain)
    prices = np.zeros(len(problem.capacity) + 1)
    most = np.append(problem.capacity, problem.total) / n
    for step, softness in zip((max(1, n // PILOT_CASES), 1, 1), SOFTNESS, strict=True):
        prices = minimize(
            _soft_dual,
            prices,
            args=(problem._replace(gain=problem.gain[::step]), most, softness),
            jac=True,
            method="L-BFGS-B",
            bounds=[(0.0, None)] * len(prices),
            options={"maxiter": 100},
        ).x
    return prices[:-1], float(prices[-1])


def _soft_dual(prices: Array, problem: _Problem, most: Array, width: float) -> tuple[float, Array]:
    """The soft dual function per case, and its gradient: capacity less expected load."""
    net = problem.net(prices[:-1], float(prices[-1])) / width
    top = np.maximum(net.max(axis=1), 0.0)
    np.exp(net - top[:, None], out=net)
    whole = net.sum(axis=1) + np.exp(-top)
    load = (net / whole[:, None]).mean(axis=0)
    value = float(most @ prices + width * np.mean(top + np.log(whole)))
    return value, most - np.append(load @ problem.usage, load.sum())


def _solve(problem: _Problem, columns: Bools) -> tuple[Array, Array, float]:
    """The programme on some columns: the flow in each, the prices, and the price of the total."""
    n, n_experts = len(problem.gain), len(problem.capacity)
    rows, options = np.nonzero(columns)
    m = len(rows)
    each = np.arange(m)
    by_case = sp.csr_array((np.ones(m), (rows, each)), shape=(n, m))
    by_expert = sp.csr_array(problem.usage[options].T)
    matrix = sp.vstack([by_case, by_expert, np.ones((1, m))]).tocsr()
    found = linprog(
        -problem.gain[rows, options],
        A_ub=matrix,
        b_ub=np.concatenate([np.ones(n), problem.capacity, [problem.total]]),
        bounds=(0, None),
        method="highs-ipm" if m > MANY // 2 else "highs-ds",
    )
    if not found.success:
        raise RuntimeError(f"The assignment could not be solved: {found.message}")
    prices = np.maximum(-np.asarray(found.ineqlin.marginals)[n:], 0.0)
    return np.asarray(found.x), prices[:n_experts], float(prices[-1])
