"""What a user waits for: the tuned fit, one fit, large data, text, the first call, one decision.

Run `make bench`, or `python benchmarks/waiting.py [--quick] [--only N]`. Each figure stands next to that of
scikit-learn on the same data, measured in the same run: machines differ, the ratios differ less.

1. `AssistedSVCCV` with its default grid, next to `GridSearchCV(SVC)` over the same machines and folds, in
   seconds of the processor;
2. `AssistedSVC` with its defaults, next to one `SVC` at tolerance 1e-6, likewise;
3. text: 15,000 documents with 24,000 words;
4. the first fit after installation, with and without its cache; the command line; one decision;
5. 20,000 x 50 tuned.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import timeit
import warnings
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np
from rich.console import Console
from sklearn.datasets import make_classification
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from support import machine, open_console, show
from support.text import BUDGET, N_DOCUMENTS, N_WORDS, measure_fit

from deferlearn import AssistedSVC, AssistedSVCCV
from deferlearn.objective.scaling import mu_from_alpha
from deferlearn.teams.machines import ALPHAS, WIDTHS, typical_distance

SIZES, QUICK_SIZES = (1_000, 2_000, 4_000), (1_000,)
FOLDS, HUMAN_ERROR = 5, 0.1
TIGHT = 1e-6


def cases(n: int, d: int = 30, seed: int = 0) -> tuple[Any, Any, Any]:
    """Clusters that overlap, a few wrong labels, and a human who errs in one case of ten."""
    X, y = make_classification(
        n, d, n_informative=d // 2, n_redundant=0, n_clusters_per_class=4, flip_y=0.05,
        class_sep=0.8, random_state=seed,
    )  # fmt: skip
    wrong = np.random.default_rng(seed).random(n) < HUMAN_ERROR
    return StandardScaler().fit_transform(X), y, np.where(wrong, 1 - y, y)


def seconds(work: Any, clock: Any = perf_counter) -> float:
    start = clock()
    work()
    return float(clock() - start)


def processor() -> float:
    """Seconds of the processor, of this process and of those that it has started and that have ended."""
    return sum(os.times()[:4])


def growth(sizes: list[int], times: list[float]) -> str:
    """The exponent of the time's growth with the number of samples."""
    if len(sizes) < 2:
        return ""
    return f"{np.polyfit(np.log(sizes), np.log(times), 1)[0]:.2f}"


def their_grid(kernel: str, alphas: Any, X: Any) -> list[dict[str, Any]]:
    """The machines of our search, as scikit-learn's grid."""
    C = {"C": 1.0 / mu_from_alpha(alphas, len(X) * (1.0 - 1.0 / FOLDS))}
    widths = {"gamma": [width / typical_distance(X) for width in WIDTHS]}
    linear, rbf = {"kernel": ["linear"]} | C, {"kernel": ["rbf"]} | C | widths
    return {"linear": [linear], "rbf": [rbf], "auto": [linear, rbf]}[kernel]


def tuned(console: Console, sizes: tuple[int, ...]) -> None:
    rows = []
    for kernel in ("auto", "linear", "rbf"):
        kernels = kernel if kernel == "auto" else [kernel]
        small = cases(300)
        AssistedSVCCV(kernels=kernels, random_state=0).fit(*small[:2], human_labels=small[2])
        times = []
        for n in sizes:
            X, y, human = cases(n)
            team = AssistedSVCCV(kernels=kernels, random_state=0)
            ours = seconds(lambda: team.fit(X, y, human_labels=human), process_time)  # noqa: B023
            alphas = np.geomspace(*ALPHAS, team.alphas)
            folds = StratifiedKFold(FOLDS, shuffle=True, random_state=0)
            search = GridSearchCV(SVC(), their_grid(kernel, alphas, X), cv=folds)
            theirs = seconds(lambda: search.fit(X, y), process_time)  # noqa: B023
            times.append(ours)
            shown = "default grid" if kernel == "auto" else f"{kernel} alone"
            rows.append(
                [f"{shown}, {n:,} x 30", f"{ours:.1f}", f"{theirs:.1f}", f"{ours / theirs:.1f}",
                 growth(list(sizes)[: len(times)], times), str(team.best_params_["policy"])]
            )  # fmt: skip
    show(
        console, "1. A tuned fit, seconds of the processor",
        ["", "AssistedSVCCV", "GridSearchCV(SVC)", "ratio", "exponent of n", "winner"], rows,
    )  # fmt: skip


def one_fit(console: Console, sizes: tuple[int, ...]) -> None:
    small = cases(200)
    AssistedSVC(random_state=0).fit(*small[:2], human_labels=small[2])
    rows = []
    for n in sizes:
        X, y, human = cases(n)
        team, svc = AssistedSVC(random_state=0), SVC(kernel="linear", tol=TIGHT)
        svc.set_params(C=1.0 / mu_from_alpha(team.alpha, n))
        theirs = min(seconds(lambda: svc.fit(X, y), process_time) for _ in range(5))  # noqa: B023
        ours = min(
            seconds(lambda: team.fit(X, y, human_labels=human), process_time)  # noqa: B023
            for _ in range(3)
        )
        rows.append([f"{n:,} x 30", f"{ours:.2f}", f"{theirs:.3f}", f"{ours / theirs:.1f}"])
    show(
        console, "2. One fit with defaults, seconds of the processor (best of 3)",
        ["", "AssistedSVC", "SVC, tol 1e-6", "ratio"], rows,
    )  # fmt: skip


