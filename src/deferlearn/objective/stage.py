"""The arena of `rounds`: which samples it holds, and how a state moves through it."""

import numpy as np

from deferlearn._utils.types import Array, Bools, Index
from deferlearn.kernels import LinearGram
from deferlearn.objective.arrays import FreeSet, Near, Point, Responses, Samples
from deferlearn.objective.crude import crude_bounds
from deferlearn.objective.path import FOLLOW
from deferlearn.objective.protocol import Pick
from deferlearn.objective.removal import REMOVE
from deferlearn.objective.response import make_near, take_over
from deferlearn.objective.rounds import (
    OUTSIDE,
    STALE,
    UNUSUAL,
    Arena,
    Bystanders,
    Moving,
    Plan,
    Record,
    Stop,
    Terms,
    advance,
)
from deferlearn.objective.screening import near_margin
from deferlearn.objective.solver import Counters, settle, start_of
from deferlearn.objective.state import State, WorkingSet, nearest, whole_set
from deferlearn.objective.tightening import TIGHTEN

# Up to this size every sample is in the arena: its Gram matrix takes 128 MB.
WHOLE_ARENA = 4096
# With more samples: the free ones; bound ones near the margin, a multiple of those, at least and at most;
NEAR_MARGIN, LEAST_NEAR_MARGIN, MOST_NEAR_MARGIN = 3, 256, 1536
# and this many candidates with the best scores.
BEST_CANDIDATES = 1024
# At least this many bound samples respond: the more, the more rounds they serve.
LEAST_RESPONDING = 48


class Stage:
    """An arena: the Gram matrix of its samples, and how those near the margin respond.

    It does not depend on the state, and serves other states as long as no sample outside of it matters.
    """

    def __init__(self, state: State, ws: WorkingSet) -> None:
        problem, index = state.problem, ws.index
        self.ws = ws
        self.samples = Samples(
            problem.y[index], problem.weight[index], problem.upper[index], problem.root[index],
            problem.gram.diagonal[index], problem.alpha, problem.offset, problem.hard,
        )  # fmt: skip
        self.near = _no_near(len(index))

    def rows_of(self, index: Index) -> Array:
        """Rows of X, signed, which tell how G moves outside; none if that is not known, or not needed."""
        gram = self.ws.problem.gram
        if self.ws.whole or not isinstance(gram, LinearGram) or gram.sparse:
            return np.empty((len(index), 0))
        return np.asarray(gram.rows[index])

    def renew_near(self, state: State) -> None:
        """Let the samples near the margin of this state respond; responses that are known are kept."""
        ws = self.ws
        near = ws.position[near_margin(state, ws.index, least=LEAST_RESPONDING)]
        old, n = self.near, len(ws.index)
        self.near = make_near(ws.arrays, near, near, n, n, whole=True)
        known = np.flatnonzero(state.kept[ws.index] & (old.responses.age >= 0))
        take_over(old, known, self.near, known, state.G[ws.index])
        self.near.responses.rows[known] = ws.arrays.Q[np.ix_(known, near)]

    def advance(
        self,
        state: State,
        cost: Array,
        allowed: Bools,
        plan: Plan,
        terms: Terms,
        counters: Counters,
    ) -> tuple[list[Pick], int]:
        """Make rounds; the state moves on and is verified. Returns the picks, and why there are no more."""
        ws = self.ws
        start = start_of(state, ws)
        point = start.point.at(np.arange(len(ws.index)))
        free = FreeSet(start.free.members.copy(), np.empty_like(start.free.R))
        q = len(state.R)
        free.R[:q, :q] = state.R
        arena = Arena(
            ws.arrays.Q, self.rows_of(ws.index), self.samples, ws.index, cost[ws.index],
            allowed[ws.index], state.kept[ws.index],
        )  # fmt: skip
        sums, (negative, positive) = state.measures, state.class_counts
        moving = Moving(
            start.p, state.beta, state.mu, sums.total, sums.quadratic, sums.length,
            state.total_weight, negative, positive, sums.gap, 0.0, 0.0,
        )  # fmt: skip
        bystanders = self._bystanders(state, cost, allowed)
        count = len(plan.omega)
        pick, n_candidates, n_exact = np.zeros((3, count), dtype=np.int64)
        gain, low, high, value = np.zeros((4, count))
        record = Record(pick, gain, low, high, n_candidates, n_exact, value)
        stop = Stop(*advance(
            arena, bystanders, plan, point, free, moving, self.near, terms, record,
            FOLLOW.address, REMOVE.address, TIGHTEN.address,
        ))  # fmt: skip
        counters.n_paths += stop.n_paths
        counters.n_steps += stop.n_steps
        counters.n_exact += stop.n_paths
        picks = [
            Pick(int(ws.index[k]), *rest)
            for k, *rest in zip(*(column[: stop.rounds].tolist() for column in record), strict=True)
        ]
        if picks:
            self._scatter(state, point, free, stop, [pick.k for pick in picks])
            settle(state, counters)
            counters.n_removed += len(picks)
        return picks, int(stop.why)

    def _bystanders(self, state: State, cost: Array, allowed: Bools) -> Bystanders:
        problem = state.problem
        out = np.flatnonzero(state.kept & (self.ws.position < 0))
        return Bystanders(
            self.rows_of(out), problem.y[out], problem.root[out], problem.gram.diagonal[out],
            problem.weight[out], state.a[out], state.G[out], cost[out], allowed[out],
        )  # fmt: skip

    def _scatter(
        self, state: State, point: Point, free: FreeSet, stop: Stop, removed: list[int]
    ) -> None:
        """Take over where the rounds have ended."""
        index = self.ws.index
        state.a[index], state.a_lo[index], state.status[index] = point.a, 0.0, point.status
        state.kept[removed] = False
        state.removed += removed
        state.beta = float(stop.beta)
        p = int(stop.p)
        state.members = index[free.members[:p]]
        q = p + 1 if state.problem.offset and p > 0 else p
        state.R = free.R[:q, :q].copy()
        state.changed()


