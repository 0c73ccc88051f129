r"""Evidence that something has changed, which may be looked at after every case.

Imagine a gambler who bets against "nothing has changed", at fair odds and without credit. If nothing has
changed, his capital is not expected to grow, and the probability that it is *ever* multiplied by
:math:`1/a` is at most :math:`a` (Ville's inequality). So an alarm at a capital of 100 is false in at most
1% of the desks, however often somebody looks, and however long the desk runs. The capital is also called an
e-value.

A bet on an event, such as a wrong answer, multiplies its stake by the ratio of two probabilities of what
was seen: with the odds of the event some factor above the limit, and at the limit. The gambler spreads his
capital over several factors, since the size of a change is not known. He also spreads it over the moments
at which the change may happen: half of it is at stake from the beginning, and the rest is laid out case by
case, the part

.. math:: \frac{1}{2} \Big( \frac{\ln h}{\ln (t + h)} \Big)

being still in reserve after :math:`t` cases. A late change is thereby found nearly as fast as an early one:
good times before it cost nothing but the reserve's logarithm.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from deferlearn._utils.types import Array

# By how much the odds of an event may have changed.
FACTORS = (1.3, 2.0, 4.0, 16.0, 256.0)
# The share of the capital at stake from the first case on, and how evenly the rest is laid out.
AT_ONCE, HORIZON = 0.5, 50.0
# Limits of probabilities are kept between these: nothing is impossible.
LEAST, MOST = 1e-3, 1.0 - 1e-3


@dataclass(frozen=True)
class Evidence:
    """The state of a test after some cases.

    Attributes
    ----------
    count : int
        Cases seen.
    stakes : tuple of float
        Logarithm of what each bet has become; empty before the first case.
    peak : float
        Logarithm of the largest capital so far, to the base e.
    """

    count: int = 0
    stakes: tuple[float, ...] = ()
    peak: float = 0.0

    def after(self, bets: Array) -> tuple[Evidence, Array]:
        """The state after more cases, and the logarithm of the capital after each of them.

        Parameters
        ----------
        bets : ndarray of shape (n_cases, n_bets)
            Logarithms of the factors by which the cases multiply the stakes, such as from `bets_on`.

        Returns
        -------
        evidence : Evidence
        log_capital : ndarray of shape (n_cases,)
        """
        if not len(bets):
            return self, np.empty(0)
        before = np.array(self.stakes) if self.stakes else None
        stakes, capital = log_capital(bets, self.count, before)
        peak = max(self.peak, float(capital.max()))
        return Evidence(self.count + len(bets), tuple(stakes[-1].tolist()), peak), capital

    def plain(self) -> dict[str, Any]:
        """The state as plain values, for the database."""
        return {"count": self.count, "stakes": list(self.stakes), "peak": self.peak}

    @classmethod
    def from_plain(cls, values: dict[str, Any]) -> Evidence:
        """The state that `plain` wrote."""
        return cls(values["count"], tuple(values["stakes"]), values["peak"])


def reserve(count: ArrayLike) -> Array:
    """The share of the capital that is not at stake yet after some cases."""
    shared = np.log(HORIZON) / np.log(np.asarray(count, dtype=np.float64) + HORIZON)
    return np.where(np.asarray(count) > 0, (1 - AT_ONCE) * shared, 1.0)


def log_capital(bets: Array, count: int = 0, before: Array | None = None) -> tuple[Array, Array]:
    """What becomes of the capital, case by case.

    Parameters
    ----------
    bets : ndarray of shape (n_cases, ..., n_bets)
        Logarithms of the factors by which the cases multiply the stakes. There may be axes in between, such
        as one for simulated desks.
    count : int, default=0
        Cases before these.
    before : ndarray of shape (..., n_bets) or None, default=None
        Logarithms of the stakes before these cases; None if there were none.

    Returns
    -------
    stakes : ndarray of shape (n_cases, ..., n_bets)
        Logarithms of the stakes after each case, as shares of the whole capital of each bet.
    log_capital : ndarray of shape (n_cases, ...)
        Logarithm of the mean capital of all bets.
    """
    times = np.arange(count, count + len(bets) + 1)
    kept = reserve(times)
    with np.errstate(divide="ignore"):
        laid = np.log(kept[:-1] - kept[1:])
    stakes = np.empty_like(bets)
    stake = np.full(bets.shape[1:], -np.inf) if before is None else before
    for t, bet in enumerate(bets):  # what is laid out for a case is multiplied by its own bet
        stake = np.logaddexp(stake, laid[t]) + bet
        stakes[t] = stake
    largest = stakes.max(axis=-1)
    mean = largest + np.log(np.exp(stakes - largest[..., None]).mean(axis=-1))
    rest = np.log(kept[1:]).reshape(-1, *[1] * (mean.ndim - 1))
    return stakes, np.logaddexp(mean, rest)


def bets_on(happened: ArrayLike, limit: ArrayLike, factors: ArrayLike = FACTORS) -> Array:
    """Bets that an event is more probable than a limit.

    Parameters
    ----------
    happened : array-like of shape (n_cases, ...)
        1 where the event happened, 0 where it did not, NaN where nothing was seen: there the bet is off.
        Numbers in between are outcomes whose mean has the limit, such as how bad an answer is: that part of
        the stake is won, and the rest is lost.
    limit : array-like of a shape that fits
        The probability of the event is at most this if nothing has changed.
    factors : array-like of shape (n_bets,)
        By how much the odds may exceed those of the limit.

    Returns
    -------
    bets : ndarray of shape (n_cases, ..., n_bets)
        Logarithms of the factors. For every probability, or mean, up to the limit, the factors are 1 or
        less on average.
    """
    seen = np.asarray(happened, dtype=np.float64)[..., None]
    at_limit = np.clip(np.asarray(limit, dtype=np.float64), LEAST, MOST)[..., None]
    odds = at_limit / (1 - at_limit) * np.asarray(factors, dtype=np.float64)
    above = odds / (1 + odds)
    won, lost = above / at_limit, (1 - above) / (1 - at_limit)
    factor = np.where(np.isnan(seen), 1.0, seen * won + (1 - seen) * lost)
    return np.asarray(np.log(factor))


def first_alarm(log_capitals: Array, rate: float) -> Array:
    """When the capital first reaches 1 / `rate`.

    Parameters
    ----------
    log_capitals : ndarray of shape (n_cases, ...)
        Logarithms of the capital.
    rate : float
        The false-alarm rate: the largest probability of an alarm, ever, if nothing has changed.

    Returns
    -------
    cases : ndarray of shape (...)
        The number of cases until the alarm; infinite without one.
    """
    reached = log_capitals >= -np.log(rate)
    first = reached.argmax(axis=0) + 1.0
    return np.where(reached.any(axis=0), first, np.inf)
