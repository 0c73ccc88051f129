"""Kernels: compiled when they are first asked for, and once; called by compiled functions."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from numba import njit

from deferlearn._utils import compiling
from deferlearn._utils.compiling import Kernel
from deferlearn.objective.path import FOLLOW
from deferlearn.objective.tightening import TIGHTEN


def double(numbers, factor):
    total = 0.0
    for i in range(len(numbers)):
        numbers[i] *= factor
        total += numbers[i]
    return total


def test_it_is_compiled_once_and_when_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    compile_ = compiling.cfunc

    def spy(signature: Any, **options: Any) -> Any:
        made.append(str(signature))
        return compile_(signature, **{**options, "cache": False})

    monkeypatch.setattr(compiling, "cfunc", spy)
    examples: list[int] = []

    def example() -> tuple[Any, Any]:
        examples.append(1)
        return (np.zeros(1), 0.0), 0.0

    kernel = Kernel(double, example)
    assert (made, examples) == ([], [])
    first = kernel.address
    assert kernel.address is first
    assert (len(made), len(examples)) == (1, 1)

    @njit
    def call(by, numbers):
        return by(numbers, 3.0)

    numbers = np.array([1.0, 2.0])
    assert call(first, numbers) == 9.0
    assert numbers.tolist() == [3.0, 6.0]
    assert (len(made), len(examples)) == (1, 1)


@pytest.mark.parametrize("kernel", [FOLLOW, TIGHTEN])
def test_those_of_the_objective(kernel: Kernel) -> None:
    assert kernel.address is kernel.address
    assert kernel.address.address != 0


def test_importing_compiles_nothing() -> None:
    code = (
        "from deferlearn.objective.path import FOLLOW\n"
        "from deferlearn.objective.tightening import TIGHTEN\n"
        "assert 'address' not in vars(FOLLOW) and 'address' not in vars(TIGHTEN)\n"
        "from deferlearn.objective import SVMObjective\n"
        "SVMObjective([[0.0], [1.0]], [-1, 1]).gain(0)\n"
        "assert 'address' in vars(FOLLOW) and 'address' not in vars(TIGHTEN)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_works_where_nothing_can_be_written() -> None:
    """An installation that is read-only, and a user without a folder: numba then has no cache."""
    script = (
        "import numba.core.caching as caching\n"
        "for name in dir(caching):\n"
        "    if hasattr(getattr(caching, name), '_locator_classes'):\n"
        "        getattr(caching, name)._locator_classes = []\n"
        "import numpy as np\n"
        "from deferlearn._utils import compiling\n"
        "from deferlearn.objective.measures import tally\n"
        "assert not compiling.KEPT\n"
        "print(tally(np.array([True, True]), np.array([1.0, -1.0]), np.ones(2))[1])\n"
    )
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert said.stdout.strip() == "1", said.stderr
    assert said.stderr.count("RuntimeWarning: Compiled code cannot be kept") == 1
    assert "NUMBA_CACHE_DIR" in said.stderr


def test_works_where_numba_is_different_inside() -> None:
    """Internal functions are then compiled as numba does it."""
    script = (
        "import sys\n"
        "sys.modules['deferlearn._utils.linking'] = None\n"
        "from numba import njit\n"
        "from deferlearn._utils.compiling import internal\n"
        "twice = internal(lambda x: 2 * x)\n"
        "assert 'pipeline_class' not in twice.targetoptions\n"
        "print(njit(lambda x: twice(x) + 1)(3))\n"
    )
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert said.stdout.strip() == "7", said.stderr
