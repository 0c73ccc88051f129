"""Cases that arrive one by one: prices that follow the load, and daily limits that are never exceeded."""

from typing import Any, Self

import numpy as np

from deferlearn._utils.checks import is_whole, plain
from deferlearn._utils.types import Array
from deferlearn.experts.capacity import as_counts, check_capacity
from deferlearn.experts.transport import MACHINE, Places, transport

# So many of the last cases say what the next ones may be like. Prices are found anew after so many cases.
WINDOW, EVERY = 1000, 50


class Stream:
    """Assign cases of one day after the other, within hard daily limits.

    At any time the prices are those at which the cases of late, had they been asked to share the time that
    is left today, would just have used it up. So prices rise when more hard cases arrive than planned, and
    fall when time would be left over. An expert whose limit is reached gets no more cases that day.

    Parameters
    ----------
    prices : ndarray of shape (n_experts,)
        Prices to begin with, such as `ExpertTeam.prices_`.
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
    >>> stream = Stream(np.zeros(2), {"Ann": 1, "Bob": 2}, cases_per_day=4)
    >>> gains = np.array([[0.4, 0.3], [0.5, 0.4], [0.2, 0.1], [0.3, 0.2]])
    >>> [stream.assign(gain) for gain in gains]
    ['Ann', 'Bob', 'Bob', None]
    >>> stream.start_day().load
    array([0, 0])
    """

    def __init__(self, prices: Array, limits: dict[str, int], cases_per_day: int) -> None:
        checked = check_capacity(limits)
        for name, limit in checked.items():
            if not is_whole(limit):
                raise ValueError(f"limits[{name!r}]={limit!r} must be a whole number of cases.")
        if not is_whole(cases_per_day) or cases_per_day < 1:
            raise ValueError(
                f"cases_per_day={plain(cases_per_day)!r} must be a whole number, 1 or larger."
            )
        if len(prices) != len(checked):
            raise ValueError(
                f"There are {len(prices)} prices and limits for {len(checked)} experts: give one each."
            )
        self.experts = tuple(checked)
        self.prices = np.array(prices, dtype=np.float64)
        self.cases_per_day = int(cases_per_day)
        self._limits = as_counts(checked, max(cases_per_day, *map(int, checked.values())))
        self._recent: list[Array] = []
        self._since = 0
        self.start_day()

    def start_day(self) -> Self:
        """Begin a day: limits count from zero again."""
        self.load = np.zeros(len(self.experts), dtype=np.int64)
        self._seen = 0
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
        place = self.place(np.asarray(gain, dtype=np.float64))
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
        self._since += 1
        if self._since < EVERY:
            return
        self._since = 0
        del self._recent[:-WINDOW]
        left = max(self.cases_per_day - self._seen, 1)
        share = np.minimum((self._limits - self.load) / left, 1.0)
        recent = np.array(self._recent)
        # At the end of a day, what is left today says little about tomorrow.
        if self._seen < self.cases_per_day:
            n = len(recent)
            found = transport(recent, share * n, n)
            self.prices = found.prices + found.common


def hindsight(gains: Array, limits: Any) -> float:
    """The most that the cases of one day could have gained, had all of them been known in the morning."""
    return transport(gains, np.asarray(limits, dtype=np.float64), len(gains)).gain
