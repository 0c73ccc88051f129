"""Cases that arrive one by one: prices that follow the load, and daily limits that are never exceeded."""

from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from deferlearn._utils.checks import is_whole, plain
from deferlearn._utils.types import Array
from deferlearn.experts.capacity import as_counts, check_capacity
from deferlearn.experts.transport import MACHINE, Places, transport

# So many of the last cases say what the next ones may be like, if there are at least so many of them.
# Prices are recomputed in the morning, and after every so many cases.
WINDOW, FEWEST, EVERY = 1000, 20, 50


class Stream:
    """Assign cases of one day after the other, within hard daily limits.

    Prices are those at which the most recent cases would just use up the time that is left today. So they
    rise when more hard cases arrive than planned, and fall when time would be left over. An
    expert whose limit is reached gets no more cases that day.

    Parameters
    ----------
    prices : dict
        Prices to begin with, such as `ExpertTeam.prices_`; their order is that of the gains.
    limits : dict
        How many cases each expert takes per day, at most.
    cases_per_day : int
        How many cases are expected per day. If more arrive, limits hold all the same.

    Attributes
    ----------
    load : ndarray of int of shape (n_experts,)
        Cases given to each expert today.
    prices : ndarray of shape (n_experts,)
        The present prices.

    Examples
    --------
    >>> import numpy as np
    >>> from deferlearn.experts import Stream
    >>> stream = Stream({"Ann": 0.0, "Bob": 0.0}, {"Ann": 1, "Bob": 2}, cases_per_day=4)
    >>> gains = np.array([[0.4, 0.3], [0.5, 0.4], [0.2, 0.1], [0.3, 0.2]])
    >>> [stream.assign(gain) for gain in gains]
    ['Ann', 'Bob', 'Bob', None]
    >>> stream.start_day().load
    array([0, 0])
    """

    def __init__(
        self, prices: Mapping[str, float], limits: Mapping[str, int], cases_per_day: int
    ) -> None:
        checked = check_capacity(limits)
        for name, limit in checked.items():
            if not is_whole(limit):
                raise ValueError(f"limits[{name!r}]={limit!r} must be a whole number of cases.")
        if not is_whole(cases_per_day) or cases_per_day < 1:
            raise ValueError(
                f"cases_per_day={plain(cases_per_day)!r} must be a whole number, 1 or larger."
            )
        if not isinstance(prices, Mapping) or set(prices) != set(checked):
            raise ValueError(
                f"prices={prices!r} and limits={dict(limits)!r} must be dicts with the same experts."
            )
        self.experts = tuple(prices)
        checked = {name: checked[name] for name in self.experts}
        self.prices = np.array(list(prices.values()), dtype=np.float64)
        self.cases_per_day = int(cases_per_day)
        self._limits = as_counts(checked, max(cases_per_day, *map(int, checked.values())))
        self._recent: list[Array] = []
        self.start_day()

    def start_day(self) -> Self:
        """Begin a day: limits count from zero again, and prices are those for a whole day."""
        self.load = np.zeros(len(self.experts), dtype=np.int64)
        self._seen = 0
        if len(self._recent) >= FEWEST:
            self._find_prices()
        return self

    def assign(self, gain: Array) -> str | None:
        """Give one case to an expert, or leave it to the machine.

        Parameters
        ----------
        gain : ndarray of shape (n_experts,)
            By how much each expert is expected to lose less than the machine, as `ExpertTeam.gains` says.

        Returns
        -------
        expert : str or None
            The expert's name; None for the machine.
        """
        gain = np.asarray(gain, dtype=np.float64)
        if gain.shape != self.prices.shape or not np.isfinite(gain).all():
            raise ValueError(
                f"gain={gain!r} must hold one finite number for each of {list(self.experts)}."
            )
        place = self.place(gain)
        return None if place == MACHINE else self.experts[place]

    def place(self, gain: Array) -> int:
        """The same as a place among the experts, -1 for the machine."""
        net = np.where(self.load < self._limits, gain - self.prices, -np.inf)
        best = int(net.argmax())
        place = best if net[best] > 0 else MACHINE
        if place != MACHINE:
            self.load[place] += 1
        self._seen += 1
        self._remember(gain)
        return place

    def assign_day(self, gains: Array) -> Places:
        """The places of all cases of a day, in their order; see `place`."""
        self.start_day()
        return np.array([self.place(gain) for gain in gains])

    def _remember(self, gain: Array) -> None:
        self._recent.append(gain)
        if self._seen % EVERY == 0 and self._seen < self.cases_per_day:
            self._find_prices()

    def _find_prices(self) -> None:
        """The prices at which cases like the last ones would use up what is left of the day."""
        del self._recent[:-WINDOW]
        left = self.cases_per_day - self._seen
        self.prices = find_prices(np.array(self._recent), self._limits - self.load, left)


def find_prices(recent: Array, free: Array, left: int) -> Array:
    """The prices at which cases like the last ones would use up the time that is left.

    Parameters
    ----------
    recent : ndarray of shape (n_cases, n_experts)
        Gains of the last cases.
    free : ndarray of shape (n_experts,)
        How many cases each expert can still take.
    left : int
        How many cases are still to come.

    Returns
    -------
    prices : ndarray of shape (n_experts,)
    """
    n = len(recent)
    found = transport(recent, np.minimum(free / left, 1.0) * n, n)
    return np.asarray(found.prices + found.common)


def hindsight(gains: Array, limits: Any) -> float:
    """The most that the cases of one day could have gained, had all of them been known in the morning."""
    return transport(gains, np.asarray(limits, dtype=np.float64), len(gains)).gain
