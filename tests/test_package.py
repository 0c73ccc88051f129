"""The package as a whole: its imports, and files written completely or not at all."""

import os
import re
import subprocess
import sys
import textwrap
from importlib.metadata import version

import pytest

import deferlearn
from deferlearn._utils import atomic as _atomic

# Refuses the optional packages, as if they had never been installed.
BLOCK = """
import sys

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {"matplotlib", "typer", "rich"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Blocker())
"""


def run_without_extras(code):
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", BLOCK + textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_everything_but_the_command_line_imports_without_extras():
    done = run_without_extras("""
        import importlib, pkgutil
        import deferlearn
        for module in pkgutil.walk_packages(deferlearn.__path__, "deferlearn."):
            if not module.name.startswith("deferlearn.cli."):
                importlib.import_module(module.name)
    """)
    assert done.returncode == 0, done.stderr


def test_drawing_without_matplotlib_says_what_to_install():
    done = run_without_extras("""
        import numpy as np
        from deferlearn.plot import SelectionDisplay
        grid = np.zeros((2, 2))
        SelectionDisplay(
            [[0, 0]], y=[1], deferred=[False], loss_before=0, loss_after=0,
            xx=grid, yy=grid, decision_before=grid, decision_after=grid,
        ).plot()
    """)
    assert "drawing needs matplotlib: pip install 'deferlearn[plot]'" in done.stderr


def test_command_line_without_typer_is_one_line():
    done = run_without_extras("from deferlearn.cli import main; main()")
    assert done.returncode == 1
    assert done.stderr.strip().splitlines() == [
        "deferlearn: the command line needs typer: pip install 'deferlearn[cli]'"
    ]


def test_import_is_light():
    done = run_without_extras("""
        import deferlearn
        print([name for name in ("numba", "scipy", "sklearn", "numpy") if name in sys.modules])
    """)
    assert done.stdout.strip() == "[]", done.stderr


def test_version_is_the_installed_one():
    assert re.fullmatch(r"\d+\.\d+\.\d+", deferlearn.__version__)
    assert deferlearn.__version__ == version("deferlearn")


def test_write_replaces_and_leaves_no_other_file(tmp_path):
    path = tmp_path / "a.bin"
    path.write_bytes(b"old")
    _atomic.write_atomically(path, b"new")
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]


# KeyboardInterrupt is no Exception: an impatient user must not leave rubbish behind either.
@pytest.mark.parametrize("failure", [OSError("disk full"), KeyboardInterrupt()])
def test_failed_write_keeps_the_old_file_and_nothing_else(tmp_path, monkeypatch, failure):
    path = tmp_path / "a.bin"
    path.write_bytes(b"old")

    def fail(*_):
        raise failure

    monkeypatch.setattr(_atomic.os, "replace", fail)
    with pytest.raises(type(failure)):
        _atomic.write_atomically(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes here")
def test_a_pipe_is_not_replaced(tmp_path):
    """Nor is a device: whoever writes to it would find a file in its place."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(OSError, match="not a file that could be replaced"):
        _atomic.write_atomically(pipe, b"new")
    assert pipe.is_fifo()
    with pytest.raises(OSError, match="not a file that could be replaced"):
        _atomic.write_atomically(tmp_path, b"new")
    assert list(tmp_path.iterdir()) == [pipe]
