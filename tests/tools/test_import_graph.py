"""The rooms keep their order, and the script that says so finds every kind of offence."""

import subprocess
import sys
from pathlib import Path

import pytest

import import_graph

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "deferlearn"
SCRIPT = ROOT / "tools" / "import_graph.py"
ORDER = ["_utils", "humans", "teams", "plot"]


@pytest.fixture
def package(tmp_path):
    """A small package that keeps the rules; tests add what does not."""

    def write(**files):
        for name, text in files.items():
            path = tmp_path.joinpath(*name.split("__")).with_suffix(".py")
            path.parent.mkdir(exist_ok=True)
            (path.parent / "__init__.py").touch()
            path.write_text(text)
        (tmp_path / "__init__.py").touch()
        return tmp_path

    return write(
        _utils__checks="def _hidden(): ...\n",
        humans__losses="from deferlearn._utils.checks import plain\n",
        humans___inner="x = 1\n",
        teams__svc="from deferlearn import humans\nfrom deferlearn.humans import losses\n",
        plot__curves="def f():\n    from deferlearn.teams.svc import Team\n",
    ), write


def test_the_package_keeps_the_rules():
    done = subprocess.run([sys.executable, str(SCRIPT)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    rooms = [line.split(" -> ")[0].strip() for line in done.stdout.splitlines()]
    # The graph is of the whole house, and no import was overlooked altogether.
    assert rooms == import_graph.order_of_rooms(ROOT / "pyproject.toml")
    assert {path.parent.name for path in PACKAGE.glob("*/__init__.py")} == set(rooms)
    assert "teams" in done.stdout.partition("cli  ")[2]


def test_a_good_package_has_no_violations(package):
    path, _ = package
    assert import_graph.violations(path, ORDER) == []
    assert import_graph.graph_of(path, ORDER) == [
        "_utils       -> nothing",
        "humans       -> _utils",
        "teams        -> humans",
        "plot         -> teams (lazy)",
    ]


@pytest.mark.parametrize(
    ("files", "offences"),
    [
        (
            {"humans__losses": "from deferlearn.teams import svc\n"},
            [
                "deferlearn.humans.losses (line 1) imports deferlearn.teams.svc: teams is above humans",
                "rooms import each other in a circle: humans -> teams -> humans",
            ],
        ),
        (
            {"_utils__checks": "def f():\n    import deferlearn.plot.curves\n"},
            [
                "deferlearn._utils.checks (line 2) imports deferlearn.plot.curves (lazy): "
                "plot is above _utils",
                "rooms import each other in a circle: ",
            ],
        ),
        (
            {
                "humans__losses": "from typing import TYPE_CHECKING\n"
                "if TYPE_CHECKING:\n    from ..plot.curves import Curve\n"
            },
            [
                "deferlearn.humans.losses (line 3) imports deferlearn.plot.curves.Curve (typing): "
                "plot is above humans",
                "rooms import each other in a circle: ",
            ],
        ),
        (
            {
                "humans__losses": "import importlib\nimportlib.import_module('deferlearn.teams.svc')\n"
            },
            [
                "deferlearn.humans.losses (line 2) imports deferlearn.teams.svc: teams is above",
                "rooms import each other in a circle: ",
            ],
        ),
        (
            {"teams__svc": "from deferlearn.humans._inner import x\n"},
            [
                "deferlearn.teams.svc (line 1) imports deferlearn.humans._inner.x: "
                "it is private to humans"
            ],
        ),
        (
            {"teams__svc": "from deferlearn._utils.checks import _hidden\n"},
            [
                "deferlearn.teams.svc (line 1) imports deferlearn._utils.checks._hidden: "
                "it is private to _utils"
            ],
        ),
        ({"kernels__gram": ""}, ["deferlearn.kernels is in no room", "deferlearn.kernels.gram is"]),
        ({"images": ""}, ["deferlearn.images is in no room: known are _utils, humans"]),
    ],
    ids=["upward", "lazy", "typing", "by a string", "module", "name", "unknown room", "root"],
)
def test_offences_are_found(package, files, offences):
    path, write = package
    write(**files)
    found = import_graph.violations(path, ORDER)
    assert len(found) == len(offences), found
    for sentence, expected in zip(found, offences, strict=True):
        assert sentence.startswith(expected), sentence


def test_names_of_the_front_door_count_as_their_rooms(package):
    path, write = package
    (path / "__init__.py").write_text(
        "if TYPE_CHECKING:\n    from deferlearn.teams import Team\n__version__ = '1'\n"
    )
    assert import_graph.violations(path, ORDER) == []
    write(humans__losses="from deferlearn import Team, __version__\n")
    (sentence, *_) = import_graph.violations(path, ORDER)
    assert sentence.startswith("deferlearn.humans.losses (line 1) imports deferlearn.teams.Team: ")
