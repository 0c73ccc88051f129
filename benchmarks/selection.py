"""What a whole selection costs, side by side with a greedy that refits scikit-learn's SVC.

Run `make bench`, or `python benchmarks/selection.py [--quick]`. Everything is measured in this one run:

1. distorted greedy at n = 0.2 |V| against refitting one SVC a candidate and round;
2. how the time of a round grows with |V|;
3. what the sweep over submodularity ratios costs, against a single run;
4. how far from the best set the answer can be at most, by its certificate.
"""

from __future__ import annotations

import argparse
import platform

import numpy as np
from rich.console import Console
from support import (
    BLAS_THREADS,
    LOOSE,
    MEDICAL,
    TIGHT,
    Data,
    build,
    machine,
    medical,
    open_console,
    refitted_value,
    shifted,
    show,
    timed,
)
from threadpoolctl import threadpool_limits

from deferlearn.bounds import certificate
from deferlearn.selection import SelectionResult, distorted_greedy, submodularity_sweep

SHARE, RATIO = 0.2, 0.01
GROWTH, GROWTH_ALPHA, GROWTH_BUDGET = (500, 1_000, 2_000, 4_000), 0.005, 20


def budget(data: Data) -> int:
    return int(SHARE * len(data.y) + 1e-9)


def select(data: Data, n: int) -> SelectionResult:
    """Everything that a user waits for: building the objective, and the selection."""
    return distorted_greedy(build(data), data.loss, n, RATIO)


def refit_round(data: Data, tol: float, most: int) -> tuple[int, float]:
    """One round of the refitting greedy: its pick, and seconds (of ``most`` candidates, scaled up)."""
    everyone = np.arange(len(data.y))
    some = everyone if most >= len(everyone) else np.random.default_rng(0).choice(everyone, most)

    def values() -> list[float]:
        return [
            refitted_value(np.delete(data.X, k, axis=0), np.delete(data.y, k), data.alpha, tol)
            for k in some
        ]

    seconds, rest = timed(values)
    total = refitted_value(data.X, data.y, data.alpha, tol)
    omega = (1 - RATIO / budget(data)) ** (budget(data) - 1)
    scores = omega * (total - np.array(rest)) - data.loss[some]
    return int(some[scores.argmax()]), seconds * len(everyone) / len(some)


def against_refits(console: Console, repeats: int, most: int) -> None:
    rows, ratios = [], {LOOSE: [], TIGHT: []}
    for data in map(medical, MEDICAL):
        n = budget(data)
        runs = [timed(select, data, n) for _ in range(repeats)]
        ours, result = min(seconds for seconds, _ in runs), runs[0][1]
        # A later round has one candidate less; its refits are taken to cost as much as the first's.
        share = sum(len(data.y) - i for i in range(n)) / len(data.y)
        rounds = {tol: refit_round(data, tol, most) for tol in (LOOSE, TIGHT)}
        for tol, (_, seconds) in rounds.items():
            ratios[tol].append(seconds * share / ours)
        dismissed = result.n_screened / (result.n_exact + result.n_screened)
        rows.append(
            [
                data.name, str(len(data.y)), str(n), f"{ours * 1e3:,.1f}", f"{ours / n * 1e3:.2f}",
                f"{result.n_exact / n:.1f}", f"{100 * dismissed:.1f}",
                *(f"{seconds:.2f}" for _, seconds in rounds.values()),
                *(f"{values[-1]:,.0f}" for values in ratios.values()),
                "yes" if rounds[TIGHT][0] == result.order[0] else "no" if most >= len(data.y) else "-",
            ]
        )  # fmt: skip
    show(
        console,
        f"1. Distorted greedy, n = {SHARE} |V|, ratio {RATIO}, building included (minimum of {repeats})",
        ["", "|V|", "n", "all, ms", "a round, ms", "exact a round", "dismissed, %",
         f"refit round tol={LOOSE:g}, s", f"refit round tol={TIGHT:g}, s",
         f"times faster, tol={LOOSE:g}", f"times faster, tol={TIGHT:g}", "same first pick"],
        rows,
    )  # fmt: skip
    means = {tol: float(np.exp(np.mean(np.log(values)))) for tol, values in ratios.items()}
    console.print(
        "The refitting greedy was run for its first round and extrapolated to all"
        + (f" (from {most} of its candidates)" if most < 400 else "")
        + f". Geometric means: {means[LOOSE]:,.0f} and {means[TIGHT]:,.0f} times."
    )


