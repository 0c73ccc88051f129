"""Steps on two dual variables, for points without ballast: hardly any sample is inside its box.

The pair is that of libsvm (Fan, Chen, Lin 2005): the worst violation, with the partner that promises
most. A step costs two passes over all rows, so this is for the few steps that lead to samples inside.
"""

import numpy as np

from deferlearn._utils.compiling import compiled, internal
from deferlearn.objective.ballast import FLAT, Rows


@internal
def _product(rows: Rows, i, dense):  # type: ignore[no-untyped-def]
    total = 0.0
    for t in range(rows.starts[i], rows.starts[i + 1]):
        total += rows.entries[t] * dense[rows.columns[t]]
    return total


@compiled
def pair_steps(rows: Rows, kept, upper, mu, a, v, n_steps, accuracy):  # type: ignore[no-untyped-def]
    """Up to ``n_steps`` steps on pairs; changes a and v. Returns the last violation that was looked at.

    It stops once no pair violates its conditions by more than the accuracy.
    """
    y, violation = rows.y, 0.0
    pull = np.zeros(len(y))  # y_i times the gradient of a_i
    row = np.zeros(len(v))
    for _ in range(n_steps):
        i, j, highest, lowest = -1, -1, -np.inf, np.inf
        for k in kept:
            pull[k] = y[k] - _product(rows, k, v) / mu
            if (a[k] < upper[k] if y[k] > 0.0 else a[k] > 0.0) and pull[k] > highest:
                i, highest = k, pull[k]
            if a[k] > 0.0 if y[k] > 0.0 else a[k] < upper[k]:
                lowest = min(lowest, pull[k])
        violation = max(highest - lowest, 0.0)
        if violation <= accuracy:
            break
        for t in range(rows.starts[i], rows.starts[i + 1]):
            row[rows.columns[t]] = rows.entries[t]
        most, width = 0.0, 0.0
        for k in kept:
            if pull[k] < highest and (a[k] > 0.0 if y[k] > 0.0 else a[k] < upper[k]):
                size = rows.square[i] + rows.square[k]
                curvature = max(size - 2.0 * _product(rows, k, row), FLAT * size + 1e-300) / mu
                if (highest - pull[k]) ** 2 / curvature > most:
                    most = (highest - pull[k]) ** 2 / curvature
                    j, width = k, (highest - pull[k]) / curvature
        for t in range(rows.starts[i], rows.starts[i + 1]):
            row[rows.columns[t]] = 0.0
        if j < 0:
            break
        # y_i a_i grows by the step, y_j a_j falls by it.
        step = min(width, upper[i] - a[i] if y[i] > 0.0 else a[i])
        step = min(step, a[j] if y[j] > 0.0 else upper[j] - a[j])
        for k, signed in ((i, step), (j, -step)):
            a[k] = min(max(a[k] + y[k] * signed, 0.0), upper[k])
            for t in range(rows.starts[k], rows.starts[k + 1]):
                v[rows.columns[t]] += signed * rows.entries[t]
    return violation
