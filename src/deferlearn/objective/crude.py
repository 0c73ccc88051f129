"""Bounds on gains that cost next to nothing: the present primal and dual points, without the sample."""

import numpy as np

from deferlearn._utils.compiling import compiled
from deferlearn._utils.types import Array, Index
from deferlearn.objective.state import SUM_ROUNDING, State


def crude_bounds(state: State, ks: Index) -> tuple[Array, Array]:
    """Lower and upper bounds of the gains of ks, for an exactly optimal state; at most F.

    Lower: ``alpha u_k |w|^2 + u_k hinge_k``, what the objective loses at the present w and b. Upper:
    leave a_k out and change nothing else; with an offset only a sample with ``a_k = 0`` can leave so.
    """
    lower, higher = np.empty((2, len(ks)))
    crude(ks, state.mu_without(ks), state.snapshot, lower, higher)
    return lower, higher


@compiled
def crude(ks, mu_new, snapshot, lower, higher):
    """The loop of `crude_bounds`, on what a state offers to compiled code."""
    samples, numbers = snapshot.samples, snapshot.numbers
    y, weight, root, diagonal = samples.y, samples.weight, samples.root, samples.diagonal
    a, G = snapshot.point.a, snapshot.point.G
    beta, mu, total, value = numbers.beta, numbers.mu, numbers.total, numbers.value
    quadratic, present = numbers.quadratic, numbers.present
    for c in range(len(ks)):
        k = ks[c]
        # Without free samples every beta of an interval is optimal, and each gives a valid bound.
        shift = (numbers.lowest if y[k] > 0.0 else numbers.highest) - beta
        hinge = 0.0 if samples.hard else max(0.0, -G[k] - y[k] * shift)
        lower[c] = min(value, weight[k] * (samples.alpha * quadratic / mu**2 + hinge / mu))
        higher[c] = value
        if (a[k] == 0.0 or not samples.offset) and mu_new[c] > 0.0:  # zero: no sample is left
            length = a[k] * root[k]
            square = quadratic - 2.0 * a[k] * (G[k] - y[k] * beta + mu) + a[k] ** 2 * diagonal[k]
            square += SUM_ROUNDING * (quadratic + 2.0 * present * length + length**2)
            higher[c] = min(value, value - (total - a[k] - square / (2.0 * mu_new[c])))
