"""README and the pages say what the stored output of benchmarks says, and no benchmark is left out."""

import re
from pathlib import Path

import pytest

import measured
import store_printed

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
PAGES += [*sorted((ROOT / "docs" / "howto").glob("*.md")), *sorted((ROOT / "docs" / "desk").glob("*.md"))]
STORED = sorted(store_printed.TIMES) + ["given_scores.txt"]

# Benchmarks that pages name without any number of theirs, so that nothing need be stored.
WITHOUT_NUMBERS = {
    "selection.py": "docs/engine.md only says what it measures",
    "gains.py": "docs/engine.md only says what it measures",
    "apply.py": "docs/howto/large.md only says what it measures",
    "scale.py --quick": "docs/howto/large.md: a shorter run of what is stored",
    "calibration.py": "docs/howto/classes.md only says what it compares",
}


@pytest.mark.parametrize("name", STORED)
def test_pages_have_what_was_printed(name):
    for page, words in measured.SAID[name]():
        assert " ".join(words.split()) in measured.one_line(page), f"{page} should say:\n{words}"


@pytest.mark.parametrize("name", STORED)
def test_files_name_their_command_and_the_computer(name):
    assert measured.command_of(name) == f"python benchmarks/{store_printed.RUNS[name]}"
    second = (measured.RESULTS / name).read_text(encoding="utf-8").splitlines()[1]
    assert re.fullmatch(
        r".+, \d+ CPUs; Python [\d.]+, numpy [\d.]+; load average [\d.]+ before, [\d.]+ after", second
    )
