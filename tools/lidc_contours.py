"""Geometry of a nodule from the outlines that one reader drew, slice by slice.

Outlines are closed polygons whose corners are pixels, that is pairs of integers. All lengths and
areas are therefore exact integers, or roots of such, until the size of a pixel enters: another
computer gets the very same numbers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Polygon = NDArray[np.int64]  # (n_corners, 2): columns and rows of pixels, in the order drawn


@dataclass(frozen=True)
class Outline:
    """A closed curve in one slice; what is inside belongs to the nodule, or is a hole in it."""

    z: float
    is_hole: bool
    corners: Polygon


@dataclass(frozen=True)
class Geometry:
    """What can be measured on the outlines of one reader; lengths in millimetres."""

    volume: float
    diameter: float
    width: float
    area: float
    perimeter: float
    hull_area: float
    height: float
    x: float
    y: float
    z: float


def measure(outlines: Sequence[Outline], pixel: float, slice_step: float) -> Geometry:
    """Measure a nodule.

    Parameters
    ----------
    outlines : sequence of Outline
        At least one of them not a hole.
    pixel : float
        Side of a pixel.
    slice_step : float
        Distance of neighbouring slices.

    Returns
    -------
    geometry : Geometry
        `volume` is the area of all slices times their distance. `diameter` is the largest distance
        of two corners in one slice, `width` the extent at right angles to it. `area`, `perimeter`
        and `hull_area` (of the convex hull) belong to the slice of largest area, the first of
        equals. `height` is the number of slices times their distance. `x`, `y`, `z` is the mean of
        all corners.
    """
    drawn = [outline for outline in outlines if not outline.is_hole]
    slices = sorted({outline.z for outline in drawn})
    # Twice the area, in pixels: whole numbers.
    doubled = dict.fromkeys(slices, 0)
    for outline in outlines:
        if outline.z in doubled:
            sign = -1 if outline.is_hole else 1
            doubled[outline.z] += sign * doubled_area(outline.corners)
    largest = max(slices, key=lambda z: doubled[z])
    in_largest = [outline.corners for outline in drawn if outline.z == largest]
    length, across = _diameter_and_width([outline.corners for outline in drawn])
    centre = centre_of(outlines, pixel)
    return Geometry(
        volume=sum(doubled.values()) / 2 * pixel * pixel * slice_step,
        diameter=length * pixel,
        width=across * pixel,
        area=doubled[largest] / 2 * pixel * pixel,
        perimeter=math.fsum(perimeter(corners) for corners in in_largest) * pixel,
        hull_area=doubled_area(convex_hull(np.vstack(in_largest))) / 2 * pixel * pixel,
        height=len(slices) * slice_step,
        x=centre[0],
        y=centre[1],
        z=centre[2],
    )


def centre_of(outlines: Sequence[Outline], pixel: float) -> tuple[float, float, float]:
    """Mean of all corners that are not those of holes, in millimetres."""
    drawn = [outline for outline in outlines if not outline.is_hole]
    n_corners = sum(len(outline.corners) for outline in drawn)
    column, row = (int(sum(outline.corners[:, k].sum() for outline in drawn)) for k in (0, 1))
    depth = math.fsum(len(outline.corners) * outline.z for outline in drawn)
    return column * pixel / n_corners, row * pixel / n_corners, depth / n_corners


def diameter_of(outlines: Sequence[Outline], pixel: float) -> float:
    """Largest distance of two corners in one slice, in millimetres."""
    return _diameter_and_width([o.corners for o in outlines if not o.is_hole])[0] * pixel


def doubled_area(corners: Polygon) -> int:
    """Twice the area inside a polygon, in pixels (the shoelace formula)."""
    x, y = corners[:, 0], corners[:, 1]
    return abs(int(x @ np.roll(y, -1) - y @ np.roll(x, -1)))


def perimeter(corners: Polygon) -> float:
    """Length of the closed curve, in pixels."""
    steps = np.roll(corners, -1, axis=0) - corners
    return math.fsum(math.sqrt(int(square)) for square in (steps**2).sum(axis=1))


def convex_hull(points: Polygon) -> Polygon:
    """Corners of the convex hull, in order (Andrew's monotone chain)."""
    ordered = sorted({(int(x), int(y)) for x, y in points})

    def half(candidates: list[tuple[int, int]]) -> list[tuple[int, int]]:
        chain: list[tuple[int, int]] = []
        for point in candidates:
            while len(chain) > 1 and _turn(chain[-2], chain[-1], point) <= 0:
                chain.pop()
            chain.append(point)
        return chain[:-1]

    corners = half(ordered) + half(ordered[::-1])
    return np.array(corners or ordered, dtype=np.int64)


def filled(outlines: Sequence[Outline]) -> set[tuple[float, int, int]]:
    """Unit cells ``(z, column, row)`` inside the outlines and outside the holes.

    The cell belongs to a polygon if its centre ``(column + 1/2, row + 1/2)`` is inside; of centres
    on an edge those count whose polygon lies to the right, so that half of them do.
    """
    inside: set[tuple[float, int, int]] = set()
    for is_hole in (False, True):
        for outline in outlines:
            if outline.is_hole == is_hole:
                cells = {(outline.z, *cell) for cell in _cells(outline.corners)}
                inside = inside - cells if is_hole else inside | cells
    return inside


def _cells(corners: Polygon) -> set[tuple[int, int]]:
    crossings: dict[int, list[int]] = {}
    points = [(int(x), int(y)) for x, y in corners]
    for (x0, y0), (x1, y1) in zip(points, points[1:] + points[:1], strict=True):
        if y0 > y1:
            x0, y0, x1, y1 = x1, y1, x0, y0
        for row in range(y0, y1):
            # The edge meets the line through the centres of this row; the first column whose centre
            # is not left of that point, rounded up in whole numbers.
            twice_height = 2 * (y1 - y0)
            ahead = (2 * x0 - 1) * (y1 - y0) + (2 * (row - y0) + 1) * (x1 - x0)
            crossings.setdefault(row, []).append(-(-ahead // twice_height))
    cells: set[tuple[int, int]] = set()
    for row, columns in crossings.items():
        columns.sort()
        for enter, leave in zip(columns[::2], columns[1::2], strict=True):
            cells.update((column, row) for column in range(enter, leave))
    return cells


def _diameter_and_width(polygons: Sequence[Polygon]) -> tuple[float, float]:
    """Of all polygons the longest, and its width; in pixels."""
    longest, direction, of = 0, None, polygons[0]
    for corners in polygons:
        differences = corners[:, None, :] - corners[None, :, :]
        squares = (differences**2).sum(axis=2)
        largest = int(squares.max())
        if largest > longest:
            longest, of = largest, corners
            direction = differences[np.unravel_index(squares.argmax(), squares.shape)]
    if direction is None:
        return 0.0, 0.0
    across = of @ np.array([-direction[1], direction[0]])
    length = math.sqrt(longest)
    return length, int(across.max() - across.min()) / length


def _turn(a: tuple[int, int], b: tuple[int, int], c: tuple[int, int]) -> int:
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])
