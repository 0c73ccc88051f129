"""How far it goes: |V| up to 100,000, sparse text, kernels within a memory limit, threads.

Run `make bench`, or `python benchmarks/scale.py [--quick]`. Every measurement has a process of its own, so
that its peak memory is its own. Where a run is not carried to its end, its time is extrapolated from the
rounds that were made, and the table says so. Seconds are of the processor unless they are called
elapsed: other work on the same machine then does not count.

1. growth with |V|, next to the time of refitting scikit-learn's solvers once for every candidate;
2. two goals: 25,000 x 100 exactly, n = 5,000; 100,000 x 100 by random samples, n = 2,000;
3. a tolerance at 100,000 x 100;
4. sparse rows, 20,000 x 50,000;
5. kernels at 10,000 x 20 within three limits of memory;
6. one thread and two, side by side.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import warnings
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np
import scipy.sparse as sp
from rich.console import Console
from sklearn.svm import SVC, LinearSVC
from support import BLAS_THREADS, LOOSE, machine, open_console, show
from threadpoolctl import threadpool_limits

from deferlearn import datasets
from deferlearn.humans import UniformHuman
from deferlearn.objective import SVMObjective
from deferlearn.objective.scaling import mu_from_alpha
from deferlearn.selection import Iteration, distorted_greedy, stochastic_distorted_greedy

ALPHA, N_FEATURES, SHARE = 0.005, 100, 0.2
SIZES = (1_000, 3_000, 10_000, 25_000, 100_000)
LIMITS = (256, 512, 2048)
# Rows of length one: the first alpha leaves nearly every sample inside of the margin, with the last one
# scikit-learn's C is 1/2 for 20,000 samples, and thousands are on it.
TEXT_ALPHAS = (0.005, 0.0005, 0.00005)
KERNELS: dict[str, dict[str, Any]] = {
    "rbf": {"kernel": "rbf"},
    "poly": {"kernel": "poly", "degree": 2, "coef0": 1.0},
}


class Enough(Exception):
    """The rounds that were asked for are done."""


def megabytes() -> float:
    """Peak memory of this process; Linux carries the parent's over into `ru_maxrss`, VmHWM is its own."""
    status = Path("/proc/self/status")
    if status.exists():
        lines = status.read_text().splitlines()
        return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) / 1024
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def text_like(size: int, features: int, per_row: int) -> tuple[Any, Any]:
    """Sparse rows of length one; a few columns are in most rows, most are in few."""
    rng = np.random.default_rng(0)
    share = 1.0 / np.arange(10, features + 10)
    columns = rng.choice(features, size=(size, per_row), p=share / share.sum())
    rows = np.repeat(np.arange(size), per_row)
    entries = rng.exponential(size=rows.size)
    X = sp.csr_array((entries, (rows, columns.ravel())), shape=(size, features))
    X = sp.csr_array(sp.diags_array(1.0 / np.sqrt(X.multiply(X).sum(axis=1))) @ X)
    score = X @ rng.normal(size=features)
    return X, np.where(score + rng.normal(size=size) * score.std() / 2 > 0, 1.0, -1.0)


def data(job: dict[str, Any]) -> tuple[Any, Any]:
    if job.get("sparse"):
        return text_like(job["size"], job["features"], 50)
    X, y = datasets.make_shifted(job["size"], job["features"], random_state=0)
    return X, y.astype(float)


def select(job: dict[str, Any], X: Any, y: Any, rounds: int) -> dict[str, Any]:
    """Build and select; stops after a number of rounds, or of seconds of the processor."""
    size = len(y)
    loss = UniformHuman(0.2).losses(y, random_state=0)
    start = process_time()
    objective = SVMObjective(X, y, alpha=job["alpha"], n_jobs=job.get("jobs"), **job["params"])
    built = process_time() - start
    made: list[Iteration] = []
    start, elapsed = process_time(), perf_counter()

    def after(iteration: Iteration) -> None:
        made.append(iteration)
        if len(made) >= rounds or process_time() - start > job["seconds"]:
            raise Enough

    n = min(job["n"], size)
    options: dict[str, Any] = {"tol": job.get("tol", 0.0), "callback": after}
    try:
        if job.get("random"):
            stochastic_distorted_greedy(objective, loss, n, random_state=0, **options)
        else:
            distorted_greedy(objective, loss, n, **options)
    except Enough:
        pass
    a_round = (process_time() - start) / len(made)
    waited = (perf_counter() - elapsed) / len(made)
    looked, solved = sum(i.n_candidates for i in made), sum(i.n_exact for i in made)
    gram = objective._problem.gram
    hits, misses = getattr(gram, "hits", 0), getattr(gram, "misses", 0)
    return {
        "build": built,
        "round": a_round,
        "elapsed": waited,
        "rounds": len(made),
        "all": built + a_round * n,
        "dismissed": 100.0 * (1.0 - solved / looked),
        "exact": solved / len(made),
        "free": len(objective._state.members),
        "hits": 100.0 * hits / max(hits + misses, 1),
        "order": [i.picked for i in made],
        "breakpoints": breakpoints(objective, [i.picked for i in made[:10] if i.picked >= 0]),
    }


