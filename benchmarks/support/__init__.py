"""What the benchmarks share: the data, timing, tables."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from rich import box
from rich.console import Console
from rich.table import Table
from sklearn.svm import SVC

from deferlearn import datasets
from deferlearn.humans import UniformHuman
from deferlearn.objective import SVMObjective
from deferlearn.objective.scaling import mu_from_alpha

Array = NDArray[np.float64]
Index = NDArray[np.int64]

# Threads that wait for each other become very slow where another process uses a processor; libsvm has
# one only.
BLAS_THREADS = 1
N_FEATURES = 50
# Training samples and alpha of the medical sets, for a stand-in where the files are not at hand.
MEDICAL = {"Messidor": (240, 0.03), "Stare": (225, 0.5), "Aptos": (425, 0.6)}


# scikit-learn's default tolerance, and one that is accurate enough to compare with.
LOOSE, TIGHT = 1e-3, 1e-10


class Data(NamedTuple):
    name: str
    X: Array
    y: Array
    alpha: float
    loss: Array  # of the humans


def timed(work: Callable[..., Any], *arguments: Any) -> tuple[float, Any]:
    """Seconds that the work took, and what it returned."""
    start = perf_counter()
    result = work(*arguments)
    return perf_counter() - start, result


def span(seconds: list[float], unit: float = 1e3, digits: int = 1) -> str:
    """Minimum and median, in milliseconds by default."""
    low, middle = min(seconds) * unit, float(np.median(seconds)) * unit
    return f"{low:,.{digits}f} / {middle:,.{digits}f}"


def open_console() -> Console:
    """Where tables are printed. In a file, no line is broken: `tools/measured.py` reads it."""
    return Console(highlight=False, width=None if sys.stdout.isatty() else 400)


def show(console: Console, title: str, headings: list[str], rows: list[list[str]]) -> None:
    table = Table(box=box.MARKDOWN)
    for heading in headings:
        table.add_column(heading, justify="right" if heading else "left")
    for row in rows:
        table.add_row(*row)
    console.print(f"\n[bold]{title}[/bold]", highlight=False)
    console.print(table)


def medical(name: str) -> Data:
    """The paper's training part, or data of its shape where the file is not at hand."""
    try:
        bunch = getattr(datasets, f"fetch_{name.lower()}")(download_if_missing=False)
    except OSError:
        size, alpha = MEDICAL[name]
        return shifted(size, alpha, name=f"synthetic, like {name}")
    train, _ = datasets.published_split(bunch)
    X, y = np.asarray(bunch.data, dtype=float)[train], np.asarray(bunch.target, dtype=float)[train]
    return Data(name, X, y, bunch.alpha, np.asarray(bunch.human_loss)[train])


def shifted(size: int, alpha: float, *, seed: int = 0, name: str = "") -> Data:
    X, y = datasets.make_shifted(size, N_FEATURES, random_state=seed)
    loss = UniformHuman(0.2).losses(y, random_state=seed)
    return Data(name or f"m={size:,}, alpha={alpha:g}", X, y.astype(float), alpha, loss)


def build(data: Data) -> SVMObjective:
    return SVMObjective(data.X, data.y, alpha=data.alpha)


def machine() -> str:
    """How busy it is: other work on the same processors spoils figures."""
    load = f", load average {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    return f"{os.cpu_count()} CPUs{load}; BLAS on {BLAS_THREADS}"


def refitted_value(X: Array, y: Array, alpha: float, tol: float) -> float:
    """F by a fresh SVC.

    Its dual value: libsvm keeps the kernel in single precision, which moves the primal value at its
    w and b by up to 1e-4 here, whatever the tolerance, and the dual value by the square of that.
    """
    C = 1.0 / mu_from_alpha(alpha, float(len(y)))
    model = SVC(kernel="linear", C=C, tol=tol).fit(X, y)
    w = model.coef_[0]
    return float((np.abs(model.dual_coef_).sum() - w @ w / 2) / C)
