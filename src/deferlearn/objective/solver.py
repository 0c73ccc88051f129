"""Making a state exact: from any starting point, after a removal, and when rounding got in the way.

Everything is a path of `path.follow`. A starting point that is not optimal is optimal for a problem
with another linear term; the path takes that term back to the true one. So the same few lines
solve from nothing, repair a small error, and take in samples from outside the working set, and the
check at the end, on the gradient computed afresh over all samples, is a proof of optimality.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from deferlearn.kernels.gram import Array, Index
from deferlearn.objective.path import DONE, FREE, LOW, OUT, UNBOUNDED, UP, follow
from deferlearn.objective.removal import removal_paths
from deferlearn.objective.start import COLD_START_LIMIT, free_independent, guess_start
from deferlearn.objective.state import State, WorkingSet, capacity, nearest

# A committed state misses its optimality conditions by no more than this, relative to their terms...
RESIDUAL = 1e-10
# ... and its primal and dual values agree to this, relative to max(1, F).
GAP = 1e-10
# Imbalance of the dual variables, relative to their sum, from which on rounding is taken back.
DRIFT = 1e-14
# Where rounding alone could reach this share of the gradient, doubles are not enough.
ROUNDING = 2e-11
# Bound samples in a working set beyond the free ones, as a multiple of these, at least and at most.
EXTRA, LEAST_EXTRA, MOST_EXTRA = 2, 96, 1536
# Violators taken in at once when the working set is not everything.
MOST_VIOLATORS = 1024


# For paths on which every candidate is in the working set.
NOBODY = np.zeros((1, 6))


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
    n_resolved : states solved anew from nothing
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

    def add(self, other: Counters) -> None:
        """Count what somebody else has solved."""
        for name, count in vars(other).items():
            setattr(self, name, getattr(self, name) + count)


def working_set(state: State, must: Index | None = None) -> WorkingSet:
    """The usual working set of a state."""
    extra = max(LEAST_EXTRA, min(EXTRA * len(state.members), MOST_EXTRA))
    return WorkingSet(state.problem, nearest(state, extra, must), state.precise)


def _buffers(state: State, ws: WorkingSet) -> tuple[Index, Array, int]:
    cap = capacity(state.problem, len(ws.index))
    p = len(state.members)
    members = np.zeros(max(cap, p), dtype=np.int64)
    members[:p] = ws.position[state.members]
    R = np.empty((len(members) + 1, len(members) + 1))
    q = len(state.R)
    R[:q, :q] = state.R
    return members, R, p


def _scatter(
    state: State, ws: WorkingSet, a: Array, a_lo: Array, status: Any, beta: float,
    members: Index, p: int, R: Array,
) -> None:  # fmt: skip
    state.a[ws.index] = a
    state.a_lo[ws.index] = a_lo
    state.status[ws.index] = status
    state.beta = float(beta)
    state.members = ws.index[members[:p]]
    q = p + 1 if state.problem.offset and p > 0 else p
    state.R = R[:q, :q].copy()
    state.changed()


def buffers(state: State, ws: WorkingSet) -> tuple[Index, Array, int]:
    """The free set in the working set's order, with room to grow; not to be changed."""
    owner, made = state.once("buffers", lambda: (ws, _buffers(state, ws)))
    return made if owner is ws else _buffers(state, ws)


class Ends(NamedTuple):
    """Where the paths of several candidates end; one row each. Members, p and R are the last one's."""

    ks: Index
    mu: Array
    numbers: Array
    a: Array
    a_lo: Array
    status: Any
    members: Index
    p: int
    R: Array

    @property
    def outcome(self) -> Array:
        """How each path ended."""
        return self.numbers[:, 0]

    @property
    def gain(self) -> Array:
        """What each removal gains, if its end is optimal."""
        return self.numbers[:, 1]

    @property
    def beta(self) -> Array:
        """The offset at each end, times mu."""
        return self.numbers[:, 3]

    @property
    def gap(self) -> Array:
        """The working set's part of mu times each duality gap."""
        return self.numbers[:, 4]

    @property
    def short(self) -> Array:
        """By how much G falls short of zero where dual variables have no upper bound."""
        return self.numbers[:, 5]

    @property
    def moved(self) -> Array:
        """At most how far each path has moved mu w, by its length in feature space."""
        return self.numbers[:, 6]


def removal_ends(
    state: State, ws: WorkingSet, ks: Index, counters: Counters, mu_new: Array | None = None
) -> Ends:
    """Follow the removal of each of ks; with ``mu_new`` a k of -1 removes nobody."""
    problem = state.problem
    local = ks if ws.whole else np.where(ks < 0, -1, ws.position[ks])
    outside = columns = columns_lo = NOBODY
    if not ws.whole or mu_new is not None:
        outside, columns, columns_lo = _outsiders(state, ws, ks, local)
    mu = state.mu_without(ks) if mu_new is None else mu_new
    members, R, p = buffers(state, ws)
    # The paths copy what they change: where everybody is in the working set nothing is gathered.
    everybody = slice(None) if ws.whole else ws.index
    out = removal_paths(
        ws.Q, ws.Q_lo, ws.y, ws.upper, ws.root, problem.offset,
        state.a[everybody], state.a_lo[everybody], state.G[everybody], state.beta,
        state.status[everybody], members, p, R, state.mu, state.quadratic,
        local, outside, columns, columns_lo, mu, most_steps(ws),
    )  # fmt: skip
    ends = Ends(ks, mu, *out)
    counters.n_paths += len(ks)
    counters.n_steps += int(sum(ends.numbers[:, 2]))
    return ends


