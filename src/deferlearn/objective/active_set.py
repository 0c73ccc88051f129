"""A guess with very many free samples made nearly exact: Newton steps on guesses of which are free.

The samples that are taken to be free get the dual variables that solve their optimality conditions, all at
once; a sample that then leaves its box goes to the bound, one that misses its condition there becomes
free. Close to the solution a few such steps end in it. A path would change the free set sample by sample,
each time with a pass over its inverse: for thousands of free samples that takes hours.
"""

from typing import Any, NamedTuple

import numpy as np
import scipy.linalg

from deferlearn._utils.types import Array, Bools, Index
from deferlearn.objective.arrays import FreeSet
from deferlearn.objective.cholesky import inverse_of_factor
from deferlearn.objective.state import State

# Free samples from which on this is worth it, and beyond which their matrix takes too much memory: 800 MB,
# and for a moment three times as much.
LEAST_FREE, MOST_FREE = 128, 10_000
# Newton steps; more than these are going round in a circle.
MOST_NEWTON_STEPS = 40
# Added to the diagonal, relative: a matrix that needs more is for the path to take apart.
RIDGE = 1e-13
# A pivot below this, relative, is rounding and ridge: the free samples are not independent.
SMALLEST_PIVOT = 1e-9


class Solved(NamedTuple):
    """Dual variables, which of them are at which bound, beta, and the free set."""

    a: Array
    low: Bools
    up: Bools
    beta: float
    free: FreeSet


def sharpen(state: State, low: Bools, up: Bools) -> Solved | None:
    """The solution from a guess of which samples are at a bound; None if the steps do not lead there."""
    low, up = low.copy(), up.copy()
    for _ in range(MOST_NEWTON_STEPS):
        members = np.flatnonzero(~low & ~up)
        if not LEAST_FREE <= len(members) <= MOST_FREE:
            return None
        solved = _solve_free(state, members, up)
        if solved is None:
            return None
        a, beta, factor = solved
        used = np.flatnonzero(a)
        problem, mu = state.problem, state.mu
        G = problem.gram.image(used, a[used]) + problem.y * beta - mu
        noise = 1e-12 * (mu + abs(beta) + problem.longest * float(problem.root @ np.abs(a)))
        to_low, to_up = ~low & ~up & (a < 0.0), ~low & ~up & (a > problem.upper)
        to_free = np.where(low, -G, np.where(up, G, 0.0)) > noise
        if not (to_low | to_up | to_free).any():
            R = _bordered_inverse(factor, problem.y[members] if problem.offset else None)
            return Solved(a, low, up, beta, FreeSet(members, R))
        low, up = (low | to_low) & ~to_free, (up | to_up) & ~to_free
    return None


def _solve_free(state: State, members: Index, up: Bools) -> tuple[Array, float, Array] | None:
    """Dual variables that meet the conditions of the free samples and y.a = 0, the others at bounds."""
    problem, y = state.problem, state.problem.y[members]
    at_upper = np.flatnonzero(up)
    a = np.where(up, problem.upper, 0.0)
    Q = problem.gram.block(members, members)
    Q[np.diag_indices(len(members))] += RIDGE * problem.longest**2
    # Transposed it is in Fortran's order, and so the factor takes its place.
    factor, failed = scipy.linalg.lapack.dpotrf(Q.T, lower=1, overwrite_a=1)
    # A sample whose image lies in the span of the others', as that of a copy, cannot be free with them.
    if failed or factor.diagonal().min() ** 2 <= SMALLEST_PIVOT * problem.longest**2:
        return None
    right = state.mu - problem.gram.image_at(members, at_upper, a[at_upper])
    found = scipy.linalg.cho_solve((factor, True), right, check_finite=False)
    beta = 0.0
    if problem.offset:
        response = scipy.linalg.cho_solve((factor, True), y, check_finite=False)
        owed = float(problem.y[at_upper] @ a[at_upper])
        beta = (float(y @ found) + owed) / float(y @ response)
        found = found - beta * response
    a[members] = found
    return a, beta, factor


def _bordered_inverse(factor: Any, y: Array | None) -> Array:
    """The inverse of ``[[0, y'], [y, Q]]`` (of Q without y), from the Cholesky factor of Q."""
    inverse = inverse_of_factor(factor)
    if y is None:
        return inverse
    response = inverse @ y
    size = float(y @ response)
    R = np.empty((len(y) + 1, len(y) + 1))
    R[0, 0], R[0, 1:], R[1:, 0] = -1.0 / size, response / size, response / size
    for i, row in enumerate(inverse):  # a row at a time, since an outer product is one more matrix
        R[1 + i, 1:] = row - response[i] / size * response
    return R
