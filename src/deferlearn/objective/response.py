r"""How the samples near the margin respond when a candidate leaves, for all candidates at once.

The dual of A \ k, restricted to a set E near the margin, is ``min 1/2 x'Qx + q_k'x`` subject to
``0 <= x <= u`` and ``y'x = r_k``. Its matrix is the same for every candidate: one factorisation serves
the steps of ADMM on a matrix with one row a candidate. Whatever ADMM has reached is then made exactly
feasible, so that its dual value is a certified lower bound of F(A \ k).
"""

from __future__ import annotations

import numpy as np
from numba import njit

from deferlearn.kernels import Array, Index
from deferlearn.objective.state import State

# Over-relaxed ADMM (Boyd et al. 2011, section 3.4.3): steps before each look at the bounds,
# relaxation, and the penalty relative to the mean diagonal of Q.
STEPS = (4, 8, 8)
RELAXATION = 1.6
PENALTY = 0.1
# What the bounds' own sums may lose, relative to their terms, so that a bound stays one.
ROUNDING = 64 * float(np.finfo(np.float64).eps)


def rounding(state: State, moved: Array) -> Array:
    """What rounding can do to a'Qa after changes of a whose images have total length `moved`."""
    present = np.sqrt(state.quadratic)
    if not state.precise:  # the present gradient has itself been rounded
        present += float(state.problem.root @ state.a)
    return ROUNDING * (state.quadratic + 2 * present * moved + moved**2)


class Response:
    """The restricted dual of one state, for any number of candidates."""

    def __init__(self, state: State, near: Index) -> None:
        problem = state.problem
        self.state, self.near = state, near
        self.Q = problem.gram.block(near, near)
        self.y, self.a = problem.y[near], state.a[near]
        self.upper, self.root = problem.upper[near], problem.root[near]
        self.images = state.images[near]
        self.position = np.full(len(problem.y), -1)
        self.position[near] = np.arange(len(near))
        self.penalty = PENALTY * max(float(np.mean(np.diag(self.Q))), 1e-12)
        n = len(near)
        system = np.zeros((n + 1, n + 1))
        system[:n, :n] = self.Q
        system[np.arange(n), np.arange(n)] += self.penalty
        if problem.offset:
            system[:n, n] = system[n, :n] = self.y
        else:
            system[n, n] = 1.0  # no equality: a row that nothing depends on
        inverse = np.linalg.inv(system)
        self.response, self.shift = inverse[:n, :n], inverse[:n, n]

    def bounds(self, ks: Index, floor: Array) -> Array:
        """Upper bounds of the gains of ks, tightened until they are below their floor."""
        state, problem = self.state, self.state.problem
        local = self.position[ks]
        outer = np.where(local >= 0, 0.0, state.a[ks])  # a_k where it is not among the near
        mu = state.mu_without(ks)
        cross = problem.gram.block(ks, self.near) * outer[:, None]
        linear = (self.images - self.Q @ self.a) - cross - mu[:, None]
        target = float(self.y @ self.a) + problem.y[ks] * outer
        # Of a'Qa and of the images' lengths, what leaves with a_k before anybody responds.
        base = outer**2 * problem.gram.diagonal[ks] - 2 * outer * state.images[ks]
        lengths = problem.root[ks] * outer

        constant = np.outer(target, self.shift) - linear @ self.response
        response = self.penalty * self.response
        z = np.repeat(self.a[None, :], len(ks), axis=0)
        dual = np.repeat((-state.G[self.near] / self.penalty)[None, :], len(ks), axis=0)
        present = np.flatnonzero(local >= 0)
        z[present, local[present]] = 0.0
        out = np.full(len(ks), state.value)
        active = np.arange(len(ks))
        total = state.a.sum() - outer
        for steps in STEPS:
            for _ in range(steps):
                x = (z - dual) @ response
                x += constant
                _update(x, z, dual, self.upper, local, RELAXATION)
            found = self._bound(z, local, target, cross, mu, base, lengths, total)
            out[active] = np.minimum(out[active], found)
            go_on = out[active] >= floor[active]
            if not go_on.any():
                break
            if not go_on.all():
                active = active[go_on]
                z, dual, constant, cross, local, target, mu, base, lengths, total = (
                    part[go_on]
                    for part in (z, dual, constant, cross, local, target, mu, base, lengths, total)
                )
        return out

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
