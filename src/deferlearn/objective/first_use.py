"""The first use after installation: what nearly every use needs is compiled on two processors at once.

numba compiles one function at a time in a process. So the kernels are compiled by a second process, which
leaves them in numba's cache, while this one compiles the rounds. If anything goes wrong there, this process
compiles what it does not find in the cache.
"""

import gc
import multiprocessing
import os
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

# The folder of the package, and the process that imported it first: not a copy made by os.fork.
_OWN_FOLDER = str(Path(os.path.abspath(__file__)).parents[2])
_ORIGINAL = os.getpid()

_lock = threading.Lock()
_done = False


def _renew_lock() -> None:
    global _lock
    _lock = threading.Lock()


if sys.platform != "win32":
    # A copy of this process has none of the other threads, so nobody would ever release a lock held there.
    os.register_at_fork(after_in_child=_renew_lock)


@contextmanager
def _collecting_nothing() -> Iterator[None]:
    """Collect no garbage: compiling makes millions of objects that stay, and searching them costs time.

    Only in the main thread: another one would switch it off for a program that goes on meanwhile.
    """
    off = gc.isenabled() and threading.current_thread() is threading.main_thread()
    if off:
        gc.disable()
    try:
        yield
    finally:
        if off:
            gc.enable()


def compile_kernels() -> None:
    """What the second process does."""
    with _collecting_nothing():
        for kernel in (FOLLOW, REMOVE, TIGHTEN):
            _ = kernel.address


def compile_on_first_use() -> None:
    """Put what nearly every use needs into numba's cache, if it is not there yet."""
    global _done
    if _done:
        return
    with _lock:
        if not _done:
            if _helps() and not _is_kept():
                _compile_side_by_side()
            _done = True


def _is_kept() -> bool:
    try:
        return FOLLOW.is_kept
    except Exception:  # it asks numba's insides, which may change, and only to save time
        return True


def _helps() -> bool:
    """Whether there is a cache, a second processor, and a Python that can be started.

    Worker processes start none: there may be one for each processor already. Where Python is a part of
    another program, ``sys.executable`` can be that program.
    """
    return (
        KEPT
        and os.environ.get("DEFERLEARN_COMPILE_ALONE") != "1"
        and not getattr(config, "DISABLE_JIT", False)  # set when numba reads its variables
        and cpu_count() > 1
        and multiprocessing.parent_process() is None
        and os.getpid() == _ORIGINAL
        and not getattr(sys, "frozen", False)
        and Path(sys.executable or "").stem.lower().startswith("python")
    )


def _command(work: str) -> list[str]:
    """Start Python with this module as `first`. It imports nothing from the folder where the user is."""
    folders = [path for path in sys.path if isinstance(path, str) and os.path.isabs(path)]
    if _OWN_FOLDER not in folders:
        folders.append(_OWN_FOLDER)
    code = f"import sys; sys.path[:] = {folders!a}; import {__name__} as first; {work}"
    flags = ["-I", "-B"] if sys.dont_write_bytecode else ["-I"]
    return [sys.executable, *flags, "-c", code]


def _environment() -> dict[str, str]:
    """That of this process, with the folder for what is compiled, which a program can also set in numba."""
    folder = getattr(config, "CACHE_DIR", None)  # set when numba reads its variables
    return os.environ | {"NUMBA_CACHE_DIR": str(folder)} if folder else dict(os.environ)


def _compile_side_by_side() -> None:
    try:
        other = subprocess.Popen(
            _command("first.compile_kernels()"), env=_environment(), stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, creationflags=_QUIET,
        )  # fmt: skip
    except (OSError, ValueError):  # such as a character that no command can have
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
