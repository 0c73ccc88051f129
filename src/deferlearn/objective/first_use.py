"""The first use after installation: what nearly every use needs is compiled on two processors at once.

numba compiles one function at a time in a process. So the kernels are compiled by a second process, which
leaves them in numba's cache, while this one compiles the rounds. If anything goes wrong there, this process
compiles what it does not find in the cache.
"""

import gc
import multiprocessing
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from joblib import cpu_count
from numba import config

from deferlearn._utils.compiling import KEPT
from deferlearn.objective.path import FOLLOW
from deferlearn.objective.removal import REMOVE
from deferlearn.objective.rounds import compile_rounds
from deferlearn.objective.tightening import TIGHTEN

# Seconds after which the second process is not waited for any longer.
PATIENCE = 300.0
# No window of its own on Windows.
_QUIET = getattr(subprocess, "CREATE_NO_WINDOW", 0)

_lock = threading.Lock()
_done = False


@contextmanager
def _collecting_nothing() -> Iterator[None]:
    """Collect no garbage: compiling makes millions of objects that stay, and searching them costs time."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


def compile_kernels() -> None:
    """What the second process does."""
    with _collecting_nothing():
        for kernel in (FOLLOW, REMOVE, TIGHTEN):
            _ = kernel.address


def compile_on_first_use() -> None:
    """Put what nearly every use needs into numba's cache, if it is not there yet."""
    global _done
    with _lock:
        if not _done:
            if _helps() and not FOLLOW.is_kept:
                _compile_side_by_side()
            _done = True


def _helps() -> bool:
    """Whether there is a cache, a second processor, and a Python that can be started.

    Worker processes start none: there may be one for each processor already. Where Python is a part of
    another program, ``sys.executable`` can be that program.
    """
    return (
        KEPT
        and not getattr(config, "DISABLE_JIT", False)  # set when numba reads its variables
        and cpu_count() > 1
        and multiprocessing.parent_process() is None
        and not getattr(sys, "frozen", False)
        and Path(sys.executable or "").stem.lower().startswith("python")
    )


def _compile_side_by_side() -> None:
    # Neither the user's script nor the folder where it was started is imported.
    code = f"import sys; sys.path[:] = {sys.path!r}; import {__name__} as first; first.compile_kernels()"
    try:
        other = subprocess.Popen(
            [sys.executable, "-I", "-c", code], stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, creationflags=_QUIET,
        )  # fmt: skip
    except OSError:
        return
    try:
        with _collecting_nothing():
            compile_rounds()
        other.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        pass
    finally:
        other.kill()
        other.wait()
