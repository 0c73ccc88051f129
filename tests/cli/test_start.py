"""What a command loads before it answers: nothing that it does not use."""

import subprocess
import sys

import pytest

import deferlearn
from case_tables import make_cases, write_csv
from deferlearn.tables import fit_table, select_cases

ENGINE = {"scipy", "sklearn", "numba", "joblib", "skops"}
SERVICE = {"sqlalchemy", "alembic", "fastapi", "starlette", "uvicorn", "argon2"}
HEAVY = ENGINE | SERVICE | {"numpy", "pandas", "pyarrow", "matplotlib", "jinja2", "dask"}
COMMANDS = ("demo", "fit", "apply", "report", "import-answers", "reproduce", "bench", "bench team")
COMMANDS += ("desk", "desk init", "desk serve", "desk user add", "desk audit verify")
CODE = """
import sys
from deferlearn.cli import main
try:
    main()
except SystemExit as ended:
    code = ended.code
else:
    code = 0
print("loaded", *sys.modules)
sys.exit(code)
"""


def run(*words):
    """The exit code, what was printed, and the packages that were loaded."""
    command = [sys.executable, "-c", CODE, *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    printed, _, modules = done.stdout.rpartition("loaded ")
    loaded = {name.partition(".")[0] for name in modules.split()}
    return done.returncode, printed + done.stderr, loaded


def test_the_version_needs_nothing():
    code, text, loaded = run("--version")
    assert (code, text) == (0, f"deferlearn {deferlearn.__version__}\n")
    assert not loaded & (HEAVY | {"typer", "rich"})


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_needs_no_library_of_numbers(command):
    code, text, loaded = run(*command.split(), "--help")
    assert code == 0
    assert "Usage" in text
    assert not loaded & HEAVY


@pytest.mark.parametrize(
    "words",
    [
        ["frobnicate"],
        ["fit", "--frobnicate"],
        ["fit", "cases.csv", "--label", "truth"],
        ["apply", "model.skops", "new.csv"],
        ["fit", "cases.csv", "--label", "truth", "--out", "m.skops", "--seed", "many"],
        ["fit", "cases.csv", "--label", "truth", "--out", "m.skops", "--budget", "many"],
    ],
    ids=" ".join,
)
def test_a_mistake_in_the_options_needs_no_library_of_numbers(words):
    code, _, loaded = run(*words)
    assert code == 2
    assert not loaded & HEAVY


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    columns = make_cases()
    del columns["patient"]
    cases = select_cases(columns, "diagnosis", humans=["reader_1", "reader_2"], identifier="id")
    deferlearn.save(fit_table(cases, alpha=0.1), folder / "model.skops")
    write_csv(folder / "cases.csv", columns)
    return folder


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["fit", "none.csv", "--label", "diagnosis"], "cannot read"),
        (["fit", "cases.csv", "--label", "truth"], "has no column 'truth'"),
        (["apply", "none.skops", "cases.csv"], "cannot read"),
        (["apply", "cases.csv", "cases.csv"], "no model"),
        (["apply", "model.skops", "none.csv"], "cannot read"),
        (["report", "none.skops", "cases.csv"], "cannot read"),
        (["report", "model.skops", "none.csv"], "cannot read"),
        (["report", "model.skops", "cases.csv", "--label", "truth"], "has no column 'truth'"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_wrong_file_needs_no_engine(files, words, said):
    command, *rest = words
    paths = [files / word if word.endswith((".csv", ".skops")) else word for word in rest]
    code, text, loaded = run(command, *paths, "--out", files / "out")
    assert code == 2
    assert said in text
    assert not loaded & ENGINE


@pytest.mark.parametrize("options", [[], ["--batch", "--audit", "0.1", "--json"]])
def test_apply_needs_no_engine(files, options):
    words = [files / "model.skops", files / "cases.csv", "--out", files / "routed.csv"]
    code, text, loaded = run("apply", *words, *options)
    assert code == 0, text
    assert len((files / "routed.csv").read_text().splitlines()) == 81
    assert not loaded & ENGINE
