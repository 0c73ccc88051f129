"""Work that goes to a dask cluster comes back the same, from however many workers, dead ones included."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from joblib import parallel_config

from deferlearn import AssistedSVC
from deferlearn._utils.jobs import call_each
from deferlearn.datasets import make_shifted
from deferlearn.experiments import run_jobs
from deferlearn.experiments.jobs import Job
from deferlearn.humans import UniformHuman
from deferlearn.selection import SelectionResult, partitioned_greedy
from deferlearn.teams import AssistedSVCCV

distributed = pytest.importorskip("distributed", reason="distributed is not installed")

X, Y = make_shifted(200, 5, random_state=0)
LOSS = UniformHuman(0.2).losses(Y, random_state=0)
HUMAN = np.where(np.random.RandomState(0).random_sample(len(Y)) < 0.1, -Y, Y)
HERE = os.getpid()


# Seconds within which a worker that was killed must come back, or else the cluster is replaced; and after
# which a test that waits for an answer ends, so that the suite ends also on a busy machine.
PATIENCE, LONGEST = 15.0, 45
# Processes that wait for each core from which on no answer is no sign of a mistake.
BUSY = 2.0


class NoAnswerError(Exception):
    """A test has waited for the cluster as long as it may: no timeout that tests handle themselves."""


class Workers:
    """A cluster of two worker processes, which a nanny starts again when they die."""

    def __init__(self) -> None:
        self._open: ExitStack | None = None
        self._client: Any = None

    def both(self, patience: float = PATIENCE) -> Any:
        """A connection to both; with fewer than two, joblib would not ask the cluster at all."""
        for seconds in (patience, PATIENCE):
            try:
                if self._open is None:
                    self._start()
                self._client.wait_for_workers(2, timeout=seconds)
                return self._client
            except TimeoutError:  # one that was killed did not come back, as on a busy machine
                self.close()
        raise AssertionError("no cluster of two workers could be started")

    def _start(self) -> None:
        self._open = ExitStack()
        # No port that another test run may have: 8787 would be that of a dashboard.
        cluster = distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        )
        self._open.enter_context(cluster)
        self._client = self._open.enter_context(distributed.Client(cluster, timeout=PATIENCE))

    def close(self) -> None:
        """End the workers."""
        if self._open is not None:
            self._open.close()
        self._open = self._client = None


@pytest.fixture(scope="module")
def workers() -> Iterator[Workers]:
    made = Workers()
    yield made
    made.close()


@pytest.fixture
def ends_soon(workers: Workers) -> Iterator[None]:
    """A test that does not wait longer than a minute, with all that its cluster takes to start and end."""
    gave_up = False

    def give_up(*_: Any) -> None:
        nonlocal gave_up
        gave_up = True
        said = f"the cluster gave no answer in {LONGEST} seconds"
        if os.getloadavg()[0] > BUSY * (os.cpu_count() or 1):
            pytest.skip(f"{said}, and this machine is busy")
        raise NoAnswerError(said)

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(LONGEST)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
        if gave_up:
            workers.close()


@pytest.fixture
def both(ends_soon: None, workers: Workers) -> Any:
    """The cluster with all of its workers, for a test that ends."""
    return workers.both()


def test_no_wait_is_longer_than_a_minute(
    ends_soon: None, workers: Workers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor is a busy machine taken for a mistake."""
    assert LONGEST + PATIENCE <= 60.0
    for load, outcome in ((0.0, NoAnswerError), (1e6, pytest.skip.Exception)):
        monkeypatch.setattr(os, "getloadavg", lambda load=load: (load, load, load))
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with pytest.raises(outcome, match="no answer"):
            time.sleep(30.0)


def test_a_worker_that_does_not_come_back_is_replaced(ends_soon: None, workers: Workers) -> None:
    """Nor does any later test wait for it."""
    client = workers.both()
    name, *_ = client.scheduler_info()["workers"]
    client.retire_workers([name])  # its nanny does not start it again
    other = workers.both(patience=2.0)
    assert other is not client
    assert len(other.scheduler_info()["workers"]) == 2


def death_of_one(flag: Path) -> Any:
    """A function that kills the first worker in which it is called, and leaves the others alone.

    Functions within functions are sent by value: workers do not know this file.
    """

    def strike() -> None:
        with suppress(FileExistsError):
            os.close(os.open(flag, os.O_CREAT | os.O_EXCL))
            os.kill(os.getpid(), signal.SIGKILL)

    return strike


def deadly_kernel(flag: Path) -> Any:
    """The linear kernel, which kills the first worker that evaluates it."""
    strike = death_of_one(flag)

    def kernel(A: np.ndarray, B: np.ndarray) -> np.ndarray:
        if os.getpid() != HERE:
            strike()
        return A @ B.T

    return kernel


def select(**options: Any) -> SelectionResult:
    return partitioned_greedy(X, Y, LOSS, 15, 0.3, alpha=0.02, random_state=0, **options)


