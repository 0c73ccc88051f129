r"""Certified bounds on the gains of many candidates at once, without following a path for each.

Lower bounds evaluate the present primal point without the sample: F is a minimum over (w, b), so any
point gives an upper value of F(A \ k). Upper bounds evaluate a dual point of A \ k: any feasible
point gives a lower value. For all candidates the dual restricted to the samples near the margin
has the same Hessian; one factorisation and a few steps of ADMM on a matrix with one column a
candidate give points so good that the bounds decide almost every comparison.
"""

from __future__ import annotations

import numpy as np

from deferlearn.kernels import Array, Index
from deferlearn.objective.evaluation import leaves_nothing, shared_gains
from deferlearn.objective.path import LOW, UP
from deferlearn.objective.solver import Counters
from deferlearn.objective.state import State, WorkingSet

# Over-relaxed ADMM (Boyd et al. 2011, section 3.4.3): steps, relaxation, and its penalty relative to
# the mean diagonal of Q. Measured in benchmarks/gains.py: more steps tighten the bounds no further
# than they cost.
STEPS = 20
RELAXATION = 1.6
PENALTY = 0.1
# Bound samples near the margin that may respond besides the free ones: this many times their number.
NEAR, LEAST_NEAR = 1.0, 16
# Candidates at once: bounds the memory of the matrices.
CHUNK = 512
# What the bounds' own sums may lose, relative to their terms, so that a bound stays one.
ROUNDING = 64 * float(np.finfo(np.float64).eps)


def gain_bounds(state: State, ws: WorkingSet, ks: Index, counters: Counters) -> tuple[Array, Array]:
    """Lower and upper bounds of the gains of ks; equal where that costs nothing."""
    if state.trivial:
        return np.zeros(len(ks)), np.zeros(len(ks))
    value = state.value
    slack = ROUNDING * (state.a.sum() + value)
    exact, shared = shared_gains(state, ws, ks, counters)
    last = leaves_nothing(state, ks)
    lower = np.minimum(np.maximum(lower_bounds(state, ks), shared), value)
    lower[last] = value
    lower[exact & ~last] = shared[exact & ~last]
    upper = lower.copy()
    open_ = ~(exact | last)
    if open_.any():
        upper[open_] = np.minimum(upper_bounds(state, ws, ks[open_]) + slack, value)
        lower[open_] = np.minimum(np.maximum(lower[open_] - slack, 0.0), upper[open_])
    return lower, upper


def lower_bounds(state: State, ks: Index) -> Array:
    """``alpha u_k |w|^2 + u_k hinge_k``: what the objective loses at the present w and b."""
    problem = state.problem
    y, weight = problem.y[ks], problem.weight[ks]
    lowest, highest = state.beta_interval()
    # Without free samples every beta of an interval is optimal, and each gives a valid bound.
    beta = np.where(y > 0, lowest, highest)
    beta = np.where(np.isfinite(beta), beta, state.beta)
    G = state.G[ks] + y * (beta - state.beta)
    hinge = np.zeros(len(ks)) if problem.hard else weight * np.maximum(-G, 0.0) / state.mu
    return problem.alpha * weight * state.quadratic / state.mu**2 + hinge


def dropping_bounds(state: State, ks: Index) -> Array:
    """Upper bounds without offset: leave a_k out and change nothing else."""
    a = state.a[ks]
    mu = state.mu_without(ks)
    quadratic = state.quadratic - 2 * a * state.images[ks] + a**2 * state.problem.gram.diagonal[ks]
    quadratic += _rounding(state, a * state.problem.root[ks])
    return state.value - (state.a.sum() - a - quadratic / (2 * mu))


def _rounding(state: State, moved: Array) -> Array:
    """What rounding can do to a'Qa after changes of a whose images have total length `moved`."""
    present = np.sqrt(state.quadratic)
    if not state.precise:  # the present gradient has itself been rounded
        present += float(state.problem.root @ state.a)
    return ROUNDING * (state.quadratic + 2 * present * moved + moved**2)


def upper_bounds(state: State, ws: WorkingSet, ks: Index) -> Array:
    """Upper bounds by a dual point in which the samples near the margin respond; never above F."""
    value = state.value
    out = np.full(len(ks), value)
    if not state.problem.offset:
        out = np.minimum(out, dropping_bounds(state, ks))
    near = _near(state, ws)
    if len(near) == 0:
        return out
    solver = _Response(state, near)
    for start in range(0, len(ks), CHUNK):
        part = slice(start, start + CHUNK)
        out[part] = np.minimum(out[part], solver.bounds(ks[part]))
    return out


