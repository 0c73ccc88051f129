"""What alarms watch: events with a limit that their probability keeps if nothing has changed.

Each function turns observations into bets (`deferlearn.desk.monitoring.evidence`). The limits leave some
room, because a small change is of no interest, and because what was expected is itself an estimate.
The guarantee is: as long as the probability of the event stays within its limit, case by case, the
probability of an alarm is at most the stated rate, from the activation of a model until the next one. Cases
that hang together, such as many of one patient, can break it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from deferlearn._utils.types import Array
from deferlearn.desk.monitoring.evidence import bets_on
from deferlearn.tables.guard import Guard

# The kinds of alarms.
UNUSUAL, DEFERRED, COLUMN = "unusual cases", "share deferred", "shift of a column"
MACHINE, DISAGREEMENT, EXPERT = "machine's error", "machine against experts", "expert's error"
KINDS = (UNUSUAL, DEFERRED, COLUMN, MACHINE, DISAGREEMENT, EXPERT)
# The probability of a false alarm of each kind, from one activation of a model to the next.
RATE = 0.01
# Errors may exceed those expected by this part of them, or by this share where they are rare.
ROOM, LEAST_ERROR = 0.25, 0.01
# The share of unusual cases is about this at most, if cases are like those of training.
UNUSUAL_LIMIT = 0.01
# The share deferred may exceed the budget by this part of it.
BUDGET_ROOM = 0.25
# The shares of a column's values may differ by this much from training, beyond chance.
SHIFT_ROOM = 0.1
# Values of a column at which shares are compared, and the most of its categories.
N_MARKS, MOST_CATEGORIES = 9, 20


def error_limits(expected: ArrayLike, worst: float = 1.0) -> Array:
    """Up to which mean errors are as expected; `worst` is what the worst answer costs."""
    foreseen = np.asarray(expected, dtype=np.float64)
    return np.minimum(np.maximum((1 + ROOM) * foreseen, foreseen + LEAST_ERROR), 0.95 * worst)


def error_bets(errors: ArrayLike, expected: ArrayLike, worst: float = 1.0) -> Array:
    """Bets that answers are worse than expected.

    Parameters
    ----------
    errors : array-like of shape (n_cases,)
        1 wrong, 0 right, or grades off; NaN not known.
    expected : array-like of shape (n_cases,)
        The expected error of each case, in the same unit; NaN where there is none, where the bet is off.
    worst : float, default=1
        What the worst answer costs.

    Returns
    -------
    bets : ndarray of shape (n_cases, n_bets)
    """
    foreseen = np.asarray(expected, dtype=np.float64)
    found = np.where(np.isnan(foreseen), np.nan, np.asarray(errors, dtype=np.float64) / worst)
    limits = error_limits(np.where(np.isnan(foreseen), 0.5, foreseen), worst)
    return bets_on(found, limits / worst)


def unusual_bets(unusual: ArrayLike) -> Array:
    """Bets that cases are unlike the training cases more often than they should be."""
    return bets_on(unusual, UNUSUAL_LIMIT)


def deferral_bets(deferred: ArrayLike, budget: float) -> Array:
    """Bets that more cases are deferred than the budget allows, with some room."""
    return bets_on(deferred, min((1 + BUDGET_ROOM) * budget, 1.0))


def column_bets(guard: Guard, place: int, codes: Array, rate: float = RATE) -> Array:
    """Bets that a column has another distribution than in training.

    Some values split the column: the share up to each may be larger or smaller than in training. So may the
    share of each category, and that of gaps. What the training cases leave unknown is added to the room.

    Parameters
    ----------
    guard : Guard
        What the training cases looked like.
    place : int
        Position of the column.
    codes : ndarray of shape (n_cases, ...)
        The column of new cases.
    rate : float, default=0.01
        The false-alarm rate of all columns together, of which `column_rate` is left for each column's bets.

    Returns
    -------
    bets : ndarray of shape (n_cases, ..., n_bets)
    """
    events, shares = _events(guard, place, codes)
    # The other half of the rate of a column, less the part of its bets.
    doubt = np.log(2 * len(shares) / column_rate(guard, rate)) / 2
    room = SHIFT_ROOM + np.sqrt(doubt / guard.rows)
    more = bets_on(events, shares + room)
    fewer = bets_on(1 - events, 1 - shares + room)
    # A limit of 1 cannot be exceeded: such bets would only cost.
    bets = [
        side[..., k, :]
        for side, limits in ((more, shares + room), (fewer, 1 - shares + room))
        for k in np.flatnonzero(limits < 1).tolist()
    ]
    if not bets:
        return np.zeros((*codes.shape, 1))
    return np.concatenate(bets, axis=-1)


def column_rate(guard: Guard, rate: float = RATE) -> float:
    """The false-alarm rate of the bets on one column: the other half is for chance in training."""
    return rate / (2 * len(guard.columns))


def _events(guard: Guard, place: int, codes: Array) -> tuple[Array, Array]:
    """Events in a column, NaN where a gap leaves them open, and their shares in training."""
    missing = np.isnan(codes)
    events, shares = [missing.astype(np.float64)], [float(guard.gaps[place])]
    marks, up_to = guard.marks[place], guard.shares[place]
    if guard.columns[place] in guard.categories:
        common = np.argsort(-up_to, kind="stable")[:MOST_CATEGORIES]
        for code, share in zip(marks[common], up_to[common], strict=True):
            events.append(np.where(missing, np.nan, codes == code))
            shares.append(float(share))
        events.append(np.where(missing, np.nan, codes < 0))
        shares.append(0.0)
    elif len(marks):
        wanted = np.arange(1, N_MARKS + 1) / (N_MARKS + 1)
        for k in np.unique(np.minimum(np.searchsorted(up_to, wanted), len(marks) - 1)).tolist():
            events.append(np.where(missing, np.nan, codes <= marks[k]))
            shares.append(float(up_to[k]))
    return np.stack(events, axis=-1), np.array(shares)
