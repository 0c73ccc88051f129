"""A linear objective needs memory for its rows, never for all pairs of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp

from deferlearn.datasets import make_shifted
from deferlearn.objective import SVMObjective

N_SAMPLES, N_FEATURES, N_REMOVED, ALPHA = 50_000, 50, 100, 0.005
MOST_BYTES = 10**9  # all pairs would be 20 * 10**9

# In a process of its own, so that the peak is the objective's. Linux carries the parent's memory over
# into `ru_maxrss`; the process's own peak is VmHWM, where there is one.
SCRIPT = f"""
import json, resource, sys
from pathlib import Path
import numpy as np
from deferlearn.datasets import make_shifted
from deferlearn.objective import SVMObjective

X, y = make_shifted({N_SAMPLES}, {N_FEATURES}, random_state=0)
objective = SVMObjective(X, y, alpha={ALPHA})
rng = np.random.default_rng(0)
for _ in range({N_REMOVED}):
    objective.remove(int(rng.choice(np.flatnonzero(objective.dual > 0))))
status = Path("/proc/self/status")
if status.exists():
    line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
    peak = int(line.split()[1]) * 1024
else:
    unit = 1 if sys.platform == "darwin" else 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
print(json.dumps([peak, objective.optimality_residual(), int(objective.kept.sum())]))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no module `resource`")
def test_fifty_thousand_samples_in_less_than_a_gigabyte() -> None:
    # One thread: two that wait for each other are very slow where tests run side by side.
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    run = subprocess.run(
        [sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    peak, residual, kept = json.loads(run.stdout)
    assert peak < MOST_BYTES
    assert residual < 1e-8
    assert kept == N_SAMPLES - N_REMOVED


@pytest.mark.parametrize("sparse", [False, True])
def test_no_array_holds_all_pairs(sparse: bool) -> None:
    """Of arrays that are allocated but never filled the process's peak would know nothing."""
    n = 8_000
    X, y = make_shifted(n, N_FEATURES, random_state=0)
    given = sp.csr_array(X) if sparse else X
    tracemalloc.start()
    try:
        objective = SVMObjective(given, y, alpha=ALPHA)
        used = np.flatnonzero(objective.dual > 0)
        objective.remove(int(used[0]))
        objective.gains(used[1:20])
        objective.gain_bounds(used[1:])
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 8 * n**2 / 4
