"""Exact gains of many candidates: paths from one shared state, each end checked over all samples."""

import numpy as np

from deferlearn._utils.threads import side_by_side
from deferlearn._utils.types import Array, Bools, Index
from deferlearn.objective import solver
from deferlearn.objective.arrays import Ends
from deferlearn.objective.path import DONE, UP
from deferlearn.objective.scaling import mu_from_alpha
from deferlearn.objective.solver import GAP, Counters, candidates_of, removal_ends
from deferlearn.objective.state import State, WorkingSet

# Numbers of an (n_candidates, n_samples) matrix that may exist at once.
CHUNK_ENTRIES = 2**22
# Paths that one thread follows before it looks for more work.
PATHS_AT_ONCE = 64
# Rounding of a product of two lengths, relative, with room to spare.
PRODUCT_ROUNDING = 1e-12


def exact_gains(
    state: State, ws: WorkingSet, ks: Index, counters: Counters, n_jobs: int = 1
) -> Array:
    """Exact gains of each of ks, by ``n_jobs`` threads; each path is followed by one of them."""
    out = np.zeros(len(ks))
    if state.trivial:
        return out
    last = leaves_nothing(state, ks)
    out[last] = state.value
    todo = ~last
    settled, gains = shared_gains(state, ws, ks, counters)
    settled &= todo
    out[settled] = gains[settled]
    counters.n_shared += int(settled.sum())
    todo &= ~settled
    open_ = np.flatnonzero(todo)
    size = min(_at_once(state), PATHS_AT_ONCE)
    parts = [open_[start : start + size] for start in range(0, len(open_), size)]
    solver.start_of(state, ws)  # what all paths share is there before they start

    def work(part: Index) -> tuple[Array, Counters]:
        own = Counters()
        return _removal_gains(state, ws, ks[part], own), own

    for part, (gains, own) in zip(parts, side_by_side(work, parts, n_jobs), strict=True):
        out[part] = gains
        counters.add(own)
    counters.n_exact += len(open_)
    return out


def shared_gains(
    state: State, ws: WorkingSet, ks: Index, counters: Counters
) -> tuple[Bools, Array]:
    """``F(A) - F0``, F0 the optimum for the smaller m with no sample removed.

    A lower bound of every gain (removing a sample cannot raise F), and the gain itself wherever the
    dual variable of k is zero at that optimum. One path serves all samples of one weight. Returns
    where the number is exact, and the numbers (zero for weights that no idle sample has).
    """
    exact = np.zeros(len(ks), dtype=bool)
    gains = np.zeros(len(ks))
    weights, group = state.problem.weight[ks], np.zeros(len(ks), dtype=np.int64)
    if len(ks) and (weights != weights[0]).any():
        weights, group = np.unique(weights, return_inverse=True)
    else:
        weights = weights[:1]
    mu = mu_from_alpha(state.problem.alpha, state.total_weight - weights)
    idle = np.bincount(group, state.a[ks] == 0.0, len(weights)) > 0
    wanted = np.flatnonzero(idle & (mu > 0.0))
    size = _at_once(state)
    for start in range(0, len(wanted), size):
        part = wanted[start : start + size]
        nothing = candidates_of(state, ws, np.full(len(part), -1), mu[part])
        ends = removal_ends(state, ws, nothing, counters)
        good = optimal(state, ws, ends)
        for row in np.flatnonzero(good):
            same = group == part[row]
            gains[same] = max(0.0, float(ends.gain[row]))
            a = state.a.copy()
            a[ws.index] = ends.a[row]
            exact |= same & (a[ks] == 0.0)
    return exact, gains


