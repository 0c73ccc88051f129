r"""Certified bounds on the gains of many candidates at once, without following a path for each.

Lower bounds evaluate the present primal point without the sample: F is a minimum over (w, b), so any
point gives an upper value of F(A \ k). Upper bounds evaluate a dual point of A \ k: any feasible
point gives a lower value. For all candidates the dual restricted to the samples near the margin
has the same Hessian; one factorisation and a few steps of ADMM on a matrix with one row per
candidate give points so good that the bounds decide almost every comparison.
"""

import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from deferlearn._utils.types import Array, Index
from deferlearn.objective.arrays import Score
from deferlearn.objective.crude import crude_bounds
from deferlearn.objective.evaluation import leaves_nothing, shared_gains
from deferlearn.objective.path import LOW, UP
from deferlearn.objective.response import Response
from deferlearn.objective.solver import Counters
from deferlearn.objective.state import State, WorkingSet
from deferlearn.objective.validation import as_reals

# Bound samples near the margin that may respond together with the free ones: this many times their number.
# More of them make bounds tighter and costlier: worth it only where no exact gain follows.
NEAR, NEAR_ALONE, LEAST_NEAR = 1.0, 1.5, 16
# The most samples that respond: their matrix is inverted, and each candidate has a row of their size.
MOST_NEAR = 1536


def check_score(scale: Any, cost: Any, tol: Any, count: int) -> Score:
    """The score of `count` candidates, if it is one."""
    costs = as_reals(cost, "cost")
    if costs.shape != (count,) or not np.isfinite(costs).all():
        raise ValueError(
            f"cost must hold a finite number for each of {count} samples, got {cost!r}."
        )
    if not (np.isfinite(scale) and scale > 0.0 and 0.0 <= tol < 1.0):
        raise ValueError(f"scale={scale!r} must be positive, and tol={tol!r} in [0, 1).")
    return Score(float(scale), costs, float(tol))


class Screening:
    """Bounds for the states of one problem; what carries over from one to the next is kept.

    All copies of an objective share it, whatever their states. Each thread has its own.
    """

    def __init__(self, n_jobs: int = 1) -> None:
        self.n_jobs = n_jobs
        self._kept = threading.local()

    def __getstate__(self) -> dict[str, Any]:
        return {"n_jobs": self.n_jobs}  # what is kept can be computed again

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.n_jobs = state["n_jobs"]
        self._kept = threading.local()

    @property
    def stage(self) -> Any:
        """The arena of the last rounds, if there were any."""
        return getattr(self._kept, "stage", None)

    @stage.setter
    def stage(self, stage: Any) -> None:
        self._kept.stage = stage

    def gain_bounds(
        self,
        state: State,
        ws: WorkingSet,
        ks: Index,
        score: Score | None,
        gain: Callable[[int], float],
        counters: Counters,
    ) -> tuple[Array, Array]:
        """Lower and upper bounds of the gains of ks; equal where that costs nothing.

        With a score only as tight as it takes to leave few candidates for the best; ``gain`` solves
        one exactly.
        """
        if state.trivial:
            return np.zeros(len(ks)), np.zeros(len(ks))
        value, slack = state.value, state.numbers.slack
        lower, upper = first_bounds(state, ks)
        floor = np.full(len(ks), -np.inf)
        if score is not None and len(ks):
            # The best lower bound is nearly always the best candidate, or close to it.
            at = int(np.argmax(score.scale * lower - score.cost))
            lower[at] = upper[at] = gain(int(ks[at]))
            best = max(0.0, score.scale * lower[at] - score.cost[at])
            floor = (best / (1.0 - score.tol) + score.cost) / score.scale
        open_ = (upper >= floor) & (upper > lower)
        if (open_ & (state.a[ks] == 0.0)).any():
            exact, shared = shared_gains(state, ws, ks, counters)
            exact &= upper > lower
            lower = np.maximum(lower, np.minimum(shared - slack, upper))
            lower[exact] = upper[exact] = np.minimum(shared[exact], value)
            open_ &= ~exact
        response = None
        if open_.any():
            response = self._kept_response(state, ws) if score else _response(state, ws, NEAR_ALONE)
        if response is not None:
            at_all = np.flatnonzero(open_)
            bounds = response.bounds(state, ks[at_all], floor[at_all] - slack, self.n_jobs)
            upper[at_all] = np.minimum(upper[at_all], bounds + slack)
        return np.minimum(lower, upper), upper

    def response_bounds(
        self, state: State, ws: WorkingSet, ks: Index, floor: Array | None
    ) -> Array:
        """Upper bounds of the gains of ks alone, tightened until they are below their floor.

        Without a floor, what earlier states know has to do.
        """
        response = None if state.trivial else self._kept_response(state, ws)
        if response is None:
            return np.full(len(ks), state.value)
        slack = state.numbers.slack
        if floor is None:
            bounds = response.carried(state, ks)
        else:
            bounds = response.bounds(state, ks, floor - slack, self.n_jobs)
        return np.minimum(bounds + slack, state.value)

    def _kept_response(self, state: State, ws: WorkingSet) -> Response | None:
        old: Response | None = getattr(self._kept, "response", None)
        if old is not None and old.serves(state):
            return old
        self._kept.response = response = _response(state, ws, NEAR)
        if old is not None and response is not None:
            response.take_over(old, state)
        return response


def first_bounds(state: State, ks: Index) -> tuple[Array, Array]:
    """Crude bounds that hold although the state is optimal only up to its slack; for free."""
    if state.trivial:
        return np.zeros(len(ks)), np.zeros(len(ks))
    value, slack = state.value, state.numbers.slack
    lower, upper = crude_bounds(state, ks)
    lower, upper = np.maximum(lower - slack, 0.0), np.minimum(upper + slack, value)
    last = leaves_nothing(state, ks)
    lower[last] = upper[last] = value
    return lower, upper


def _response(state: State, ws: WorkingSet, share: float) -> Response | None:
    near = near_margin(state, ws.index, share)
    return Response(state, ws, near) if len(near) else None


def near_margin(state: State, index: Index, share: float = NEAR, least: int = LEAST_NEAR) -> Index:
    """Free samples and ``share`` times as many bound ones of ``index``, closest to the margin first."""
    bound = index[(state.status[index] == LOW) | (state.status[index] == UP)]
    distance = np.abs(state.G[bound]) / np.maximum(state.problem.root[bound], 1e-3)
    members = state.members
    if len(members) > MOST_NEAR:  # those with the most room can make up for most
        a, upper = state.a[members], state.problem.upper[members]
        members = members[np.argsort(-np.minimum(a, upper - a), kind="stable")[:MOST_NEAR]]
    count = max(least, min(int(share * len(members)), MOST_NEAR - len(members)))
    order = np.argsort(distance, kind="stable")[:count]
    return np.concatenate([members, bound[order]])
