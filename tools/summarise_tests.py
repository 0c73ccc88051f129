"""Say at the end of a test run how many tests passed, failed and did not run, and why not.

Usage::

    pytest --junitxml=build/tests.xml
    python tools/summarise_tests.py build/tests.xml
"""

from __future__ import annotations

import argparse
from collections import Counter, defaultdict
from pathlib import Path
from xml.etree import ElementTree


def summarise(report: Path) -> list[str]:
    """Tests that were skipped, by reason, and failed tests; the last line holds the counts."""
    counts: Counter[str] = Counter()
    reasons: dict[str, list[str]] = defaultdict(list)
    failed = []
    for case in ElementTree.parse(report).iter("testcase"):
        name = f"{case.get('classname')}.{case.get('name')}"
        skipped = case.find("skipped")
        if case.find("failure") is not None or case.find("error") is not None:
            counts["failed"] += 1
            failed.append(name)
        elif skipped is not None and skipped.get("type") == "pytest.xfail":
            counts["passed"] += 1  # it failed, as its author says it must
        elif skipped is not None:
            counts["skipped"] += 1
            reasons[skipped.get("message") or "no reason given"].append(name)
        else:
            counts["passed"] += 1
    lines = []
    for reason, names in sorted(reasons.items()):
        lines.append(f"Skipped, {len(names)} of them: {reason}")
        lines += [f"    {name}" for name in names]
    lines += [f"Failed: {name}" for name in failed]
    words = (f"{counts[kind]} {kind}" for kind in ("passed", "failed", "skipped"))
    return [*lines, ", ".join(words)]


def main() -> None:
    """Command line: print the summary."""
    parser = argparse.ArgumentParser(description="Summarise a test run.")
    parser.add_argument("report", type=Path, help="what pytest wrote for --junitxml")
    print("\n".join(summarise(parser.parse_args().report)))


if __name__ == "__main__":
    main()