def breakpoints(objective: SVMObjective, picks: list[int]) -> float:
    """Steps of a path that removes a sample."""
    state = objective.copy()
    paths, steps = state.counters.n_paths, state.counters.n_steps
    for k in picks:
        state.remove(k)
    return (state.counters.n_steps - steps) / max(state.counters.n_paths - paths, 1)


def refit(job: dict[str, Any], X: Any, y: Any) -> dict[str, float]:
    """Seconds of one fit of scikit-learn's solvers without a sample."""
    C = 1.0 / mu_from_alpha(job["alpha"], float(len(y) - 1))
    out = {}
    for name, model in {
        "SVC": SVC(kernel="linear", C=C, tol=LOOSE),
        "LinearSVC": LinearSVC(loss="hinge", C=C, tol=LOOSE, max_iter=100),
    }.items():
        if name == "SVC" and len(y) > job["most_svc"]:
            continue
        start = process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(X[1:], y[1:])
        out[name] = process_time() - start
    return out


def work(job: dict[str, Any]) -> dict[str, Any]:
    """One measurement, in the process that was made for it."""
    threadpool_limits(BLAS_THREADS)
    X, y = data(job)
    if job.get("refit"):
        return refit(job, X, y)
    warm = min(len(y), 1_000)
    select(job | {"seconds": 1.0}, X[:warm], y[:warm], 3)  # compiles
    return select(job, X, y, job["rounds"]) | {"megabytes": megabytes()}


def measure(**job: Any) -> dict[str, Any]:
    """Run a measurement in a fresh process."""
    job = {"alpha": ALPHA, "features": N_FEATURES, "params": {}, "seconds": 60.0, **job}
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    run = subprocess.run(
        [sys.executable, __file__, "--job", json.dumps(job)],
        env=environment, capture_output=True, text=True,
    )  # fmt: skip
    if run.returncode:
        raise RuntimeError(f"{job} failed:\n{run.stderr}")
    result: dict[str, Any] = json.loads(run.stdout.splitlines()[-1])
    return result


def minutes(seconds: float, made: int, n: int) -> str:
    return f"{seconds / 60:,.1f}" + ("" if made >= n else " (extrapolated)")


def growth_table(console: Console, sizes: tuple[int, ...], rounds: int, most_svc: int) -> None:
    rows, seconds = [], []
    for size in sizes:
        m = measure(size=size, n=int(SHARE * size), rounds=rounds)
        r = measure(size=size, refit=True, most_svc=most_svc)
        seconds.append(m["round"])
        refits = [f"{r[name] * size:,.0f}" if name in r else "-" for name in ("SVC", "LinearSVC")]
        rows.append(
            [
                f"{size:,}", f"{m['build']:.2f}", f"{1e3 * m['round']:.1f}", f"{m['dismissed']:.2f}",
                f"{m['exact']:.1f}", f"{m['breakpoints']:.1f}", f"{m['megabytes']:,.0f}", *refits,
            ]
        )  # fmt: skip
    show(
        console,
        f"1. Distorted greedy, {N_FEATURES} features, alpha = {ALPHA}, n = {SHARE} |V|: {rounds} rounds",
        ["|V|", "build, s", "a round, ms", "dismissed, %", "exact a round", "breakpoints a removal",
         "peak, MB", "refits of a round by SVC, s", "by LinearSVC, s"],
        rows,
    )  # fmt: skip
    exponent = np.polyfit(np.log(sizes), np.log(seconds), 1)[0]
    console.print(
        f"A round grows like |V|^{exponent:.2f}. Refits: one fit times |V|; LinearSVC: 100 passes at most."
    )


GOALS = [
    "",
    "n",
    "rounds made",
    "build, s",
    "a round, ms",
    "all, minutes",
    "exact a round",
    "peak, MB",
]


def goal_row(name: str, m: dict[str, Any], n: int) -> list[str]:
    return [
        name, f"{n:,}", f"{m['rounds']:,}", f"{m['build']:.1f}", f"{1e3 * m['round']:.1f}",
        minutes(m["all"], m["rounds"], n), f"{m['exact']:.1f}", f"{m['megabytes']:,.0f}",
    ]  # fmt: skip


def goals_table(console: Console, quick: bool) -> None:
    few = {"rounds": 150} if quick else {"rounds": 10**6, "seconds": 1800.0}
    rows = [
        goal_row("25,000 x 100, exact", measure(size=25_000, n=5_000, **few), 5_000),
        goal_row(
            "100,000 x 100, by random samples",
            measure(size=100_000, n=2_000, random=True, **few), 2_000,
        ),
    ]  # fmt: skip
    show(console, "2. Goals: 15 minutes each; 2 GB and 4 GB", GOALS, rows)


