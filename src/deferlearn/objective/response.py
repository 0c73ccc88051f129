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
STEPS = (0, 1, 3, 12, 14)
# So few candidates are cheaper to solve exactly than to bound more tightly.
FEW = 5
# Beyond this share of candidates that the old points did not dismiss, a new near set is due.
STALE = 0.25
RELAXATION = 1.6
PENALTY = 0.1
# Numbers of a (n_samples, near samples) matrix that may be kept from one state to the next;
# there are three (96 MB).
MOST_KEPT = 2**22
# What the bounds' own sums may lose, relative to their terms, so that a bound stays one.
ROUNDING = 64 * float(np.finfo(np.float64).eps)


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
        self.scaled = self.penalty * self.response
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
        z, dual, rows, fresh = self._start(ks)
        out = np.full(len(ks), self.state.value)
        active = np.arange(len(ks))
        constant = np.empty((0, 0))  # made when the first step needs it
        for steps in STEPS[1:] if fresh else STEPS:
            here = ks[active]
            if steps and not constant.size:
                constant = self._constant(here, rows)
            for _ in range(steps):
                x = (z - dual) @ self.scaled
                x += constant
                _update(x, z, dual, self.upper, here, self.position, RELAXATION)
            out[active] = np.minimum(out[active], self._values(here, z, rows))
            go_on = out[active] >= floor[active]
            left = int(go_on.sum())
            if steps == 0:
                self.stale = left > STALE * len(ks)
            elif self.keeps:
                self.z[here], self.dual[here] = z, dual
            if left == 0 or left <= FEW < len(ks):
                break
            if left < len(active):
                active, z, dual, rows = active[go_on], z[go_on], dual[go_on], rows[go_on]
                constant = constant[go_on] if constant.size else constant
        return out

    def _constant(self, ks: Index, rows: Array) -> Array:
        """The part of ADMM's linear solve that does not change from step to step."""
        state = self.state
        outer = np.where(self.position[ks] >= 0, 0.0, state.a[ks])  # a_k if not among the near
        target = float(self.y @ self.a) + state.problem.y[ks] * outer
        linear = (self.images - self.Q @ self.a) - rows * outer[:, None]
        linear -= state.mu_without(ks)[:, None]
        return np.asarray(np.outer(target, self.shift) - linear @ self.response)

    def _values(self, ks: Index, z: Array, rows: Array) -> Array:
        """F minus the dual value of the points z, made feasible."""
        state, problem = self.state, self.state.problem
        change, good = _changes(
            z, ks, self.position, state.a, problem.y, self.upper, self.y, self.a, problem.offset
        )
        # Rounding: of the gradient's own terms too, unless they were carried in two doubles.
        present = np.sqrt(state.quadratic) + (0.0 if state.precise else state.length)
        return _bounds(
            change, change @ self.Q, good, ks, rows, self.position, state.a, state.mu_without(ks),
            self.images, self.root, state.images, problem.root, problem.gram.diagonal,
            state.quadratic, present, state.total, state.value,
        )  # fmt: skip

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


def _inverse(matrix: Array) -> Array:
    """Inverse of a positive definite matrix; by Cholesky, three times cheaper than by LU."""
    factor, failed = scipy.linalg.lapack.dpotrf(matrix, lower=1)
    if failed:  # a kernel that is indefinite by rounding
        return np.asarray(np.linalg.inv(matrix), dtype=np.float64)
    inverse, _ = scipy.linalg.lapack.dpotri(factor, lower=1)
    lower = np.tril(inverse)
    return np.asarray(lower + np.tril(lower, -1).T)


@njit(cache=True)
def _update(x, z, dual, upper, ks, position, relaxation):
    """One step of over-relaxed ADMM after the linear solve, in place; row c's own sample stays 0."""
    for c in range(x.shape[0]):
        for i in range(x.shape[1]):
            w = relaxation * x[c, i] + (1.0 - relaxation) * z[c, i] + dual[c, i]
            z[c, i] = min(max(w, 0.0), upper[i])
            dual[c, i] = w - z[c, i]
        k = position[ks[c]]
        if k >= 0:
            dual[c, k] += z[c, k]
            z[c, k] = 0.0


@njit(cache=True)
def _changes(z, ks, position, a, labels, upper, y, a_near, offset):
    r"""From points in the box to changes of the dual variables that are feasible for A \ k.

    With an offset each row is shifted along y, clipped to its box, until the dual variables balance;
    their sum is piecewise linear and monotone in the shift: Newton steps, kept inside a bracket. Says
    which rows got there.
    """
    e = z.shape[1]
    change = np.empty_like(z)
    good = np.ones(z.shape[0], dtype=np.bool_)
    owed = 0.0
    for i in range(e):
        owed += y[i] * a_near[i]
    for c in range(z.shape[0]):
        own = position[ks[c]]
        shift = 0.0
        if offset:
            target = owed
            if own < 0:
                target += labels[ks[c]] * a[ks[c]]
            size = 0.0
            for i in range(e):
                size += abs(z[c, i])
            low, high = -np.inf, np.inf
            good[c] = False
            for _ in range(60):
                excess, moving = -target, 0
                for i in range(e):
                    v = min(max(z[c, i] - y[i] * shift, 0.0), upper[i])
                    if i != own:
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
        for i in range(e):
            change[c, i] = min(max(z[c, i] - y[i] * shift, 0.0), upper[i]) - a_near[i]
        if own >= 0:
            change[c, own] = -a_near[own]
    return change, good


@njit(cache=True)
def _bounds(
    change, image, good, ks, rows, position, a, mu, near_images, near_root, images, root, diagonal,
    quadratic, present, total, value,
):  # fmt: skip
    """Upper bounds of the gains: F minus the dual value after each row's change, less rounding."""
    out = np.empty(len(ks))
    for c in range(len(ks)):
        k = ks[c]
        outer = a[k] if position[k] < 0 else 0.0
        added, length = -outer, root[k] * outer
        square = outer * outer * diagonal[k] - 2.0 * outer * images[k]
        for i in range(change.shape[1]):
            d = change[c, i]
            added += d
            length += near_root[i] * abs(d)
            square += d * (image[c, i] - 2.0 * rows[c, i] * outer + 2.0 * near_images[i])
        square += quadratic + ROUNDING * (quadratic + 2.0 * present * length + length * length)
        dual_value = total + added - square / (2.0 * mu[c])
        out[c] = value - dual_value if good[c] else value
    return out
