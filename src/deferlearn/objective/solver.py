"""Making a state exact: from any starting point, after a removal, and when rounding got in the way.

Everything is a path of `path.follow`. A starting point that is not optimal is optimal for a problem
with another linear term; the path takes that term back to the true one. So the same few lines
solve from nothing, repair a small error, and take in samples from outside the working set, and the
check at the end, on the gradient computed afresh over all samples, is a proof of optimality.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from deferlearn._utils.types import Array, Index
from deferlearn._utils.words import counted
from deferlearn.objective.advice import advice_for
from deferlearn.objective.arrays import Candidates, Ends, FreeSet, Outsiders, Point, Start
from deferlearn.objective.path import (
    DONE,
    FOLLOW,
    FREE,
    LOW,
    OUT,
    UNBOUNDED,
    UP,
    Drift,
    Followed,
    follow_path,
)
from deferlearn.objective.removal import REMOVE, removal_paths
from deferlearn.objective.start import COLD_START_LIMIT, free_independent, guess_start
from deferlearn.objective.state import Problem, State, WorkingSet, capacity, empty_state, nearest

# A committed state misses its optimality conditions by no more than this, relative to their terms...
RESIDUAL = 1e-10
# ... and its primal and dual values agree to this, relative to max(1, F).
GAP = 1e-10
# Imbalance of the dual variables, relative to their sum, from which on rounding is taken back.
DRIFT = 1e-14
# Where rounding alone could reach this share of the gradient, doubles are not enough.
MOST_ROUNDING = 2e-11
# Bound samples in a working set beyond the free ones, as a multiple of these, at least and at most.
EXTRA, LEAST_EXTRA, MOST_EXTRA = 2, 96, 1536
# Violators taken in at once when the working set is not everything.
MOST_VIOLATORS = 1024
# Dual boxes below this share of the largest are taken as empty: leaving a hinge out only lowers F.
NEGLIGIBLE = 1e-12


class NumericalError(RuntimeError):
    """No state could be verified; nothing was changed."""


class NotSeparableError(ValueError):
    """A hard margin was asked for, but no hyperplane separates the classes."""


@dataclass
class Counters:
    """What has been solved so far.

    Attributes
    ----------
    n_exact : gains solved exactly by a path of their own
    n_shared : gains settled by the one path on which nothing is removed
    n_removed : removals committed
    n_paths, n_steps : paths followed, and their breakpoints
    n_repaired : states that missed their conditions after a path, and were repaired
    n_resolved : states solved again from nothing
    n_precise : switches to double-double arithmetic
    """

    n_exact: int = 0
    n_shared: int = 0
    n_removed: int = 0
    n_paths: int = 0
    n_steps: int = 0
    n_repaired: int = 0
    n_resolved: int = 0
    n_precise: int = 0

    def add(self, other: "Counters") -> None:
        """Count what another thread has solved."""
        for name, count in vars(other).items():
            setattr(self, name, getattr(self, name) + count)


def working_set(state: State, must: Index | None = None) -> WorkingSet:
    """The usual working set of a state."""
    extra = max(LEAST_EXTRA, min(EXTRA * len(state.members), MOST_EXTRA))
    return WorkingSet(state.problem, nearest(state, extra, must), state.precise)


def _start(state: State, ws: WorkingSet) -> Start:
    """The state in the working set's order, its free set with room to grow."""
    p, q = len(state.members), len(state.R)
    members = np.zeros(max(capacity(state.problem, len(ws.index)), p), dtype=np.int64)
    members[:p] = ws.position[state.members]
    R = np.empty((len(members) + 1, len(members) + 1))
    R[:q, :q] = state.R
    # Paths copy what they change: where every sample is in the working set nothing is gathered.
    point = state.point if ws.whole else state.point.at(ws.index)
    return Start(
        ws.arrays,
        point,
        FreeSet(members, R),
        p,
        state.beta,
        state.mu,
        state.measures.quadratic,
        0.0,
    )


def start_of(state: State, ws: WorkingSet) -> Start:
    """Where removals from this state start; not to be changed."""
    owner, made = state.once("start", lambda: (ws, _start(state, ws)))
    return made if owner is ws else _start(state, ws)


