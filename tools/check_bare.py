"""Check that the package works without its extras: import every room, then fit, save and load a model.

Usage::

    python tools/check_bare.py            # in an environment with the bare wheel
    python tools/check_bare.py --block    # anywhere: whatever belongs to an extra cannot be imported

Which packages belong to extras is read from pyproject.toml, so a new extra is covered as well. Without
``--block`` it is an error if one of them is installed, since then nothing would be checked.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import importlib.util
import pkgutil
import re
import sys
import tempfile
import tomllib
from importlib.metadata import PackageNotFoundError, packages_distributions, requires
from pathlib import Path
from typing import Any

PYPROJECT = Path(__file__).parents[1] / "pyproject.toml"

# What a room may miss when it is imported. All other rooms import without extras: pandas, pyarrow and
# matplotlib are then imported when a table is read or a figure is drawn. Where typer is missing, the entry
# point of the command line says what to install.
NEEDED = {
    "cli": {"typer", "rich"},
    "desk": {
        "sqlalchemy",
        "alembic",
        "fastapi",
        "starlette",
        "pydantic",
        "argon2",
        "prometheus_client",
        "jinja2",
        "uvicorn",
        "httptools",
    },
    "experiments": {"pydantic", "pandas"},
    "report": {"jinja2", "markupsafe"},
}


class Blocker:
    """Refuses to find some packages, as if they had never been installed."""

    def __init__(self, packages: set[str]) -> None:
        self.packages = packages

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        """Raise an error for what is blocked, and leave the rest to others."""
        if name.split(".")[0] in self.packages:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def packages_of_extras(pyproject: Path = PYPROJECT) -> set[str]:
    """Names under which installed packages of any extra, and of none but extras, are imported."""
    project = tomllib.loads(pyproject.read_text(encoding="utf-8"))["project"]
    core = _with_needs({_name(requirement) for requirement in project["dependencies"]})
    lists = project["optional-dependencies"].values()
    named = {_name(requirement) for some in lists for requirement in some} - {project["name"]}
    # What an extra brings is not there without it either.
    extras = _with_needs(named) - core
    found = {
        package
        for package, owners in packages_distributions().items()
        if extras & set(map(_name, owners))
    }
    # Some packages come from a distribution of another name, as typer 0.12 comes from typer-slim.
    same_name = {name.replace("-", "_") for name in extras}
    return found | {name for name in same_name if importlib.util.find_spec(name) is not None}


def _with_needs(names: set[str]) -> set[str]:
    """These distributions, and all that they need, as far as they are installed."""
    found: set[str] = set()
    rest = set(names)
    while rest:
        name = rest.pop()
        found.add(name)
        with contextlib.suppress(PackageNotFoundError):
            needs = [need for need in requires(name) or [] if "extra ==" not in need]
            rest |= {_name(need) for need in needs} - found
    return found


def _name(requirement: str) -> str:
    """Name of a distribution, as indexes normalise it."""
    return re.sub(r"[-_.]+", "-", re.split(r"[^\w.-]", requirement)[0]).lower()


def import_everything() -> int:
    """Import all modules but those whose room may need an extra; how many were imported."""
    import deferlearn

    count = 0
    for name in _modules(deferlearn):
        try:
            importlib.import_module(name)
            count += 1
        except ModuleNotFoundError as error:
            room = name.split(".")[1]
            if error.name is None or error.name.split(".")[0] not in NEEDED.get(room, ()):
                raise
    return count


def _modules(package: Any) -> list[str]:
    """Names of all modules below a package, of packages that cannot be imported as well."""
    folder = Path(package.__path__[0])
    found = []
    for module in pkgutil.iter_modules([str(folder)], package.__name__ + "."):
        found.append(module.name)
        if module.ispkg:
            inner = folder / module.name.rpartition(".")[2]
            prefix = module.name + "."
            found += [m.name for m in pkgutil.walk_packages([str(inner)], prefix)]
    return found


def fit_and_save() -> None:
    """Fit a small team, ask it, and store it."""
    import numpy as np

    from deferlearn import AssistedSVC, load, save
    from deferlearn.datasets import make_linear
    from deferlearn.humans import UniformHuman

    X, y = make_linear(60, random_state=0)
    human = UniformHuman(0.2).labels(y, random_state=0)
    team = AssistedSVC(budget=0.2, random_state=0).fit(X, y, human_labels=human)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "team.skops"
        save(team, path)
        again = load(path)
    np.testing.assert_array_equal(again.defer(X), team.defer(X))
    np.testing.assert_array_equal(again.predict_assisted(X, human), team.predict_assisted(X, human))


def main() -> None:
    """Command line: block or check, then import, fit and save."""
    parser = argparse.ArgumentParser(description="Check the package without its extras.")
    parser.add_argument("--block", action="store_true", help="refuse to import what extras bring")
    extras = packages_of_extras()
    if parser.parse_args().block:
        sys.meta_path.insert(0, Blocker(extras))
    elif extras:
        parser.exit(2, f"packages of extras are installed: {', '.join(sorted(extras))}\n")
    count = import_everything()
    fit_and_save()
    print(f"{count} modules imported, a team fitted and stored, without {len(extras)} packages")


if __name__ == "__main__":
    main()
