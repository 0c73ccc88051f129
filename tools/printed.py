"""Reads what benchmarks have printed, as `tools/store_printed.py` has stored it."""

from __future__ import annotations

import re
from pathlib import Path

RESULTS = Path(__file__).parents[1] / "docs" / "results"

Row = dict[str, str]


def printed(name: str) -> str:
    """What a benchmark has printed, below its command and the computer."""
    return (RESULTS / name).read_text(encoding="utf-8").split("\n\n", 1)[1]


def command_of(name: str) -> str:
    """The command whose output a file has."""
    first = (RESULTS / name).read_text(encoding="utf-8").splitlines()[0]
    return first.removeprefix("$ ")


def tables(name: str) -> list[list[Row]]:
    """The tables in a file; each row has its cells by heading, the first one by an empty heading."""
    found: list[list[Row]] = []
    above = ""
    headings: list[str] = []
    for line in printed(name).splitlines():
        if re.match(r"\|[-:|]+\|$", line):
            headings = _cells(above)
            found.append([])
        elif line.startswith("|") and headings:
            found[-1].append(dict(zip(headings, _cells(line), strict=True)))
        elif not line.startswith("|"):
            headings = []
        above = line
    return found


def _cells(line: str) -> list[str]:
    """The cells of a row; a bar within a cell, as in |V|, has no spaces on both sides."""
    return [cell.strip() for cell in re.split(r"(?<=\s)\|(?=\s)", line.strip()[1:-1])]


def by_name(rows: list[Row]) -> dict[str, Row]:
    """Rows by their first cells, which must differ."""
    found: dict[str, Row] = {}
    for row in rows:
        name = next(iter(row.values()))
        if name in found:
            raise ValueError(f"two rows have the name {name!r}")
        found[name] = row
    return found


def number(text: str) -> float:
    """The number at the beginning of a cell."""
    found = re.match(r"[+-]?[\d,]*\.?\d+(?:e[+-]?\d+)?", text)
    if found is None:
        raise ValueError(f"no number: {text!r}")
    return float(found.group().replace(",", ""))
