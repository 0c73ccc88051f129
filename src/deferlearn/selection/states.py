"""The states of a selection, and the best candidate in one of them by bounds and refinement.

Gains depend on the set S alone, not on the order in which it was picked, nor on omega: runs with
another ratio or budget that reach the same set share its bounds and exact gains.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from deferlearn._utils.compiling import compiled
from deferlearn._utils.types import Array, Bools, Index
from deferlearn.objective import Objective, Pick, Rounds

# Scores this close, relative to the score or to F(V) (to one hinge, if that is smaller), are equal: the
# smallest index wins. Without F(V) every score of a hard margin with F = 1e-18 would be a tie.
TIE = 1e-9
# Memory for the states that several runs share.
KEPT_BYTES = 2**30
# The name of the empty set.
EMPTY = 0


@dataclass(frozen=True)
class Choice:
    """The best candidate of one round: k is -1 if no score is positive."""

    k: int
    score: float
    gain: float
    n_exact: int
    slack: float


class Known(NamedTuple):
    """What is known of each sample's gain: bounds, whether there are any, and whether they are exact."""

    lower: Array
    upper: Array
    bounded: Bools
    exact: Bools


class Survey(NamedTuple):
    """Where the search for the largest ``omega * gain - loss`` stands."""

    unknown: bool  # a candidate has no bounds yet
    leader: int  # has the largest certain score; -1 if no score can be positive
    best: float  # that score
    bound: float  # the largest possible score
    ask: int  # the sample to solve next; -1 if the search is over
    winner: int  # -1 if no score is positive


class State:
    """One set S: the objective there, and all that is known of its gains."""

    def __init__(self, objective: Objective, unit: float) -> None:
        self.objective = objective
        self.unit = unit
        self.value, self.gap = objective.value, objective.gap
        n = len(objective.kept)
        self.known = Known(
            lower=np.full(n, -np.inf),
            upper=np.full(n, np.inf),
            bounded=np.zeros(n, dtype=bool),
            exact=np.zeros(n, dtype=bool),
        )
        self.n_solved = 0

    @property
    def nbytes(self) -> int:
        """Bytes that keeping this state takes."""
        return self.objective.nbytes + sum(array.nbytes for array in self.known)

    @property
    def untouched(self) -> bool:
        """Whether no gain has been asked for in this state."""
        return not self.known.bounded.any()

    def rest(self) -> None:
        """Keep a plain copy of the objective: what it has worked out goes to the next state."""
        self.objective = self.objective.copy()

    def solve(self, k: int) -> float:
        """Gain of k, as exactly as the objective can tell, remembered."""
        lower, upper, _, exact = self.known
        if not exact[k]:
            lower[k], upper[k] = self.objective.gain_interval(k)
            exact[k] = True
            self.n_solved += 1
        return float(lower[k])

    def best(self, candidates: Index, omega: float, loss: Array, tol: float) -> Choice:
        """The candidate with the largest ``omega * gain - loss``, provably, if that is positive.

        With ``tol`` the largest up to the factor ``1 - tol``.
        """
        before = self.n_solved
        while True:
            found = Survey(*survey(candidates, self.known, loss, omega, tol, self.unit))
            if found.unknown:
                self._bound(candidates, omega, loss, tol)
            elif found.ask >= 0 and self.objective.gains_at_once > 1:
                self._solve_foremost(candidates, omega, loss)
            elif found.ask >= 0:
                self.solve(found.ask)
            else:
                break
        n_exact = self.n_solved - before
        if found.leader < 0:
            return Choice(-1, np.nan, np.nan, n_exact, 0.0)
        if found.winner < 0:
            return Choice(-1, found.best, float(self.known.lower[found.leader]), n_exact, 0.0)
        gain = float(self.known.lower[found.winner])
        score = omega * gain - float(loss[found.winner])
        slack = max(0.0, 1.0 - score / found.bound) if tol > 0.0 else 0.0
        return Choice(found.winner, score, gain, n_exact, slack)

    def _solve_foremost(self, candidates: Index, omega: float, loss: Array) -> None:
        """Gains of those that may have the largest scores, as many as the objective likes at once."""
        known = self.known
        open_ = candidates[~known.exact[candidates]]
        highest = omega * known.upper[open_] - loss[open_]
        ks = open_[np.argsort(-highest, kind="stable")[: self.objective.gains_at_once]]
        known.lower[ks] = known.upper[ks] = self.objective.gains(ks)
        known.exact[ks] = True
        self.n_solved += len(ks)

    def _bound(self, candidates: Index, omega: float, loss: Array, tol: float) -> None:
        """Bound the candidates that have no bounds yet, tightly where it matters for the best score."""
        known = self.known
        ks = candidates[~known.bounded[candidates]]
        lower, upper = self.objective.score_bounds(ks, omega, loss[ks], tol)
        known.lower[ks], known.upper[ks], known.bounded[ks] = lower, upper, True
        # Bounds that meet are the gain: nothing is left to solve.
        exact = lower == upper
        known.exact[ks] = exact
        self.n_solved += int(np.count_nonzero(exact))


