"""Count the lines of code per room, without docstrings, comments and blank lines.

Usage::

    python tools/count_code.py                # one line per room
    python tools/count_code.py --files        # one line per file as well
"""

from __future__ import annotations

import argparse
import ast
import io
import tokenize
from collections import Counter
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "src" / "deferlearn"

LAYOUT = (
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
)


def count_code(text: str) -> int:
    """Lines of a Python source that hold code."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in LAYOUT:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if ast.get_docstring(node, clean=False) is not None and first is not None:
                lines.difference_update(range(first.lineno, (first.end_lineno or 0) + 1))
    return len(lines)


def count_files(package: Path) -> dict[str, int]:
    """Lines of code of every file, by its path inside the package."""
    return {
        path.relative_to(package).as_posix(): count_code(path.read_text(encoding="utf-8"))
        for path in sorted(package.rglob("*.py"))
    }


def main() -> None:
    """Command line: print the counts, the largest room first."""
    parser = argparse.ArgumentParser(description="Count the lines of code per room.")
    parser.add_argument("package", type=Path, nargs="?", default=PACKAGE, help="its folder")
    parser.add_argument("--files", action="store_true", help="print one line per file as well")
    arguments = parser.parse_args()
    files = count_files(arguments.package)
    rooms: Counter[str] = Counter()
    for name, lines in files.items():
        rooms[name.split("/")[0]] += lines
    for room, lines in rooms.most_common():
        print(f"{lines:7,}  {room}")
    print(f"{sum(files.values()):7,}  in all")
    if arguments.files:
        for name, lines in files.items():
            print(f"{lines:7,}  {name}")


if __name__ == "__main__":
    main()