def _scatter(
    state: State,
    ws: WorkingSet,
    duals: tuple[Array, Array, Any],
    beta: float,
    free: FreeSet,
    p: int,
) -> None:
    """Take over where a path has ended: dual variables (a pair) and statuses, beta, the free set."""
    at: Any = slice(None) if ws.whole else ws.index
    state.a[at], state.a_lo[at], state.status[at] = duals
    state.beta = float(beta)
    state.members = ws.index[free.members[:p]]
    q = p + 1 if state.problem.offset and p > 0 else p
    state.R = free.R[:q, :q].copy()
    state.changed()


def candidates_of(state: State, ws: WorkingSet, ks: Index, mu: Array | None = None) -> Candidates:
    """What paths must know of the samples ks; with ``mu`` a k of -1 removes no sample."""
    local = ks if ws.whole else np.where(ks < 0, -1, ws.position[ks])
    outside = NO_OUTSIDERS
    if not ws.whole or mu is not None:
        outside = _outsiders(state, ws, ks, local)
    return Candidates(ks, local, state.mu_without(ks) if mu is None else mu, outside)


def removal_ends(state: State, ws: WorkingSet, candidates: Candidates, counters: Counters) -> Ends:
    """Follow the removal of each of the candidates."""
    start = start_of(state, ws)
    n, e = len(candidates.ks), len(ws.index)
    outcome, steps = np.empty((2, n), dtype=np.int64)
    gain, beta, gap, short, moved = np.empty((5, n))
    a, a_lo, status = np.empty((n, e)), np.zeros((n, e)), np.empty((n, e), dtype=np.int8)
    free = FreeSet(start.free.members.copy(), np.empty_like(start.free.R))
    ends = Ends(
        candidates.ks, candidates.mu, outcome, steps, gain, beta, gap, short, moved, a, a_lo, status,
        free, start.p,
    )  # fmt: skip
    p = removal_paths(
        start, ws.Q_lo, candidates, most_steps(e), FOLLOW.address, REMOVE.address, ends
    )
    ends = ends._replace(p=p)
    counters.n_paths += len(ends.ks)
    counters.n_steps += int(ends.steps.sum())
    return ends


def _outsiders(state: State, ws: WorkingSet, ks: Index, local: Index) -> Outsiders:
    """The candidates outside of the working set; of others, and of -1, all numbers are zero."""
    gram, count = state.problem.gram, len(ks)
    columns, columns_lo = np.zeros((count, len(ws.index))), np.zeros((count, len(ws.index)))
    diagonal, diagonal_lo, a, a_lo, y, G = np.zeros((6, count))
    at = np.flatnonzero((ks >= 0) & (local < 0))
    if len(at):
        k = ks[at]
        diagonal[at], y[at], G[at] = gram.diagonal[k], state.problem.y[k], state.G[k]
        a[at], a_lo[at] = state.a[k], state.a_lo[k]
        if state.precise:
            columns[at], columns_lo[at] = gram.block_pair(k, ws.index)
            for c in at:
                hi, lo = gram.block_pair(ks[c : c + 1], ks[c : c + 1])
                diagonal[c], diagonal_lo[c] = hi[0, 0], lo[0, 0]
        else:
            columns[at] = gram.block(k, ws.index)
    return Outsiders(diagonal, diagonal_lo, a, a_lo, y, G, columns, columns_lo)


# For paths on which every candidate is in the working set.
NO_OUTSIDERS = Outsiders(*np.zeros((6, 1)), *np.zeros((2, 1, 1)))


def most_steps(n: int) -> int:
    """Far more breakpoints than a path among n samples has, unless it cycles."""
    return 500 + 20 * n