def tolerance_table(console: Console, rounds: int) -> None:
    rows = [
        goal_row(f"tol = {tol:g}", measure(size=100_000, n=2_000, tol=tol, rounds=rounds), 2_000)
        for tol in (0.0, 0.05, 0.2)
    ]
    show(console, "3. A tolerance, 100,000 x 100, every sample a candidate", GOALS, rows)


def sparse_table(console: Console, size: int, until: dict[str, Any]) -> None:
    """The first row is carried to its end: its first rounds are cheaper than the later ones."""
    rows = []
    most = {"seconds": 1800.0} if until.get("seconds") else {}
    for alpha in TEXT_ALPHAS:
        for offset in (True, False):
            for random in (False, True):
                m = measure(
                    size=size, features=50_000, sparse=True, alpha=alpha, n=size // 5,
                    params={"fit_intercept": offset}, random=random,
                    **until | (most if not rows else {}),
                )  # fmt: skip
                rows.append(
                    [
                        f"{alpha:g}", "yes" if offset else "no", "random" if random else "all",
                        f"{m['free']:,}", f"{m['build']:.1f}", f"{1e3 * m['round']:.1f}",
                        minutes(m["all"], m["rounds"], size // 5), f"{m['megabytes']:,.0f}",
                    ]
                )  # fmt: skip
    show(
        console,
        f"4. Sparse rows, {size:,} x 50,000, 50 entries a row, n = {size // 5:,}",
        ["alpha", "offset", "candidates", "free samples", "build, s", "a round, ms", "all, minutes",
         "peak, MB"],
        rows,
    )  # fmt: skip


def kernel_table(console: Console, size: int, until: dict[str, Any]) -> None:
    rows = []
    for name, params in KERNELS.items():
        for limit in LIMITS:
            for random in (False, True):
                m = measure(
                    size=size, features=20, n=size // 5, random=random, **until,
                    params=params | {"cache_size": limit},
                )  # fmt: skip
                rows.append(
                    [
                        name, f"{limit:,}", "random" if random else "all", f"{m['free']:,}",
                        f"{m['build']:.1f}", f"{1e3 * m['round']:.1f}",
                        minutes(m["all"], m["rounds"], size // 5), f"{m['hits']:.1f}",
                        f"{m['megabytes']:,.0f}",
                    ]
                )  # fmt: skip
    show(
        console,
        f"5. Kernels, {size:,} x 20, alpha = {ALPHA}, n = {size // 5:,}; the peak holds 200 MB of imports",
        ["", "limit, MB", "candidates", "free samples", "build, s", "a round, ms", "all, minutes",
         "columns found, %", "peak, MB"],
        rows,
    )  # fmt: skip


def threads_table(console: Console, size: int, rounds: int) -> None:
    one, two = (measure(size=size, n=size // 5, rounds=rounds, jobs=jobs) for jobs in (1, 2))
    rows = [
        [
            f"{size:,} x {N_FEATURES}", f"{1e3 * one['elapsed']:.1f}", f"{1e3 * two['elapsed']:.1f}",
            f"{one['elapsed'] / two['elapsed']:.2f}", "yes" if one["order"] == two["order"] else "no",
        ]
    ]  # fmt: skip
    show(
        console,
        "6. Threads: elapsed time of a round, which other work on the machine spoils",
        ["", "one, ms", "two, ms", "times faster", "same picks"],
        rows,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--quick", action="store_true", help="fewer rounds, smaller sparse and kernel data"
    )
    parser.add_argument("--only", type=int, choices=range(1, 7), help="one of the tables")
    parser.add_argument("--job", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.job:
        print(json.dumps(work(json.loads(options.job))))
        return
    quick = options.quick
    console = open_console()
    console.print(f"Python {platform.python_version()}, numpy {np.__version__}, {machine()}.")
    # The first rounds can be cheaper than the later ones: better to the end, for at most two minutes.
    few = {"rounds": 30} if quick else {"rounds": 10**6, "seconds": 120.0}
    tables = [
        lambda: growth_table(console, SIZES, 15 if quick else 100, 3_000 if quick else 25_000),
        lambda: goals_table(console, quick),
        lambda: tolerance_table(console, 20 if quick else 200),
        lambda: sparse_table(console, 3_000 if quick else 20_000, few),
        lambda: kernel_table(console, 5_000 if quick else 10_000, few),
        lambda: threads_table(console, 25_000, 40 if quick else 300),
    ]  # fmt: skip
    for number, table in enumerate(tables, start=1):
        if options.only in (None, number):
            table()
    console.print(f"At the end: {machine()}.")


if __name__ == "__main__":
    main()
