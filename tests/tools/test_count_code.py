"""Lines of code are counted without what only people read."""

import subprocess
import sys
from pathlib import Path

from count_code import count_code, count_files

ROOT = Path(__file__).parents[2]
SOURCE = '''"""A module."""

# A comment.
TEXT = """not a docstring,
but two lines of code"""  # with a comment


class Thing:
    """A class
    with two lines."""

    def method(self):
        """A method."""
        "a string that is no docstring"
        return (
            1,

            2,
        )
'''


def test_docstrings_comments_and_blank_lines_do_not_count():
    assert count_code(SOURCE) == 9
    assert count_code("") == count_code('"""Only words."""\n') == 0
    assert count_code("x = 1; y = 2\n") == 1


def test_every_file_of_the_package_is_in_the_sum():
    script = ROOT / "tools" / "count_code.py"
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    *rooms, total = done.stdout.splitlines()
    counts = [int(line.split()[0].replace(",", "")) for line in (*rooms, total)]
    files = count_files(ROOT / "src" / "deferlearn")
    assert sum(counts[:-1]) == counts[-1] == sum(files.values()) > 10_000
    assert {line.split()[1] for line in rooms} == {name.split("/")[0] for name in files}
