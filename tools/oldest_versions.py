"""Print the oldest supported version of every dependency, as constraints for pip.

Usage::

    python tools/oldest_versions.py > oldest.txt
    python -m pip install --constraint oldest.txt ".[test]"

The versions are the lower bounds in pyproject.toml. A dependency without one is an error.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

PYPROJECT = Path(__file__).parents[1] / "pyproject.toml"
# Tools of developers have no part in what users install.
LEFT_OUT = ("dev", "docs")


def oldest_versions(pyproject: Path = PYPROJECT) -> list[str]:
    """One constraint per dependency of the package and of its extras, sorted by name."""
    project = tomllib.loads(pyproject.read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    lists = [project["dependencies"], *(extras[name] for name in extras if name not in LEFT_OUT)]
    found: dict[str, str] = {}
    for requirement in (requirement for some in lists for requirement in some):
        if requirement.startswith(project["name"]):
            continue
        parts = re.fullmatch(r"([\w.-]+)(?:\[\w+\])?>=([\w.]+)(?:;.*)?", requirement)
        if parts is None:
            raise ValueError(f"{requirement!r} has no lower bound: write name>=version")
        name, version = parts.groups()
        if found.setdefault(name, version) != version:
            raise ValueError(f"{name} has two lower bounds, {found[name]} and {version}")
    return [f"{name}=={version}" for name, version in sorted(found.items())]


def main() -> None:
    """Command line: print the constraints."""
    sys.stdout.write("\n".join(oldest_versions()) + "\n")


if __name__ == "__main__":
    main()
