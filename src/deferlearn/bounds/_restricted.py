r"""A lower bound of ``F(V \ S) + c(S)`` from one dual point of V, restricted to what is kept.

At a fixed offset b, any :math:`a \in [0, u]^V` is feasible for every kept set once its deferred part is
dropped, so with :math:`D_{b, \mu}(a) = \sum_i a_i (1 - y_i b) - a^T Q a / (2 \mu)`

.. math::

    F_b(V \setminus S) \ge D_{b, \mu}(a)
    - \sum_{i \in S} \Big[ a_i (1 - y_i b) - \frac{a_i (Qa)_i}{\mu} \Big]
    - \frac{1}{2 \mu} \sum_{i, j \in S} a_i a_j Q_{ij} .

The last sum is at most that of :math:`r_i`, the diagonal term plus the :math:`|S| - 1` largest positive
others of row i, so the worst S of each size is found by sorting. Shrinking a makes the quadratic loss
smaller faster than the rest; the best of several shrinkages is taken for each size. For a given a and S the
bound is linear in b, so an interval of offsets is covered by its two ends, and the interval with the
least bound is split.
"""

import heapq
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from deferlearn._utils.types import Array
from deferlearn.bounds._view import View
from deferlearn.objective.scaling import mu_from_alpha

SHRINKAGES = np.array([1.0, 0.85, 0.7, 0.55, 0.4, 0.28, 0.2, 0.12, 0.06, 0.02])
# Intervals of offsets, for up to this many entries of Q (fewer for larger problems).
MOST_INTERVALS = 64
ENTRIES = 2**21
# Steps of the approximate dual solver; whatever it returns is feasible.
DUAL_STEPS = 400


def restricted_dual_bound(view: View, loss: Array, n: int) -> float:
    """Least cost over all offsets and sizes."""
    problem = view.problem
    if float(np.sort(problem.weight)[::-1][n:].sum()) <= 0:
        return 0.0
    Q = view.signed_gram()
    if not problem.offset:
        return _worst(view, Q, loss, n, 0.0, 0.0)
    reach = most_offset(view)
    intervals = int(np.clip(ENTRIES / view.n_samples**2, 12, MOST_INTERVALS))
    # The extreme offsets are usually dismissed at once, so the first cuts are near zero.
    cuts = np.unique(np.clip([-reach, -4.0, -1.5, -0.5, 0.5, 1.5, 4.0, reach], -reach, reach))
    heap = [(_worst(view, Q, loss, n, low, high), low, high) for low, high in pairwise(cuts)]
    heapq.heapify(heap)
    for _ in range(intervals - len(heap)):
        _, low, high = heapq.heappop(heap)
        middle = (low + high) / 2
        for left, right in ((low, middle), (middle, high)):
            heapq.heappush(heap, (_worst(view, Q, loss, n, left, right), left, right))
    return float(heap[0][0])


def _worst(view: View, Q: Array, loss: Array, n: int, low: float, high: float) -> float:
    """Least bound over all sizes up to n, for offsets between low and high."""
    best = np.full(n + 1, -np.inf)
    for ends in minorants(view, Q, loss, n, low, high):
        best = np.maximum(best, np.minimum.reduce([end.worst() for end in ends]))
    return max(0.0, float(best.min()))


class Minorant(NamedTuple):
    """``F + c`` without a set S is at least ``value``, less the sum of ``hurt`` over S; by the size of S.

    The entry ``hurt[i, s - 1]`` is for sets of size s.
    """

    value: Array
    hurt: Array

    def worst(self) -> Array:
        """The least that it is, over the sets of each size."""
        value = self.value.copy()
        value[1:] -= sum_of_largest(self.hurt)
        return value


def sum_of_largest(hurt: Array) -> Array:
    """In column s - 1 the sum of its s largest entries."""
    n = hurt.shape[1]
    top = -np.sort(-hurt, axis=0)[:n]
    return np.asarray(np.cumsum(top, axis=0)[np.arange(n), np.arange(n)])


def minorants(
    view: View, Q: Array, loss: Array, n: int, low: float, high: float
) -> Iterator[list[Minorant]]:
    """For each shrinkage, the minorants at both ends of an interval of offsets: the lesser one holds."""
    problem, y = view.problem, view.y
    weight = problem.weight
    left = view.total - np.concatenate([[0.0], np.cumsum(np.sort(weight)[::-1][:n])])
    mus = mu_from_alpha(problem.alpha, left)  # by size
    dual = _dual_at(Q, 1.0 - y * (low + high) / 2, weight, float(mus[n]))
    image = Q @ dual
    quadratic = float(dual @ image)
    pairs = dual[:, None] * Q * dual
    diagonal = pairs.diagonal().copy()
    np.fill_diagonal(pairs, 0.0)
    others = -np.sort(-np.maximum(pairs, 0.0), axis=1)[:, :n]
    rows = (
        diagonal[:, None]
        + np.concatenate([np.zeros((len(y), 1)), np.cumsum(others, axis=1)], axis=1)[:, :n]
    )  # rows[:, s - 1] for size s
    mu = mus[1:]
    for shrink in SHRINKAGES:
        ends = []
        for b in {low, high}:
            linear = shrink * dual * (1.0 - y * b)
            value = linear.sum() - shrink**2 * quadratic / (2.0 * mus)
            hurt = (
                (linear - loss)[:, None]
                - shrink**2 * (dual * image)[:, None] / mu
                + shrink**2 * rows / (2.0 * mu)
            )
            ends.append(Minorant(value, hurt))
        yield ends


def most_offset(view: View) -> float:
    """No optimal offset is larger: ``|b| <= 1 + kappa |w|``, and ``2 alpha m |w|^2 <= m``."""
    return 1.0 + view.radius * float(np.sqrt(0.5 / view.problem.alpha))


def _dual_at(Q: Array, linear: Array, box: Array, mu: float) -> Array:
    """A feasible point near the dual optimum at a fixed offset: accelerated projected ascent."""
    largest = float(np.abs(Q).sum(axis=1).max()) / mu
    if largest == 0:
        return np.where(linear > 0, box, 0.0)
    a = previous = np.zeros_like(linear)
    momentum = 1.0
    for _ in range(DUAL_STEPS):
        following = (1.0 + np.sqrt(1.0 + 4.0 * momentum**2)) / 2.0
        point = a + (momentum - 1.0) / following * (a - previous)
        previous = a
        a = np.clip(point + (linear - Q @ point / mu) / largest, 0.0, box)
        step = a - previous
        momentum = following
        if float((point - a) @ step) > 0:  # overshoot: start the acceleration again
            momentum = 1.0
        if float(np.abs(step).max()) <= 1e-7:
            break
    return a
