"""The summary of a test run counts what did not run."""

import pytest

from summarise_tests import summarise


@pytest.fixture
def report(tmp_path):
    path = tmp_path / "tests.xml"
    skipped = '<skipped type="pytest.skip" message="no Chromium"/>'
    cases = {
        "a.test_good": "",
        "a.test_expected": '<skipped type="pytest.xfail" message="no"/>',
        "b.test_page": skipped,
        "a.test_bad": '<failure message="1 != 2"/>',
        "c.test_setup": '<error message="no"/>',
        "b.test_print": skipped,
    }
    lines = [
        f'<testcase classname="tests.{name[0]}" name="{name[2:]}">{inside}</testcase>'
        for name, inside in cases.items()
    ]
    path.write_text(f"<testsuites><testsuite>{''.join(lines)}</testsuite></testsuites>")
    return path


def test_skipped_tests_are_named_with_their_reason_and_counted_last(report):
    assert summarise(report) == [
        "Skipped, 2 of them: no Chromium",
        "    tests.b.test_page",
        "    tests.b.test_print",
        "Failed: tests.a.test_bad",
        "Failed: tests.c.test_setup",
        "2 passed, 2 failed, 2 skipped",
    ]


def test_it_reads_what_pytest_writes(pytester_run):
    assert pytester_run("def test_a(): pass")[-1] == "1 passed, 0 failed, 0 skipped"
    lines = pytester_run("import pytest\n\ndef test_b():\n    pytest.skip('no time')")
    assert lines == [
        "Skipped, 1 of them: no time",
        "    test_made.test_b",
        "0 passed, 0 failed, 1 skipped",
    ]


@pytest.fixture
def pytester_run(tmp_path):
    import subprocess
    import sys

    def run(code):
        (tmp_path / "test_made.py").write_text(code)
        words = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--junitxml=made.xml"]
        subprocess.run(words, cwd=tmp_path, capture_output=True, timeout=60)
        return summarise(tmp_path / "made.xml")

    return run
