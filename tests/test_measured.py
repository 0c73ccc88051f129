"""README and the pages say what benchmarks have printed, and no number of a benchmark is left out."""

import re
from pathlib import Path

import pytest

import measured
import store_printed
from printed import RESULTS, command_of

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *DOCS.glob("*.md"), *DOCS.glob("howto/*.md"), *DOCS.glob("desk/*.md")]

# What has not been stored yet: the pages have these numbers from earlier runs.
NOT_STORED = {
    "times/scale-4.txt": "",
}
# Benchmarks that pages name without a number of theirs.
WITHOUT_NUMBERS = ("selection.py", "gains.py", "apply.py", "scale.py --quick", "calibration.py")
# Those whose numbers are in tables of the pages themselves, or are compared by `test_numbers.py`.
ELSEWHERE = {
    "first_example.py": "docs/results/sleep/first_example.txt",
    "experts.py skills": "docs/results/experts/skills.txt",
    "experts.py sleep": "docs/results/experts/sleep.txt",
    "shifted_inputs.py": "docs/howto/unusual.md has the whole table",
}


@pytest.mark.parametrize("name", measured.SAID)
def test_pages_have_what_was_printed(name):
    if name in NOT_STORED:
        assert not (RESULTS / name).exists(), f"{name} is there: take it out of NOT_STORED"
        return
    for page, words in measured.SAID[name]():
        assert " ".join(words.split()) in measured.one_line(page), f"{page} should say:\n{words}"


@pytest.mark.parametrize("name", [name for name in measured.SAID if name not in NOT_STORED])
def test_files_begin_with_their_command_and_the_computer(name):
    assert command_of(name) == f"python benchmarks/{store_printed.RUNS[name]}"
    computer = (RESULTS / name).read_text(encoding="utf-8").splitlines()[1]
    versions = r"Python [\d.]+, numpy [\d.]+; load average [\d.]+ before, [\d.]+ after"
    assert re.fullmatch(rf".+, \d+ CPUs; {versions}", computer)
