"""The package as a whole: what it imports, and what it does without its extras."""

import re
import subprocess
import sys
import textwrap
from importlib.metadata import version
from pathlib import Path

import deferlearn
from check_bare import packages_of_extras

TOOLS = Path(__file__).parents[1] / "tools"

# Refuses the packages of all extras, as if they had never been installed.
BLOCK = f"""
import sys
sys.path.insert(0, {str(TOOLS)!r})
import check_bare
sys.meta_path.insert(0, check_bare.Blocker(check_bare.packages_of_extras()))
"""


def run(*words):
    return subprocess.run(
        [sys.executable, "-W", "error", *words], capture_output=True, text=True, timeout=60
    )


def run_without_extras(code):
    return run("-c", BLOCK + textwrap.dedent(code))


def test_package_works_without_extras():
    """All rooms import, but for those that `NEEDED` in the script names; a model is fitted and stored."""
    done = run(str(TOOLS / "check_bare.py"), "--block")
    assert done.returncode == 0, done.stderr
    assert re.match(r"\d{3} modules imported", done.stdout)


def test_every_extra_is_blocked():
    extras = packages_of_extras()
    assert extras >= {"matplotlib", "pandas", "pyarrow", "pydantic", "rich", "typer", "distributed"}
    assert not extras & {"numpy", "scipy", "sklearn", "numba", "joblib", "threadpoolctl", "skops"}
    assert "markupsafe" in extras, "jinja2 brings it"
    for package in ("matplotlib", "pandas", "distributed"):
        done = run_without_extras(f"import {package}")
        assert f"No module named {package!r}" in done.stderr


def test_a_room_that_needs_more_is_found():
    done = run_without_extras("""
        sys.meta_path.insert(0, check_bare.Blocker({"threadpoolctl"}))
        check_bare.import_everything()
    """)
    assert "No module named 'threadpoolctl'" in done.stderr
    assert done.returncode == 1


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
