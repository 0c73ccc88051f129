"""Work on several threads, and one thread for BLAS."""

from __future__ import annotations

import threading
import time
from contextlib import ExitStack

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from deferlearn._utils.threads import one_blas_thread, side_by_side


def test_parts_come_back_in_their_order_and_errors_come_through() -> None:
    assert side_by_side(lambda i: i * i, range(100), 3) == [i * i for i in range(100)]
    with pytest.raises(ZeroDivisionError):
        side_by_side(lambda i: 1 // i, range(3), 2)


def test_after_an_error_no_thread_works_any_more() -> None:
    """An interrupt comes to the caller when all parts are at rest: they write into what is kept."""
    working, done = threading.Event(), []

    def work(part: int) -> None:
        if part == 0:
            working.wait(10)
            raise KeyboardInterrupt
        working.set()
        time.sleep(0.2)
        done.append(part)

    with pytest.raises(KeyboardInterrupt):
        side_by_side(work, range(2), 2)
    assert done == [1]


def blas_threads() -> list[int]:
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]


def test_threads_may_limit_blas_at_the_same_time() -> None:
    """In whatever order they leave, the limit holds while one is inside, and is gone after the last."""
    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        first, second = ExitStack(), ExitStack()
        first.enter_context(one_blas_thread())
        second.enter_context(one_blas_thread())
        first.close()
        assert set(blas_threads()) == {1}
        second.close()
        assert blas_threads() == before