def _near(state: State, ws: WorkingSet) -> Index:
    """The free samples and about as many bound ones, closest to the margin first."""
    bound = ws.index[(state.status[ws.index] == LOW) | (state.status[ws.index] == UP)]
    distance = np.abs(state.G[bound]) / np.maximum(state.problem.root[bound], 1e-3)
    count = max(LEAST_NEAR, int(NEAR * len(state.members)))
    order = np.argsort(distance, kind="stable")[:count]
    return np.concatenate([state.members, bound[order]])


class _Response:
    """The restricted dual: min 1/2 x'Qx + q_k'x, 0 <= x <= u, y'x = r_k, one column a candidate."""

    def __init__(self, state: State, near: Index) -> None:
        problem = state.problem
        self.state, self.near = state, near
        self.Q = problem.gram.block(near, near)
        self.y, self.a = problem.y[near], state.a[near]
        self.upper = problem.upper[near]
        self.position = np.full(len(problem.y), -1)
        self.position[near] = np.arange(len(near))
        self.penalty = PENALTY * max(float(np.mean(np.diag(self.Q))), 1e-12)
        n = len(near)
        if problem.offset:
            system = np.zeros((n + 1, n + 1))
            system[:n, n] = system[n, :n] = self.y
        else:
            system = np.zeros((n, n))
        system[:n, :n] = self.Q + self.penalty * np.eye(n)
        inverse = np.linalg.inv(system)
        self.response = inverse[:n, :n]
        self.shift = inverse[:n, n] if problem.offset else np.zeros(n)

    def bounds(self, ks: Index) -> Array:
        state, problem = self.state, self.state.problem
        columns = np.arange(len(ks))
        local = self.position[ks]
        inside = local >= 0
        a_k, y_k = state.a[ks], problem.y[ks]
        mu = state.mu_without(ks)
        cross = problem.gram.block(self.near, ks)  # Q_Ek
        outer = np.where(inside, 0.0, a_k)
        linear = (state.images[self.near] - self.Q @ self.a)[:, None] - cross * outer - mu
        target = float(self.y @ self.a) + y_k * outer
        upper = np.repeat(self.upper[:, None], len(ks), axis=1)
        upper[local[inside], columns[inside]] = 0.0

        z = np.minimum(np.repeat(self.a[:, None], len(ks), axis=1), upper)
        dual = np.repeat((-state.G[self.near] / self.penalty)[:, None], len(ks), axis=1)
        constant = -self.response @ linear + np.outer(self.shift, target)
        for _ in range(STEPS):
            x = constant + self.response @ (self.penalty * (z - dual))
            x = RELAXATION * x + (1.0 - RELAXATION) * z
            z = np.clip(x + dual, 0.0, upper)
            dual += x - z
        if problem.offset:
            z, balanced = _balance(z, upper, self.y, target)
        else:
            balanced = np.ones(len(ks), dtype=bool)

        change = z - self.a[:, None]  # includes a_k -> 0 where k is inside
        inner = self.Q @ change - 2 * cross * outer + 2 * state.images[self.near][:, None]
        quadratic = state.quadratic + np.einsum("ij,ij->j", change, inner)
        quadratic += outer**2 * problem.gram.diagonal[ks] - 2 * outer * state.images[ks]
        moved = problem.root[self.near] @ np.abs(change) + problem.root[ks] * outer
        quadratic += _rounding(state, moved)
        total = state.a.sum() + change.sum(axis=0) - outer
        dual_value = total - quadratic / (2 * mu)
        return np.where(balanced, state.value - dual_value, state.value)


def _balance(z: Array, upper: Array, y: Array, target: Array) -> tuple[Array, Array]:
    """Shift each column along y, clipped to its box, until ``y'x = target``; and whether it worked."""
    tau = np.zeros(z.shape[1])
    sign = y[:, None]
    low, high = np.full(z.shape[1], -np.inf), np.full(z.shape[1], np.inf)
    tolerance = 1e-14 * np.abs(z).sum(axis=0)
    x = z
    for _ in range(30):
        x = np.clip(z - sign * tau, 0.0, upper)
        excess = y @ x - target
        done = np.abs(excess) <= tolerance
        if done.all():
            break
        low = np.where(excess > 0, tau, low)
        high = np.where(excess < 0, tau, high)
        moving = ((x > 0) & (x < upper)).sum(axis=0)
        step = excess / np.maximum(moving, 1)  # Newton, on a piecewise linear function
        trial = tau + step
        # Past the bracket: halve it. It is closed on that side, and open ones are never passed.
        closed = np.isfinite(low) & np.isfinite(high) & ((trial <= low) | (trial >= high))
        trial[closed] = (low[closed] + high[closed]) / 2
        tau = np.where(done, tau, trial)
    return x, np.abs(y @ x - target) <= tolerance
