"""Gains of a sum of objectives in one state: what is known of each part, refined where it matters.

Bounds of a sum are sums of bounds. Most samples are idle in most parts, where the cheapest bounds nearly
meet. So the sum of cheap bounds leaves few candidates, and of these few parts whose bounds are wide:
only those are tightened and, in the end, solved.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from deferlearn._utils.types import Array, Bools, Index
from deferlearn.objective.svm import SVMObjective

# Scores this close to the best, relative, may be ties for the caller: they are solved too.
CLOSE = 1e-8
# So few candidates are cheaper to solve than to bound more tightly.
FEW = 2
# Idle samples of so many different weights have a path each, and are better solved one by one.
MOST_WEIGHTS = 8


class Best(NamedTuple):
    """The best candidate, and for which omegas it is that."""

    k: int
    gain: float
    low: float
    high: float
    n_exact: int


class PartBounds:
    """Bounds of the gains of all parts, one row per part and one column per sample.

    Parameters
    ----------
    parts : sequence of SVMObjective
        All in the same state, in which they stay.

    Attributes
    ----------
    n_solved : int
        Samples whose gains were asked for exactly.
    """

    def __init__(self, parts: Sequence[SVMObjective]) -> None:
        self._parts = parts
        n = parts[0].n_samples
        self._lower, self._upper = np.zeros((len(parts), n)), np.full((len(parts), n), np.inf)
        self._known, self._responded = np.zeros(n, dtype=bool), np.zeros(n, dtype=bool)
        self.n_solved = 0

    def sums(self, ks: Index) -> tuple[Array, Array]:
        """Lower and upper bounds of the gains of ks; they are equal where the gain is known."""
        new = ks[~self._known[ks]]
        if len(new):
            for p, part in enumerate(self._parts):
                self._lower[p, new], self._upper[p, new] = part.first_bounds(new)
            self._known[new] = True
        return self._lower.sum(axis=0)[ks], self._upper.sum(axis=0)[ks]

    def _is_open(self, p: int, ks: Index) -> Bools:
        return np.asarray(self._lower[p, ks] < self._upper[p, ks])

    def solve(self, k: int) -> float:
        """The exact gain of sample k."""
        if not self._known[k]:
            self.sums(np.array([k]))
        open_ = np.flatnonzero(self._lower[:, k] < self._upper[:, k])
        self.n_solved += len(open_) > 0
        for p in open_.tolist():
            self._solve_part(p, k)
        return float(self._lower.sum(axis=0)[k])

    def _solve_part(self, p: int, k: int) -> None:
        part = self._parts[p]
        if part.idle(np.array([k]))[0]:
            self._share(p, k)
        if self._lower[p, k] < self._upper[p, k]:
            self._lower[p, k] = self._upper[p, k] = part.gain(k)

    def _share(self, p: int, k: int) -> None:
        """Settle all samples of one part whose gain is the same as that of the idle sample k."""
        gain, mask = self._parts[p].idle_gain(k)
        lower, upper = self._lower[p], self._upper[p]
        same = mask & self._known & (lower < upper)
        lower[same] = upper[same] = gain

    def tighten(self, ks: Index, floor: Array) -> None:
        """Lower the upper bounds of ks until their sums are below their floors, or nothing cheap helps."""
        ks, floor = self._open(ks, floor)
        new = ks[~self._responded[ks]]
        for p in range(len(self._parts)):  # what earlier states know costs little
            self._respond(p, new, None)
        self._responded[new] = True
        ks, floor = self._open(ks, floor)
        if len(ks) > FEW:
            for p in range(len(self._parts)):
                self._settle_idle(p, ks)
            ks, floor = self._open(ks, floor)
        width = (self._upper[:, ks] - self._lower[:, ks]).sum(axis=1)
        for p in np.argsort(-width, kind="stable").tolist():
            if len(ks) <= FEW:
                return
            others = self._upper[:, ks].sum(axis=0) - self._upper[p, ks]
            self._respond(p, ks, floor - others)
            ks, floor = self._open(ks, floor)

    def _open(self, ks: Index, floor: Array) -> tuple[Index, Array]:
        lower, upper = self.sums(ks)
        open_ = (upper >= floor) & (lower < upper)
        return ks[open_], floor[open_]

    def _respond(self, p: int, ks: Index, floor: Array | None) -> None:
        wide = self._is_open(p, ks) & ~self._parts[p].idle(ks)
        ks = ks[wide]
        if len(ks):
            bounds = self._parts[p].response_bounds(ks, None if floor is None else floor[wide])
            self._upper[p, ks] = np.minimum(self._upper[p, ks], bounds)
            self._lower[p, ks] = np.minimum(self._lower[p, ks], self._upper[p, ks])

    def _settle_idle(self, p: int, ks: Index) -> None:
        """Settle the idle samples among ks, by one path per weight."""
        part = self._parts[p]
        idle = ks[self._is_open(p, ks) & part.idle(ks)]
        if len(idle):
            _, first = np.unique(part.problem.weight[idle], return_index=True)
            for k in idle[first[:MOST_WEIGHTS]].tolist():
                self._share(p, k)

    def best(
        self,
        ks: Index,
        cost: Array,
        omegas: tuple[float, float, float],
        tie: float,
        unit: float,
    ) -> Best | None:
        """The sample of ks with the largest ``omega * gain - cost``, provably, if that is positive.

        ``omegas`` are the one in question, and the smallest and largest for which the answer may be
        used; ``cost`` has one entry for each of ks. None if it is not certain that a score is positive.
        """
        omega, before = omegas[0], self.n_solved
        lower, _ = self.sums(ks)
        at = int(np.argmax(omega * lower - cost))
        gain = self.solve(int(ks[at]))
        score = omega * gain - cost[at]
        if not score > 0.0:
            return None
        floors = [
            (w * gain - cost[at] - CLOSE * max(unit, abs(w * gain - cost[at])) + cost) / w
            for w in omegas
        ]
        self.tighten(ks, np.minimum.reduce(floors))
        while True:
            lower, upper = self.sums(ks)
            exact, high = lower == upper, omega * upper - cost
            best = float((omega * lower - cost)[exact].max())
            rivals = np.flatnonzero(~exact & (high >= best - CLOSE * max(unit, abs(best))))
            if len(rivals) == 0:
                break
            self.solve(int(ks[rivals[np.argmax(high[rivals])]]))
        score = omega * lower - cost
        equal = np.flatnonzero(exact & (score >= best - tie * max(unit, abs(best))) & (score > 0.0))
        at = int(equal[np.argmin(ks[equal])])
        low, high_ = _valid_omegas(at, lower[at], upper, cost, unit)
        if not low <= omega <= high_:
            low = high_ = omega
        return Best(int(ks[at]), float(lower[at]), low, high_, self.n_solved - before)


def _valid_omegas(
    at: int, gain: float, upper: Array, cost: Array, unit: float
) -> tuple[float, float]:
    """The omegas for which this gain scores more than all others, whose gains are at most ``upper``."""
    ahead = np.delete(gain - upper, at)
    close = CLOSE * max(unit, gain + cost[at])
    needed = np.delete(cost[at] - cost, at) + close
    low, high = float(cost[at] / gain * (1.0 + CLOSE)), np.inf
    more, less = ahead > 0.0, ahead < 0.0
    if (needed[~more] > 0.0).any():
        return np.inf, high
    low = max(low, float((needed[more] / ahead[more]).max(initial=0.0)))
    return low, float((needed[less] / ahead[less]).min(initial=np.inf))
