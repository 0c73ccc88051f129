"""A guess for rows of very many features: one dual variable after another, w kept up to date.

A step costs one row of X, so that a pass over all samples costs what a product with X does (Hsieh et al.
2008). An offset demands ``y.a = 0``, which no single variable can keep: an imbalance costs beta per unit,
which rises as long as there is any, and a quadratic penalty that helps it settle (the method of
multipliers).
"""

from typing import Any, NamedTuple

import numpy as np

from deferlearn._utils.compiling import compiled
from deferlearn._utils.types import Array
from deferlearn.kernels import LinearGram
from deferlearn.objective.arrays import Samples
from deferlearn.objective.state import State

# Violation of an optimality condition at which a guess is good enough, relative to its terms; passes at
# most.
PASS_ACCURACY, MOST_PASSES = 1e-5, 2000


def descend(state: State, gram: LinearGram) -> tuple[Array, float, bool]:
    """Dual variables and offset b, to a few digits, and whether it came that far."""
    problem, mu = state.problem, state.mu
    n, d = gram.rows.shape
    if gram.sparse:
        rows = Rows(gram.rows.data, gram.rows.indices, gram.rows.indptr)
    else:
        rows = Rows(gram.rows.ravel(), np.empty(0, np.int64), d * np.arange(n + 1))
    # As much curvature as a sample has; with rows of zeros, as much as makes beta matter. A penalty
    # that grows while the imbalance stays took more passes, not fewer.
    penalty = max(float(gram.diagonal.mean()), mu / state.total_weight) if problem.offset else 0.0
    a, w, beta, imbalance = np.zeros(n), np.zeros(d), 0.0, 0.0
    rng = np.random.default_rng(0)
    for _ in range(MOST_PASSES):
        balance = Balance(beta, penalty, mu)
        worst, imbalance = one_pass(
            rows, problem.samples, balance, a, w, imbalance, rng.permutation(n)
        )
        owed = penalty * imbalance
        balanced = abs(owed) <= PASS_ACCURACY * mu and abs(imbalance) <= PASS_ACCURACY * a.sum()
        if worst <= PASS_ACCURACY * mu and (balanced or not problem.offset):
            return a, (beta + owed) / mu, True
        if worst <= abs(owed):  # this beta has done what it can
            beta += owed
    return a, (beta + penalty * imbalance) / mu, False


class Rows(NamedTuple):
    """The rows of X, one after the other; dense rows have no column numbers."""

    entries: Any
    columns: Any
    starts: Any


class Balance(NamedTuple):
    """What an imbalance costs: the multiplier beta, and a quadratic penalty; mu as in `path`."""

    beta: float
    penalty: float
    mu: float


@compiled
def one_pass(  # type: ignore[no-untyped-def]
    rows: Rows, samples: Samples, balance: Balance, a, w, imbalance, order
):
    """One step on each variable, in this order; changes a and w. The worst violation, the imbalance."""
    entries, columns, starts = rows
    y, upper, diagonal = samples.y, samples.upper, samples.diagonal
    beta, penalty, mu = balance
    sparse = len(columns) > 0
    worst = 0.0
    for i in order:
        start, stop = starts[i], starts[i + 1]
        gradient = y[i] * (beta + penalty * imbalance) - mu
        for t in range(start, stop):
            gradient += entries[t] * w[columns[t] if sparse else t - start]
        curvature = max(diagonal[i] + penalty, 1e-12)
        target = min(max(a[i] - gradient / curvature, 0.0), upper[i])
        step = target - a[i]
        if step != 0.0:
            worst = max(worst, abs(gradient))
            a[i] = target
            imbalance += y[i] * step
            for t in range(start, stop):
                w[columns[t] if sparse else t - start] += step * entries[t]
    return worst, imbalance
