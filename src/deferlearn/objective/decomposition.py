"""A guess for kernels whose matrix is not kept: one small problem after another, by pairs of variables.

Of all samples those that miss their optimality condition most are solved for alone, the others
held fixed; then the next ones. Inside of such a block the classical steps are taken: the pair of dual
variables whose step gains most moves, or, without an offset, a single one (Platt 1998; Fan, Chen and Lin
2005). Each block costs its columns of the Gram matrix once, whatever their number of steps.
"""

import numpy as np

from deferlearn._utils.compiling import compiled
from deferlearn._utils.types import Array, Index
from deferlearn.kernels import KernelGram
from deferlearn.objective.state import State

# Entries of the columns of one block (32 MB), and its size.
COLUMN_ENTRIES, MOST_AT_ONCE, LEAST_AT_ONCE = 2**22, 512, 32
# Violation of an optimality condition, relative to mu, at which a guess is good enough; blocks at most.
BLOCK_ACCURACY, MOST_BLOCKS = 1e-4, 1000
# Steps inside of one block, as a multiple of its size, and how much better it gets than the whole.
STEPS_PER_SAMPLE, INSIDE = 100, 0.1


def decompose(state: State, gram: KernelGram) -> tuple[Array, float]:
    """Dual variables and offset b, to a few digits."""
    problem, mu = state.problem, state.mu
    y, upper, offset = problem.y, problem.upper, problem.offset
    a, gradient = np.zeros(len(y)), np.full(len(y), -mu)
    size = int(np.clip(COLUMN_ENTRIES // len(y), LEAST_AT_ONCE, MOST_AT_ONCE))
    block, beta = np.empty(0, dtype=np.int64), 0.0
    for _ in range(MOST_BLOCKS):
        rise, fall = _wishes(a, gradient, y, upper, offset)
        beta = (rise.max() - fall.max()) / 2 if offset else 0.0
        worst = rise.max() + fall.max() if offset else max(rise.max(), fall.max())
        if not worst > BLOCK_ACCURACY * mu:
            break
        block = _worst(rise, fall, block[(a[block] > 0) & (a[block] < upper[block])], size)
        columns = gram.columns(block)
        before, after = a[block], a[block]
        pairwise(
            np.ascontiguousarray(columns[:, block]), y[block], upper[block], offset,
            after, gradient[block].copy(), INSIDE * worst, STEPS_PER_SAMPLE * len(block),
        )  # fmt: skip
        if (after == before).all():  # rounding is all that is left
            break
        a[block] = after
        gradient += (after - before) @ columns
    return a, float(beta / mu)


def _wishes(a: Array, gradient: Array, y: Array, upper: Array, offset: bool) -> tuple[Array, Array]:
    """How much the objective gains per unit by which each ``y_i a_i`` rises, or falls; -inf if it cannot.

    Without an offset: ``a_i`` itself.
    """
    sign = y if offset else np.ones(len(y))
    can_rise = np.where(sign > 0, a < upper, a > 0)
    can_fall = np.where(sign > 0, a > 0, a < upper)
    gain = -sign * gradient
    return np.where(can_rise, gain, -np.inf), np.where(can_fall, -gain, -np.inf)


def _worst(rise: Array, fall: Array, stay: Index, size: int) -> Index:
    """The samples that ask most to rise, as many that ask to fall, and half of a block of those inside."""
    half = size // 4
    up = np.argpartition(-rise, half)[:half] if half < len(rise) else np.arange(len(rise))
    down = np.argpartition(-fall, half)[:half] if half < len(fall) else np.arange(len(fall))
    return np.unique(np.concatenate([up, down, stay[: size - 2 * half]]))


@compiled
def pairwise(  # type: ignore[no-untyped-def]
    Q, y, upper, offset, a, gradient, tolerance, most_steps
):
    """Take steps on pairs (single variables without offset) until none gains much; changes a."""
    n = len(y)
    for _ in range(most_steps):
        first, most = -1, -np.inf
        least = np.inf
        for i in range(n):
            sign = y[i] if offset else 1.0
            gain = -sign * gradient[i]
            if offset:
                rises = a[i] < upper[i] if sign > 0.0 else a[i] > 0.0
                falls = a[i] > 0.0 if sign > 0.0 else a[i] < upper[i]
                if rises and gain > most:
                    first, most = i, gain
                if falls:
                    least = min(least, gain)
            elif (gain > 0.0 and a[i] < upper[i]) or (gain < 0.0 and a[i] > 0.0):
                expected = gain * gain / max(Q[i, i], 1e-12)
                if expected > most:
                    first, most = i, expected
        if first < 0:
            break
        if not offset:
            if abs(gradient[first]) <= tolerance:
                break
            target = a[first] - gradient[first] / max(Q[first, first], 1e-12)
            step = min(max(target, 0.0), upper[first]) - a[first]
            a[first] += step
            for i in range(n):
                gradient[i] += step * Q[first, i]
            continue
        if most - least <= tolerance:
            break
        second, best = -1, 0.0
        for j in range(n):
            if (y[j] > 0.0 and a[j] > 0.0) or (y[j] < 0.0 and a[j] < upper[j]):
                gain = most + y[j] * gradient[j]
                if gain > 0.0:
                    curve = Q[first, first] + Q[j, j] - 2.0 * y[first] * y[j] * Q[first, j]
                    expected = gain * gain / max(curve, 1e-12)
                    if expected > best:
                        second, best = j, expected
        if second < 0:
            break
        curve = Q[first, first] + Q[second, second] - 2.0 * y[first] * y[second] * Q[first, second]
        step = (most + y[second] * gradient[second]) / max(curve, 1e-12)
        step = min(step, upper[first] - a[first] if y[first] > 0.0 else a[first])
        step = min(step, a[second] if y[second] > 0.0 else upper[second] - a[second])
        a[first] = min(max(a[first] + y[first] * step, 0.0), upper[first])
        a[second] = min(max(a[second] - y[second] * step, 0.0), upper[second])
        for i in range(n):
            gradient[i] += step * (y[first] * Q[first, i] - y[second] * Q[second, i])
