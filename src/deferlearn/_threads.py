"""One thread for small matrices."""

from __future__ import annotations

from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController


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
