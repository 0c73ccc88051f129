"""Conjugate gradients on the samples inside their boxes, where single steps make slow progress.

With the samples at bounds kept there, the dual is a quadratic function of the others. A step to its largest
value, or as far as the boxes allow, never lowers the dual value. It needs only products with rows.
"""

from typing import Any

import numpy as np

from deferlearn._utils.types import Array, Index

# A dual variable is inside its box if it is further than this share of the box from both ends.
INSIDE = 1e-12
# The most iterations in one step; and the most steps, each of which moves one sample to a bound.
MOST_ITERATIONS, MOST_STEPS = 500, 50
# Relative size at which a residual or a curvature is rounding.
CONVERGED, FLAT = 1e-13, 1e-14


def ascend_on_face(X: Any, y: Array, a: Array, upper: Array, mu: float, offset: bool) -> Array:
    """A feasible point with at least the dual value of a."""
    a = a.copy()
    for _ in range(MOST_STEPS):
        inside = np.flatnonzero((a > INSIDE * upper) & (a < (1.0 - INSIDE) * upper))
        if len(inside) < (2 if offset else 1):
            return a
        direction, whole = _direction(X, y, a, inside, mu, offset)
        room = np.where(direction > 0.0, upper[inside] - a[inside], a[inside])
        with np.errstate(divide="ignore", invalid="ignore"):
            limit = np.where(direction != 0.0, room / np.abs(direction), np.inf)
        first = int(np.argmin(limit))
        if not np.isfinite(limit[first]) and not whole:
            return a
        step = min(1.0, float(limit[first])) if whole else float(limit[first])
        a[inside] = np.clip(a[inside] + step * direction, 0.0, upper[inside])
        if whole and step == 1.0:
            return a
        a[inside[first]] = upper[inside[first]] if direction[first] > 0.0 else 0.0
    return a


def _direction(
    X: Any, y: Array, a: Array, inside: Index, mu: float, offset: bool
) -> tuple[Array, bool]:
    """To the largest value on the face; or a direction in which the value grows without end, and False."""
    rows, labels = X[inside], y[inside]

    def project(z: Array) -> Array:
        return z - labels * float(labels @ z) / len(labels) if offset else z

    gradient = project(1.0 - labels * (rows @ (X.T @ (a * y))) / mu)
    found, residual, along = np.zeros(len(inside)), gradient.copy(), gradient.copy()
    size = start = float(residual @ residual)
    largest = float(rows.multiply(rows).sum(axis=1).max()) / mu
    for _ in range(min(MOST_ITERATIONS, 2 * len(inside) + 10)):
        if size <= CONVERGED**2 * len(inside) or size <= CONVERGED**2 * start:
            break
        image = rows.T @ (labels * along)
        curvature = float(image @ image) / mu
        if curvature <= FLAT * largest * float(along @ along):
            return (along, False) if not found.any() else (found, True)
        step = size / curvature
        found += step * along
        residual -= step * project(labels * (rows @ image) / mu)
        size, before = float(residual @ residual), size
        along = residual + size / before * along
    return project(found), True
