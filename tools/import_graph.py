"""Print which room imports which, and fail if an import breaks the rules.

Usage::

    python tools/import_graph.py

Imports inside functions are marked (lazy), imports for type checkers only are marked (typing); both
count. The exit code is 1 if

- rooms import each other in a circle,
- a room imports a room above it: the order is that of `layers` in pyproject.toml, from the top down,
- a room imports a private module or a private name of another room (`_utils` is a room for all),
- a module lies at the root of the package, or in a room that the order does not know.
"""

from __future__ import annotations

import argparse
import ast
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).parents[1]
NAME = "deferlearn"


@dataclass(frozen=True)
class Import:
    """One imported module or name, as one line of a file asks for it."""

    importer: str
    imported: str
    line: int
    lazy: bool = False
    typing: bool = False

    @property
    def rooms(self) -> tuple[str, str]:
        """The room that imports, and the one that is imported; the root is the empty string."""
        return room_of(self.importer), room_of(self.imported)

    @property
    def kind(self) -> str:
        """A word for an import that does not run when its module is loaded."""
        return "typing" if self.typing else "lazy" if self.lazy else ""

    def __str__(self) -> str:
        mark = f" ({self.kind})" if self.kind else ""
        return f"{self.importer} (line {self.line}) imports {self.imported}{mark}"


def room_of(module: str) -> str:
    """The first part of the name below the package."""
    return module.partition(".")[2].partition(".")[0]


def is_private(part: str) -> bool:
    """Whether a name begins with an underscore; names such as __version__ are public."""
    return part.startswith("_") and not part.startswith("__")


def order_of_rooms(pyproject: Path) -> list[str]:
    """The rooms from the bottom to the top, as the contract of import-linter lists them."""
    settings = tomllib.loads(pyproject.read_text(encoding="utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    (layers,) = [c["layers"] for c in contracts if c["type"] == "layers"]
    return list(layers)[::-1]


def modules_of(package: Path) -> dict[str, Path]:
    """Every module of the package by its name."""
    found = {}
    for path in sorted(package.rglob("*.py")):
        parts = [NAME, *path.relative_to(package).with_suffix("").parts]
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports_of(package: Path) -> list[Import]:
    """All imports between modules of the package, in the order of the files."""
    modules = modules_of(package)
    trees = {name: ast.parse(path.read_text(encoding="utf-8")) for name, path in modules.items()}
    # What the front door offers comes from a room: an import of it is an import of that room.
    homes = {
        found.imported.rpartition(".")[2]: found.imported
        for found in _walk(trees[NAME], Import(NAME, "", 0), is_package=True)
    }
    found = []
    for name, tree in trees.items():
        is_package = modules[name].name == "__init__.py"
        for one in _walk(tree, Import(name, "", 0), is_package=is_package):
            target = one.imported
            if target.split(".")[0] != NAME:
                continue
            if name != NAME and target.count(".") == 1 and target not in modules:
                target = homes.get(target.rpartition(".")[2], target)
            found.append(Import(name, target, one.line, one.lazy, one.typing))
    return found


def _walk(node: ast.AST, where: Import, *, is_package: bool) -> Iterator[Import]:
    """Imports below a node; `where` says in which module it is, and whether in a function."""
    for child in ast.iter_child_nodes(node):
        inner = where
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            inner = Import(where.importer, "", 0, True, where.typing)
        elif isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            inner = Import(where.importer, "", 0, where.lazy, True)
        for target in _targets(child, where.importer, is_package):
            yield Import(where.importer, target, child.lineno, where.lazy, where.typing)  # type: ignore[attr-defined]
        yield from _walk(child, inner, is_package=is_package)


def _targets(node: ast.AST, importer: str, is_package: bool) -> list[str]:
    """Full names that a statement imports; strings given to `import_module` are such names too."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        base = node.module or ""
        if node.level:
            parts = importer.split(".")
            parts = parts[: len(parts) - node.level + is_package]
            base = ".".join([*parts, *([base] if base else [])])
        return [f"{base}.{alias.name}" for alias in node.names]
    if isinstance(node, ast.Call) and "import" in ast.unparse(node.func).rpartition(".")[2]:
        given = node.args[0] if node.args else None
        if isinstance(given, ast.Constant) and isinstance(given.value, str):
            return [given.value]
    return []


def violations(package: Path, order: list[str]) -> list[str]:
    """What breaks the rules, one sentence each."""
    found = []
    for module in modules_of(package):
        room = room_of(module)
        if room and room not in order:
            found.append(f"{module} is in no room: known are {', '.join(order)}")
    graph: dict[str, set[str]] = defaultdict(set)
    for one in imports_of(package):
        importer, imported = one.rooms
        # The front door leads to every room; of the root itself only dunder names are left.
        if not importer or importer == imported or imported not in order:
            continue
        graph[importer].add(imported)
        if importer in order and order.index(imported) > order.index(importer):
            found.append(f"{one}: {imported} is above {importer}")
        if any(map(is_private, one.imported.split(".")[2:])):
            found.append(f"{one}: it is private to {imported}")
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        found.append(f"rooms import each other in a circle: {' -> '.join(error.args[1][::-1])}")
    return found


def graph_of(package: Path, order: list[str]) -> list[str]:
    """One line per room, the lowest first, with the rooms that it imports."""
    kinds: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for one in imports_of(package):
        importer, imported = one.rooms
        if importer != imported and imported in order:
            kinds[importer][imported].add(one.kind)
    lines = []
    for room in order:
        # A room that is imported in the ordinary way as well needs no mark.
        names = [
            other
            if "" in kinds[room][other]
            else f"{other} ({', '.join(sorted(kinds[room][other]))})"
            for other in sorted(kinds[room], key=order.index)
        ]
        lines.append(f"{room:12} -> {', '.join(names) or 'nothing'}")
    return lines


def main() -> None:
    """Command line: print the graph, then what breaks the rules."""
    parser = argparse.ArgumentParser(description="Print which room imports which.")
    parser.add_argument("package", type=Path, nargs="?", default=ROOT / "src" / NAME)
    package = parser.parse_args().package
    order = order_of_rooms(ROOT / "pyproject.toml")
    print("\n".join(graph_of(package, order)))
    broken = violations(package, order)
    for sentence in broken:
        print(sentence, file=sys.stderr)
    sys.exit(1 if broken else 0)


if __name__ == "__main__":
    main()
