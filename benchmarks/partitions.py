"""What a selection by parts is worth against the whole greedy, and what it costs.

Run `make bench`, or `python benchmarks/partitions.py [--quick]`. Everything is measured in this one run, in
CPU seconds, since parts are meant for several processors:

1. the value of `partitioned_greedy` as a share of the value of `distorted_greedy`: worst of two seeds;
2. seconds on large data: all parts, and the critical path if every part had a processor of its own.
"""

from __future__ import annotations

import argparse
from time import process_time
from typing import Any

import numpy as np
from rich.console import Console
from support import open_console, show
from threadpoolctl import threadpool_limits

from deferlearn.datasets import make_linear, make_quadratic, make_shifted
from deferlearn.humans import UniformHuman
from deferlearn.objective import SVMObjective
from deferlearn.selection import SelectionResult, distorted_greedy, partitioned, partitioned_greedy

RATIO, PARTS = 0.1, (2, 4, 8)
PROBLEMS: list[tuple[str, Any, dict[str, Any]]] = [
    ("linear 400", make_linear(400, random_state=1), {"alpha": 1.0}),
    ("linear 400", make_linear(400, random_state=1), {"alpha": 0.01}),
    ("shifted 1,000 x 20", make_shifted(1000, 20, random_state=0), {"alpha": 0.01}),
    ("rbf 600 x 5", make_shifted(600, 5, random_state=0), {"alpha": 0.01, "kernel": "rbf"}),
    (
        "quadratic 400",
        make_quadratic(400, random_state=0),
        {"alpha": 0.1, "kernel": "poly", "degree": 2},
    ),
]


def losses(y: np.ndarray) -> np.ndarray:
    return UniformHuman(0.2).losses(y, random_state=0)


def quality(console: Console) -> None:
    rows = []
    for name, (X, y), machine in PROBLEMS:
        loss, objective = losses(y), SVMObjective(X, y, **machine)
        for share in (0.02, 0.2):
            n = int(share * len(y))
            whole = distorted_greedy(objective, loss, n, RATIO)
            row = [name, f"{machine['alpha']:g}", f"{share:.0%}"]
            for train_on in ("all", "part"):
                for count in PARTS:
                    found = [
                        partitioned_greedy(
                            X, y, loss, n, RATIO, n_partitions=count, train_on=train_on,
                            random_state=seed, **machine,
                        )
                        for seed in (0, 1)
                    ]  # fmt: skip
                    row.append(f"{min(r.value for r in found) / whole.value:.3f}")
            rows.append(row)
    columns = [f"{on}, {count}" for on in ("all", "part") for count in PARTS]
    show(console, "Value against the whole greedy, by train_on and parts",
         ["data", "alpha", "budget", *columns], rows)  # fmt: skip


def cost(console: Console, size: int, n: int) -> None:
    X, y = make_shifted(size, 100, random_state=0)
    loss, spent, nominate = losses(y), list[float](), partitioned._nominate

    def timed(task: Any) -> SelectionResult:
        start = process_time()
        result = nominate(task)
        spent.append(process_time() - start)
        return result

    start = process_time()
    objective = SVMObjective(X, y, alpha=0.005)
    whole = distorted_greedy(objective, loss, n, RATIO)
    seconds = process_time() - start
    rows = [["whole", f"{seconds:.1f}", f"{seconds:.1f}", "1.000"]]
    partitioned._nominate = timed
    try:
        for train_on in ("all", "part"):
            spent.clear()
            start = process_time()
            result = partitioned_greedy(
                X, y, loss, n, RATIO, alpha=0.005, train_on=train_on, random_state=0
            )
            total = process_time() - start
            path = total - sum(spent) + max(spent)
            share = f"{result.value / whole.value:.3f}"
            rows.append([f"4 parts, {train_on}", f"{total:.1f}", f"{path:.1f}", share])
    finally:
        partitioned._nominate = nominate
    show(console, f"{size:,} x 100, n = {n}: CPU seconds",
         ["", "all", "critical path", "value"], rows)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="smaller data, fewer rounds")
    quick = parser.parse_args().quick
    console = open_console()
    X, y = make_shifted(50, 3, random_state=0)
    distorted_greedy(SVMObjective(X, y, alpha=0.1), losses(y), 3)  # compiles
    with threadpool_limits(limits=1):
        quality(console)
        cost(console, *((5_000, 60) if quick else (20_000, 60)))


if __name__ == "__main__":
    main()
