r"""A lower bound of ``F(V \ S) + c(S)`` from small blocks.

``F(A) = min_w sum_{i in A} l_i(w)`` with non-negative ``l_i``, so F of a union of disjoint blocks is at
least the sum of their F: each block would choose its own w. Within a block all subsets are tried; how the n
deferred samples are shared among blocks is left to the best (a small dynamic programme).
"""

from typing import Any

import numpy as np

from deferlearn._utils.types import Array, Index
from deferlearn.bounds._view import View
from deferlearn.kernels import LinearGram
from deferlearn.objective import SVMObjective

# Subsets double with each sample; six already see both classes and a conflict between them.
BLOCK_SIZE = 6
# Beyond this many samples the blocks cost more than they tell.
MOST_SAMPLES = 600


def block_bound(objective: SVMObjective, view: View, loss: Array, n: int) -> float:
    """Least cost of blocks that share n deferred samples."""
    if view.n_samples > MOST_SAMPLES:
        return 0.0
    least = np.zeros(n + 1)  # by number of deferred samples so far, at most
    for block in _blocks(objective, view):
        costs = _best_by_size(_restricted(view, block), loss[block], min(n, len(block)))
        shifted = [
            np.r_[np.full(k, np.inf), least[: n + 1 - k]] + costs[k] for k in range(len(costs))
        ]
        least = np.min(shifted, axis=0)
    return float(least.min())


def _blocks(objective: SVMObjective, view: View) -> list[Index]:
    """Blocks with the shares of both classes, samples with large dual variables together."""
    dual = objective.dual
    order = np.argsort(-dual / view.problem.weight, kind="stable")
    rank = np.empty(view.n_samples)
    for label in (-1.0, 1.0):
        mine = order[view.y[order] == label]
        rank[mine] = (np.arange(len(mine)) + 0.5) / max(len(mine), 1)
    order = np.argsort(rank, kind="stable")
    return [order[i : i + BLOCK_SIZE] for i in range(0, len(order), BLOCK_SIZE)]


def _restricted(view: View, block: Index) -> SVMObjective:
    problem, y = view.problem, view.y[block]
    common: dict[str, Any] = {
        "alpha": problem.alpha,
        "fit_intercept": problem.offset,
        "weights": problem.weight[block],
    }
    if isinstance(view.gram, LinearGram):
        rows = view.gram.rows[block]
        X = (rows.toarray() if view.gram.sparse else rows) * y[:, None]
        return SVMObjective(X, y, margin="hard" if problem.hard else "soft", **common)
    K = view.gram.block(block, block) * np.outer(y, y)
    return SVMObjective(K, y, kernel="precomputed", **common)


def _best_by_size(objective: SVMObjective, loss: Array, most: int) -> Array:
    """Least F + c over the subsets of each size, by removing samples one after the other."""
    best = np.full(most + 1, np.inf)

    def visit(state: SVMObjective, first: int, size: int, cost: float) -> None:
        best[size] = min(best[size], state.value + cost)
        if size == most:
            return
        if size == most - 1:  # the last level needs no states, only gains
            rest = np.arange(first, len(loss))
            if len(rest):
                values = state.value - state.gains(rest) + cost + loss[rest]
                best[size + 1] = min(best[size + 1], float(values.min()))
            return
        for k in range(first, len(loss)):
            child = state.copy()
            child.remove(k)
            visit(child, k + 1, size + 1, cost + loss[k])

    visit(objective, 0, 0, 0.0)
    return best
