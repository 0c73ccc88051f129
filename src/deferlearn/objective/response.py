r"""How the samples near the margin respond when a candidate leaves, for all candidates at once.

The dual of A \ k, restricted to a set E near the margin, is ``min 1/2 x'Qx + q_k'x`` subject to
``0 <= x <= u`` and ``y'x = r_k``. Its matrix is the same for every candidate: one factorisation serves
the steps of ADMM on a matrix with one row a candidate. Whatever ADMM has reached is then made exactly
feasible, so that its dual value is a certified lower bound of F(A \ k).
"""

from __future__ import annotations

import numpy as np
import scipy.linalg
from numba import njit

from deferlearn.kernels import Array, Index
from deferlearn.objective.state import State, WorkingSet

# Over-relaxed ADMM (Boyd et al. 2011, section 3.4.3): steps before each look at the bounds,
# relaxation, and the penalty relative to the mean diagonal of Q. The points of the last state need no
# step at all for most candidates; afresh, one step leaves 20 of 127 on a typical state, four leave 3.
STEPS = (0, 1, 3, 16)
# So few candidates are cheaper to solve exactly than to bound more tightly.
FEW = 2
# Beyond this share of candidates that the old points did not dismiss, a new near set is due.
STALE = 0.25
RELAXATION = 1.6
PENALTY = 0.1
# Numbers of a (n_samples, near samples) matrix that may be kept from one state to the next (32 MB).
MOST_KEPT = 2**22
# What the bounds' own sums may lose, relative to their terms, so that a bound stays one.
ROUNDING = 64 * float(np.finfo(np.float64).eps)


def rounding(state: State, moved: Array) -> Array:
    """What rounding can do to a'Qa after changes of a whose images have total length `moved`."""
    present = np.sqrt(state.quadratic)
    if not state.precise:  # the present gradient has itself been rounded
        present += float(state.problem.root @ state.a)
    return ROUNDING * (state.quadratic + 2 * present * moved + moved**2)


class Response:
    """The restricted dual around one state, for any number of candidates; can move on with the state.

    The matrices depend on the near samples alone, not on the state: after a removal they still serve,
    and the points reached for each candidate are good starts.
    """

    def __init__(self, state: State, ws: WorkingSet, near: Index) -> None:
        problem = state.problem
        self.ws, self.near = ws, near
        local = ws.position[near]
        self.Q = ws.Q[np.ix_(local, local)]
        self.y, self.root = problem.y[near], problem.root[near]
        self.position = np.full(len(problem.y), -1)
        self.position[near] = np.arange(len(near))
        self.penalty = PENALTY * max(float(np.mean(np.diag(self.Q))), 1e-12)
        regular = self.Q.copy()
        regular[np.diag_indices(len(near))] += self.penalty
        self.response = _inverse(regular)
        self.shift = np.zeros(len(near))
        if problem.offset:  # the equality takes out one direction
            self.shift = self.response @ self.y
            scale = float(self.y @ self.shift)
            self.response -= np.outer(self.shift, self.shift) / scale
            self.shift /= scale
        # The points reached for each candidate (ADMM's z and dual) and its rows of Q; kept for the
        # next state unless that would take too much memory.
        self.keeps = len(problem.y) * len(near) <= MOST_KEPT
        shape = (len(problem.y), len(near)) if self.keeps else (0, len(near))
        self.z, self.dual, self.rows = np.empty(shape), np.empty(shape), np.empty(shape)
        self.reached = np.zeros(len(problem.y), dtype=bool)
        self.stale = False
        self._set(state)

    def _set(self, state: State) -> None:
        near = self.near
        self.state = state
        self.a, self.images = state.a[near], state.images[near]
        self.upper = np.where(state.kept[near], state.problem.upper[near], 0.0)

    def move_to(self, state: State) -> None:
        """Serve another state of the same problem: the points move as its dual variables did."""
        change = state.a[self.near] - self.a
        self._set(state)
        known = self.z[self.reached] if self.keeps else self.z
        if len(known):
            self.z[self.reached] = np.clip(known + change, 0.0, self.upper)

    def bounds(self, ks: Index, floor: Array) -> Array:
        """Upper bounds of the gains of ks, tightened until they are below their floor."""
        state, problem = self.state, self.state.problem
        z, dual, rows, fresh = self._start(ks)
        local = self.position[ks]
        outer = np.where(local >= 0, 0.0, state.a[ks])  # a_k where it is not among the near
        mu = state.mu_without(ks)
        present = np.flatnonzero(local >= 0)
        z[present, local[present]] = 0.0
        cross = rows * outer[:, None]
        target = float(self.y @ self.a) + problem.y[ks] * outer
        # Of a'Qa and of the images' lengths, what leaves with a_k before anybody responds.
        base = outer**2 * problem.gram.diagonal[ks] - 2 * outer * state.images[ks]
        lengths = problem.root[ks] * outer
        total = state.a.sum() - outer
        response = self.penalty * self.response
        constant = np.empty((0, 0))  # made when the first step needs it
        out = np.full(len(ks), state.value)
        active = np.arange(len(ks))
        for steps in STEPS[1:] if fresh else STEPS:
            if steps and not constant.size:
                linear = (self.images - self.Q @ self.a) - cross - mu[:, None]
                constant = np.outer(target, self.shift) - linear @ self.response
            for _ in range(steps):
                x = (z - dual) @ response
                x += constant
                _update(x, z, dual, self.upper, local, RELAXATION)
            found = self._bound(z, local, target, cross, mu, base, lengths, total)
            out[active] = np.minimum(out[active], found)
            go_on = out[active] >= floor[active]
            if steps == 0:
                self.stale = bool(go_on.sum() > STALE * len(ks))
            elif self.keeps:
                self.z[ks[active]], self.dual[ks[active]] = z, dual
            if not go_on.any() or go_on.sum() <= FEW < len(ks):
                break
            if not go_on.all():
                active = active[go_on]
                z, dual, cross, local, target, mu, base, lengths, total = (
                    part[go_on]
                    for part in (z, dual, cross, local, target, mu, base, lengths, total)
                )
                constant = constant[go_on] if constant.size else constant
        return out

    def _start(self, ks: Index) -> tuple[Array, Array, Array, bool]:
        """The points to start from, the candidates' rows of Q, and whether some are new."""
        dual = -self.state.G[self.near] / self.penalty
        if not self.keeps:
            shape = (len(ks), len(self.near))
            z, duals = np.broadcast_to(self.a, shape).copy(), np.broadcast_to(dual, shape).copy()
            return z, duals, self._block(ks), True
        new = ks[~self.reached[ks]]
        if len(new):
            self.z[new], self.dual[new], self.rows[new] = self.a, dual, self._block(new)
            self.reached[new] = True
        return self.z[ks], self.dual[ks], self.rows[ks], len(new) > 0

    def _block(self, ks: Index) -> Array:
        """Rows ks of Q over the near samples, from the working set if it has them."""
        if self.ws.whole:
            return self.ws.Q[np.ix_(ks, self.near)]
        return self.state.problem.gram.block(ks, self.near)

    def _bound(
        self, z: Array, local: Index, target: Array, cross: Array, mu: Array, base: Array,
        lengths: Array, total: Array,
    ) -> Array:  # fmt: skip
        """F minus the dual value of the points z, made feasible."""
        state = self.state
        balanced = np.ones(len(z), dtype=bool)
        if state.problem.offset:
            z = z.copy()
            balanced = _balance(z, self.upper, local, self.y, target)
        change = z - self.a  # includes a_k -> 0 where k is among the near
        inner = change @ self.Q
        inner -= 2 * cross
        inner += 2 * self.images
        quadratic = state.quadratic + base + np.einsum("ij,ij->i", change, inner)
        quadratic += rounding(state, np.abs(change) @ self.root + lengths)
        dual_value = total + change.sum(axis=1) - quadratic / (2 * mu)
        return np.where(balanced, state.value - dual_value, state.value)


