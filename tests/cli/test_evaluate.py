"""`deferlearn evaluate`: from a table to a report by cross-validation, in one step."""

import json

import pytest
from typer.testing import CliRunner

import deferlearn
from case_tables import make_cases, write_csv
from deferlearn.cli import evaluate as command
from deferlearn.cli.app import app
from deferlearn.report import about

WORDS = ("--label", "diagnosis", "--human", "reader_1", "--human", "reader_2", "--id", "id")


@pytest.fixture
def run(monkeypatch):
    monkeypatch.setenv("COLUMNS", "300")
    return lambda *words: CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture
def cases(tmp_path):
    return write_csv(tmp_path / "cases.csv", make_cases(60))


def test_fit_and_report_in_one_step(run, cases, tmp_path, monkeypatch):
    # Verdict and curves, which take their time, are tested with the report.
    monkeypatch.setattr("deferlearn.report.refit_study.RefitStudy.obstacle", lambda self: "not now")
    rate_of = about.deferral_rate

    def other_rate(*given):
        """As if the model deferred nearly all of its own training cases."""
        rate = rate_of(*given)
        return rate | {"observed": rate["observed"] | {"share": 0.99}}

    monkeypatch.setattr(about, "deferral_rate", other_rate)
    out, model = tmp_path / "report.html", tmp_path / "model.skops"
    words = ("--drop", "patient", "--alpha", "0.1", "--quick", "--model", model, "--out", out)
    result = run("evaluate", cases, *WORDS, *words)
    assert result.exit_code == 0, result.output
    assert "reader_1" in result.stdout  # what was fitted
    assert f"Report: {out}" in result.stdout
    shown = result.stdout
    assert deferlearn.load(model).card_["budget"] == 0.2
    result = run("evaluate", cases, *WORDS, *words[:-4], "--out", out, "--json")
    told = json.loads(result.stdout)
    assert told["cases"]["seen_in_training"]
    assert told["report"] == str(out)
    # The share in the terminal is that of the teams whose errors it prints, not of the model.
    share = told["effect"]["deferred"]["share"]
    assert share != 0.99
    assert f"{share:.1%}; expected" in shown
    assert "deferlearn evaluate" in out.read_text()
    assert {p.name for p in tmp_path.iterdir()} == {"cases.csv", "report.html", "model.skops"}


def test_mistakes_leave_nothing(run, cases, tmp_path):
    result = run("evaluate", cases, "--label", "Diagnose", "--out", tmp_path / "report.html")
    assert result.exit_code == 2
    assert "'diagnosis'" in result.stderr
    assert result.stderr.startswith("deferlearn evaluate: ")  # the user has not called fit
    assert [p.name for p in tmp_path.iterdir()] == ["cases.csv"]


def test_mistakes_of_the_report_have_the_name_of_the_command(run, cases, tmp_path):
    words = ("--alpha", "0.1", "--subgroup", "Haus", "--out", tmp_path / "report.html")
    result = run("evaluate", cases, *WORDS, *words, "--quiet")
    assert result.exit_code == 2
    assert result.stderr.splitlines()[-1].startswith("deferlearn evaluate: ")
    assert "given by --subgroup" in result.stderr


def test_help_has_examples(run):
    text = " ".join(run("evaluate", "--help").output.split())
    for line in command.EXAMPLES.split("\n\n"):
        assert " ".join(line.split()) in text


def test_shells_can_complete(run):
    assert "--install-completion" in run("--help").output
