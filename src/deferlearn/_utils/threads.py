"""One thread for small matrices; several for many independent parts."""

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import AbstractContextManager
from functools import cache
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController

Part = TypeVar("Part")
Result = TypeVar("Result")


@cache
def _controller() -> Any:
    return ThreadpoolController()  # looks for the libraries once, which takes a millisecond


class _OneThread:
    """Many threads may be inside at once: the first sets the limit, the last lifts it."""

    def __init__(self, user_api: str) -> None:
        self._user_api = user_api
        self._lock = threading.Lock()
        self._inside = 0
        self._limiter: Any = None

    def __enter__(self) -> None:
        with self._lock:
            if self._inside == 0:
                self._limiter = _controller().limit(limits=1, user_api=self._user_api)
            self._inside += 1

    def __exit__(self, *exception: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                self._limiter.restore_original_limits()

    def renew_lock(self) -> None:
        """For a child process: a thread that held the lock in the parent is not there to release it."""
        self._lock = threading.Lock()


_one_blas_thread, _one_openmp_thread = _OneThread("blas"), _OneThread("openmp")


def one_blas_thread() -> AbstractContextManager[None]:
    """A context in which BLAS uses one thread, in all of the process.

    Products of matrices with a few hundred rows are done before threads have met, and where
    another process keeps a processor busy, they wait for each other a hundred times longer than the
    work takes.

    Examples
    --------
    >>> import numpy as np
    >>> from deferlearn._utils.threads import one_blas_thread
    >>> with one_blas_thread():
    ...     _ = np.eye(3) @ np.eye(3)
    """
    return _one_blas_thread


def one_openmp_thread() -> AbstractContextManager[None]:
    """A context in which OpenMP uses one thread, in all of the process.

    Gradient boosting meets its threads at every node of every tree. With a few thousand samples they wait
    longer for each other than they work, and where other processes are busy, a hundred times longer.

    Examples
    --------
    >>> from deferlearn._utils.threads import one_openmp_thread
    >>> with one_openmp_thread():
    ...     pass
    """
    return _one_openmp_thread


@cache
def _pool(n_jobs: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(n_jobs, thread_name_prefix="deferlearn")


if hasattr(os, "register_at_fork"):  # threads do not survive a fork: a child makes its own
    os.register_at_fork(after_in_child=_pool.cache_clear)
    os.register_at_fork(after_in_child=_one_blas_thread.renew_lock)
    os.register_at_fork(after_in_child=_one_openmp_thread.renew_lock)


def side_by_side(
    work: Callable[[Part], Result], parts: Sequence[Part], n_jobs: int
) -> list[Result]:
    """The results of the work on each part, in their order, by ``n_jobs`` threads.

    Only work that lets go of the interpreter (compiled, or linear algebra) gains by it; it must not call
    this function itself.

    Examples
    --------
    >>> from deferlearn._utils.threads import side_by_side
    >>> side_by_side(abs, [-1, 2, -3], n_jobs=2)
    [1, 2, 3]
    """
    if n_jobs == 1 or len(parts) < 2:
        return [work(part) for part in parts]
    futures = [_pool(n_jobs).submit(work, part) for part in parts]
    try:
        return [future.result() for future in futures]
    except BaseException:  # an interrupt, too: no thread goes on writing after the caller has left
        for future in futures:
            future.cancel()
        wait(futures)
        raise
