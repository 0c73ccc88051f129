"""Compare picks, values, thresholds and decisions of this checkout with those of another one.

    python tools/same_decisions.py ../other-checkout

Both are asked the same questions on the authors' data (the folder named by DEFERLEARN_DATA, if it is
set), on the radiologists' nodules and on digits. Whole numbers, answers and masks must be equal, floats
equal to 1e-12 of the largest one beside them.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

TOLERANCE = 1e-12
BUDGET = 0.2
# Where a name lives in checkouts of different age.
HOMES = (
    "deferlearn",
    "deferlearn.teams",
    "deferlearn.advantage",
    "deferlearn.baselines",
    "deferlearn.model_selection",
)


def find(name: str) -> Any:
    """The class of this name, wherever this checkout keeps it."""
    for home in HOMES:
        try:
            return getattr(import_module(home), name)
        except (ImportError, AttributeError):
            continue
    raise ImportError(f"{name} is in none of {HOMES}")


def problems() -> Iterator[tuple[str, tuple[Any, Any, Any], Any]]:
    """Name, training part and new cases: X, y, human labels of each."""
    from sklearn.preprocessing import StandardScaler

    from deferlearn import datasets

    rng = np.random.RandomState(0)
    names = ["load_lidc", "load_digits_parity"]
    if os.environ.get("DEFERLEARN_DATA"):
        names += ["fetch_messidor", "fetch_stare", "fetch_aptos"]
    for name in names:
        data = getattr(datasets, name)()
        rows = rng.permutation(len(data.target))[:700]
        X, y = np.asarray(data.data)[rows], np.asarray(data.target)[rows]
        answers = data.get("human_labels")
        human = y.copy()
        if answers is not None:
            human = np.asarray(answers)[rows]
        else:
            human[::5] = np.where(y[::5] == y.max(), y.min(), y.max())
        X = StandardScaler().fit_transform(X)
        half = 2 * len(y) // 3
        yield name, (X[:half], y[:half], human[:half]), X[half:]


def teams() -> Iterator[tuple[str, Any]]:
    """Name and estimator, not fitted."""
    svc, search = find("AssistedSVC"), find("AssistedSVCCV")
    advantage, uncertainty = find("AdvantageTriage"), find("UncertaintyTriage")
    predicted = find("PredictedErrorTriage")
    seed = {"random_state": 0}
    yield "linear", svc(BUDGET, alpha=0.1, **seed)
    yield "rbf", svc(BUDGET, alpha=0.01, kernel="rbf", submodularity_ratio=0.01, **seed)
    yield "mlp", svc(BUDGET, alpha=0.1, policy="mlp", submodularity_ratio=0.01, **seed)
    yield (
        "stochastic",
        svc(BUDGET, alpha=0.1, selection="stochastic", cv=None, class_weight="balanced", **seed),
    )
    yield "uncertainty", uncertainty(BUDGET, alpha=0.1, **seed)
    yield "advantage", advantage(BUDGET, alpha=0.1, **seed)
    yield "advantage by region", advantage(BUDGET, alpha=0.1, human_error="forest", **seed)
    yield "predicted error", predicted(BUDGET, alpha=0.1, **seed)
    policies = ["uncertainty", "advantage", "advantage_by_region", "predicted_error", "margin"]
    policies += ["forest", "automation"]
    yield "tuned", search(BUDGET, alphas=[0.01, 0.1, 1.0], policies=policies, **seed)


def answers(team: Any, new: Any) -> dict[str, Any]:
    """Everything that a fitted team can be asked."""
    found = {
        "predict": team.predict(new),
        "decision": team.decision_function(new),
        "score": team.deferral_score(new),
        "defer": team.defer(new),
        "defer_top": team.defer_top(new),
        "threshold": np.array([team.deferral_threshold_]),
        "rate": np.array([team.deferral_rate_]),
    }
    if hasattr(team, "selection_"):
        result = team.selection_
        found |= {"order": result.order, "gains": result.gains, "scores": result.scores}
        found["value"] = np.array([result.value])
    if hasattr(team, "cv_results_"):
        found["mean_test_score"] = team.cv_results_["mean_test_score"]
        found["deferral_rate"] = team.cv_results_["deferral_rate"]
        found["best"] = np.array([team.best_index_])
    return found


def dump(path: str) -> None:
    """Write the answers of the checkout that is imported."""
    found: dict[str, Any] = {}
    for problem, (X, y, human), new in problems():
        for name, team in teams():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                team.fit(X, y, human_labels=human)
            found |= {
                f"{problem} | {name} | {key}": value for key, value in answers(team, new).items()
            }
    np.savez(path, **found)


def run(checkout: Path, path: str) -> None:
    """Write the answers of a checkout, in a process of its own."""
    env = {**os.environ, "PYTHONPATH": str(checkout / "src")}
    subprocess.run([sys.executable, __file__, "--dump", path], env=env, check=True)


def differs(a: Any, b: Any) -> bool:
    """Whether two arrays differ by more than rounding."""
    if a.shape != b.shape:
        return True
    if a.dtype.kind != "f":
        return not np.array_equal(a, b)
    finite = np.isfinite(a)
    if not np.array_equal(finite, np.isfinite(b)):
        return True
    if not np.array_equal(a[~finite], b[~finite], equal_nan=True):
        return True
    scale = np.abs(a[finite]).max(initial=1e-300)
    return bool(np.any(np.abs(a[finite] - b[finite]) > TOLERANCE * scale))


def compare(other: Path) -> int:
    """Print what differs; the exit code."""
    here = Path(__file__).parents[1]
    with tempfile.TemporaryDirectory() as folder:
        paths = [str(Path(folder) / f"{k}.npz") for k in range(2)]
        for checkout, path in zip((other, here), paths, strict=True):
            run(checkout, path)
        before, after = (dict(np.load(path)) for path in paths)
    if before.keys() != after.keys():
        print("not asked of both:", *sorted(before.keys() ^ after.keys()), sep="\n  ")
        return 1
    different = [key for key in before if differs(before[key], after[key])]
    for key in different:
        print(f"differs: {key}")
    print(f"{len(before) - len(different)} of {len(before)} results are the same")
    return int(bool(different))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--dump"]:
        dump(sys.argv[2])
    elif len(sys.argv) == 2:
        sys.exit(compare(Path(sys.argv[1]).resolve()))
    else:
        sys.exit(__doc__)
