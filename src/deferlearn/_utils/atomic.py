"""Write a file completely or not at all."""

import errno
import os
import uuid
from pathlib import Path


def write_atomically(path: str | os.PathLike[str], content: bytes) -> None:
    """Put `content` into the file `path`, so that no reader ever sees half of it.

    Parameters
    ----------
    path : path-like
        The file to write; an existing one is replaced. Its folder must exist.
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
    # In the same folder, because a rename is atomic only within one file system. Opened by us
    # rather than by `tempfile`, whose files only their owner may read: the umask should decide.
    partial = path.with_name(f".{path.name}.{uuid.uuid4().hex}.partial")
    try:
        with open(partial, "xb") as file:
            file.write(content)
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)
