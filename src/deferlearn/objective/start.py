"""A good guess for a large problem, so that the exact path starts close to its end.

Nothing here needs to be accurate: whatever the guess, `solver.settle` makes it exact and proves it.
A small problem needs no guess. A large linear one is solved by an interior-point method, whose cost
grows with n d^2 and not with n^2; one of very many features coordinate by coordinate, kernels block
by block.
"""

from typing import Any

import numpy as np
import scipy.linalg

from deferlearn._utils.types import Array, Index
from deferlearn.kernels import LinearGram
from deferlearn.objective.active_set import sharpen
from deferlearn.objective.arrays import FreeSet
from deferlearn.objective.coordinate_descent import descend
from deferlearn.objective.decomposition import decompose
from deferlearn.objective.free_set import independent
from deferlearn.objective.path import FREE, LOW, UP
from deferlearn.objective.state import WHOLE_SET_LIMIT, State, WorkingSet, capacity

# Beyond this size a start from nothing costs more than a guess.
COLD_START_LIMIT = WHOLE_SET_LIMIT
# Features up to which the interior-point method forms its (d, d) matrix.
INTERIOR_POINT_FEATURES = 1000
# Relative accuracy of the guess, and the share of its box below which a dual variable is at a bound.
GUESS_GAP, GUESS_BOUND = 1e-7, 1e-5


def guess_start(state: State) -> None:
    """Replace the dual variables of an empty state by a guess of the solution."""
    try:
        with np.errstate(all="ignore"):  # a guess that breaks down is no guess, and nothing worse
            guess = _guess(state)
            if guess is not None and np.isfinite(guess[0]).all() and np.isfinite(guess[1]):
                _adopt(state, *guess)
    except (np.linalg.LinAlgError, ValueError, ArithmeticError):
        return


def _guess(state: State) -> tuple[Array, float, bool] | None:
    """Dual variables and offset, if a method fits, and whether they are close to the solution."""
    gram = state.problem.gram
    if isinstance(gram, LinearGram) and gram.n_features <= INTERIOR_POINT_FEATURES:
        return *_interior_point(state, gram), True
    if state.problem.hard:
        return None
    if isinstance(gram, LinearGram):
        return descend(state, gram)
    return *decompose(state, gram), True


def _interior_point(state: State, gram: LinearGram) -> tuple[Array, float]:
    """Primal-dual steps on the dual problem, its Hessian inverted through the (d, d) matrix."""
    problem = state.problem
    Z: Any = gram.rows
    n, d = Z.shape
    y, upper, mu = problem.y, problem.upper, state.mu
    boxed = not problem.hard
    a = upper / 2 if boxed else np.full(n, mu / max(problem.root.max() ** 2, 1e-12) / n)
    low = np.ones(n)  # multiplier of a >= 0
    high = np.ones(n) if boxed else np.zeros(n)  # of a <= upper
    b = 0.0
    for _ in range(60):
        room = upper - a if boxed else np.ones(n)
        dual_residual = np.asarray(Z @ (Z.T @ a)) / mu - 1.0 + b * y - low + high
        balance = float(y @ a) if problem.offset else 0.0
        gap = float(low @ a + high @ room)
        scale = max(1.0, float(a.sum()))
        if gap <= GUESS_GAP * scale and np.abs(dual_residual).max() <= 1e-7:
            break
        target = 0.1 * gap / (2 * n if boxed else n)
        curvature = low / a + high / room
        right = -dual_residual + target / a - low
        if boxed:
            right -= target / room - high
        inverse = 1.0 / curvature
        scaled = (
            Z.multiply(inverse[:, None]).tocsr() if hasattr(Z, "multiply") else Z * inverse[:, None]
        )
        inner = Z.T @ scaled
        inner = (inner.toarray() if hasattr(inner, "toarray") else inner) + mu * np.eye(d)
        factor = scipy.linalg.cho_factor(inner, check_finite=False)

        def apply(v: Array) -> Array:
            return inverse * (v - Z @ scipy.linalg.cho_solve(factor, Z.T @ (inverse * v)))  # noqa: B023

        da = apply(right)
        db = 0.0
        if problem.offset:
            response = apply(y)
            db = (float(y @ da) + balance) / float(y @ response)
            da = da - db * response
        dlow = target / a - low - low / a * da
        dhigh = target / room - high + high / room * da if boxed else high
        step = 1.0
        for value, change in ((a, da), (low, dlow), (room, -da), (high, dhigh)):
            if boxed or value is a or value is low:
                falling = change < 0
                if falling.any():
                    step = min(step, 0.99 * float((value[falling] / -change[falling]).min()))
        a, b, low = a + step * da, b + step * db, low + step * dlow
        if boxed:
            high = high + step * dhigh
    return a, b


def _adopt(state: State, a: Array, b: float, close: bool) -> None:
    """Turn a guess into a state: bounds, and as many free samples as are independent.

    One that is not close may still lead to the solution by Newton steps; if not, a path from it
    takes longer than one from nothing.
    """
    problem = state.problem
    box = problem.upper if not problem.hard else np.full(len(a), max(float(a.max()), 1e-300))
    low = a <= GUESS_BOUND * box
    up = ~low & (a >= (1.0 - GUESS_BOUND) * box) & (not problem.hard)
    if not problem.hard:
        point = sharpen(state, low, up)
        if point is not None:
            state.a, state.beta = point.a, point.beta
            state.members, state.R = point.free
            state.status[:] = FREE
            state.status[point.low], state.status[point.up] = LOW, UP
            state.changed()
            return
    if not close:
        return
    state.a = np.where(low, 0.0, np.where(up, problem.upper, a))
    state.status[low], state.status[up] = LOW, UP
    free_independent(state, np.flatnonzero(~low & ~up))
    state.beta = b * state.mu if problem.offset else 0.0
    state.changed()


def free_independent(state: State, inside: Index) -> None:
    """Make samples free as far as they are independent, those far from their bounds first.

    The others go to the nearer bound.
    """
    problem, a = state.problem, state.a
    state.drop_members()
    if not len(inside):
        return
    box = problem.upper[inside] if not problem.hard else max(float(a.max()), 1e-300)
    depth = np.minimum(a[inside] / box, 1.0 - a[inside] / box)
    inside = inside[np.argsort(-depth, kind="stable")]
    size = capacity(problem, len(inside))
    ws = WorkingSet(problem, inside[: max(4 * size, 64)], precise=False)
    size = max(size, 1)
    free = FreeSet(np.zeros(size, dtype=np.int64), np.empty((size + 1, size + 1)))
    p = independent(ws.arrays, np.arange(len(ws.index)), free)
    state.members = ws.index[free.members[:p]]
    state.status[state.members] = FREE
    q = p + 1 if problem.offset and p > 0 else p
    state.R = free.R[:q, :q].copy()
    others = np.setdiff1d(inside, state.members)
    to_upper = (a[others] > problem.upper[others] / 2) & (not problem.hard)
    state.a[others] = np.where(to_upper, problem.upper[others], 0.0)
    state.a_lo[others] = 0.0
    state.status[others] = np.where(to_upper, UP, LOW)
    state.changed()
