"""Runs jobs in parallel, keeps finished ones, and continues where a killed run stopped."""

import os
from collections.abc import Callable, Sequence
from concurrent.futures.process import BrokenProcessPool
from typing import Any

import pandas as pd
from joblib import Parallel, delayed

from deferlearn.experiments.jobs import Job, Work
from deferlearn.experiments.store import PartStore


class JobError(RuntimeError):
    """A job failed; the message says which job, and why."""


def run_jobs(
    jobs: Sequence[Job],
    work: Work,
    folder: str | os.PathLike[str],
    *,
    n_jobs: int = 1,
    on_done: Callable[[int], Any] | None = None,
) -> pd.DataFrame:
    """Compute the rows of all jobs that have none yet, and return all rows.

    The rows of a job are written by the process that computed them, in one step, as soon as they are
    ready. However this process ends, finished jobs stay finished, and the next call does the rest: the
    table is the same, except for the seconds.

    Parameters
    ----------
    jobs : sequence of Job
        The jobs; the table is in their order.
    work : callable
        Takes the parameters of a job and returns its rows; a function of a module, so that other
        processes find it.
    folder : path-like
        Folder in which rows are kept.
    n_jobs : int, default=1
        Number of jobs that run at a time, as in joblib. Within
        ``joblib.parallel_config(backend="dask")`` the jobs go to a dask cluster instead, whose workers
        must see the folder.
    on_done : callable, default=None
        Called with the number of jobs that have just become ready: first with the number that was ready
        at the start, then with 1 for each job.

    Returns
    -------
    table : DataFrame
        One row per run.

    Raises
    ------
    JobError
        If a job failed or its process was killed; jobs that were finished before are kept.

    Examples
    --------
    >>> import tempfile
    >>> from deferlearn.experiments.jobs import Job
    >>> from deferlearn.experiments.runner import run_jobs
    >>> def work(parameters):
    ...     return [{"square": parameters["x"] ** 2}]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     table = run_jobs([Job("toy", {"x": x}) for x in (1, 2, 3)], work, folder)
    >>> table["square"].tolist()
    [1, 4, 9]
    """
    store = PartStore(folder)
    store.clean()
    report = on_done or (lambda _: None)
    todo = [job for job in jobs if not store.has(job)]
    report(len(jobs) - len(todo))
    if todo:
        parallel = Parallel(
            n_jobs=min(n_jobs, len(todo)) if n_jobs > 0 else n_jobs,
            return_as="generator_unordered",
            batch_size=1,
        )
        try:
            for _ in parallel(delayed(_run_and_keep)(job, work, store) for job in todo):
                report(1)
        except BrokenProcessPool as error:
            # It was killed, perhaps for lack of memory; the first line of the message says so.
            why = str(error).partition("\n")[0]
            raise JobError(
                f"a process that ran jobs of {todo[0].experiment} broke: {why}"
            ) from error
    return store.table(jobs)


def _run_and_keep(job: Job, work: Work, store: PartStore) -> None:
    try:
        rows = job.run(work)
    except Exception as error:
        raise JobError(
            f"{job.experiment} failed with {job.parameters}: {type(error).__name__}: {error}"
        ) from error
    store.write(job, rows)
