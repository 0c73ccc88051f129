"""Tables of made-up cases with two readers, and files of them."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np

LABELS = ("ill", "well")


def make_cases(n: int = 80, seed: int = 0) -> dict[str, list[Any]]:
    """Columns of cases: two numbers that matter, one with gaps, categories, two readers who err."""
    rng = np.random.default_rng(seed)
    size, dose = rng.normal(size=(2, n))
    truth = np.where(size + 0.5 * dose + 0.6 * rng.normal(size=n) > 0, *LABELS)

    def reader(error: float) -> list[str]:
        wrong = rng.random(n) < error
        return np.where(wrong, np.where(truth == "ill", "well", "ill"), truth).tolist()

    return {
        "id": [f"c{seed}-{i}" for i in range(n)],
        "patient": [f"p{i // 2}" for i in range(n)],
        "size": size.round(3).tolist(),
        "dose": dose.round(3).tolist(),
        "age": [None if i % 9 == 0 else int(a) for i, a in enumerate(rng.integers(30, 80, n))],
        "site": rng.choice(["Oslo", "Rome"], n).tolist(),
        "diagnosis": truth.tolist(),
        "reader_1": reader(0.1),
        "reader_2": reader(0.15),
    }


def write_csv(path: Path, columns: dict[str, list[Any]], **options: Any) -> Path:
    """A CSV file by Python's own writer."""
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, **options)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
    return path


def read_csv(path: Path) -> list[dict[str, str]]:
    """Rows of a CSV file by Python's own reader."""
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))
