"""The runner: nothing is lost, nothing is repeated, whatever happens to the process."""

import json
import multiprocessing
import os
import signal
import time

import numpy as np
import pandas as pd
import pytest

from deferlearn.experiments import Config, JobError, fig1, run_jobs
from deferlearn.experiments.jobs import Job
from deferlearn.experiments.store import PartStore, write_table

N_JOBS = 100
PAUSE = 0.01


def jobs(n=N_JOBS):
    return [Job("toy", {"seed": seed}) for seed in range(n)]


def work(parameters):
    """Rows that need a moment, some of them with digits that must survive."""
    time.sleep(PAUSE)
    draw = np.random.RandomState(parameters["seed"]).normal(size=3)
    return [{"row": k, "value": float(x), "missing": None} for k, x in enumerate(draw)]


def without_seconds(table):
    return table.drop(columns=[name for name in table.columns if "seconds" in name])


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    return run_jobs(jobs(), work, tmp_path_factory.mktemp("whole"))


def test_one_flat_row_a_run(uninterrupted):
    assert len(uninterrupted) == 3 * N_JOBS
    first = uninterrupted.iloc[0]
    assert (first["experiment"], first["seed"], first["row"]) == ("toy", 0, 0)
    assert first["value"] == np.random.RandomState(0).normal()  # to the last digit
    assert first["version_numpy"] == np.__version__
    assert first["job_seconds"] >= PAUSE
    assert all(np.ndim(value) == 0 for value in first)


def test_killed_at_ten_random_moments(tmp_path, uninterrupted):
    """SIGKILL leaves no time to tidy up. What was finished is not computed again."""
    context = multiprocessing.get_context("fork")
    rng = np.random.RandomState(0)
    ready = set()
    for _ in range(10):
        child = context.Process(target=run_jobs, args=(jobs(), work, tmp_path))
        child.start()
        # By what is done rather than by the clock: a busy machine must not make it always too early.
        wanted = len(ready) + rng.randint(5)
        while len(list(tmp_path.glob("toy-*.json"))) < wanted:
            time.sleep(PAUSE / 10)
        time.sleep(rng.uniform(0.0, 2 * PAUSE))
        os.kill(child.pid, signal.SIGKILL)
        child.join()
        assert child.exitcode == -signal.SIGKILL
        now = {path.name: path.stat().st_mtime_ns for path in tmp_path.glob("toy-*.json")}
        assert ready <= set(now.items())  # neither lost nor written anew
        ready = set(now.items())
    assert 0 < len(ready) < N_JOBS  # it was killed in the middle indeed
    counts = []
    table = run_jobs(jobs(), work, tmp_path, on_done=counts.append)
    assert counts == [len(ready)] + [1] * (N_JOBS - len(ready))
    pd.testing.assert_frame_equal(without_seconds(table), without_seconds(uninterrupted))


def test_half_written_and_damaged_files_are_computed_again(tmp_path, uninterrupted):
    run_jobs(jobs(4), work, tmp_path)
    store = PartStore(tmp_path)
    store.path(jobs()[0]).write_bytes(b"")
    store.path(jobs()[1]).write_text('[{"row": 0, "va')
    store.path(jobs()[2]).write_text('{"row": 0}')
    left = tmp_path / f".{jobs()[3].key}.json.abc.partial"
    left.write_text("[")
    os.utime(left, (0, 0))
    counts = []
    table = run_jobs(jobs(4), work, tmp_path, on_done=counts.append)
    assert counts == [1, 1, 1, 1]
    assert not left.exists()
    pd.testing.assert_frame_equal(without_seconds(table), without_seconds(uninterrupted[:12]))


def test_a_failure_names_the_job_and_keeps_the_others(tmp_path):
    def fails(parameters):
        if parameters["seed"] == 2:
            raise ZeroDivisionError("no luck")
        return work(parameters)

    with pytest.raises(
        JobError, match=r"toy failed with \{'seed': 2\}: ZeroDivisionError: no luck"
    ):
        run_jobs(jobs(3), fails, tmp_path)
    assert [PartStore(tmp_path).has(job) for job in jobs(3)] == [True, True, False]


def test_a_worker_that_is_killed(tmp_path):
    def dies(parameters):
        os.kill(os.getpid(), signal.SIGKILL)

    with pytest.raises(
        JobError, match=r"ran jobs of toy broke: .*unexpectedly terminated"
    ) as caught:
        run_jobs(jobs(2), dies, tmp_path, n_jobs=2)
    assert "\n" not in str(caught.value)
    assert not any(PartStore(tmp_path).has(job) for job in jobs(2))


def test_other_parameters_are_another_job():
    keys = {
        Job(name, {"seed": seed, "share": share}).key
        for name in ("a", "b")
        for seed in (0, 1)
        for share in (0.1, 0.2)
    }
    assert len(keys) == 8
    assert Job("a", {"x": 1, "y": 2}).key == Job("a", {"y": 2, "x": 1}).key


def test_side_by_side_as_one_by_one(tmp_path):
    todo = fig1.jobs(Config.preset(splits=3))
    one = run_jobs(todo, fig1.work, tmp_path / "one")
    two = run_jobs(todo, fig1.work, tmp_path / "two", n_jobs=2)
    pd.testing.assert_frame_equal(without_seconds(one), without_seconds(two))


def test_tables_survive_parquet(tmp_path, uninterrupted):
    write_table(tmp_path / "t.parquet", uninterrupted)
    back = pd.read_parquet(tmp_path / "t.parquet")
    assert list(back.columns) == list(uninterrupted.columns)
    np.testing.assert_array_equal(back["value"], uninterrupted["value"])
    assert [path.name for path in tmp_path.iterdir()] == ["t.parquet"]


def test_parts_are_plain_json(tmp_path):
    run_jobs(jobs(1), work, tmp_path)
    (path,) = tmp_path.iterdir()
    assert [row["row"] for row in json.loads(path.read_text())] == [0, 1, 2]
