"""What a selection with K classes costs, side by side with the two-class selections of its parts.

Run `make bench`, or `python benchmarks/classes.py [--quick]`. Everything is measured in this one run, in
CPU seconds, with the building of the objective included:

1. distorted greedy at n = 0.2 |V|;
2. the sweep over submodularity ratios.

The two-class selection is that of one part of the sum, on the same rows: the mean over the parts. With
parts that do not help each other a sum would cost K of them; the last column should be at most 1.5.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from time import process_time
from typing import Any, NamedTuple

import numpy as np
from sklearn.datasets import load_digits
from support import BLAS_THREADS, Array, Index, machine, open_console, show
from threadpoolctl import threadpool_limits

from deferlearn.datasets import load_sleep
from deferlearn.objective import SVMObjective, class_labels, class_objective
from deferlearn.selection import SelectionResult, distorted_greedy, submodularity_sweep

SIZE, SHARE, RATIO, ALPHAS = 1_000, 0.2, 0.5, (0.1, 0.01)
BAR = 1.5


class Classes(NamedTuple):
    name: str
    X: Array
    codes: Index
    answers: Index  # of the human
    kind: str

    @property
    def n_classes(self) -> int:
        return int(self.codes.max()) + 1


def digits() -> Classes:
    """Ten classes; the human takes one digit in five for another."""
    X, codes = load_digits(return_X_y=True)
    X, codes = X[:SIZE] / 16.0, codes[:SIZE]
    rng = np.random.default_rng(0)
    other = (codes + rng.integers(1, 10, SIZE)) % 10
    return Classes("digits", X, codes, np.where(rng.random(SIZE) < 0.2, other, codes), "classes")


def sleep() -> Classes:
    """Five stages of sleep; the human is the first expert."""
    bunch = load_sleep(classes="stages")
    scored = np.flatnonzero(~np.isnan(bunch.human_labels))
    rows = np.random.default_rng(0).choice(scored, SIZE, replace=False)
    human = bunch.human_labels[rows].astype(np.int64)
    return Classes("sleep", np.asarray(bunch.data)[rows], bunch.target[rows], human, "classes")


Select = Callable[[Any, Array, int], SelectionResult]


def once(objective: Any, loss: Array, n: int) -> SelectionResult:
    return distorted_greedy(objective, loss, n, RATIO)


def seconds(work: Callable[[], Any], repeats: int) -> tuple[float, Any]:
    """The least CPU time of several runs, and what the work returned."""
    best, result = np.inf, None
    for _ in range(repeats):
        start = process_time()
        result = work()
        best = min(best, process_time() - start)
    return best, result


def compare(data: Classes, alpha: float, select: Select, repeats: int) -> list[str]:
    labels = class_labels(data.codes, data.n_classes, data.kind)
    said = class_labels(data.answers, data.n_classes, data.kind)
    losses = np.abs(labels - said)  # of each part: 2 where the answer is wrong
    n = int(SHARE * len(data.X))
    alone = []
    for y, loss in zip(labels, losses, strict=True):
        time, _ = seconds(lambda: select(SVMObjective(data.X, y, alpha), loss, n), repeats)  # noqa: B023
        alone.append(time)
    together, result = seconds(
        lambda: select(
            class_objective(data.X, data.codes, data.n_classes, data.kind, alpha=alpha),
            losses.sum(axis=0),
            n,
        ),
        repeats,
    )
    K, two = len(labels), float(np.mean(alone))
    return [
        data.name, data.kind, str(K), f"{alpha:g}", str(len(result.order)), f"{two:.3f}",
        f"{min(alone):.3f} - {max(alone):.3f}", f"{together:.3f}", f"{result.n_exact / n:.1f}",
        f"{together / two / K:.2f}",
    ]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one run each, without the sweep")
    quick = parser.parse_args().quick
    console = open_console()
    console.print(f"{SIZE} rows, {machine()}.")
    threadpool_limits(BLAS_THREADS)
    problems = [digits(), sleep()]
    problems.append(problems[-1]._replace(kind="grades"))
    for data in problems:  # compiles
        small = data._replace(X=data.X[:100], codes=data.codes[:100], answers=data.answers[:100])
        compare(small, ALPHAS[0], once, 1)
    headings = [
        "", "kind", "K", "alpha", "picked", "two classes, s", "from - to", "K classes, s",
        "exact a round", "ratio / K",
    ]  # fmt: skip
    for title, select in (
        (f"1. Distorted greedy, n = {SHARE} |V|, ratio {RATIO}", once),
        ("2. The sweep, delta = 0.1", submodularity_sweep),
    ):
        if select is once or not quick:
            rows = [
                compare(data, alpha, select, 1 if quick or select is not once else 3)
                for data in problems
                for alpha in ALPHAS
            ]
            show(console, title, headings, rows)
    console.print(f"At the end: {machine()}.")


if __name__ == "__main__":
    main()
