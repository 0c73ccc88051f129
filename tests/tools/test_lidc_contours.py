"""Geometry of outlines that can be measured by hand."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial import ConvexHull, QhullError

from lidc_contours import (
    Outline,
    convex_hull,
    diameter_of,
    doubled_area,
    filled,
    measure,
    perimeter,
)


def outline(*corners, z=0.0, is_hole=False):
    return Outline(z, is_hole, np.array(corners, dtype=np.int64))


def rectangle(left, top, width, height, **options):
    right, bottom = left + width, top + height
    return outline((left, top), (right, top), (right, bottom), (left, bottom), **options)


def test_box_with_a_hole():
    # 4 x 3 pixels in three slices, a hole of one pixel in the middle one; a pixel is half a
    # millimetre, slices are 2 mm apart.
    outlines = [rectangle(10, 20, 4, 3, z=z) for z in (5.0, 7.0, 9.0)]
    outlines.append(rectangle(11, 21, 1, 1, z=7.0, is_hole=True))
    found = measure(outlines, 0.5, 2.0)
    assert found.volume == (12 + 11 + 12) * 0.25 * 2
    assert found.diameter == 5 * 0.5
    # The corners off the diagonal (4, 3) are 12/5 from it, on either side.
    assert found.width == pytest.approx(24 / 5 * 0.5, rel=1e-15)
    assert found.area == 12 * 0.25
    assert found.perimeter == 14 * 0.5
    assert found.hull_area == 12 * 0.25
    assert found.height == 6
    assert (found.x, found.y, found.z) == (12 * 0.5, 21.5 * 0.5, 7.0)


def test_largest_slice_counts_for_the_area_and_two_parts_for_its_hull():
    parts = [rectangle(0, 0, 1, 2, z=1.0), rectangle(3, 0, 1, 2, z=1.0)]
    found = measure([rectangle(0, 0, 1, 1, z=0.0), *parts], 1.0, 1.0)
    assert found.volume == 1 + 4
    assert (found.area, found.perimeter, found.hull_area) == (4, 12, 8)
    # Within one outline: the distance of the parts is none of the nodule's diameters.
    assert found.diameter == math.sqrt(5)


def test_hole_in_a_slice_without_an_outline_is_ignored():
    alone = [rectangle(0, 0, 3, 3)]
    with_stray = [*alone, rectangle(0, 0, 2, 2, z=9.0, is_hole=True)]
    assert measure(with_stray, 1.0, 1.0) == measure(alone, 1.0, 1.0)


def test_point_and_line_have_no_area():
    for corners in ([(3, 4)], [(3, 4), (3, 4)], [(0, 0), (3, 4)], [(0, 0), (3, 4), (0, 0)]):
        found = measure([outline(*corners)], 1.0, 1.0)
        assert found.volume == found.area == found.hull_area == found.width == 0
        assert filled([outline(*corners)]) == set()
    assert diameter_of([outline((0, 0), (3, 4))], 2.0) == 10
    assert diameter_of([outline((3, 4))], 2.0) == 0


def test_cells_of_a_box_and_its_hole():
    cells = filled([rectangle(1, 2, 3, 2, z=4.0), rectangle(2, 2, 1, 1, z=4.0, is_hole=True)])
    box = {(4.0, column, row) for column in (1, 2, 3) for row in (2, 3)}
    assert cells == box - {(4.0, 2, 2)}


def test_diamond_takes_the_cells_on_its_left_edges_only():
    # |x| + |y| <= 2 has the area 8: four whole cells, and eight that its edges halve.
    cells = filled([outline((-2, 0), (0, -2), (2, 0), (0, 2))])
    whole = {(-1, -1), (0, -1), (-1, 0), (0, 0)}
    left = {(-2, -1), (-1, -2), (-2, 0), (-1, 1)}
    assert {(column, row) for _, column, row in cells} == whole | left


polygons = st.lists(
    st.tuples(st.integers(-20, 20), st.integers(-20, 20)), min_size=1, max_size=12
).map(lambda corners: np.array(corners, dtype=np.int64))


@given(polygons)
def test_hull_is_that_of_qhull(corners):
    hull = convex_hull(corners)
    try:
        expected = ConvexHull(corners)
    except (QhullError, ValueError):  # all in a line
        assert doubled_area(hull) == 0
        return
    assert doubled_area(hull) / 2 == pytest.approx(expected.volume, rel=1e-9)
    assert perimeter(hull) == pytest.approx(expected.area, rel=1e-9)


@given(polygons, st.integers(0, 11), st.integers(-5, 5))
def test_where_a_curve_begins_and_lies_does_not_matter(corners, start, shift):
    before = measure([Outline(0.0, False, corners)], 1.0, 1.0)
    moved = np.roll(corners, start, axis=0) + [shift, 2 * shift]
    after = measure([Outline(0.0, False, moved)], 1.0, 1.0)
    for name in ("volume", "diameter", "area", "hull_area", "height"):
        assert getattr(after, name) == getattr(before, name)
    assert after.perimeter == pytest.approx(before.perimeter, rel=1e-15)
    cells = filled([Outline(0.0, False, corners)])
    expected = {(z, column + shift, row + 2 * shift) for z, column, row in cells}
    assert filled([Outline(0.0, False, moved)]) == expected


@given(polygons)
def test_convex_figures_have_about_as_many_cells_as_area(corners):
    # Nosarzewska's inequality for the points of a grid in a convex figure. Counting centres on left
    # edges only is the same as moving the figure by a hair, so it holds here too.
    hull = convex_hull(corners)
    n_cells = len(filled([Outline(0.0, False, hull)]))
    area, half = doubled_area(hull) / 2, perimeter(hull) / 2
    assert area - half <= n_cells <= area + half + 1
