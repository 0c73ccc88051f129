"""Where the package runs: without a home, read-only, not compiled, in threads, after a fork, for long."""

from __future__ import annotations

import gc
import multiprocessing
import os
import resource
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import deferlearn
from deferlearn import AssistedSVC
from deferlearn.datasets import make_linear

X, Y = make_linear(40, random_state=0)
NEW, _ = make_linear(300, random_state=1)

FIT = """
import deferlearn
from deferlearn.datasets import make_linear
X, y = make_linear(20, random_state=0)
clf = deferlearn.AssistedSVC(budget=3, cv=2, submodularity_ratio=0.5, random_state=0).fit(X, y)
print(*clf.deferred_indices_)
"""


def fitted(**options: object) -> AssistedSVC:
    parameters = {"cv": 2, "submodularity_ratio": 0.5, "random_state": 0, **options}
    return AssistedSVC(**parameters).fit(X, Y)


def few_fitted() -> AssistedSVC:
    """A model whose certificate takes little."""
    return AssistedSVC(2, cv=2, submodularity_ratio=0.5, random_state=0).fit(X[:12], Y[:12])


def run(code: str, timeout: float = 60.0, **environment: str | None) -> str:
    """What a process says, in which these variables are set, or not set if they are None."""
    everything = {**os.environ, **environment}
    kept = {name: value for name, value in everything.items() if value is not None}
    done = subprocess.run(
        [sys.executable, "-W", "ignore:No human was given to fit", "-c", code],
        capture_output=True,
        text=True,
        env=kept,
        timeout=timeout,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def picked() -> str:
    X, y = make_linear(20, random_state=0)
    options = {"budget": 3, "cv": 2, "submodularity_ratio": 0.5, "random_state": 0}
    return " ".join(map(str, AssistedSVC(**options).fit(X, y).deferred_indices_))


def test_without_a_home(tmp_path: Path) -> None:
    deferlearn.save(fitted(), tmp_path / "team.skops")
    load = f"\nprint(deferlearn.load({str(tmp_path / 'team.skops')!r}).budget)"
    said = run(FIT + load, HOME=None, XDG_CACHE_HOME=None)
    assert said.splitlines() == [picked(), "0.2"]


def test_without_compilation() -> None:
    assert run(FIT, NUMBA_DISABLE_JIT="1").strip() == picked()


@pytest.fixture
def sealed(tmp_path: Path) -> dict[str, str]:
    """An installation that keeps nothing, not even of the superuser, for a user without a folder."""
    package = tmp_path / "installed" / "deferlearn"
    shutil.copytree(
        Path(deferlearn.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__")
    )
    for folder in {path.parent for path in package.rglob("*.py")}:
        (folder / "__pycache__").write_text("no folder")
    nowhere = {"HOME": os.devnull, "XDG_CACHE_HOME": os.devnull, "NUMBA_CACHE_DIR": ""}
    return {"PYTHONPATH": str(package.parent), "PYTHONDONTWRITEBYTECODE": "1", **nowhere}


def test_an_installation_that_is_read_only(sealed: dict[str, str], tmp_path: Path) -> None:
    deferlearn.save(fitted(), tmp_path / "team.skops")
    code = (
        "import deferlearn, deferlearn._utils.compiling as compiling\n"
        "assert not compiling.KEPT\n"
        f"print(deferlearn.load({str(tmp_path / 'team.skops')!r}).predict([[0.0, 0.0]]).shape)\n"
    )
    said = run(code, **sealed)
    assert said.count("RuntimeWarning: Compiled code cannot be kept") == 1
    assert "(1,)" in said


@pytest.mark.slow  # everything is compiled
def test_a_fit_in_an_installation_that_is_read_only(sealed: dict[str, str]) -> None:
    said = run(FIT, timeout=600.0, **sealed)
    assert said.count("RuntimeWarning") == 1
    assert picked() in said


def test_threads_share_a_model() -> None:
    """They ask it, and for its certificate, all at once."""
    alone, shared = few_fitted(), few_fitted()
    expected, certificate = alone.defer(NEW), alone.certify()

    def ask(_: int) -> tuple[np.ndarray, object]:
        return shared.defer(NEW), shared.certify()

    with ThreadPoolExecutor(4) as threads:
        for deferred, certified in threads.map(ask, range(8)):
            np.testing.assert_array_equal(deferred, expected)
            assert certified == certificate


def test_threads_fit_at_once() -> None:
    with ThreadPoolExecutor(4) as threads:
        models = list(threads.map(lambda budget: fitted(budget=budget), [2, 4, 6, 8]))
    for model, budget in zip(models, [2, 4, 6, 8], strict=True):
        alone = fitted(budget=budget)
        np.testing.assert_array_equal(model.deferred_indices_, alone.deferred_indices_)


def refit_in_child(queue: object) -> None:
    queue.put(fitted(n_jobs=2).deferred_indices_.tolist())  # type: ignore[attr-defined]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # Python warns of forks beside threads
def test_a_fork_after_a_fit() -> None:
    before = fitted(n_jobs=2).deferred_indices_.tolist()
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=refit_in_child, args=(queue,))
    child.start()
    try:
        assert queue.get(timeout=50.0) == before
        child.join(10.0)
        assert child.exitcode == 0
    finally:
        child.kill()
        child.join()


def grown_by(n_fits: int) -> float:
    """Megabytes by which the largest size of this process grows during fits."""
    for seed in range(5):
        fitted(random_state=seed)
    gc.collect()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for seed in range(n_fits):
        fitted(random_state=seed)
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return (after - before) / 1024.0


def test_many_fits_do_not_grow() -> None:
    assert grown_by(20) < 10.0


@pytest.mark.slow
def test_two_hundred_fits_do_not_grow() -> None:
    assert grown_by(200) < 10.0
