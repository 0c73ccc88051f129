"""Run benchmarks, and store what they print in docs/results, from where the pages take their numbers.

Usage::

    python tools/store_printed.py                     # all times: an hour or two, on an idle computer
    python tools/store_printed.py times/apply.txt     # only this file
    python tools/store_printed.py --list              # the files, and the command of each
    python tools/store_printed.py --check             # run nothing: which sentences do pages lack?
    python tools/store_printed.py --write             # run nothing, but renew rows of tables

A file is replaced when its command has ended well, and not before. Its first lines are the command and the
computer. Then rows of tables in README and the pages are replaced by those that the files give, and you see
the other sentences that should be there now and are not.
Files that are not times have the same numbers on every computer; name them to renew them.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
from pathlib import Path

import numpy as np

import measured
from deferlearn._utils.atomic import write_atomically
from printed import RESULTS

ROOT = Path(__file__).parents[1]

# Times and memory of one computer. Those that take long come last, and first one that compiles the engine
# where all others find it: compiling takes memory, too.
TIMES = {
    "times/waiting-2.txt": "waiting.py --only 2",
    "times/waiting-4.txt": "waiting.py --only 4",
    "times/waiting-3.txt": "waiting.py --only 3",
    "times/scale-1.txt": "scale.py --only 1",
    "times/scale-2.txt": "scale.py --only 2",
    "times/scale-3.txt": "scale.py --only 3",
    "times/scale-6.txt": "scale.py --only 6",
    "times/selection.txt": "selection.py --quick",
    "times/apply.txt": "apply.py --rows 1000000",
    "times/waiting-1.txt": "waiting.py --only 1",
    "times/partitions.txt": "partitions.py",
    "times/scale-5.txt": "scale.py --only 5",
    "times/scale-4.txt": "scale.py --only 4",
    "times/desk.txt": "desk.py --no-search",
    "times/desk_pages.txt": "desk_pages.py",
}
# The same on every computer, up to rounding.
OTHERS = {
    "given_scores.txt": "given_scores.py",
    "sleep/first_example.txt": "first_example.py",
    "experts/skills.txt": "experts.py skills",
    "experts/sleep.txt": "experts.py sleep",
    "experts/loads.txt": "experts.py loads",
    "experts/stream.txt": "experts.py stream",
    "experts/intervals.txt": "experts.py intervals",
    "desk/monitoring.txt": "monitoring.py",
    "desk/alarms.txt": "desk_alarms.py",
    "desk/learning.txt": "desk_learning.py",
}
RUNS = TIMES | OTHERS


def computer() -> str:
    """The processor and the versions that matter."""
    name = platform.processor() or platform.machine()
    information = Path("/proc/cpuinfo")
    if information.exists():
        lines = information.read_text(encoding="utf-8").splitlines()
        models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
        name = models[0] if models else name
    return (
        f"{name}, {os.cpu_count()} CPUs; Python {platform.python_version()}, numpy {np.__version__}"
    )


def load() -> str:
    """How busy the computer is, over the last minute."""
    return f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "unknown"


def store(name: str) -> None:
    """Run the command of a file, and write the file."""
    command = f"python benchmarks/{RUNS[name]}"
    print(f"{name}: {command}", flush=True)
    before = load()
    run = subprocess.run(
        [sys.executable, *command.split()[1:]], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    if run.returncode:
        sys.exit(f"{command} failed; {name} is as it was")
    lines = [line.rstrip() for line in run.stdout.strip().splitlines()]
    head = [f"$ {command}", f"{computer()}; load average {before} before, {load()} after", ""]
    path = RESULTS / name
    path.parent.mkdir(exist_ok=True)
    write_atomically(path, ("\n".join([*head, *lines]) + "\n").encode())


def put(page: str, row: str, keys: int = 1) -> bool:
    """Put a row of a table where the page has one with the same first cells; whether it was found."""
    path = ROOT / page
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    cells = row.split(" | ")
    like = []
    for k, line in enumerate(lines):
        old = line.strip().split(" | ")
        if len(old) == len(cells) and old[:keys] == cells[:keys]:
            like.append(k)
    if len(like) != 1:
        return False
    indent = lines[like[0]][: -len(lines[like[0]].lstrip())]
    lines[like[0]] = f"{indent}{row}\n"
    write_atomically(path, "".join(lines).encode())
    return True


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*", choices=[*RUNS, []], help="default: all times")
    parser.add_argument("--list", action="store_true", help="only name files and commands")
    parser.add_argument("--check", action="store_true", help="run nothing, and change nothing")
    parser.add_argument(
        "--write", action="store_true", help="run nothing, but renew rows of tables"
    )
    options = parser.parse_args()
    if options.list:
        for name, command in RUNS.items():
            print(f"{name:25} python benchmarks/{command}")
        return
    for name in [] if options.check or options.write else options.files or TIMES:
        store(name)
    if not options.check:
        for page, words, keys in measured.missing():
            if words.startswith("| ") and put(page, words, keys):
                print(f"{page}: {words}")
    missing = measured.missing()
    for said in missing:
        print(f"\n{said.page} should say:\n{said.words}")
    print(f"\n{len(missing)} sentences are missing")
    absent = measured.absent()
    if absent:
        print(
            f"Nothing is compared with {len(absent)} files, which are not stored: {', '.join(absent)}"
        )


if __name__ == "__main__":
    main()
