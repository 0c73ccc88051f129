"""One thread for small matrices; several for many independent parts."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController

Part = TypeVar("Part")
Result = TypeVar("Result")


@cache
def _controller() -> Any:
    return ThreadpoolController()  # looks for the libraries once, which takes a millisecond


def one_blas_thread() -> Any:
    """A context in which BLAS uses one thread.

    Products of matrices with a few hundred rows are done before threads have met, and where
    another process keeps a processor busy, they wait for each other a hundred times longer than the
    work takes.

    Examples
    --------
    >>> import numpy as np
    >>> from deferlearn._threads import one_blas_thread
    >>> with one_blas_thread():
    ...     _ = np.eye(3) @ np.eye(3)
    """
    return _controller().limit(limits=1, user_api="blas")


@cache
def _pool(n_jobs: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(n_jobs, thread_name_prefix="deferlearn")


if hasattr(os, "register_at_fork"):  # threads do not survive a fork: a child makes its own
    os.register_at_fork(after_in_child=_pool.cache_clear)


def side_by_side(
    work: Callable[[Part], Result], parts: Sequence[Part], n_jobs: int
) -> list[Result]:
    """What the work makes of each part, in their order, by so many threads.

    Only work that lets go of the interpreter (compiled, or linear algebra) gains by it; it must not call
    this function itself.

    Examples
    --------
    >>> from deferlearn._threads import side_by_side
    >>> side_by_side(abs, [-1, 2, -3], n_jobs=2)
    [1, 2, 3]
    """
    if n_jobs == 1 or len(parts) < 2:
        return [work(part) for part in parts]
    return list(_pool(n_jobs).map(work, parts))