@compiled
def survey(candidates, known, loss, omega, tol, unit):  # type: ignore[no-untyped-def]
    """Look at all candidates once: the fields of `Survey`."""
    lower, upper, bounded, exact = known
    leader, best, bound = -1, -np.inf, -np.inf
    for k in candidates:
        if not bounded[k]:
            return True, -1, best, bound, -1, -1
        low = omega * lower[k] - loss[k]
        if leader < 0 or low > best:
            leader, best = k, low
        bound = max(bound, omega * upper[k] - loss[k])
    if bound <= 0.0:
        return False, -1, best, bound, -1, -1
    tie = TIE * max(unit, abs(best))
    enough = tol > 0.0 and best > 0.0 and best >= (1.0 - tol) * bound
    ask, highest, winner = -1, -np.inf, -1
    for k in candidates:
        low, high = omega * lower[k] - loss[k], omega * upper[k] - loss[k]
        if high <= 0.0 or high < best - tie or (enough and low != best):
            continue
        if not exact[k]:
            if high > highest:
                ask, highest = k, high
        elif low >= best - tie and low > 0.0 and (winner < 0 or k < winner):
            winner = k
    return False, leader, best, bound, ask, winner


class States:
    """The states that runs from one objective have visited, shared by their sets.

    Runs for several ratios or budgets begin alike, and then part. So the first states are kept, as many
    as the memory allows; a run that leaves them goes on by itself, as a single run does.

    Parameters
    ----------
    objective : Objective
        The starting point; it is copied, and left as it was.
    keep : bool, default=True
        Whether to remember states, for several runs. A single run needs only the last.
    ratios : tuple of float, default=None
        The smallest and the largest submodularity ratio of the runs, if these are known: picks are then
        found for all of them at once, as far as they agree.

    Attributes
    ----------
    root : State
        The state in which nothing has been deferred.
    """

    def __init__(
        self, objective: Objective, keep: bool = True, ratios: tuple[float, float] | None = None
    ) -> None:
        self._keep = keep
        self.ratios = ratios
        self._source = objective
        start = objective.copy()
        self.candidates = np.flatnonzero(objective.kept)
        self.unit = min(1.0, start.value)
        self._names = _names_of_samples(len(objective.kept))
        self.root = State(start, self.unit)
        self._states: dict[int, State] = {EMPTY: self.root}
        # Sets whose states are not kept, each with the sample that completed it.
        self._passed: dict[int, int] = {}
        # Picks in sets, by what they depend on besides the set.
        self._picks: dict[tuple[Any, ...], list[Pick]] = {}
        # The last state that a run has reached, with the name of its set.
        self._last: tuple[int, State] = (EMPTY, self.root)
        self._visited = {EMPTY}
        self._room, self._full = KEPT_BYTES, not keep

    def check(self, objective: Objective) -> None:
        """Refuse runs that these states cannot serve."""
        same = self._source is objective and len(self.candidates) == int(np.sum(objective.kept))
        # A value that is known to within a gap may have been made more accurate since.
        gap = self.root.gap + objective.gap
        if not same or not abs(self.root.value - objective.value) <= gap:
            raise ValueError("states belong to another objective, or to another state of this one.")
        if not self._keep and self.n_states > 1:
            raise ValueError(
                "States made with keep=False serve one run; use keep=True to share them."
            )

    def after(self, state: State, picked: int, k: int) -> tuple[State, int]:
        """The state in which k is deferred on top of ``picked``, the name of the set of ``state``.

        Returns it with the name of its set. A state that is not kept moves on: do not use it again.
        """
        chosen = picked ^ self._names[k]
        self._visited.add(chosen)
        known = self._states.get(chosen)
        if known is None and self._passed.get(chosen, k) != k and not self._full:
            known = self._reach(chosen)
        if known is None:
            return self._make(state, picked, k), chosen
        if state is self._states.get(picked):
            state.rest()
        return known, chosen

    def pick_at(self, key: tuple[Any, ...], omega: float) -> Pick | None:
        """The pick that is known for this omega; the key is the set's name and what else it depends on."""
        for pick in self._picks.get(key, ()):
            if pick.low <= omega <= pick.high:
                return pick
        return None

    def look_ahead(
        self, state: State, picked: int, rounds: Rounds, key: Callable[[int, int], tuple[Any, ...]]
    ) -> tuple[State, int, int] | None:
        """Let the objective make rounds by itself, and remember its picks.

        ``picked`` is the name of the set of ``state``; ``key`` gives the key of a pick by the name of its
        set and the number of the round. Returns the state at the end, the name of its set and the number of
        rounds, or None if no round was made.
        """
        objective = state.objective
        if state is self._states.get(picked):
            objective = objective.copy()
        self._leave(state)
        picks = objective.rounds_ahead(rounds)
        if not picks:
            return None
        for number, pick in enumerate(picks):
            self._picks.setdefault(key(picked, number), []).append(pick)
            picked ^= self._names[pick.k]
            self._visited.add(picked)
            if picked not in self._states:
                self._passed.setdefault(picked, pick.k)
        return self._keep_state(State(objective, self.unit), picked), picked, len(picks)

    def name_with(self, picked: int, k: int) -> int:
        """The name of a set with one more sample."""
        return picked ^ self._names[k]

    def state_of(self, picked: int) -> State:
        """The state of a set that has been visited."""
        name, state = self._last
        if name == picked:
            return state
        known = self._states.get(picked)
        return self._reach(picked) if known is None else known

    def end(self, picked: int, state: State) -> None:
        """Remember where a run has ended."""
        self._last = picked, state

    def _leave(self, state: State) -> None:
        """Forget the end of a run where another goes on from it: its objective moves."""
        if state is self._last[1]:
            self._last = EMPTY, self.root

    def objective_after(self, order: Index) -> Objective:
        """An independent objective without the samples of a run, in the order of their removal."""
        picked = EMPTY
        for k in order.tolist():
            picked ^= self._names[k]
        return self.state_of(picked).objective.copy()

    @property
    def n_states(self) -> int:
        """Distinct sets visited."""
        return len(self._visited)

    def _make(self, state: State, picked: int, k: int) -> State:
        objective = state.objective
        if state is self._states.get(picked):
            state.rest()
        self._leave(state)
        objective.remove(k)
        chosen = picked ^ self._names[k]
        self._passed.setdefault(chosen, k)
        return self._keep_state(State(objective, self.unit), chosen)

    def _keep_state(self, state: State, chosen: int) -> State:
        """Keep the state of a set, if there is room, for later runs."""
        self._room -= state.nbytes
        self._full = self._full or self._room < 0
        if not self._full:
            self._states[chosen] = state
            self._passed.pop(chosen, None)
        return state

    def _reach(self, chosen: int) -> State:
        """A state that was passed, made the way it was then: rounding depends on the way."""
        way = list[int]()
        while chosen not in self._states:
            way.append(self._passed[chosen])
            chosen ^= self._names[way[-1]]
        state = self._states[chosen]
        for k in reversed(way):
            state = self._make(state, chosen, k)
            chosen ^= self._names[k]
        return state


def _names_of_samples(n: int) -> list[int]:
    """Random numbers of 128 bits: the name of a set is the exclusive or of the numbers of its samples.

    A name costs the same however large the set is, and two sets of 10^9 share one with a chance of
    10^-20.
    """
    words = np.random.default_rng(0).bytes(16 * n)
    return [int.from_bytes(words[16 * k : 16 * (k + 1)], "little") for k in range(n)]


def shared_states(objective: Objective, states: States | None) -> States:
    """The states that a run was given, checked, or new ones for this run alone."""
    if states is None:
        return States(objective, keep=False)
    states.check(objective)
    return states
