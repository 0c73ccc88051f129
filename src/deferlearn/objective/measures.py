"""What a state is judged by, over all kept samples, in one pass: values, violations, duality gap."""

from typing import NamedTuple

import numpy as np

from deferlearn._utils.compiling import compiled
from deferlearn.kernels.doubledouble import add
from deferlearn.objective.path import LOW, UP

# Closer to a bound than this share of the largest dual variable (of the box), a sample is on it.
INTERIOR = 1e-11


@compiled
def clip(a, a_lo, upper):
    """Put what rounding left outside of its box back on the border."""
    for i in range(a.size):
        if a[i] + a_lo[i] < 0.0 or a[i] + a_lo[i] > upper[i]:
            a[i] = min(max(a[i], 0.0), upper[i])
            a_lo[i] = 0.0


class Tally(NamedTuple):
    """How many negative and positive samples are kept, and the sum of their weights."""

    negative: int
    positive: int
    weight: float


@compiled
def tally(kept, y, weight):
    """Count the kept samples: the fields of `Tally`."""
    negative, positive, total = 0, 0, 0.0
    for i in range(kept.size):
        if kept[i]:
            total += weight[i]
            if y[i] > 0.0:
                positive += 1
            else:
                negative += 1
    return negative, positive, total


class Measures(NamedTuple):
    """Sums over the kept samples; G, the dual variables a and Q are those of `path`."""

    total: float  # the sum of a
    quadratic: float  # a'Qa
    length: float  # the sum of the lengths of the a_i's images
    imbalance: float  # y.a, carried in two doubles
    worst: float  # the largest violation of an optimality condition, relative to the terms of G
    gap: float  # mu times the duality gap
    short: float  # by how much G falls short of zero where a has no upper bound
    inside: bool  # whether a sample is strictly inside of its box


@compiled
def measure(samples, point, kept, beta, mu):
    """All sums in two passes: the fields of `Measures`."""
    y, upper, root = samples.y, samples.upper, samples.root
    a, a_lo, G, status = point.a, point.a_lo, point.G, point.status
    largest = 0.0
    total, quadratic, length = 0.0, 0.0, 0.0
    owed, owed_lo = 0.0, 0.0
    for i in range(a.size):
        if a[i] != 0.0:
            total += a[i]
            largest = max(largest, a[i])
            quadratic += a[i] * (G[i] - y[i] * beta + mu)
            length += a[i] * root[i]
            owed, owed_lo = add(owed, owed_lo, y[i] * a[i], y[i] * a_lo[i])
    quadratic = max(quadratic, 0.0)
    norm, terms = np.sqrt(quadratic), mu + abs(beta)
    worst, gap, short = 0.0, 0.0, 0.0
    inside = False
    for i in range(a.size):
        if not kept[i]:
            continue
        miss = G[i]
        if status[i] == LOW:
            miss = min(miss, 0.0)
        elif status[i] == UP:
            miss = max(miss, 0.0)
        worst = max(worst, abs(miss) / max(terms + root[i] * norm, 2.3e-308))
        inside |= a[i] > INTERIOR * largest and upper[i] - a[i] > INTERIOR * upper[i]
        if G[i] > 0.0:
            gap += a[i] * G[i]
        elif upper[i] == np.inf:
            short = max(short, -G[i])
        else:
            gap -= (upper[i] - a[i]) * G[i]
    return total, quadratic, length, owed + owed_lo, worst, gap, short, inside