def _outsiders(state: State, ws: WorkingSet, ks: Index, local: Index) -> tuple[Array, Array, Array]:
    """What `removal_paths` must know of candidates outside of the working set; nobody is all zeros."""
    gram, somebody = state.problem.gram, ks >= 0
    outside, columns = np.zeros((len(ks), 6)), np.zeros((len(ks), len(ws.index)))
    columns_lo = np.zeros_like(columns)
    at = np.flatnonzero(somebody & (local < 0))
    if len(at):
        k = ks[at]
        outside[at, 0] = gram.diagonal[k]
        outside[at, 2], outside[at, 3] = state.a[k], state.a_lo[k]
        outside[at, 4], outside[at, 5] = state.problem.y[k], state.G[k]
        if state.precise:
            columns[at], columns_lo[at] = gram.block_pair(k, ws.index)
            for c in at:
                hi, lo = gram.block_pair(ks[c : c + 1], ks[c : c + 1])
                outside[c, 0], outside[c, 1] = hi[0, 0], lo[0, 0]
        else:
            columns[at] = gram.block(k, ws.index)
    return outside, columns, columns_lo


def most_steps(ws: WorkingSet) -> int:
    """Far more breakpoints than a path has, unless it cycles."""
    return 500 + 20 * len(ws.index)


def remove(
    state: State, ws: WorkingSet, k: int, counters: Counters, end: Ends | None = None
) -> None:
    """Take sample k out and bring the state to its new optimum. May leave it unusable if it raises.

    ``end`` is where the path of k alone leads, if that is known already.
    """
    if end is None and not state.trivial_without(k):
        end = removal_ends(state, ws, np.array([k]), counters)
    state.kept[k] = False
    state.removed.append(k)
    state.a[k] = 0.0
    state.a_lo[k] = 0.0
    state.status[k] = OUT
    state.changed()
    if end is not None and end.outcome[0] == DONE:
        _scatter(
            state, ws, end.a[0], end.a_lo[0], end.status[0], end.beta[0], end.members, end.p, end.R
        )
    else:
        _free_to_bounds(state)
    settle(state, counters)


def _free_to_bounds(state: State) -> None:
    """Give up the free set: each of its samples goes to the nearer bound."""
    state.drop_members()
    for i in np.flatnonzero(state.status == FREE):
        up = state.a[i] > state.problem.upper[i] / 2
        state.a[i] = state.problem.upper[i] if up else 0.0
        state.a_lo[i] = 0.0
        state.status[i] = UP if up else LOW


def is_settled(state: State) -> bool:
    """Whether the state, whose gradient must be fresh, is optimal as far as we promise."""
    return (
        abs(state.imbalance()) <= 1e-12 * max(1.0, state.total)
        and state.worst_violation <= RESIDUAL
        and state.gap() <= GAP * state.unit
        and state.rounding() <= ROUNDING
    )


def solve(state: State, counters: Counters) -> None:
    """Solve the problem of a state that knows nothing yet."""
    if len(state.problem.y) > COLD_START_LIMIT and not state.trivial:
        guess_start(state)
    settle(state, counters)
    counters.n_repaired = 0  # a first solution repairs nothing


def settle(state: State, counters: Counters) -> None:
    """Bring a state to its exact optimum and prove it, whatever it takes; raise if nothing helps."""
    if state.trivial:
        state.make_trivial()
        return
    state.refresh()
    if abs(state.imbalance()) > DRIFT * max(1.0, state.total):
        _polish(state)
    if is_settled(state):
        return
    counters.n_repaired += 1
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
            if state.rounding() > ROUNDING:  # doubles cannot do it, whatever the start
                break
    raise NumericalError(
        f"No optimum could be verified for {int(state.kept.sum())} samples with alpha="
        f"{state.problem.alpha * state.problem.gram.unit:g} (largest violation "
        f"{state.worst_violation:.1e}, duality gap {state.gap():.1e}). Columns of X of very different "
        "size, or a very small alpha, do this: rescale the columns, or raise alpha."
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
    problem, index = state.problem, ws.index
    if not ws.covers(state.members):
        raise AssertionError("a working set must hold the free samples")
    members, R, p = _buffers(state, ws)
    a, a_lo = state.a[index], state.a_lo[index]
    status = state.status[index]
    actual = state.G[index]
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
    drift = actual - start
    outcome, beta, p, steps, _ = follow(
        ws.Q, ws.Q_lo, ws.y, ws.upper, ws.root, problem.offset,
        a, a_lo, start, state.beta, status, members, p, R,
        drift, np.zeros(len(index)), -state.imbalance(), 0.0, most_steps(ws),
    )  # fmt: skip
    counters.n_paths += 1
    counters.n_steps += int(steps)
    _scatter(state, ws, a, a_lo, status, beta, members, p, R)
    return int(outcome)
