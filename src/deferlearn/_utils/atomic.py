"""Write a file completely or not at all."""

import errno
import os
import sys
import time
import uuid
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

if sys.platform != "win32":
    import fcntl

# What a killed process left is removed by the next one that writes the same file, once it is this old: a
# file that has just been opened may not be locked yet.
LEFT_SECONDS = 60.0


def write_atomically(path: str | os.PathLike[str], content: bytes) -> None:
    """Put `content` into the file `path`, so that no reader ever sees half of it.

    Parameters
    ----------
    path : path-like
        The file to write; an existing one is replaced, and keeps its permissions. Its folder must exist.
    content : bytes
        All of the file.

    Raises
    ------
    OSError
        If it cannot be written, or is a device, a pipe or a folder, which a rename would replace.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_atomically(Path(folder) / "a.txt", b"all of it")
    ...     [(p.name, p.read_bytes()) for p in Path(folder).iterdir()]
    [('a.txt', b'all of it')]
    """
    path = Path(path)
    if path.exists() and not path.is_file():
        raise OSError(errno.EINVAL, "not a file that could be replaced", str(path))
    partial, file = open_partial(path)
    try:
        with file:
            file.write(content)
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def open_partial(path: Path) -> tuple[Path, BinaryIO]:
    """Open a file next to `path` that can be renamed to it when it is complete.

    It has the permissions of the file that it will replace. What killed processes left of the same file is
    removed.

    Parameters
    ----------
    path : Path
        The file to be written.

    Returns
    -------
    partial : Path
        Where it is until then: in the same folder, because a rename is atomic only within one file system.
    file : binary file
        It is open for writing.

    Raises
    ------
    OSError
        If the file cannot be written, or is a link that leads nowhere but to itself.
    """
    _remove_what_was_left(path)
    try:
        mode: int | None = path.stat().st_mode & 0o7777
    except FileNotFoundError:
        mode = None
    partial = path.with_name(f".{path.name}.{uuid.uuid4().hex}.partial")
    # Opened by us rather than by `tempfile`, whose files only their owner may read: the umask should
    # decide. A file that replaces another one is nobody else's before it has the other's permissions.
    descriptor = os.open(
        partial,
        os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0),
        0o666 if mode is None else 0o600,
    )
    file = os.fdopen(descriptor, "wb")
    try:
        if mode is not None and hasattr(os, "fchmod"):
            os.fchmod(descriptor, mode)
        _lock(descriptor)
    except BaseException:
        file.close()
        partial.unlink(missing_ok=True)
        raise
    return partial, file


def _remove_what_was_left(path: Path) -> None:
    """Remove partial files of the same name whose writers were killed."""
    with suppress(OSError):
        for left in path.parent.iterdir():
            if left.name.startswith(f".{path.name}.") and left.name.endswith(".partial"):
                with suppress(OSError):
                    _remove_if_unused(left)


def _remove_if_unused(left: Path) -> None:
    if time.time() - left.lstat().st_mtime < LEFT_SECONDS or left.is_symlink():
        return
    descriptor = os.open(left, os.O_RDONLY)
    try:
        if _lock(descriptor):
            left.unlink()
    finally:
        os.close(descriptor)


def _lock(descriptor: int) -> bool:
    """Hold an open file as long as this process lives; False if another process does, or nobody can."""
    if sys.platform == "win32":
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
