"""The documentation is right: its Python blocks and its commands run, its names and links exist."""

import ast
import importlib
import os
import pkgutil
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

import deferlearn
from deferlearn.cli.app import app

ROOT = Path(__file__).parents[1]
DOCS, EXAMPLES = ROOT / "docs", ROOT / "examples"
README = ROOT / "README.md"
PAGES = sorted([*DOCS.glob("*.md"), *DOCS.glob("howto/*.md"), *DOCS.glob("desk/*.md")])
GALLERY = sorted(EXAMPLES.rglob("plot_*.py"))
BLOCK = re.compile(r"^```(python|console)\n(.*?)^```", re.M | re.S)
# Commands of a page that are quick enough to run; of all commands the options are checked.
QUICK = ("fit", "apply", "report", "import-answers")
# The rooms with names for users; `kernels`, `cli` and `desk` serve other rooms, the shell and the network.
NO_NAMES = {"kernels", "cli", "desk"}
ROOMS = [
    f"deferlearn.{room.name}"
    for room in pkgutil.iter_modules(deferlearn.__path__)
    if room.ispkg and not room.name.startswith("_") and room.name not in NO_NAMES
]
# Public, but nothing to be called: a table of the experiments.
NOT_LISTED = {"EXPERIMENTS"}


def name_of(path):
    return path.relative_to(ROOT).as_posix()


def commands(text):
    return [line for line in text.splitlines() if line.startswith("deferlearn ")]


def run_python(code, page, names, capsys):
    exec(compile(code, str(page), "exec"), names)
    expected = re.findall(r"^print\(.*\)  # (.*)$", code, re.M)
    assert len(expected) == len(re.findall(r"^print\(", code, re.M))
    assert capsys.readouterr().out.splitlines() == expected


def run_commands(text):
    for line in commands(text):
        words = shlex.split(line)[1:]
        if words[0] in QUICK:
            result = CliRunner().invoke(app, words)
            assert result.exit_code == 0, result.output


@pytest.mark.parametrize("page", [p for p in PAGES if BLOCK.search(p.read_text())], ids=name_of)
def test_blocks_of_a_page_run_one_after_the_other(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "docs"}
    for kind, code in BLOCK.findall(page.read_text(encoding="utf-8")):
        if kind == "python":
            run_python(code, page, names, capsys)
        else:
            run_commands(code)


@pytest.mark.parametrize("page", [README, *PAGES], ids=name_of)
def test_options_of_commands_exist(page):
    known = typer.main.get_command(app).commands
    text = page.read_text(encoding="utf-8")
    in_text = re.findall(r"`(deferlearn [a-z][^`\n]*)`", text)
    for line in [*commands(text), *in_text]:
        words = shlex.split(line)[1:]
        assert words[0] in known, line
        command = known[words[0]]
        for word in words[1:]:
            if not hasattr(command, "commands"):
                break
            assert word in command.commands, line
            command = command.commands[word]
        options = {o for p in command.params for o in (*p.opts, *p.secondary_opts)}
        assert {word for word in words if word.startswith("--")} <= options, line


@pytest.mark.parametrize("page", [README, *PAGES], ids=name_of)
def test_files_that_a_page_names_exist(page):
    text = page.read_text(encoding="utf-8")
    for target in re.findall(r"\]\((?!http)([^)#]+)(?:#[^)]*)?\)", text):
        made = (page.parent / target).resolve()
        if "auto_examples" in target:
            made = EXAMPLES / "README.rst" if made.stem == "index" else example(made.stem)
        assert made.exists(), target
    for stem in re.findall(r"sphx_glr_(plot_\w+)_\d{3}\.png", text):
        assert example(stem).exists(), stem
    for script in re.findall(r"`python (benchmarks/\w+\.py)", text):
        assert (ROOT / script).exists(), script


def test_verdicts_are_those_of_the_generated_page():
    row = r"^\| (\w+) \| (.*?) \| (?:\*\*)?(holds|holds in part|does not hold)(?:\*\*)? \|"
    page = (DOCS / "results" / "repeated" / "results.md").read_text(encoding="utf-8")
    found = re.findall(row, page, re.M)
    assert found
    assert re.findall(row, (DOCS / "results.md").read_text(encoding="utf-8"), re.M) == found


def example(stem):
    return EXAMPLES / f"{stem}.py"


@pytest.fixture(scope="module")
def reference():
    """Owner and name of every entry of the reference, in its order."""
    text = (DOCS / "api.md").read_text(encoding="utf-8")
    blocks = re.findall(r"currentmodule:: (\S+)\n.*?:nosignatures:\n(.*?)```", text, re.S)
    return [(owner, name) for owner, body in blocks for name in body.split()]


@pytest.mark.parametrize("room", ["deferlearn", *ROOMS])
def test_every_public_name_is_in_the_reference_once(room, reference):
    listed = [getattr(importlib.import_module(owner), name) for owner, name in reference]
    module = importlib.import_module(room)
    for name in set(module.__all__) - NOT_LISTED:
        # The same object can be public in its room and at the front door.
        count = sum(entry is getattr(module, name) for entry in listed)
        assert count == 1, f"{room}.{name} is listed {count} times"


def test_the_reference_lists_public_names_only(reference):
    for owner, name in reference:
        assert name in importlib.import_module(owner).__all__, f"{owner}.{name}"


def test_names_of_the_front_door_are_listed_there(reference):
    assert {name for owner, name in reference if owner == "deferlearn"} == set(deferlearn.__all__)


@pytest.mark.parametrize("path", GALLERY, ids=name_of)
def test_an_example_fetches_nothing_and_imports_what_exists(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert ast.get_docstring(tree), "the gallery takes the title from it"
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module.startswith("deferlearn"):
            module = importlib.import_module(node.module)
            for alias in node.names:
                assert not alias.name.startswith("fetch_"), "examples need no network"
                assert hasattr(module, alias.name), alias.name


def test_there_are_examples():
    assert len(GALLERY) >= 8


def test_citation_names_version_and_paper():
    text = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"version: {deferlearn.__version__}\n" in text
    assert "Classification Under Human Assistance" in text


@pytest.mark.slow
def test_the_documentation_builds_without_a_warning(tmp_path):
    pytest.importorskip("sphinx_gallery")
    pytest.importorskip("pydata_sphinx_theme")
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1"}
    build = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-b", "html"]
    done = subprocess.run(
        [*build, str(DOCS), str(tmp_path / "html")],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert (tmp_path / "html" / "auto_examples" / "index.html").exists()
