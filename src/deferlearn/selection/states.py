"""The states of a selection, and the best candidate in one of them by bounds and refinement.

Gains depend on the set S alone, not on the order in which it was picked, nor on omega: runs with
another ratio or budget that reach the same set share its bounds and exact gains.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Index = NDArray[np.int64]

# Scores this close, relative to the score or to F(V) (to one hinge, if that is smaller), are equal: the
# smallest index wins. Without F(V) every score of a hard margin with F = 1e-18 would be a tie.
TIE = 1e-9


class Objective(Protocol):
    """What a selection asks of an objective F; `deferlearn.objective.SVMObjective` is one."""

    @property
    def value(self) -> float:
        """F of the kept samples."""

    @property
    def kept(self) -> NDArray[np.bool_]:
        """Mask of the kept samples."""

    def gain(self, k: int) -> float:
        """Exact marginal gain of deferring k."""

    def gain_bounds(self, ks: Any) -> tuple[Array, Array]:
        """Certified lower and upper bounds; the closer they are, the fewer gains are asked for.

        An objective may offer ``score_bounds(ks, scale, cost, tol)`` besides: the same, but tight only
        where it helps to find the largest ``scale * gain - cost`` up to the factor ``1 - tol``.
        """

    def remove(self, k: int) -> None:
        """Defer k."""

    def copy(self) -> Any:
        """An independent objective in the same state."""


@dataclass(frozen=True)
class Choice:
    """The best candidate of one round: k is -1 if no score is positive."""

    k: int
    score: float
    gain: float
    n_exact: int
    slack: float


class State:
    """One set S: the objective there, and all that is known of its gains."""

    def __init__(self, objective: Objective, unit: float) -> None:
        self.objective = objective
        self._unit = unit
        self.value = objective.value
        n = len(objective.kept)
        self.lower = np.full(n, -np.inf)
        self.upper = np.full(n, np.inf)
        self.exact = np.zeros(n, dtype=bool)
        self.n_solved = 0

    def solve(self, k: int) -> float:
        """Exact gain of k, remembered."""
        if not self.exact[k]:
            self.lower[k] = self.upper[k] = self.objective.gain(k)
            self.exact[k] = True
            self.n_solved += 1
        return float(self.lower[k])

    def best(self, candidates: Index, omega: float, loss: Array, tol: float) -> Choice:
        """The candidate with the largest ``omega * gain - loss``, provably, if that is positive.

        With ``tol`` the largest up to the factor ``1 - tol``.
        """
        if len(candidates) == 0:
            return Choice(-1, np.nan, np.nan, 0, 0.0)
        solved_before = self.n_solved
        cost = loss[candidates]
        self._bound(candidates, omega, cost, tol)
        while True:
            low = omega * self.lower[candidates] - cost
            high = omega * self.upper[candidates] - cost
            best, bound = float(low.max()), float(high.max())
            n_exact = self.n_solved - solved_before
            if bound <= 0.0:
                return Choice(-1, np.nan, np.nan, n_exact, 0.0)
            tie = TIE * max(self._unit, abs(best))
            matters = np.flatnonzero((high >= best - tie) & (high > 0.0))
            if tol > 0.0 and best > 0.0 and best >= (1.0 - tol) * bound:
                matters = matters[low[matters] == best]
            unsolved = matters[~self.exact[candidates[matters]]]
            if len(unsolved) == 0:
                break
            self.solve(int(candidates[unsolved[np.argmax(high[unsolved])]]))
        winners = matters[(low[matters] >= best - tie) & (low[matters] > 0.0)]
        if len(winners) == 0:
            return Choice(-1, best, float(self.lower[candidates[np.argmax(low)]]), n_exact, 0.0)
        at = winners[np.argmin(candidates[winners])]
        score, k = float(low[at]), int(candidates[at])
        slack = max(0.0, 1.0 - score / bound) if tol > 0.0 else 0.0
        return Choice(k, score, float(self.lower[k]), n_exact, slack)

    def _bound(self, candidates: Index, omega: float, cost: Array, tol: float) -> None:
        """Bounds for those without, tight where it matters for the best score."""
        new = np.isinf(self.upper[candidates])
        if not new.any():
            return
        ks = candidates[new]
        # An objective that knows what its bounds are for can leave most of them wide.
        score_bounds = getattr(self.objective, "score_bounds", None)
        if score_bounds is None:
            lower, upper = self.objective.gain_bounds(ks)
        else:
            lower, upper = score_bounds(ks, omega, cost[new], tol)
        self.lower[ks], self.upper[ks] = lower, upper
        # Bounds that meet are the gain: nothing is left to solve.
        exact = lower == upper
        self.exact[ks] = exact
        self.n_solved += int(np.count_nonzero(exact))


class States:
    """The states that runs from one objective have visited, shared by their sets.

    Parameters
    ----------
    objective : Objective
        The starting point; it is copied, and left as it was.
    keep : bool, default=True
        Whether to remember every state, for several runs. A single run needs only the last.

    Attributes
    ----------
    n_states : int
        Distinct sets visited.
    """

    def __init__(self, objective: Objective, keep: bool = True) -> None:
        self._keep = keep
        self._source = objective
        start = objective.copy()
        self.candidates = np.flatnonzero(objective.kept)
        self._unit = min(1.0, start.value)
        self._states: dict[frozenset[int], State] = {frozenset(): State(start, self._unit)}
        self.n_states = 1

    @property
    def root(self) -> State:
        """The state in which nothing has been deferred."""
        return self._states[frozenset()]

    def check(self, objective: Objective) -> None:
        """Refuse runs that these states cannot serve."""
        same = self._source is objective and len(self.candidates) == int(np.sum(objective.kept))
        if not same or self.root.value != objective.value:
            raise ValueError("states belong to another objective, or to another state of this one.")
        if not self._keep and self.n_states > 1:
            raise ValueError(
                "States made with keep=False serve one run; use keep=True to share them."
            )

    def after(self, state: State, picked: frozenset[int], k: int) -> State:
        """The state in which k is deferred besides ``picked``, the set of ``state``."""
        chosen = picked | {k}
        known = self._states.get(chosen)
        if known is not None:
            return known
        objective = state.objective.copy() if self._keep else state.objective
        objective.remove(k)
        following = State(objective, self._unit)
        self.n_states += 1
        if self._keep:
            self._states[chosen] = following
        return following


def shared_states(objective: Objective, states: States | None) -> States:
    """The states that a run was given, checked, or new ones for this run alone."""
    if states is None:
        return States(objective, keep=False)
    states.check(objective)
    return states
