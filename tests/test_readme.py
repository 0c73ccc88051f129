"""The README is right: its Python blocks run, and print what the comments say."""

import re
from pathlib import Path

import pytest

README = Path(__file__).parents[1] / "README.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```", README.read_text(encoding="utf-8"), re.M | re.S)


def test_there_is_an_example():
    assert BLOCKS


@pytest.mark.parametrize("block", BLOCKS, ids=range(len(BLOCKS)))
def test_python_block(block, request, capsys):
    if "fetch_" in block:
        request.getfixturevalue("authors_data")  # skips where there is no copy: no test downloads
    exec(compile(block, str(README), "exec"), {"__name__": "readme"})
    expected = re.findall(r"^print\(.*\)  # (.*)$", block, re.M)
    assert len(expected) == len(re.findall(r"^print\(", block, re.M))
    assert capsys.readouterr().out.splitlines() == expected
