"""What exact gains, bounds and removals cost, side by side with refits by scikit-learn.

Run `make bench`, or `python benchmarks/gains.py [--quick]`. Everything is measured in this one run:

1. exact gains of all samples against one SVC refit a sample, on the medical training parts;
2. how tight the certified bounds are, and what they cost;
3. breakpoints of a removal's path;
4. how long a first call takes, with numba's cache cold and warm;
5. how the time of a removal and the memory grow with the number of samples.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

import numpy as np
from rich.console import Console
from support import (
    BLAS_THREADS,
    LOOSE,
    MEDICAL,
    N_FEATURES,
    TIGHT,
    Array,
    Data,
    Index,
    build,
    machine,
    medical,
    open_console,
    refitted_value,
    shifted,
    show,
    span,
    timed,
)
from threadpoolctl import threadpool_limits

from deferlearn.objective import SVMObjective

BOUNDS = ((500, 0.005), (500, 0.0005), (2000, 0.005))
GROWTH = (500, 2_000, 8_000, 50_000)
GROWTH_ALPHA, GROWTH_REMOVALS = 0.005, 100


@dataclass(frozen=True)
class Effort:
    """How often things are repeated."""

    repeats: int
    refits: int  # samples refitted, of all
    bound_seeds: int
    growth: tuple[int, ...]


FULL = Effort(repeats=5, refits=40, bound_seeds=5, growth=GROWTH)
QUICK = Effort(repeats=2, refits=10, bound_seeds=1, growth=GROWTH[:3])


def compile_all() -> None:
    """Call everything once, on a small and a large problem: table 4 alone measures compiling."""
    for size in (100, 1000):
        objective = build(shifted(size, GROWTH_ALPHA))
        objective.gains(range(10))
        objective.gain_bounds(range(10))
        objective.remove(0)


def in_play(objective: SVMObjective) -> Index:
    """Samples with a dual variable above zero: only they need a path of their own."""
    return np.flatnonzero(objective.dual > 0)


# -------------------------------------------------------------- 1. exact gains against refits


def refit_values(data: Data, without: Index, tol: float) -> Array:
    """F without each of the samples, by one SVC each."""
    return np.array(
        [
            refitted_value(np.delete(data.X, k, axis=0), np.delete(data.y, k), data.alpha, tol)
            for k in without
        ]
    )


def against_refits(console: Console, effort: Effort) -> None:
    rows, errors = [], []
    for data in map(medical, MEDICAL):
        m = len(data.y)
        some = np.sort(np.random.default_rng(0).choice(m, size=effort.refits, replace=False))
        builds: list[float] = []
        ours: list[float] = []
        refits: dict[float, list[float]] = {LOOSE: [], TIGHT: []}
        for _ in range(effort.repeats):
            seconds, objective = timed(build, data)
            builds.append(seconds)
            seconds, gains = timed(objective.gains, range(m))
            ours.append(seconds)
            for tol, spent in refits.items():
                seconds, values = timed(refit_values, data, some, tol)
                spent.append(seconds * m / len(some))
        error = float(np.abs(gains[some] - (objective.value - values)).max())
        loose, tight = refits.values()
        both = [a + b for a, b in zip(builds, ours, strict=True)]
        rows.append(
            [
                data.name, str(m), span(builds), span(ours), span(loose, 1, 2), span(tight, 1, 2),
                f"{min(loose) / min(ours):,.0f}", f"{min(tight) / min(ours):,.0f}",
                f"{min(loose) / min(both):,.0f}", f"{np.median(loose) / np.median(both):,.0f}",
            ]
        )  # fmt: skip
        errors.append(f"{data.name} {error:.1e} (F = {objective.value:.4g})")
    show(
        console,
        "1. Exact gains of ALL samples, against one SVC refit a sample (minimum / median)",
        ["", "samples", "build, ms", "all gains, ms", f"refits tol={LOOSE:g}, s",
         f"refits tol={TIGHT:g}, s", "refits / gains", "tight / gains",
         "refits / (build + gains)", "the same, medians"],
        rows,
    )  # fmt: skip
    console.print(
        f"Refits were timed for {effort.refits} random samples and extrapolated to all; "
        f"{effort.repeats} repeats.\n"
        f"Largest difference of our gains from the refits with tol={TIGHT:g}: {'; '.join(errors)}."
    )


# -------------------------------------------------------------------------------- 2. bounds


class Tightness(NamedTuple):
    above: float  # mean U - gain over samples in play
    below: float  # mean gain - L
    reach: int  # candidates whose U reaches the best gain
    candidates: int
    bounds_seconds: float
    path_seconds: float


def tightness(data: Data, repeats: int) -> Tightness:
    objective = build(data)
    everyone = np.arange(len(data.y))
    gains = objective.gains(everyone)
    # Made first: bounds start from what earlier ones on the same objective have kept.
    copies = [objective.copy() for _ in range(repeats)]
    lower, upper = objective.gain_bounds(everyone)
    used = in_play(objective)
    bounds_seconds = min(timed(copy.gain_bounds, everyone)[0] for copy in copies)
    return Tightness(
        above=float(np.mean((upper - gains)[used])),
        below=float(np.mean((gains - lower)[used])),
        reach=int((upper >= gains.max()).sum()),
        candidates=len(used),
        bounds_seconds=bounds_seconds,
        path_seconds=one_path(objective, used, repeats),
    )


def one_path(objective: SVMObjective, used: Index, repeats: int) -> float:
    """Median time of one exact removal, over samples spread through those in play."""
    some = used[:: max(1, len(used) // 20)]
    seconds = []
    for k in some.tolist():
        copies = [objective.copy() for _ in range(repeats)]
        seconds.append(min(timed(copy.gain, k)[0] for copy in copies))
    return float(np.median(seconds))


def bounds_table(console: Console, effort: Effort) -> None:
    rows = []
    for size, alpha in BOUNDS:
        draws = [
            tightness(shifted(size, alpha, seed=seed), effort.repeats)
            for seed in range(effort.bound_seeds)
        ]
        mean = Tightness(*np.mean(draws, axis=0))
        rows.append(
            [
                f"m={size:,}, alpha={alpha:g}", f"{mean.candidates:.0f}", f"{mean.above:.4f}",
                f"{mean.below:.4f}", ", ".join(str(draw.reach) for draw in draws),
                f"{mean.bounds_seconds * 1e3:.1f}", f"{mean.path_seconds * 1e3:.2f}",
            ]
        )  # fmt: skip
    show(
        console,
        f"2. Certified bounds, {N_FEATURES} features (means of {effort.bound_seeds} draws)",
        ["", "with dual > 0", "mean U - gain", "mean gain - L",
         "candidates whose U reaches the best gain, per draw",
         "ALL bounds, ms", "ONE exact path, ms"],
        rows,
    )  # fmt: skip


# --------------------------------------------------------------------------- 3. breakpoints


def breakpoints_table(console: Console) -> None:
    rows = []
    for data in [*map(medical, MEDICAL), *(shifted(m, alpha) for m, alpha in BOUNDS)]:
        objective = build(data)
        used = in_play(objective)
        before = objective.copy().counters
        objective.gains(used)
        after = objective.counters
        paths, steps = after.n_paths - before.n_paths, after.n_steps - before.n_steps
        repairs = after.n_repaired - before.n_repaired
        rows.append(
            [data.name, str(len(data.y)), str(len(used)), f"{steps / paths:.1f}", str(repairs)]
        )
    show(
        console,
        "3. Breakpoints of a removal's path",
        ["", "samples", "removals (dual > 0)", "breakpoints per removal", "repairs"],
        rows,
    )


# -------------------------------------------------------------------------- 4. first call

FIRST_CALL = """
import json
from time import perf_counter
import numpy as np
rng = np.random.default_rng(0)
X, y = rng.normal(size=(30, 3)), np.repeat([-1.0, 1.0], 15)
start = perf_counter()
from deferlearn.objective import SVMObjective
imported = perf_counter()
objective = SVMObjective(X, y, alpha={alpha})
built = perf_counter()
objective.gains(range(30))
done = perf_counter()
print(json.dumps([imported - start, built - imported, done - built, objective.counters.n_precise]))
"""
FIRST_CALL_ALPHAS = {"doubles": 0.1, "two doubles (tiny alpha)": 1e-12}


def first_call(alpha: float, cache: Path) -> tuple[list[float], float]:
    """Seconds of import, build and gains in a fresh process, and of the whole process."""
    command = [sys.executable, "-c", FIRST_CALL.format(alpha=alpha)]
    environment = os.environ | {"NUMBA_CACHE_DIR": str(cache)}
    seconds, run = timed(
        lambda: subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    )
    return json.loads(run.stdout), seconds


def first_call_table(console: Console) -> None:
    rows = []
    for arithmetic, alpha in FIRST_CALL_ALPHAS.items():
        with tempfile.TemporaryDirectory() as folder:
            for cache in ("cold", "warm"):
                (imported, built, gains, _), process = first_call(alpha, Path(folder))
                rows.append(
                    [f"{arithmetic}, {cache} cache", f"{imported:.2f}", f"{built:.2f}",
                     f"{gains:.2f}", f"{built + gains:.2f}", f"{process:.2f}"]
                )  # fmt: skip
    show(
        console,
        "4. First call in a fresh process, 30 samples (seconds)",
        ["", "import", "build", "gains", "build + gains", "whole process"],
        rows,
    )


# ------------------------------------------------------------------------------- 5. growth


class Growth(NamedTuple):
    build_seconds: float
    removal_seconds: list[float]
    breakpoints: float  # per removal
    repairs: int
    peak_bytes: int


def peak_memory() -> int:
    """The most memory this process has held, in bytes."""
    status = Path("/proc/self/status")
    if status.exists():  # getrusage would count the parent's memory at the fork, too
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def measure_growth(size: int) -> Growth:
    """Build, then remove samples with dual > 0 in random order; meant for a process of its own."""
    threadpool_limits(BLAS_THREADS)
    compile_all()
    data, rng = shifted(size, GROWTH_ALPHA, seed=1), np.random.default_rng(0)
    build_seconds, objective = timed(build, data)
    before = objective.copy().counters
    removal_seconds = []
    for _ in range(GROWTH_REMOVALS):
        k = int(rng.choice(in_play(objective)))
        removal_seconds.append(timed(objective.remove, k)[0])
    after = objective.counters
    return Growth(
        build_seconds,
        removal_seconds,
        (after.n_steps - before.n_steps) / GROWTH_REMOVALS,
        after.n_repaired - before.n_repaired,
        peak_memory(),
    )


def in_fresh_process(size: int) -> Growth:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(measure_growth, size).result()


def growth_table(console: Console, effort: Effort) -> None:
    grown = {size: in_fresh_process(size) for size in effort.growth}
    rows = [
        [f"|V| = {size:,}", f"{g.build_seconds:.2f}", f"{np.mean(g.removal_seconds) * 1e3:.2f}",
         span(g.removal_seconds, digits=2), f"{max(g.removal_seconds) * 1e3:.1f}",
         f"{g.breakpoints:.1f}", str(g.repairs), f"{g.peak_bytes / 2**20:,.0f}"]
        for size, g in grown.items()
    ]  # fmt: skip
    show(
        console,
        f"5. Growth: linear, {N_FEATURES} features, alpha={GROWTH_ALPHA:g}, "
        f"{GROWTH_REMOVALS} removals, a process each",
        ["", "build, s", "removal, mean ms", "minimum / median", "slowest", "breakpoints",
         "repairs", "peak memory, MB"],
        rows,
    )  # fmt: skip
    log_sizes = np.log(list(grown))
    for what, seconds in (
        ("one removal", [float(np.mean(g.removal_seconds)) for g in grown.values()]),
        ("the build", [g.build_seconds for g in grown.values()]),
    ):
        exponent = np.polyfit(log_sizes, np.log(seconds), 1)[0]
        console.print(f"The time of {what} grows like |V|^{exponent:.2f} (least squares).")


# ------------------------------------------------------------------------------------ all


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer repeats, smaller sizes")
    effort = QUICK if parser.parse_args().quick else FULL
    # Tables must not be broken where the output is a file.
    console = open_console()
    console.print(f"Python {platform.python_version()}, numpy {np.__version__}, {machine()}.")
    threadpool_limits(BLAS_THREADS)
    compile_all()
    against_refits(console, effort)
    bounds_table(console, effort)
    breakpoints_table(console)
    first_call_table(console)
    growth_table(console, effort)
    console.print(f"At the end: {machine()}.")


if __name__ == "__main__":
    main()
