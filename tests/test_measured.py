"""README and the pages say what benchmarks have printed, and no number of a benchmark is left out."""

import re
from pathlib import Path

import pytest

import measured
import printed
import store_printed
from printed import RESULTS, command_of

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *DOCS.glob("*.md"), *DOCS.glob("howto/*.md"), *DOCS.glob("desk/*.md")]

# What is not stored yet: the pages have these numbers from earlier runs.
NOT_STORED = {
    "times/scale-3.txt",
    "times/scale-4.txt",
    "times/scale-5.txt",
    "times/scale-6.txt",
    "times/partitions.txt",
    "times/desk_pages.txt",
}
# Where pages name a benchmark, but its numbers are not compared here; and why.
OTHERWISE = {
    "selection.py": "only what it measures is said",
    "gains.py": "only what it measures is said",
    "apply.py": "only what it measures is said",
    "scale.py --quick": "only what it measures is said",
    "desk.py": "only what it measures is said",
    "desk_pages.py --database postgresql": "not stored yet, like that of SQLite",
    "calibration.py": "only what it measures is said",
    "first_example.py": "compared in test_numbers.py",
    "experts.py skills": "compared in test_numbers.py",
    "experts.py sleep": "compared in test_numbers.py",
    "shifted_inputs.py": "the page has the whole table that it prints; README is compared with it",
    "experts.py loads": "simulated, the same on every computer; not stored yet",
    "experts.py stream": "simulated, the same on every computer; not stored yet",
    "experts.py intervals": "simulated, the same on every computer; not stored yet",
    "experts.py speed": "in about a second, which is no measured number",
    "monitoring.py": "the page has the tables that it prints; simulated, not stored yet",
    "desk_alarms.py --picture docs/_static/desk_alarms.png": "the page has the tables that it prints",
    "desk_learning.py": "compared in test_numbers.py",
}


@pytest.mark.parametrize("name", measured.SAID)
def test_pages_have_what_was_printed(name):
    if name in NOT_STORED:
        assert not (RESULTS / name).exists(), f"{name} is there: take it out of NOT_STORED"
        return
    for page, words, _ in measured.SAID[name]():
        assert " ".join(words.split()) in measured.one_line(page), f"{page} should say:\n{words}"


@pytest.mark.parametrize("name", [name for name in measured.SAID if name not in NOT_STORED])
def test_rows_are_found_by_their_first_cells(name):
    for page, words, keys in measured.SAID[name]():
        if words.startswith("| "):
            begin = " | ".join(words.split(" | ")[:keys]) + " |"
            lines = (ROOT / page).read_text(encoding="utf-8").splitlines()
            assert len([line for line in lines if line.strip().startswith(begin)]) == 1, words


def test_files_that_are_not_stored_are_named(capsys, monkeypatch):
    monkeypatch.setattr("sys.argv", ["store_printed.py", "--check"])
    monkeypatch.setitem(measured.SAID, "times/no_such.txt", lambda: iter(()))
    store_printed.main()
    said = capsys.readouterr().out
    assert "which are not stored: " in said
    assert "times/no_such.txt" in said
    assert "given_scores.txt" not in said


@pytest.mark.parametrize("name", [name for name in measured.SAID if name not in NOT_STORED])
def test_files_begin_with_their_command_and_the_computer(name):
    assert command_of(name) == f"python benchmarks/{store_printed.RUNS[name]}"
    computer = (RESULTS / name).read_text(encoding="utf-8").splitlines()[1]
    versions = r"Python [\d.]+, numpy [\d.]+; load average [\d.]+ before, [\d.]+ after"
    assert re.fullmatch(rf".+, \d+ CPUs; {versions}", computer)


def test_no_benchmark_with_numbers_is_left_out():
    stored = {store_printed.RUNS[name] for name in measured.SAID}
    for page in PAGES:
        text = " ".join(page.read_text(encoding="utf-8").split())
        for command in re.findall(r"`(?:python )?benchmarks/([^`]+)`", text):
            known = command in stored or command in OTHERWISE or "..." in command
            assert known, (
                f"{page.name} names benchmarks/{command}: store what it prints, or say why not"
            )


@pytest.fixture
def page(tmp_path, monkeypatch):
    """A page with two tables, in a folder that stands for the repository."""
    monkeypatch.setattr(store_printed, "ROOT", tmp_path)
    rows = [
        "| a | 10 | `x` |",
        "| a | all | 7 | 1.1 | 439 | 2 |",
        "| a | some | 7 | 1.1 | 439 | 2 |",
    ]
    path = tmp_path / "page.md"
    path.write_text("\n".join(["text", *rows, "  | b | 1 | 2 |", "end"]) + "\n", encoding="utf-8")
    return path


def test_a_row_is_put_in_its_place(page):
    assert store_printed.put("page.md", "| a | 11 | `x` |")
    assert store_printed.put("page.md", "| a | some | 7 | 2.2 * | 1,000 | 2 |", 2)
    assert store_printed.put("page.md", "| b | 3 | 4 |")
    assert page.read_text(encoding="utf-8").splitlines() == [
        "text",
        "| a | 11 | `x` |",
        "| a | all | 7 | 1.1 | 439 | 2 |",
        "| a | some | 7 | 2.2 * | 1,000 | 2 |",
        "  | b | 3 | 4 |",
        "end",
    ]


def test_a_row_without_a_place_is_not_put_anywhere(page):
    before = page.read_bytes()
    assert not store_printed.put("page.md", "| c | 11 | `x` |")
    assert not store_printed.put(
        "page.md", "| a | some | 7 | 2.2 * | 1,000 | 2 |"
    )  # two are like it
    assert page.read_bytes() == before


def test_cells_of_printed_tables(tmp_path, monkeypatch):
    monkeypatch.setattr(printed, "RESULTS", tmp_path)
    lines = ["$ python benchmarks/x.py", "a computer", "", "1. A title", ""]
    lines += [
        "|     | |V| | a b |",
        "|-----|-----|-----|",
        "| one |   2 | 3 s |",
        "|     |   4 |     |",
        "end",
    ]
    (tmp_path / "x.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert printed.command_of("x.txt") == "python benchmarks/x.py"
    assert printed.tables("x.txt") == [
        [{"": "one", "|V|": "2", "a b": "3 s"}, {"": "", "|V|": "4", "a b": ""}]
    ]


def test_the_number_at_the_beginning_of_a_cell():
    assert [printed.number(cell) for cell in ("1,234.5 s", "-0.02 [", ".5")] == [1234.5, -0.02, 0.5]
    assert [printed.number(cell) for cell in ("1.5e-05", "3e+02 s", "3 each")] == [1.5e-5, 300, 3]
    with pytest.raises(ValueError, match="no number: 'none'"):
        printed.number("none")


def test_rows_of_the_same_name_are_refused():
    rows = [{"": "a", "s": "1"}, {"": "b", "s": "2"}]
    assert printed.by_name(rows) == {"a": rows[0], "b": rows[1]}
    with pytest.raises(ValueError, match="two rows have the name 'a'"):
        printed.by_name([*rows, {"": "a", "s": "3"}])
