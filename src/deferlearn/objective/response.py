"""How the samples near the margin respond when a candidate leaves, kept from state to state.

A response, the change of the dual variables that k's leaving calls for, hardly differs from one state
to the next. It is kept with its image under Q: in a new state its dual value costs one sum over E, and
one more for each sample that it would push out of its box. Most candidates are dismissed by that.
"""

import numpy as np
import scipy.linalg

from deferlearn._utils.threads import side_by_side
from deferlearn._utils.types import Array, Index
from deferlearn.objective.arrays import Near, Responses, Working
from deferlearn.objective.cholesky import inverse_of_factor
from deferlearn.objective.state import State, WorkingSet
from deferlearn.objective.tightening import FEW, carry_all, respond_all

# ADMM's penalty, relative to the mean diagonal of Q.
PENALTY = 0.1
# Beyond this share of free samples outside of it, a new near set is due.
STALE = 0.25
# Candidates at once: bounds the memory of the matrices.
CHUNK = 512


class Response:
    """The restricted dual around one state, for any number of candidates; can move on with the state.

    The matrices depend on the near samples alone, not on the state: after a removal they still serve.
    """

    def __init__(self, state: State, ws: WorkingSet, near: Index) -> None:
        gram, n = state.problem.gram, len(state.problem.y)
        self.whole = ws.whole
        # Responses are kept for the next state, for as many candidates as the memory allows.
        self.most = n if self.whole else min(n, gram.kept_entries // len(near))
        self.slot = np.arange(n) if self.whole else np.full(n, -1)
        self._used = 0
        if not self.whole:
            gram.keep_columns(near)
        count = self.most if self.whole else self.most + CHUNK
        self.near = make_near(ws.arrays, near, ws.position[near], n, count, self.whole)
        # Free samples for which there was no room.
        self._left_out = int(np.count_nonzero(self.near.position[state.members] < 0))

    def _reserve(self, ks: Index) -> Index:
        """The places of ks, new ones where there is room; -1 where there is none."""
        new = ks[self.slot[ks] < 0][: self.most - self._used]
        self.slot[new] = np.arange(self._used, self._used + len(new))
        self._used += len(new)
        return self.slot[ks]

    def serves(self, state: State) -> bool:
        """Whether another state's margin is near enough."""
        outside = np.count_nonzero(self.near.position[state.members] < 0) - self._left_out
        return bool(outside <= STALE * len(state.members))

    def take_over(self, old: "Response", state: State) -> None:
        """Begin with the responses of another near set, as far as it was the same."""
        known = np.flatnonzero(state.kept & (old.slot >= 0))
        known = known[old.near.responses.age[old.slot[known]] >= 0]
        known = known[self._reserve(known) >= 0]
        before = old.near
        del old.near
        take_over(before, old.slot[known], self.near, self.slot[known], state.G)
        del before
        for ks in chunks(known):
            self.near.responses.rows[self.slot[ks]] = self._rows(state, ks)

    def bounds(self, state: State, ks: Index, floor: Array, n_jobs: int = 1) -> Array:
        """Upper bounds of the gains of ks, tightened until they are below their floor."""
        slot = self._reserve(ks)
        out = np.empty(len(ks))
        at = np.flatnonzero(slot >= 0)
        out[at] = self._tighten(state, ks[at], slot[at], floor[at], n_jobs)
        for part in chunks(np.flatnonzero(slot < 0)):  # no room: they are forgotten at once
            scratch = self.most + np.arange(len(part))
            self.near.responses.age[scratch] = -1
            out[part] = self._tighten(state, ks[part], scratch, floor[part], n_jobs)
        return out

    def carried(self, state: State, ks: Index) -> Array:
        """Upper bounds of the gains of ks by what earlier states know, which costs little."""
        if not self.whole:
            return self.bounds(state, ks, np.full(len(ks), np.inf))
        out = np.empty(len(ks))
        carry_all(ks, ks, state.mu_without(ks), self.near, state.snapshot, out)
        return out

    def _tighten(self, state: State, ks: Index, slot: Index, floor: Array, n_jobs: int) -> Array:
        """Whatever n_jobs is, the same parts are worked on in the same way: so are the bounds the same."""
        mu = state.mu_without(ks)
        responses, shared = self.near.responses, (self.near, state.snapshot)
        if not self.whole:
            for part in chunks(np.flatnonzero(responses.age[slot] < 0)):
                responses.rows[slot[part]] = self._rows(state, ks[part])

        def first(part: Index) -> Array:
            bounds = np.empty(len(part))
            carry_all(ks[part], slot[part], mu[part], *shared, bounds)
            return bounds

        out = np.concatenate(
            [np.empty(0), *side_by_side(first, chunks(np.arange(len(ks))), n_jobs)]
        )
        active = np.flatnonzero(out >= floor)
        if len(active) <= FEW < len(ks):
            return out
        parts = chunks(active)
        few = FEW if len(parts) == 1 and len(ks) > FEW else 0

        def then(part: Index) -> Array:
            bounds, given = np.empty(len(part)), (floor[part], mu[part], out[part], few)
            respond_all(ks[part], slot[part], *given, *shared, bounds)
            return bounds

        for part, bounds in zip(parts, side_by_side(then, parts, n_jobs), strict=True):
            out[part] = bounds
        return out

    def _rows(self, state: State, ks: Index) -> Array:
        if self.whole:
            return self.near.responses.Q_all[np.ix_(ks, self.near.ks)]
        return state.problem.gram.block(ks, self.near.ks)


def take_over(old: Near, there: Index, new: Near, here: Index, G: Array) -> None:
    """Begin with the responses of another near set, in the rows ``there``, as far as it was the same."""
    columns = old.position[new.ks]
    mine = np.flatnonzero(columns >= 0)
    theirs = columns[mine]
    responses, before = new.responses, old.responses
    for at, of in zip(chunks(here), chunks(there), strict=True):
        change = np.zeros((len(at), len(new.ks)))
        change[:, mine] = before.change[of][:, theirs]
        dual = np.tile(-G[new.ks] / new.penalty, (len(at), 1))
        dual[:, mine] = before.dual[of][:, theirs]
        responses.change[at], responses.dual[at] = change, dual
        responses.image[at] = change @ new.Q
    responses.age[here] = 0


def make_near(working: Working, near: Index, place: Index, n: int, count: int, whole: bool) -> Near:
    """The matrices by which the samples near the margin respond, and room for ``count`` responses.

    ``place`` is where the samples ``near``, of n, stand in the working set.
    """
    Q, y = np.ascontiguousarray(working.Q[np.ix_(place, place)]), working.y[place]
    position = np.full(n, -1)
    position[near] = np.arange(len(near))
    penalty = PENALTY * max(float(np.mean(np.diag(Q))), 1e-12)
    regular = Q.copy()
    regular[np.diag_indices(len(near))] += penalty
    inverse = _inverse(regular)
    shift = np.zeros(len(near))
    if working.offset:  # the equality takes out one direction
        shift = inverse @ y
        scale = float(y @ shift)
        inverse -= np.outer(shift, shift) / scale
        shift /= scale
    # Memory that is never written to costs nothing.
    change, image, dual, rows = (np.empty((count, len(near))) for _ in range(4))
    Q_all = working.Q if whole else np.empty((0, 0))
    responses = Responses(change, image, dual, rows, np.full(count, -1), Q_all, whole)
    return Near(near, position, Q, inverse, inverse.sum(axis=0), shift, penalty, responses)


def _inverse(matrix: Array) -> Array:
    """Inverse of a positive definite matrix; by Cholesky, three times cheaper than by LU."""
    factor, failed = scipy.linalg.lapack.dpotrf(matrix, lower=1)
    if failed:  # a kernel that is indefinite by rounding
        return np.asarray(np.linalg.inv(matrix), dtype=np.float64)
    return inverse_of_factor(factor)


def chunks(index: Index) -> list[Index]:
    """Parts of a size that bounds the memory of the matrices."""
    return [index[start : start + CHUNK] for start in range(0, len(index), CHUNK)]