def idle_end(state: State, ws: WorkingSet, k: int, counters: Counters) -> tuple[Ends, Bools] | None:
    """Where the one path of `shared_gains` for samples of the weight of k ends, and whose end it is.

    It is the end of the removal of each kept sample of this weight whose dual variable is zero there.
    None if it could not be proved.
    """
    mu = state.mu_without(np.array([k]))
    end = removal_ends(state, ws, candidates_of(state, ws, np.array([-1]), mu), counters)
    if not optimal(state, ws, end)[0]:
        return None
    a = end.a[0]
    if not ws.whole:
        a = state.a.copy()
        a[ws.index] = end.a[0]
    weight = state.problem.weight
    return end, state.kept & (a == 0.0) & (weight == weight[k])


def _at_once(state: State) -> int:
    """Candidates whose matrices over all samples may exist at once."""
    return max(1, CHUNK_ENTRIES // len(state.kept))


def leaves_nothing(state: State, ks: Index) -> Bools:
    """Which removals leave one class (with offset) or no sample, so that F falls to zero."""
    negative, positive = state.class_counts
    if negative + positive == 1:
        return np.ones(len(ks), dtype=bool)
    if not state.problem.offset or min(negative, positive) > 1:
        return np.zeros(len(ks), dtype=bool)
    y = state.problem.y[ks]
    return ((y < 0) & (negative == 1)) | ((y > 0) & (positive == 1))


def _removal_gains(state: State, ws: WorkingSet, ks: Index, counters: Counters) -> Array:
    ends = removal_ends(state, ws, candidates_of(state, ws, ks), counters)
    gains = np.asarray(ends.gain)
    for c in np.flatnonzero(~optimal(state, ws, ends)):  # the working set was too small, or worse
        end = state.copy()
        solver.remove(end, ws, int(ks[c]), counters)
        gains[c] = state.value - end.value
    return np.maximum(gains, 0.0)


def optimal(state: State, ws: WorkingSet, ends: Ends) -> Bools:
    """Whether the end of each path is optimal over all kept samples, by its duality gap."""
    gap, short = ends.gap, ends.short
    if not ws.whole:
        outside_gap, outside_short = _outside(state, ws, ends)
        gap, short = gap + outside_gap, np.maximum(short, outside_short)
    if state.problem.hard:
        gap = gap + 2.0 * state.unit * short
    return (ends.outcome == DONE) & (gap <= GAP * state.unit * ends.mu)


def _outside(state: State, ws: WorkingSet, ends: Ends) -> tuple[Array, Array]:
    """The same sums as in `removal`, over the samples that the paths did not look at.

    A sample whose G is farther from zero than it can have moved owes nothing; by Cauchy and Schwarz it
    moves by no more than its own length times that of the change of mu w, which the path knows. So
    hardly any sample has to be looked at.
    """
    problem = state.problem
    outside = np.flatnonzero(state.kept & (ws.position < 0))
    gap, short = np.zeros(len(ends.ks)), np.zeros(len(ends.ks))
    at_upper = state.status[outside] == UP
    for c, k in enumerate(ends.ks.tolist()):
        shift = problem.y[outside] * (ends.beta[c] - state.beta) - (ends.mu[c] - state.mu)
        G = state.G[outside] + shift
        reach = problem.root[outside] * (ends.moved[c] * (1.0 + PRODUCT_ROUNDING))
        unsure = np.flatnonzero(np.where(at_upper, G + reach > 0.0, G - reach < 0.0))
        unsure = unsure[outside[unsure] != k]  # the candidate itself owes nothing
        if len(unsure) == 0:
            continue
        change = ends.a[c] - state.a[ws.index]
        moved = np.flatnonzero(change)
        index, coef = ws.index[moved], change[moved]
        if k >= 0 and ws.position[k] < 0:
            index, coef = np.append(index, k), np.append(coef, -state.a[k])
        rows = outside[unsure]
        G = G[unsure] + problem.gram.image_at(rows, index, coef)
        a, below = state.a[rows], np.maximum(-G, 0.0)
        gap[c] = np.maximum(G, 0.0) @ a
        if problem.hard:
            short[c] = below.max()
        else:
            gap[c] += below @ (problem.upper[rows] - a)
    return gap, short
