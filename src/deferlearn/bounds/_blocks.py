r"""A lower bound of ``F(V \ S) + c(S)`` from small blocks.

``F(A) = min_w sum_{i in A} l_i(w)`` with non-negative ``l_i``, so F of a union of disjoint blocks is at
least the sum of their F: each block would choose its own w. Within a block all subsets are tried; how the n
deferred samples are shared among blocks is left to the best (a small dynamic programme).
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from deferlearn._utils.types import Array, Index
from deferlearn.bounds._view import View
from deferlearn.kernels import LinearGram
from deferlearn.objective import Objective, SumObjective, SVMObjective

# Subsets double with each sample; six already see both classes and a conflict between them.
BLOCK_SIZE = 6
# Beyond this many samples, counted once per part of a sum, the blocks cost more than they tell.
MOST_SAMPLES = 600


def block_bound(parts: Sequence[SVMObjective], loss: Array, n: int) -> float:
    """Least cost of blocks that share n deferred samples, for the sum of the parts."""
    views = [View.of(part) for part in parts]
    if views[0].n_samples * len(views) > MOST_SAMPLES:
        return 0.0
    least = np.zeros(n + 1)  # by number of deferred samples so far, at most
    for block in _blocks(parts, views):
        restricted = [_restricted(view, block) for view in views]
        whole = restricted[0] if len(restricted) == 1 else SumObjective(restricted)
        costs = _best_by_size(whole, loss[block], min(n, len(block)))
        shifted = [
            np.r_[np.full(k, np.inf), least[: n + 1 - k]] + costs[k] for k in range(len(costs))
        ]
        least = np.min(shifted, axis=0)
    return float(least.min())


def _blocks(parts: Sequence[SVMObjective], views: Sequence[View]) -> list[Index]:
    """Blocks with the shares of all classes, samples with large dual variables together."""
    dual = np.sum([part.dual for part in parts], axis=0)
    order = np.argsort(-dual / views[0].problem.weight, kind="stable")
    rank = np.empty(len(order))
    labels = np.array([view.y for view in views])
    for column in np.unique(labels, axis=1).T:
        mine = order[(labels[:, order] == column[:, None]).all(axis=0)]
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


def _best_by_size(objective: Objective, loss: Array, most: int) -> Array:
    """Least F + c over the subsets of each size, by removing samples one after the other."""
    best = np.full(most + 1, np.inf)

    def visit(state: Objective, first: int, size: int, cost: float) -> None:
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