def _no_near(n: int) -> Near:
    """The near set before any sample had to respond: it is empty."""
    none = np.empty((0, 0))
    rows = np.empty((n, 0))
    responses = Responses(rows, rows, rows, rows, np.full(n, -1), none, True)
    empty = np.empty(0)
    return Near(
        np.empty(0, dtype=np.int64), np.full(n, -1), none, none, empty, empty, 0.0, responses
    )


def choose_arena(state: State, omega: float, cost: Array, allowed: Bools) -> WorkingSet:
    """The samples that matter in the next rounds: those near the margin or with the best scores."""
    if len(state.kept) <= WHOLE_ARENA:
        return whole_set(state.problem)
    ks = np.flatnonzero(allowed)
    score = omega * crude_bounds(state, ks)[0] - cost[ks]
    best = ks[np.argpartition(-score, min(BEST_CANDIDATES, len(ks) - 1))[:BEST_CANDIDATES]]
    extra = min(max(NEAR_MARGIN * len(state.members), LEAST_NEAR_MARGIN), MOST_NEAR_MARGIN)
    index = nearest(state, extra, best)
    return WorkingSet(state.problem, index, precise=False)


def rounds_ahead(
    state: State, stage: Stage | None, cost: Array, allowed: Bools, plan: Plan, terms: Terms,
    counters: Counters,
) -> tuple[list[Pick], Stage | None]:  # fmt: skip
    """Rounds by one stage after another, until the plan is done or something unusual happens."""
    picks: list[Pick] = []
    tried = set[int]()  # what was renewed since the last pick
    while len(plan.omega):
        if stage is None or not stage.ws.covers(state.members):
            stage = Stage(state, choose_arena(state, plan.omega[0], cost, allowed))
        made, why = stage.advance(state, cost, allowed, plan, terms, counters)
        picks += made
        allowed[[pick.k for pick in made]] = False
        plan = plan.after(len(made))
        if made:  # a newly computed gradient may be enough to go on
            tried = set()
        elif why == UNUSUAL or why in tried:
            break
        if why == STALE:
            stage.renew_near(state)
        elif why == OUTSIDE:
            stage = None
            tried.discard(STALE)
        tried.add(why)
    return picks, stage
