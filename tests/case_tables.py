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


STAGES = ("none", "mild", "moderate", "severe")


def make_stages(
    n: int = 160, seed: int = 0, labels: tuple[str, ...] = STAGES
) -> dict[str, list[Any]]:
    """Columns of cases of several classes, in an order that one number tells; two readers, with gaps."""
    rng = np.random.default_rng(seed)
    size, dose = rng.normal(size=(2, n))
    # Every class has its share of the cases.
    rank = np.argsort(np.argsort(size + 0.3 * dose + 0.25 * rng.normal(size=n)))
    level = rank * len(labels) // n

    def reader(error: float) -> list[str | None]:
        step = np.where(rng.random(n) < error, rng.choice([-1, 1], n), 0)
        said = np.array(labels, dtype=object)[np.clip(level + step, 0, len(labels) - 1)]
        said[rng.random(n) < 0.1] = None
        return said.tolist()

    return {
        "id": [f"c{seed}-{i}" for i in range(n)],
        "size": size.round(3).tolist(),
        "dose": dose.round(3).tolist(),
        "site": rng.choice(["Oslo", "Rome"], n).tolist(),
        "stage": np.array(labels)[level].tolist(),
        "reader_1": reader(0.15),
        "reader_2": reader(0.2),
    }
