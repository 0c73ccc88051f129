"""Files are written completely or not at all."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from deferlearn._utils import atomic


def test_write_replaces_and_leaves_no_other_file(tmp_path):
    path = tmp_path / "a.bin"
    path.write_bytes(b"old")
    atomic.write_atomically(path, b"new")
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]


# KeyboardInterrupt is no Exception: an impatient user must not leave rubbish behind either.
@pytest.mark.parametrize("failure", [OSError("disk full"), KeyboardInterrupt()])
def test_failed_write_keeps_the_old_file_and_nothing_else(tmp_path, monkeypatch, failure):
    path = tmp_path / "a.bin"
    path.write_bytes(b"old")

    def fail(*_):
        raise failure

    monkeypatch.setattr(atomic.os, "replace", fail)
    with pytest.raises(type(failure)):
        atomic.write_atomically(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes here")
def test_a_pipe_is_not_replaced(tmp_path):
    """Nor is a device: whoever writes to it would find a file in its place."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(OSError, match="not a file that could be replaced"):
        atomic.write_atomically(pipe, b"new")
    assert pipe.is_fifo()
    with pytest.raises(OSError, match="not a file that could be replaced"):
        atomic.write_atomically(tmp_path, b"new")
    assert list(tmp_path.iterdir()) == [pipe]


@pytest.mark.skipif(os.name == "nt", reason="permissions are others there")
@pytest.mark.parametrize("mode", [0o600, 0o640])
def test_a_file_that_is_replaced_keeps_its_permissions(tmp_path, mode):
    path = tmp_path / "a.bin"
    path.write_bytes(b"old")
    path.chmod(mode)
    atomic.write_atomically(path, b"new")
    assert path.stat().st_mode & 0o777 == mode


@pytest.mark.skipif(os.name == "nt", reason="permissions are others there")
def test_nobody_reads_a_secret_before_it_is_complete(tmp_path):
    path = tmp_path / "a.bin"
    path.write_bytes(b"old")
    path.chmod(0o600)
    partial, file = atomic.open_partial(path)
    assert partial.stat().st_mode & 0o777 == 0o600
    file.close()


WRITER = """
import os, signal, sys
from pathlib import Path
from deferlearn._utils.atomic import open_partial
partial, file = open_partial(Path(sys.argv[1]))
file.write(b"half")
file.flush()
print(partial, flush=True)
sys.stdin.read()
"""


@pytest.mark.skipif(os.name == "nt", reason="files cannot be locked there")
def test_what_a_killed_process_left_is_removed(tmp_path, monkeypatch):
    """But not what another process is writing, or has just begun to write."""
    path = tmp_path / "a.bin"
    other = tmp_path / ".b.bin.0123.partial"
    other.write_bytes(b"of another file")
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        for _ in range(2)
    ]
    dead, alive = (Path(writer.stdout.readline().decode().strip()) for writer in writers)
    writers[0].kill()
    writers[0].communicate()
    atomic.write_atomically(path, b"new")
    assert dead.exists()  # it may be about to be locked
    monkeypatch.setattr(atomic, "LEFT_SECONDS", 0.0)
    atomic.write_atomically(path, b"new")
    assert not dead.exists()
    assert alive.exists()
    assert other.exists()
    writers[1].communicate(b"")


@pytest.mark.skipif(not hasattr(os, "symlink"), reason="no links here")
def test_a_link_to_itself_is_an_error(tmp_path):
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    with pytest.raises(OSError, match="loop"):
        atomic.write_atomically(loop, b"new")
    assert list(tmp_path.iterdir()) == [loop]