def _inverse(matrix: Array) -> Array:
    """Inverse of a positive definite matrix; by Cholesky, three times cheaper than by LU."""
    factor, failed = scipy.linalg.lapack.dpotrf(matrix, lower=1)
    if failed:  # a kernel that is indefinite by rounding
        return np.asarray(np.linalg.inv(matrix), dtype=np.float64)
    inverse, _ = scipy.linalg.lapack.dpotri(factor, lower=1)
    lower = np.tril(inverse)
    return np.asarray(lower + np.tril(lower, -1).T)


@njit(cache=True)
def _update(x, z, dual, upper, local, relaxation):  # type: ignore[no-untyped-def]
    """One step of over-relaxed ADMM after the linear solve, in place; row c's own sample stays 0."""
    for c in range(x.shape[0]):
        for i in range(x.shape[1]):
            w = relaxation * x[c, i] + (1.0 - relaxation) * z[c, i] + dual[c, i]
            z[c, i] = min(max(w, 0.0), upper[i])
            dual[c, i] = w - z[c, i]
        k = local[c]
        if k >= 0:
            dual[c, k] += z[c, k]
            z[c, k] = 0.0


@njit(cache=True)
def _balance(z, upper, local, y, target):  # type: ignore[no-untyped-def]
    """Shift each row along y, clipped to its box, until ``y'x = target``; says which rows got there.

    The sum is piecewise linear and monotone in the shift: Newton steps, kept inside a bracket.
    """
    good = np.zeros(z.shape[0], dtype=np.bool_)
    for c in range(z.shape[0]):
        k = local[c]
        size = 0.0
        for i in range(z.shape[1]):
            size += abs(z[c, i])
        low, high, shift = -np.inf, np.inf, 0.0
        for _ in range(60):
            excess, moving = -target[c], 0
            for i in range(z.shape[1]):
                v = min(max(z[c, i] - y[i] * shift, 0.0), upper[i])
                if i != k:
                    excess += y[i] * v
                    moving += 0.0 < v < upper[i]
            if abs(excess) <= 1e-14 * size:
                good[c] = True
                break
            if excess > 0.0:
                low = shift
            else:
                high = shift
            trial = shift + excess / max(moving, 1)
            if not low < trial < high:  # where a side is still open, no step passes it
                trial = (low + high) / 2
            if trial == shift or not np.isfinite(trial):
                break
            shift = trial
        for i in range(z.shape[1]):
            z[c, i] = min(max(z[c, i] - y[i] * shift, 0.0), upper[i])
        if k >= 0:
            z[c, k] = 0.0
    return good
