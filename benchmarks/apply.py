"""What `deferlearn apply` costs on a large file: rows a second and peak memory, by the size of chunks.

Run `make bench`, or `python benchmarks/apply.py [--quick] [--rows N]`. Each figure comes from a process of
its own, which runs the command as a user would; the first row, a file of 100 cases, is what Python and
the libraries need by themselves, and the second shows that memory does not grow with the file. Seconds of a
processor are the ones to compare where other programs run.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from support import BLAS_THREADS, open_console, show

import deferlearn
from deferlearn.tables import fit_table, select_cases

ROWS, QUICK_ROWS = 1_000_000, 100_000
CHUNKS = (1_000, 5_000, 20_000, 100_000)
DEFAULT_CHUNK = 20_000
N_NUMBERS, SITES = 18, ("Oslo", "Rome", "Lyon", "Graz")
N_TRAINING = 100
PART = 50_000

# Says what the command says, and the peak of its memory in MB. From /proc where there is one: the
# kernel's `ru_maxrss` of a new process begins with the peak of the process that started it.
CHILD = """
import re, resource, sys, time
from pathlib import Path
from typer.testing import CliRunner
from deferlearn.cli.app import app
start = time.process_time()
result = CliRunner().invoke(app, sys.argv[1:])
cpu = time.process_time() - start
assert result.exit_code == 0, (result.output, result.exception)
status = Path("/proc/self/status")
if status.exists():
    peak = int(re.search(r"VmHWM:\\s+(\\d+) kB", status.read_text())[1]) / 2**10
else:
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    peak = used / (2**20 if sys.platform == "darwin" else 2**10)
print(result.stdout.rstrip()[:-1] + f', "peak": {peak}, "cpu": {cpu}}}')
"""


def cases(n: int, seed: int) -> pa.Table:
    """Numbers with gaps, a category, a name and a free text, as a registry might hold them."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, N_NUMBERS)).round(4)
    columns = {f"x{i}": pa.array(X[:, i], mask=rng.random(n) < 0.02) for i in range(N_NUMBERS)}
    columns["site"] = pa.array(rng.choice(SITES, n))
    columns["id"] = pa.array([f"case-{seed}-{i}" for i in range(n)])
    truth = X[:, 0] + X[:, 1] + 0.7 * rng.normal(size=n) > 0
    columns["truth"] = pa.array(np.where(truth, "ill", "well"))
    wrong = rng.random(n) < 0.1
    columns["reader"] = pa.array(np.where(truth ^ wrong, "ill", "well"))
    return pa.table(columns)


def write_cases(path: Path, rows: int) -> None:
    parts = [
        cases(min(PART, rows - start), seed).drop_columns(["truth", "reader"])
        for seed, start in enumerate(range(0, rows, PART), start=1)
    ]
    table = pa.concat_tables(parts)
    if path.suffix == ".parquet":
        pyarrow.parquet.write_table(table, path)
    else:
        pyarrow.csv.write_csv(table, path)


def measure(model: Path, path: Path, chunk: int, *words: str) -> dict[str, float]:
    out = path.with_name(f"routed{path.suffix}")
    command = ["apply", model, path, "--out", out, "--chunk-rows", chunk, "--json", *words]
    done = subprocess.run(
        [sys.executable, "-c", CHILD, *map(str, command)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "OPENBLAS_NUM_THREADS": str(BLAS_THREADS)},
    )
    if done.returncode:
        raise RuntimeError(done.stderr)
    measured: dict[str, float] = json.loads(done.stdout)
    out.unlink()
    return measured


def row(name: str, measured: dict[str, float]) -> list[str]:
    speed = measured["rows"] / measured["seconds"]
    return [
        name,
        f"{measured['rows']:,}",
        f"{measured['seconds']:.1f}",
        f"{measured['cpu']:.1f}",
        f"{speed:,.0f}",
        f"{measured['peak']:.0f}",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_ROWS:,} rows")
    parser.add_argument("--rows", type=int, help=f"number of rows, {ROWS:,} by default")
    options = parser.parse_args()
    rows = options.rows or (QUICK_ROWS if options.quick else ROWS)
    console = open_console()
    headings = ["", "rows", "seconds", "of a processor", "rows / s", "peak MB"]
    with tempfile.TemporaryDirectory() as folder:
        model, small, table = (Path(folder) / name for name in ("m.skops", "s.csv", "t.csv"))
        chosen = select_cases(cases(N_TRAINING, 0), "truth", humans=["reader"], identifier="id")
        deferlearn.save(fit_table(chosen, alpha=0.1), model)
        results = []
        for n in (100, rows // 10):
            write_cases(small, n)
            results.append(row(f"{n:,} rows only", measure(model, small, DEFAULT_CHUNK)))
        write_cases(table, rows)
        results += [row(f"chunks of {n:,}", measure(model, table, n)) for n in CHUNKS]
        title = f"CSV of {table.stat().st_size / 2**20:.0f} MB, one by one"
        show(console, title, headings, results)
        columnar = table.with_suffix(".parquet")
        write_cases(columnar, rows)
        kinds = [
            row("batch (two passes)", measure(model, table, DEFAULT_CHUNK, "--batch")),
            row("parquet", measure(model, columnar, DEFAULT_CHUNK)),
            row("parquet, batch", measure(model, columnar, DEFAULT_CHUNK, "--batch")),
        ]
        show(console, f"Other ways, chunks of {DEFAULT_CHUNK:,}", headings, kinds)


if __name__ == "__main__":
    main()
