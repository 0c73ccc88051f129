"""Files are written completely or not at all."""

import os

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
