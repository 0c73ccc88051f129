r"""Certified bounds on the gains of many candidates at once, without following a path for each.

Lower bounds evaluate the present primal point without the sample: F is a minimum over (w, b), so any
point gives an upper value of F(A \ k). Upper bounds evaluate a dual point of A \ k: any feasible
point gives a lower value. For all candidates the dual restricted to the samples near the margin
has the same Hessian; one factorisation and a few steps of ADMM on a matrix with one column a
candidate give points so good that the bounds decide almost every comparison.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from deferlearn.kernels import Array, Index
from deferlearn.objective.evaluation import leaves_nothing, shared_gains
from deferlearn.objective.path import LOW, UP
from deferlearn.objective.response import ROUNDING, Response
from deferlearn.objective.solver import Counters
from deferlearn.objective.state import State, WorkingSet

# Bound samples near the margin that may respond besides the free ones: this many times their number.
NEAR, LEAST_NEAR = 1.5, 16
# Candidates at once: bounds the memory of the matrices.
CHUNK = 512


class Screening:
    """Bounds for the states of one objective, one after the other; what carries over is kept."""

    def __init__(self) -> None:
        self._response: Response | None = None

    def gain_bounds(
        self,
        state: State,
        ws: WorkingSet,
        ks: Index,
        floor: Callable[[Array], ArrayLike] | None,
        counters: Counters,
    ) -> tuple[Array, Array]:
        """Lower and upper bounds of the gains of ks; equal where that costs nothing.

        An upper bound below ``floor(lower)`` is tight enough.
        """
        if state.trivial:
            return np.zeros(len(ks)), np.zeros(len(ks))
        value = state.value
        # Both bounds lean on the present state, which is optimal up to its duality gap.
        slack = ROUNDING * (state.total + value) + state.gap()
        exact, shared = shared_gains(state, ws, ks, counters)
        last = leaves_nothing(state, ks)
        lower = np.minimum(np.maximum(lower_bounds(state, ks), shared), value)
        lower[last] = value
        known = exact & ~last
        lower[known] = shared[known]
        upper = lower.copy()
        open_ = ~(exact | last)
        if open_.any():
            limit = np.broadcast_to(-np.inf if floor is None else floor(lower), ks.shape)
            bounds = self._upper_bounds(state, ws, ks[open_], limit[open_] - slack)
            upper[open_] = np.minimum(bounds + slack, value)
            lower[open_] = np.minimum(np.maximum(lower[open_] - slack, 0.0), upper[open_])
        return lower, upper

    def _upper_bounds(self, state: State, ws: WorkingSet, ks: Index, floor: Array) -> Array:
        """Upper bounds by a dual point in which the samples near the margin respond; at most F."""
        out = np.full(len(ks), state.value)
        # Who owes nothing to the balance of the dual variables can go without anybody's response.
        alone = np.ones(len(ks), dtype=bool) if not state.problem.offset else state.a[ks] == 0.0
        out[alone] = np.minimum(out[alone], dropping_bounds(state, ks[alone]))
        open_ = np.flatnonzero(out >= floor)
        if len(open_) == 0:
            return out
        response = self._response_of(state, ws)
        if response is None:
            return out
        for start in range(0, len(open_), CHUNK):
            part = open_[start : start + CHUNK]
            out[part] = np.minimum(out[part], response.bounds(ks[part], floor[part]))
        return out

    def _response_of(self, state: State, ws: WorkingSet) -> Response | None:
        old = self._response
        if old is not None and old.keeps and old.ws is ws and not old.stale:
            if old.state is not state:
                old.move_to(state)
            return old
        near = _near(state, ws)
        self._response = Response(state, ws, near) if len(near) else None
        return self._response


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
    """Upper bounds without offset, or for idle samples: leave a_k out and change nothing else."""
    a = state.a[ks]
    mu = state.mu_without(ks)
    quadratic = state.quadratic - 2 * a * state.images[ks] + a**2 * state.problem.gram.diagonal[ks]
    # What rounding may do to it: the gradient's own terms count unless carried in two doubles.
    length = a * state.problem.root[ks]
    present = np.sqrt(state.quadratic) + (0.0 if state.precise else state.length)
    quadratic += ROUNDING * (state.quadratic + 2 * present * length + length**2)
    return np.asarray(state.value - (state.total - a - quadratic / (2 * mu)))


def _near(state: State, ws: WorkingSet) -> Index:
    """The free samples and about as many bound ones, closest to the margin first."""
    bound = ws.index[(state.status[ws.index] == LOW) | (state.status[ws.index] == UP)]
    distance = np.abs(state.G[bound]) / np.maximum(state.problem.root[bound], 1e-3)
    count = max(LEAST_NEAR, int(NEAR * len(state.members)))
    order = np.argsort(distance, kind="stable")[:count]
    return np.concatenate([state.members, bound[order]])
