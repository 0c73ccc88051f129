"""Primal and dual values of the SVM problem in exact integer arithmetic.

At squared scale over lambda of 1e18 the sum of a_i y_i x_i cancels to nothing in double precision,
and any "gap" computed from it is noise. Every double is an integer times a power of two, so sums
and products of them can be done without any rounding; only the final ratio is rounded.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

# Dual points are rounded to multiples of 2**-GRID (relative to the largest): fine enough to
# be invisible (1e-21), coarse enough that y.a = 0 can be made to hold exactly, by counting.
GRID = 70


@dataclass(frozen=True)
class Sample:
    """One problem: rows `data` (or their Gram matrix), labels, weights, mu = 2 alpha sum(u)."""

    data: np.ndarray
    is_gram: bool
    y: np.ndarray
    u: np.ndarray
    mu: Fraction
    offset: bool
    hard: bool

    @property
    def n(self) -> int:
        return len(self.y)


def primal_value(sample: Sample, w: np.ndarray, b: float) -> float:
    """P(w, b), exactly; for a Gram matrix `w` holds the coefficients of the rows.

    Hard margin: the value of the nearest multiple of (w, b) that satisfies the constraints.
    """
    weights, at = integers(w)
    data, scale = integers(sample.data)
    scores = data @ weights
    if sample.is_gram:
        norm = Fraction(int(weights @ scores)) * power(scale + 2 * at)
    else:
        norm = Fraction(int(weights @ weights)) * power(2 * at)
    shift = Fraction(float(b))
    unit = power(scale + at)
    margins = [
        int(label) * (int(score) * unit + shift)
        for label, score in zip(sample.y, scores, strict=True)
    ]
    if sample.hard:
        least = min(margins)
        return float(sample.mu / 2 * norm / least**2) if least > 0 else np.inf
    hinges = (
        Fraction(float(u)) * (1 - margin)
        for u, margin in zip(sample.u, margins, strict=True)
        if margin < 1
    )
    return float(sample.mu / 2 * norm + sum(hinges, Fraction(0)))


def dual_value(sample: Sample, a: np.ndarray) -> float:
    """D(a), exactly, at the feasible point next to `a`; -inf if there is none."""
    # The hard margin's multipliers have no natural size: the grid is relative to their own.
    top = float(np.max(a, initial=0.0)) if sample.hard else float(sample.u.max())
    if top <= 0:
        return 0.0
    grid = GRID - int(np.ceil(np.log2(top)))
    point = [max(0, round(Fraction(*v.as_integer_ratio()) * power(grid))) for v in np.asarray(a)]
    ceiling = [None if sample.hard else int(Fraction(float(v)) * power(grid)) for v in sample.u]
    point = [v if c is None else min(v, c) for v, c in zip(point, ceiling, strict=True)]
    labels = [int(label) for label in sample.y]
    if sample.offset and not _balance(point, ceiling, labels):
        return -np.inf
    signed = np.array([v * label for v, label in zip(point, labels, strict=True)], dtype=object)
    data, scale = integers(sample.data)
    if sample.is_gram:
        square = Fraction(int(signed @ (data @ signed))) * power(scale - 2 * grid)
    else:
        total = signed @ data
        square = Fraction(int(total @ total)) * power(2 * scale - 2 * grid)
    return float(Fraction(sum(point)) * power(-grid) - square / (2 * sample.mu))


def _balance(point: list[int], ceiling: list[int | None], labels: list[int]) -> bool:
    """Make sum(labels * point) zero, moving first the entries that are farthest from a bound."""
    excess = sum(v * label for v, label in zip(point, labels, strict=True))

    def room(i: int) -> int:
        top = ceiling[i]
        return point[i] if top is None else min(point[i], top - point[i])

    for i in sorted(range(len(point)), key=room, reverse=True):
        if excess == 0:
            break
        wanted = point[i] - labels[i] * excess
        top = ceiling[i]
        moved = max(0, wanted if top is None else min(wanted, top))
        excess += labels[i] * (moved - point[i])
        point[i] = moved
    return excess == 0


def integers(x: np.ndarray) -> tuple[np.ndarray, int]:
    """Integers and one exponent with x == integers * 2**exponent, without rounding."""
    x = np.asarray(x)
    mantissa, exponent = np.frexp(x)
    digits = 64 if x.dtype == np.longdouble else 53
    whole = np.ldexp(mantissa, digits)
    nonzero = mantissa != 0
    least = int(exponent[nonzero].min()) if nonzero.any() else 0
    flat = [
        int(m) << max(0, int(e) - least) if m else 0
        for m, e in zip(whole.ravel(), exponent.ravel(), strict=True)
    ]
    out = np.empty(len(flat), dtype=object)
    out[:] = flat
    return out.reshape(x.shape), least - digits


def power(exponent: int) -> Fraction:
    """2**exponent as a fraction, for either sign."""
    return Fraction(1 << exponent) if exponent >= 0 else Fraction(1, 1 << -exponent)