def remove(
    state: State, ws: WorkingSet, k: int, counters: Counters, end: Ends | None = None
) -> None:
    """Take sample k out and bring the state to its new optimum. May leave it unusable if it raises.

    ``end`` is where the path of k alone leads, if that is known already.
    """
    if end is None and not state.trivial_without(k):
        end = removal_ends(state, ws, candidates_of(state, ws, np.array([k])), counters)
    state.kept[k] = False
    state.removed.append(k)
    state.a[k] = 0.0
    state.a_lo[k] = 0.0
    state.status[k] = OUT
    state.changed()
    if end is not None and end.outcome[0] == DONE:
        _scatter(state, ws, (end.a[0], end.a_lo[0], end.status[0]), end.beta[0], end.free, end.p)
    else:
        _free_to_bounds(state)
    settle(state, counters)


def change_alpha(state: State, ws: WorkingSet, alpha: float, counters: Counters) -> State:
    """The state for another alpha, in the engine's units, along the path on which only mu changes."""
    problem = replace(state.problem, alpha=alpha)
    after = replace(state.copy(), problem=problem)
    after.changed()
    if not (state.trivial or state.precise):
        nothing = candidates_of(state, ws, np.array([-1]), np.array([after.mu]))
        end = removal_ends(state, ws, nothing, counters)
        if end.outcome[0] == DONE:
            _scatter(
                after, ws, (end.a[0], end.a_lo[0], end.status[0]), end.beta[0], end.free, end.p
            )
    settle(after, counters)
    return after


def _free_to_bounds(state: State) -> None:
    """Give up the free set: each of its samples goes to the nearer bound."""
    state.drop_members()
    for i in np.flatnonzero(state.status == FREE):
        up = state.a[i] > state.problem.upper[i] / 2
        state.a[i] = state.problem.upper[i] if up else 0.0
        state.a_lo[i] = 0.0
        state.status[i] = UP if up else LOW


def is_settled(state: State) -> bool:
    """Whether the state, whose gradient must be fresh, is optimal to the accuracy that is guaranteed."""
    return (
        abs(state.imbalance()) <= 1e-12 * max(1.0, state.measures.total)
        and state.measures.worst <= RESIDUAL
        and state.gap() <= GAP * state.unit
        and state.rounding() <= MOST_ROUNDING
    )


def solve(state: State, counters: Counters) -> None:
    """Solve the problem of a state that knows nothing yet."""
    if len(state.problem.y) > COLD_START_LIMIT and not state.trivial:
        guess_start(state)
    settle(state, counters)
    counters.n_repaired = 0  # a first solution repairs nothing


def solve_boxed(problem: Problem, box: Array, mu: float, start: State | None = None) -> State:
    """``max sum(a) - a'Qa / (2 mu)`` over ``0 <= a <= box`` (and ``y.a = 0`` with an offset), verified.

    The Gram matrix and labels are those of the problem; ``start`` is the solution of a similar one.
    """
    kept = box > NEGLIGIBLE * box.max()
    alpha = mu / (2.0 * float(box[kept].sum()))
    problem = replace(problem, weight=box, upper=box, alpha=alpha)
    if start is not None and (start.kept == kept).all():
        state = replace(start.copy(), problem=problem)
    else:
        state = empty_state(problem)
        state.kept = kept
        state.status[~kept] = OUT
    settle(state, Counters())
    return state


def settle(state: State, counters: Counters) -> None:
    """Bring a state to its exact optimum and prove it, whatever it takes; raise if nothing helps."""
    if state.trivial:
        state.make_trivial()
        return
    state.refresh()
    if abs(state.imbalance()) > DRIFT * max(1.0, state.measures.total):
        _polish(state)
    if is_settled(state):
        return
    counters.n_repaired += 1
    if not state.precise:
        # What a long path rounds is mostly taken back by one step, far cheaper than a path.
        _polish(state)
        if is_settled(state):
            return
    for precise in (False, True):
        if state.precise and not precise:
            continue
        if precise and not state.precise:
            state.precise = True
            counters.n_precise += 1
        for attempt in range(4):
            rng = np.random.default_rng(attempt)
            if attempt == 1:  # the free set may have got dependent, and its inverse useless
                free_independent(state, state.members)
                state.refresh()
            if attempt >= 2:
                _restart(state)
                counters.n_resolved += 1
            if _approach(state, rng, 1e-3 if attempt == 1 else 0.0, counters):
                return
            if state.rounding() > MOST_ROUNDING:  # doubles cannot do it, whatever the start
                break
    raise NumericalError(
        f"No optimum could be verified for {counted(int(state.kept.sum()), 'sample')} with alpha="
        f"{state.problem.alpha * state.problem.gram.unit:g} (largest violation "
        f"{state.measures.worst:.1e}, duality gap {state.gap():.1e}). "
        + advice_for(state.problem.gram, state.problem.alpha)
    )


