"""The first use after installation: compiled by two processes, and by this one alone if need be."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba import config, typeof

from deferlearn.objective import SVMObjective, first_use, rounds, stage
from deferlearn.selection import distorted_greedy

FIT = """
import numpy as np
from deferlearn.objective import SVMObjective
from deferlearn.objective.path import FOLLOW
from deferlearn.objective.rounds import advance
from deferlearn.objective.tightening import TIGHTEN
assert not FOLLOW.is_kept
objective = SVMObjective([[0.0], [1.0], [2.0]], [-1, 1, 1])
assert FOLLOW.is_kept and TIGHTEN.is_kept and len(advance.signatures) == 1
print(objective.gain(0))
"""


class Other:
    """In the place of the second process."""

    def __init__(self, *_: Any, **__: Any) -> None:
        self.told: list[str] = []
        started.append(self)

    def wait(self, timeout: float | None = None) -> int:
        self.told.append("wait")
        return 0

    def kill(self) -> None:
        self.told.append("kill")


started: list[Other] = []


@pytest.fixture
def cold(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """As if nothing had been compiled, with nothing to compile."""
    started.clear()
    monkeypatch.setattr(first_use, "_done", False)
    monkeypatch.setattr(first_use, "_helps", lambda: True)
    monkeypatch.setattr(type(first_use.FOLLOW), "is_kept", False)
    monkeypatch.setattr(first_use, "compile_rounds", lambda: None)
    monkeypatch.setattr(subprocess, "Popen", Other)
    return monkeypatch


def test_one_other_process_is_started_and_none_is_left(cold: pytest.MonkeyPatch) -> None:
    first_use.compile_on_first_use()
    first_use.compile_on_first_use()
    assert [other.told for other in started] == [["wait", "kill", "wait"]]


def test_an_interrupt_ends_the_other_process_too(cold: pytest.MonkeyPatch) -> None:
    def stop() -> None:
        assert not gc.isenabled()
        raise KeyboardInterrupt

    cold.setattr(first_use, "compile_rounds", stop)
    with pytest.raises(KeyboardInterrupt):
        first_use.compile_on_first_use()
    assert [other.told for other in started] == [["kill", "wait"]]
    assert gc.isenabled()


def test_an_other_process_that_hangs_is_not_waited_for(cold: pytest.MonkeyPatch) -> None:
    class Hanging(Other):
        def wait(self, timeout: float | None = None) -> int:
            if timeout is not None:
                raise subprocess.TimeoutExpired("python", timeout)
            return super().wait()

    cold.setattr(subprocess, "Popen", Hanging)
    first_use.compile_on_first_use()
    assert [other.told for other in started] == [["kill", "wait"]]


@pytest.mark.parametrize("error", [PermissionError, ValueError])
def test_no_other_process_can_be_started(cold: pytest.MonkeyPatch, error: type[Exception]) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise error

    cold.setattr(subprocess, "Popen", refuse)
    first_use.compile_on_first_use()


def test_another_numba_that_does_not_say_what_is_kept(cold: pytest.MonkeyPatch) -> None:
    def refuse(_: Any) -> bool:
        raise AttributeError("no such cache")

    cold.setattr(type(first_use.FOLLOW), "is_kept", property(refuse))
    first_use.compile_on_first_use()
    assert not started


def test_another_thread_leaves_the_collection_of_garbage_alone(cold: pytest.MonkeyPatch) -> None:
    seen: list[bool] = []
    cold.setattr(first_use, "compile_rounds", lambda: seen.append(gc.isenabled()))
    thread = threading.Thread(target=first_use.compile_on_first_use)
    thread.start()
    thread.join()
    assert seen == [True]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no fork")
def test_a_copy_of_the_process_waits_for_no_lock_and_starts_no_process() -> None:
    code = (
        "import os\n"
        "from deferlearn.objective import first_use\n"
        "first_use.cpu_count = lambda: 2\n"
        "assert first_use._helps()\n"
        "with first_use._lock:\n"
        "    child = os.fork()\n"
        "    if not child:\n"
        "        os._exit(first_use._lock.locked() + 2 * first_use._helps())\n"
        "    assert os.waitpid(child, 0)[1] == 0\n"
        "    assert first_use._lock.locked()\n"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert said.returncode == 0, said.stderr


def test_the_other_process_imports_nothing_from_where_the_user_is(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "relative"
    elsewhere.mkdir()
    for folder in (tmp_path, elsewhere):
        (folder / "scipy.py").write_text("raise SystemExit('not this one')")
    monkeypatch.chdir(tmp_path)
    own = first_use._OWN_FOLDER
    paths: list[Any] = ["", "relative", None, Path("relative"), *sys.path]
    without = [path for path in paths if not Path(path or "", "deferlearn").exists()]
    monkeypatch.setattr(sys, "path", without)
    command = first_use._command("import scipy; print(first.__file__)")
    said = subprocess.run(command, capture_output=True, text=True)
    assert said.returncode == 0, said.stderr
    assert Path(said.stdout.strip()) == Path(own) / "deferlearn" / "objective" / "first_use.py"


def test_the_other_process_writes_where_this_one_would(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(config, "CACHE_DIR", "set by a program")
    assert first_use._environment()["NUMBA_CACHE_DIR"] == "set by a program"
    for forbidden in (True, False):
        monkeypatch.setattr(sys, "dont_write_bytecode", forbidden)
        assert ("-B" in first_use._command("")) == forbidden


@pytest.mark.parametrize(
    ("where", "name", "value"),
    [
        ("deferlearn.objective.first_use", "KEPT", False),
        ("deferlearn.objective.first_use", "cpu_count", lambda: 1),
        ("multiprocessing", "parent_process", lambda: object()),
        ("os", "getpid", lambda: -1),
        ("os", "environ", {"DEFERLEARN_COMPILE_ALONE": "1"}),
        ("sys", "frozen", True),
        ("sys", "executable", "/opt/blender/blender"),
        ("sys", "executable", None),
        ("numba.config", "DISABLE_JIT", 1),
    ],
)
def test_where_it_would_not_help(
    monkeypatch: pytest.MonkeyPatch, where: str, name: str, value: Any
) -> None:
    monkeypatch.setattr(first_use, "cpu_count", lambda: 2)
    assert first_use._helps()
    monkeypatch.setattr(f"{where}.{name}", value, raising=False)
    assert not first_use._helps()


def test_the_rounds_are_compiled_for_what_they_are_called_with(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told: list[Any] = []
    called: list[Any] = []
    advance = stage.advance

    class Spy:
        def compile(self, types: Any) -> None:
            told.append(types)

    def call(*arguments: Any) -> Any:
        called.append(tuple(map(typeof, arguments)))
        return advance(*arguments)

    monkeypatch.setattr(first_use, "_done", True)
    monkeypatch.setattr(rounds, "advance", Spy())
    monkeypatch.setattr(stage, "advance", call)
    rounds.compile_rounds()
    luck = np.random.default_rng(0)
    X = luck.normal(size=(80, 3))
    y = np.where(X[:, 0] + luck.normal(size=80) > 0, 1, -1)
    for kernel in ("linear", "rbf"):
        objective = SVMObjective(X, y, alpha=0.1, kernel=kernel)
        assert len(distorted_greedy(objective, luck.random(80), 5, 0.01).order) == 5
    assert called
    assert set(called) == set(told)


@pytest.mark.slow
def test_with_an_empty_cache(tmp_path: Path) -> None:
    """From a folder with modules that would be in the way, as a script without a main guard."""
    (tmp_path / "numba.py").write_text("raise SystemExit('not this one')")
    script = tmp_path / "elsewhere" / "script.py"
    script.parent.mkdir()
    script.write_text(FIT)
    said = subprocess.run(
        [sys.executable, str(script)], cwd=tmp_path, capture_output=True, text=True,
        env=os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache")},
    )  # fmt: skip
    assert said.returncode == 0, said.stderr
    assert float(said.stdout) == SVMObjective([[0.0], [1.0], [2.0]], [-1, 1, 1]).gain(0)