def assert_same(one: SelectionResult, two: SelectionResult) -> None:
    for mine, other in zip([one, *one.members], [two, *two.members], strict=True):
        assert mine.order.tolist() == other.order.tolist()
        assert mine.gains.tolist() == other.gains.tolist()  # to the last digit
        assert mine.value == other.value


# ------------------------------------------------------------------------------------------- calls


def test_arguments_survive_the_death_of_a_worker(both: Any, tmp_path: Path) -> None:
    """An array among them must not be lost with the worker that had it."""
    flag = tmp_path / "dead"
    strike = death_of_one(flag)

    def work(values: np.ndarray, power: int) -> float:
        strike()
        return float((values**power).sum())

    values = np.arange(1000.0)
    with parallel_config(backend="dask"):
        found = call_each(work, [(values, power) for power in range(4)], n_jobs=None)
    assert flag.exists()
    assert found == [(values**power).sum() for power in range(4)]


# ------------------------------------------------------------------------------- partitioned greedy


@pytest.mark.parametrize("train_on", ["all", "part"])
def test_selection_from_one_worker_and_from_two(both: Any, train_on: str) -> None:
    alone = select(train_on=train_on)
    first, *_ = both.scheduler_info()["workers"]
    for options in ({}, {"workers": [first]}):
        with parallel_config(backend="dask", **options):
            assert_same(select(train_on=train_on), alone)


def test_selection_survives_the_death_of_a_worker(both: Any, tmp_path: Path) -> None:
    flag = tmp_path / "dead"
    kernel = deadly_kernel(flag)
    alone = select(kernel=kernel)
    assert not flag.exists()
    with parallel_config(backend="dask"):
        assert_same(select(kernel=kernel), alone)
    assert flag.exists()


# ------------------------------------------------------------------------------- cross-validation


def test_cross_validation(both: Any) -> None:
    search = AssistedSVCCV(
        0.2, alphas=[0.01, 0.1], policies=["uncertainty", "advantage"], cv=3, random_state=0
    )
    alone = search.fit(X, Y, human_labels=HUMAN)
    scores, deferred = alone.cv_results_["mean_test_score"], alone.defer(X)
    with parallel_config(backend="dask"):
        spread = search.fit(X, Y, human_labels=HUMAN)
    np.testing.assert_array_equal(spread.cv_results_["mean_test_score"], scores)
    np.testing.assert_array_equal(spread.defer(X), deferred)
    done = both.run_on_scheduler(lambda dask_scheduler: dask_scheduler.task_prefixes.keys())
    assert any("batch_of" in name for name in done)


@pytest.mark.slow  # new workers have to import everything
@pytest.mark.parametrize("searching", [False, True])
def test_folds_survive_the_death_of_a_worker(both: Any, searching: bool, tmp_path: Path) -> None:
    """Of one model, whose folds set its threshold, and of the search, whose folds judge all settings."""
    flag = tmp_path / "dead"
    kernel = deadly_kernel(flag)
    model: Any = AssistedSVC(0.2, alpha=0.02, kernel=kernel, cv=3, random_state=0)
    if searching:
        model = AssistedSVCCV(
            0.2, alphas=[0.01, 0.1], policies=["uncertainty"], kernels=[kernel], cv=3,
            random_state=0,
        )  # fmt: skip
    deferred = model.fit(X, Y, human_labels=HUMAN).defer(X)
    assert not flag.exists()
    with parallel_config(backend="dask"):
        spread = model.fit(X, Y, human_labels=HUMAN)
    assert flag.exists()
    np.testing.assert_array_equal(spread.defer(X), deferred)


# ------------------------------------------------------------------------------------ experiments


def jobs(n: int = 6) -> list[Job]:
    return [Job("toy", {"seed": seed}) for seed in range(n)]


def without_seconds(table: pd.DataFrame) -> pd.DataFrame:
    return table.drop(columns=[name for name in table if "seconds" in name])


def drawing() -> Any:
    """Rows of a job, as a function that is sent by value."""

    def draw(parameters: dict[str, Any]) -> list[dict[str, Any]]:
        values = np.random.RandomState(parameters["seed"]).normal(size=2)
        return [{"value": float(value)} for value in values]

    return draw


@pytest.mark.parametrize("deadly", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_jobs(both: Any, deadly: bool, tmp_path: Path) -> None:
    """Also if one of them kills its worker."""
    flag = tmp_path / "dead"
    draw, strike = drawing(), death_of_one(flag)

    def work(parameters: dict[str, Any]) -> list[dict[str, Any]]:
        assert os.getpid() != HERE, "jobs run on the cluster"
        if deadly and parameters["seed"] == 3:
            strike()
        return draw(parameters)

    alone = run_jobs(jobs(), draw, tmp_path / "alone")
    counts: list[int] = []
    with parallel_config(backend="dask"):
        spread = run_jobs(jobs(), work, tmp_path / "spread", on_done=counts.append)
    assert flag.exists() == deadly
    assert counts == [0] + [1] * 6
    pd.testing.assert_frame_equal(without_seconds(spread), without_seconds(alone))