def _polish(state: State) -> None:
    """One Newton step on the free samples: takes back what rounding added up over many removals."""
    members = state.members
    if len(members) == 0:
        return
    right = -state.G[members]
    if state.problem.offset:
        right = np.concatenate([[-state.imbalance()], right])
    change = state.R @ right
    if state.problem.offset:
        state.beta += float(change[0])
        change = change[1:]
    state.a[members] += change
    state.refresh()


def _restart(state: State) -> None:
    """Forget the solution."""
    state.a[:] = 0.0
    state.a_lo[:] = 0.0
    state.status[state.kept] = LOW
    state.drop_members()
    state.beta = 0.0
    state.refresh()


def _approach(state: State, rng: Any, spread: float, counters: Counters) -> bool:
    """Follow paths from the present point to the optimum, taking in violators round by round."""
    for _ in range(200):
        violations = state.violations()
        violators = np.flatnonzero(violations > RESIDUAL / 10)
        if len(violators) > MOST_VIOLATORS:
            worst = np.argpartition(-violations[violators], MOST_VIOLATORS)[:MOST_VIOLATORS]
            violators = violators[worst]
        ws = working_set(state, violators)
        outcome = _homotopy(state, ws, rng, spread, counters)
        if outcome == UNBOUNDED:
            raise NotSeparableError(
                "margin='hard' needs classes that a hyperplane separates"
                + ("" if state.problem.offset else " through the origin (fit_intercept=False)")
                + ", and these are not separable; use margin='soft'."
            )
        state.refresh()
        if outcome != DONE:
            return False
        if is_settled(state):
            return True
        before = violators
        violators = np.flatnonzero(state.violations() > RESIDUAL / 10)
        if ws.whole or np.isin(violators, before).all():
            # One more round only polishes what rounding left; after that it is another method's turn.
            if _homotopy(state, working_set(state, violators), rng, 0.0, counters) != DONE:
                state.refresh()
                return False
            state.refresh()
            return is_settled(state)
    return False


def _homotopy(state: State, ws: WorkingSet, rng: Any, spread: float, counters: Counters) -> int:
    """Follow the path from this point, taken as optimal for a shifted problem, to the true one."""
    index = ws.index
    if not ws.covers(state.members):
        raise AssertionError("a working set must hold the free samples")
    free, p = _start(state, ws).free, len(state.members)
    a, a_lo, actual, status = state.point.at(index)
    low, up = status == LOW, status == UP
    error = np.where(low, -actual, np.where(up, actual, np.abs(actual)))  # > 0: condition missed
    error[status == OUT] = 0.0
    # A random distance from zero, so that no two samples meet it at once: ties are what can cycle.
    near = max(float(error.max(initial=0.0)), spread * state.mu)
    noise = rng.uniform(0.1, 1.0, len(index)) * near
    shaken = error >= -spread * state.mu
    start = actual.copy()
    start[status == FREE] = 0.0
    start[low & shaken] = (np.maximum(actual, 0.0) + noise)[low & shaken]
    start[up & shaken] = (np.minimum(actual, 0.0) - noise)[up & shaken]
    drift = Drift(actual - start, np.zeros(len(index)), -state.imbalance(), 0.0)
    point = Point(a, a_lo, start, status)
    end = Followed(
        *follow_path(
            FOLLOW.address,
            ws.arrays,
            ws.Q_lo,
            point,
            state.beta,
            free,
            p,
            drift,
            most_steps(len(ws.index)),
        )
    )
    counters.n_paths += 1
    counters.n_steps += end.steps
    _scatter(state, ws, (a, a_lo, status), end.beta, free, end.p)
    return int(end.outcome)