def growth_table(console: Console, repeats: int) -> None:
    rows, seconds = [], []
    for size in GROWTH:
        data = shifted(size, GROWTH_ALPHA)
        runs = [timed(select, data, GROWTH_BUDGET) for _ in range(repeats)]
        seconds.append(min(s for s, _ in runs) / GROWTH_BUDGET)
        result = runs[0][1]
        looked = result.n_exact + result.n_screened
        rows.append(
            [
                f"{size:,}", f"{seconds[-1] * 1e3:.2f}", f"{result.n_exact / GROWTH_BUDGET:.1f}",
                f"{100 * result.n_screened / looked:.2f}",
            ]
        )  # fmt: skip
    exponent = np.polyfit(np.log(GROWTH), np.log(seconds), 1)[0]
    show(
        console,
        f"2. Growth: 50 features, alpha = {GROWTH_ALPHA}, n = {GROWTH_BUDGET}, building included",
        ["|V|", "a round, ms", "exact a round", "dismissed, %"],
        rows,
    )
    console.print(f"A round grows like |V|^{exponent:.2f}.")


def sweep_table(console: Console, repeats: int) -> None:
    rows = []
    for data in map(medical, MEDICAL):
        n, objective = budget(data), build(data)
        one = min(
            timed(distorted_greedy, objective, data.loss, n, RATIO)[0] for _ in range(repeats)
        )
        all_, result = timed(submodularity_sweep, objective, data.loss, n)
        rows.append(
            [
                data.name, str(len(result.members)), f"{all_:.3f}", f"{all_ / one:.1f}",
                str(result.n_states), f"{result.n_states / n:.1f} n", f"{result.value:.3f}",
                f"{result.submodularity_ratio:.3f}",
            ]
        )  # fmt: skip
    show(
        console,
        "3. The sweep, delta = 0.1",
        [
            "",
            "runs",
            "seconds",
            "times a single run",
            "distinct states",
            "",
            "value",
            "ratio of the best",
        ],
        rows,
    )


def certificate_table(console: Console) -> None:
    rows = []
    for data in map(medical, MEDICAL):
        objective = build(data)
        result = distorted_greedy(objective, data.loss, budget(data), RATIO)
        seconds, paper = timed(certificate, objective, result, data.loss)
        rows.append(
            [
                data.name, f"{objective.value:.1f}", f"{result.value:.1f}",
                f"{paper.optimum.value:.1f}", f"{paper.gap:.1f}", f"{paper.relative_gap:.2f}",
                f"{paper.ratio_bound.best:.1e}", f"{seconds:.2f}",
            ]
        )  # fmt: skip
    show(
        console,
        f"4. Certificates at n = {SHARE} |V|: how far from the best the answer can be at most",
        [
            "",
            "F(V)",
            "g - c",
            "best possible at most",
            "gap",
            "relative",
            "bound on the ratio",
            "seconds",
        ],
        rows,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer repeats, fewer refits")
    quick = parser.parse_args().quick
    console = open_console()
    console.print(f"Python {platform.python_version()}, numpy {np.__version__}, {machine()}.")
    threadpool_limits(BLAS_THREADS)
    select(shifted(100, GROWTH_ALPHA), 5)  # compiles
    select(shifted(1_000, GROWTH_ALPHA), 2)
    against_refits(console, 2 if quick else 5, 20 if quick else 10**6)
    growth_table(console, 1 if quick else 3)
    sweep_table(console, 2 if quick else 5)
    certificate_table(console)
    console.print(f"At the end: {machine()}.")


if __name__ == "__main__":
    main()
