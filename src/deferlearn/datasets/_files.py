"""Find a data file on this computer or download it, and trust it only by its checksum."""

import hashlib
import os
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from urllib.request import urlopen

from deferlearn._utils.atomic import write_atomically
from deferlearn._utils.checks import check_flag

Folder = str | os.PathLike[str] | None

DATA_VARIABLE = "DEFERLEARN_DATA"
# Names a folder for the authors' result files, where they are not in the data folder.
RESULTS_VARIABLE = "DEFERLEARN_RESULTS"

# A commit, not a branch, so that the files can never change.
BASE_URL = (
    "https://raw.githubusercontent.com/Networks-Learning/classification-under-assistance/"
    "04d9c8b48f33f90895cdc62e1b4d406a7725cb67/"
)

# Seconds without a byte after which a download is given up.
TIMEOUT = 30.0

# The largest file has half a megabyte: a larger download is not one of these files.
MAX_BYTES = 8_000_000


class DamagedFileError(OSError, ValueError):
    """A data file that is not the one it should be; commands report it like one that cannot be read."""


@dataclass(frozen=True)
class RemoteFile:
    """A file of the authors' repository, and what its content must be."""

    name: str
    sha256: str
    place: str = "data"  # its folder in the repository
    variable: str = DATA_VARIABLE  # names a folder that holds it

    @property
    def url(self) -> str:
        """Where it is downloaded from."""
        return f"{BASE_URL}{self.place}/{self.name}"


def get_data_home(data_home: Folder = None) -> Path:
    """Folder in which data files are looked for, and into which they are downloaded.

    It is `data_home` when given, otherwise the folder named by the environment variable
    ``DEFERLEARN_DATA``, otherwise ``deferlearn_data`` in the user's home folder.

    Parameters
    ----------
    data_home : path-like or None, default=None
        A folder of the caller's choice; ``~`` is the home folder.

    Returns
    -------
    folder : Path
        It need not exist: a successful download makes it.

    Examples
    --------
    >>> from deferlearn.datasets import get_data_home
    >>> get_data_home("my/data").parts[-2:]
    ('my', 'data')
    """
    if data_home is None:
        # An empty variable is how many shells unset one.
        data_home = os.environ.get(DATA_VARIABLE) or Path("~") / "deferlearn_data"
    return Path(data_home).expanduser()


def get_results_home(data_home: Folder = None) -> Path:
    """Folder of the authors' result files: that of the data, unless a variable names another."""
    named = os.environ.get(RESULTS_VARIABLE)
    return Path(named).expanduser() if data_home is None and named else get_data_home(data_home)


def read_verified(file: RemoteFile, folder: Path, *, download_if_missing: bool) -> bytes:
    """Content of a data file, from `folder` or else from the authors' repository.

    The bytes that are returned are those that were checked, so a file that changes in between
    does no harm. A failed download leaves nothing behind, not even the folder.
    """
    check_flag("download_if_missing", download_if_missing)
    path = folder / file.name
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        if not download_if_missing:
            raise FileNotFoundError(
                f"there is no file {file.name} in {folder}, and download_if_missing is False: "
                f"{_advice(file)}"
            ) from None
    except NotADirectoryError:
        raise NotADirectoryError(
            f"{folder} is not a folder: data_home= and {file.variable} name folders"
        ) from None
    else:
        _check_sha256(file, content, str(path), "delete it to have it downloaded again")
        return content

    content = _download(file, folder)
    _check_sha256(file, content, file.url, "nothing was stored; try again later")
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(path, content)
    return content


def _download(file: RemoteFile, folder: Path) -> bytes:
    try:
        with urlopen(file.url, timeout=TIMEOUT) as answer:
            content: bytes = answer.read(MAX_BYTES + 1)
    # A broken connection shows as OSError (URLError, timeouts) or as http.client's HTTPException.
    except (OSError, HTTPException) as error:
        raise OSError(
            f"{file.name} is not in {folder} and could not be downloaded from {file.url} "
            f"({error}): {_advice(file)}"
        ) from error
    return content


def _advice(file: RemoteFile) -> str:
    return (
        f"put {file.name} there, or name a folder that holds it by data_home= "
        f"or the environment variable {file.variable}"
    )


def _check_sha256(file: RemoteFile, content: bytes, origin: str, remedy: str) -> None:
    found = hashlib.sha256(content).hexdigest()
    if found != file.sha256:
        raise DamagedFileError(
            f"{origin} is not the file it should be: expected sha256 {file.sha256}, "
            f"found {found}; {remedy}"
        )
