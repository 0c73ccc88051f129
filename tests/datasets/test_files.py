"""Looking up, downloading and checking files. Nothing here touches the network."""

import hashlib
import io
from http.client import IncompleteRead
from pathlib import Path
from urllib.error import URLError

import pytest

from deferlearn.datasets import _files, get_data_home
from deferlearn.datasets._files import RemoteFile, read_verified

CONTENT = b"what the authors published"
FILE = RemoteFile("some.pkl", hashlib.sha256(CONTENT).hexdigest())


@pytest.fixture
def requests(monkeypatch):
    """The web, answering with what is put into `answer`; a list of what was asked for."""
    asked = []

    def urlopen(url, timeout):
        asked.append(url)
        assert timeout == _files.TIMEOUT
        if isinstance(urlopen.answer, BaseException):
            raise urlopen.answer
        return io.BytesIO(urlopen.answer)

    urlopen.answer = CONTENT
    urlopen.asked = asked
    monkeypatch.setattr(_files, "urlopen", urlopen)
    return urlopen


def test_folder_is_the_argument_then_the_variable_then_the_home(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    monkeypatch.setenv("DEFERLEARN_DATA", "from-variable")
    assert get_data_home("given") == Path("given")
    assert get_data_home("~/given") == tmp_path / "given"
    assert get_data_home() == Path("from-variable")
    monkeypatch.setenv("DEFERLEARN_DATA", "")
    assert get_data_home() == tmp_path / "deferlearn_data"
    monkeypatch.delenv("DEFERLEARN_DATA")
    assert get_data_home() == tmp_path / "deferlearn_data"
    assert not (tmp_path / "deferlearn_data").exists()


def test_local_copy_needs_no_network(requests, tmp_path):
    (tmp_path / FILE.name).write_bytes(CONTENT)
    assert read_verified(FILE, tmp_path, download_if_missing=True) == CONTENT
    assert read_verified(FILE, tmp_path, download_if_missing=False) == CONTENT
    assert requests.asked == []


def test_download_is_kept_for_the_next_time(requests, tmp_path):
    folder = tmp_path / "new" / "folder"
    for _ in range(2):
        assert read_verified(FILE, folder, download_if_missing=True) == CONTENT
    assert requests.asked == [FILE.url]
    assert [path.name for path in folder.iterdir()] == [FILE.name]
    assert (folder / FILE.name).read_bytes() == CONTENT


def test_address_is_pinned_to_a_commit_over_https():
    assert FILE.url.startswith("https://raw.githubusercontent.com/Networks-Learning/")
    assert FILE.url.endswith("/04d9c8b48f33f90895cdc62e1b4d406a7725cb67/data/some.pkl")


@pytest.mark.parametrize("content", [b"", CONTENT[:-1], CONTENT + b"!", b"something else"])
def test_local_copy_with_other_content_is_an_error(requests, tmp_path, content):
    path = tmp_path / FILE.name
    path.write_bytes(content)
    with pytest.raises(ValueError, match="delete it to have it downloaded again") as caught:
        read_verified(FILE, tmp_path, download_if_missing=True)
    for part in (str(path), FILE.sha256, hashlib.sha256(content).hexdigest()):
        assert part in str(caught.value)
    # It may be the user's own file: it is neither replaced nor removed.
    assert path.read_bytes() == content
    assert requests.asked == []


@pytest.mark.parametrize("content", [b"", CONTENT[:-1], b"<html>sign in first</html>"])
def test_wrong_download_is_an_error_and_leaves_nothing(requests, tmp_path, content):
    requests.answer = content
    with pytest.raises(ValueError, match=f"expected sha256 {FILE.sha256}, found"):
        read_verified(FILE, tmp_path / "new", download_if_missing=True)
    assert list(tmp_path.iterdir()) == []


def test_endless_answer_is_cut_off(requests, tmp_path, monkeypatch):
    monkeypatch.setattr(_files, "MAX_BYTES", 100)
    requests.answer = bytes(10_000)
    with pytest.raises(ValueError, match=hashlib.sha256(bytes(101)).hexdigest()):
        read_verified(FILE, tmp_path, download_if_missing=True)


@pytest.mark.parametrize(
    "failure", [URLError("no network"), TimeoutError("too slow"), IncompleteRead(b"half")]
)
def test_offline_without_a_copy_says_what_to_do(requests, tmp_path, failure):
    requests.answer = failure
    with pytest.raises(OSError, match="could not be downloaded") as caught:
        read_verified(FILE, tmp_path / "new", download_if_missing=True)
    for part in (FILE.url, str(tmp_path / "new"), "data_home=", "DEFERLEARN_DATA"):
        assert part in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_interrupted_download_leaves_nothing(requests, tmp_path):
    requests.answer = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        read_verified(FILE, tmp_path / "new", download_if_missing=True)
    assert list(tmp_path.iterdir()) == []


def test_download_can_be_forbidden(requests, tmp_path):
    with pytest.raises(FileNotFoundError, match="download_if_missing is False"):
        read_verified(FILE, tmp_path, download_if_missing=False)
    assert requests.asked == []


def test_failed_write_leaves_nothing_half_written(requests, tmp_path, monkeypatch):
    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr("deferlearn._utils.atomic.os.replace", fail)
    with pytest.raises(OSError, match="disk full"):
        read_verified(FILE, tmp_path, download_if_missing=True)
    assert list(tmp_path.iterdir()) == []


def test_a_file_in_the_place_of_the_folder_is_named(requests, tmp_path):
    place = tmp_path / "data"
    place.write_bytes(b"")
    with pytest.raises(NotADirectoryError, match=r"data is not a folder: data_home= and DEFERL"):
        read_verified(FILE, place, download_if_missing=True)
    assert requests.asked == []