def text(console: Console) -> None:
    rows = []
    for tol in (0.05, 0.01):
        fit = measure_fit(tol)
        rows.append(
            [f"tol {tol}", str(fit.n_picks), f"{fit.seconds:.0f}", f"{fit.cpu_seconds:.0f}",
             f"{fit.megabytes:.0f}", f"{fit.slack:.4f}", f"{fit.gap:.4f}", f"{fit.loss:,.0f}",
             f"{fit.linear_svc_seconds:.2f}"]
        )  # fmt: skip
    show(
        console, f"3. Text, {N_DOCUMENTS:,} documents with {N_WORDS:,} words, {BUDGET:.0%} deferred",
        ["", "picks", "seconds", "of the processor", "peak, MB", "certified slack", "certified gap",
         "F", "LinearSVC, s"], rows,
    )  # fmt: skip


FIRST = """
from time import perf_counter
import sys
sys.path.insert(0, {folder!r})
from waiting import cases, processor
import sklearn.linear_model, sklearn.pipeline
from deferlearn import AssistedSVC
X, y, human = cases(500)
start, worked = perf_counter(), processor()
AssistedSVC(random_state=0).fit(X, y, human_labels=human)
print(perf_counter() - start, processor() - worked)
"""


def first_call(console: Console) -> None:
    script = FIRST.format(folder=str(Path(__file__).parent))
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {"NUMBA_CACHE_DIR": folder}
        for cache in ("cold", "warm"):
            said = subprocess.run(
                [sys.executable, "-c", script], env=environment, capture_output=True, text=True,
                check=True,
            )  # fmt: skip
            taken, worked = map(float, said.stdout.split())
            rows.append(
                [
                    f"first AssistedSVC in a process, 500 x 30, {cache} cache",
                    f"{taken:.2f} s ({worked:.2f} s of the processor)",
                ]
            )
    command = [str(Path(sys.executable).with_name("deferlearn"))]
    for options in (["--version"], ["--help"], ["fit", "--nonsense"]):
        run = lambda: subprocess.run(command + options, capture_output=True)  # noqa: B023, E731
        rows.append(
            [f"deferlearn {' '.join(options)}", f"{min(seconds(run) for _ in range(3)):.2f} s"]
        )
    with tempfile.TemporaryDirectory() as folder:
        rows += decisions(Path(folder), command)
    show(console, "4. First call, command line, one decision", ["", "best of 3"], rows)


def decisions(folder: Path, command: list[str]) -> list[list[str]]:
    import pandas as pd

    from deferlearn.tables import load_decider

    X, y, human = cases(1_400, 10)
    table = pd.DataFrame(X, columns=[f"x{i}" for i in range(10)]).assign(truth=y, reader=human)
    table.iloc[:400].to_csv(folder / "cases.csv", index=False)
    table.iloc[400:600].drop(columns=["truth", "reader"]).to_csv(folder / "new.csv", index=False)
    path, new = folder / "model.skops", table.iloc[400:].drop(columns=["truth", "reader"])
    fit = [*command, "fit", str(folder / "cases.csv"), "--label", "truth", "--human", "reader"]
    subprocess.run([*fit, "--out", str(path)], capture_output=True, check=True)
    apply = [
        *command,
        "apply",
        str(path),
        str(folder / "new.csv"),
        "--out",
        str(folder / "out.csv"),
    ]
    run = lambda: subprocess.run(apply, capture_output=True, check=True)  # noqa: E731
    rows = [["deferlearn apply, 200 rows", f"{min(seconds(run) for _ in range(3)):.2f} s"]]
    decider = load_decider(path)
    one = new.iloc[0].to_dict()
    for what, given, count in (("one case", one, 200), ("1,000 cases", new, 5)):
        best = min(timeit.repeat(lambda: decider.decide(given), number=count, repeat=3)) / count  # noqa: B023
        rows.append([f"{what}, model loaded", f"{1e3 * best:.2f} ms"])
    return rows


LARGE = """
import json, sys
from time import perf_counter, process_time
sys.path.insert(0, {folder!r})
from waiting import cases
from deferlearn import AssistedSVCCV
import re
from pathlib import Path
X, y, human = cases(20_000, 50)
start, worked = perf_counter(), process_time()
team = AssistedSVCCV(random_state=0).fit(X, y, human_labels=human)
taken, worked = perf_counter() - start, process_time() - worked
peak = int(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1]) / 2**20
print(json.dumps([taken, worked, peak, str(team.best_params_)]))
"""


def large(console: Console) -> None:
    script = LARGE.format(folder=str(Path(__file__).parent))
    said = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    taken, worked, peak, best = json.loads(said.stdout.strip().splitlines()[-1])
    show(
        console, "5. Large data, tuned", ["", "seconds", "of the processor", "peak, GB", "found"],
        [["20,000 x 50", f"{taken:.0f}", f"{worked:.0f}", f"{peak:.2f}", best]],
    )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="1,000 samples only, and not table 5")
    parser.add_argument("--only", type=int, choices=(1, 2, 3, 4, 5), help="one of the tables")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    console = open_console()
    console.print(machine())
    sizes = QUICK_SIZES if options.quick else SIZES
    tables = {
        1: lambda: tuned(console, sizes),
        2: lambda: one_fit(console, sizes),
        3: lambda: text(console),
        4: lambda: first_call(console),
        5: lambda: large(console),
    }
    if options.quick:
        del tables[5]
    for number, table in tables.items():
        if options.only in (None, number):
            table()


if __name__ == "__main__":
    main()
