"""`deferlearn demo`: what it measures against plain loops, what it says against what it measured."""

import json
import re
from dataclasses import replace

import matplotlib.image
import numpy as np
import pytest
from sklearn.svm import SVC
from typer.testing import CliRunner

import deferlearn
from case_tables import make_cases
from deferlearn import TeamCV
from deferlearn.cli import _stories
from deferlearn.cli import demo as command
from deferlearn.cli._stories import PLAIN, STORIES, Told
from deferlearn.cli.app import app
from deferlearn.datasets import load_lidc, load_sleep
from deferlearn.report import case_report, select_report_cases
from deferlearn.tables import fit_table, select_cases

SLEEP, NODULES = STORIES


@pytest.fixture(scope="module")
def report():
    """Of a small model, without verdict and curves."""
    model = fit_table(select_cases(make_cases(), "diagnosis", humans=["reader_1"]), alpha=0.1)
    chosen = select_report_cases(make_cases(60, seed=3), model, humans=["reader_1"])
    return case_report(model, chosen, refit_cases=0)


@pytest.fixture(scope="module")
def told(report):
    """Two stories that are told already."""
    plain = {"share": 0.25, "lower": 0.15, "upper": 0.375, "count": 15, "cases": 60}
    return [Told(story, report, plain) for story in STORIES]


@pytest.fixture
def run(monkeypatch):
    # Wide enough that rich breaks no line.
    monkeypatch.setenv("COLUMNS", "300")
    return lambda *words: CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture
def quick(run, told, monkeypatch):
    """Runs in which nothing is measured."""
    ready = {one.story.name: one for one in told}
    monkeypatch.setattr(_stories, "tell", lambda story, seed, n_jobs, command: ready[story.name])
    return run


# -- what is measured -------------------------------------------------------------------------


def test_the_table_of_epochs_is_that_of_the_data_set():
    table, data = _stories.sleep_table(3), load_sleep(expert=_stories.SLEEP_EXPERT)
    n = len(table["truth"])
    assert len(set(table["epoch"])) == n == 80 * _stories.EPOCHS_PER_NIGHT
    place = {pair: row for row, pair in enumerate(zip(data.groups, data.epochs, strict=True))}
    rows = [place[tuple(map(int, re.findall(r"\d+", name)))] for name in table["epoch"]]
    np.testing.assert_array_equal(table["night"], data.groups[rows])
    np.testing.assert_array_equal(table["truth"] == "REM", data.target[rows] == 1)
    np.testing.assert_array_equal(table["expert"] == "REM", data.human_labels[rows] == 1)
    np.testing.assert_array_equal(table["sleeper"] == "healthy", data.sets[rows] == "dodh")
    for k, name in enumerate(_stories.AROUND):
        for stage in ("Wake", "N1", "N2", "N3", "REM"):
            column = data.feature_names.index(f"Tsinalis_{stage}_{f'{k - 2:+d}' if k != 2 else 0}")
            np.testing.assert_array_equal(table[name] == stage, data.data[rows, column] == 1)


def test_the_table_of_nodules_is_that_of_the_data_set():
    table, data = _stories.nodule_table(3), load_lidc(reader=_stories.READER)
    assert len(set(table["nodule"])) == len(data.target)
    np.testing.assert_array_equal(table["patient"], data.groups)
    np.testing.assert_array_equal(table["truth"] == "malignant", data.target == 1)
    np.testing.assert_array_equal(table["expert"] == "malignant", data.human_labels == 1)
    columns = np.column_stack([table[name] for name in data.feature_names])
    np.testing.assert_array_equal(columns, data.data)


def test_no_group_is_on_both_sides():
    groups = np.random.default_rng(0).integers(40, size=300)
    train, test = _stories.split(groups, 7)
    assert not set(groups[train]) & set(groups[test])
    np.testing.assert_array_equal(np.sort([*train, *test]), np.arange(300))
    assert len(set(groups[test])) == 16  # 40%


def test_the_model_is_the_default_one_and_is_judged_on_other_groups(monkeypatch):
    """Fitted by the default road of `deferlearn fit`, so by TeamCV; the search itself is made short."""
    monkeypatch.setattr(_stories, "EPOCHS_PER_NIGHT", 3)
    seen = {}

    def short(self, *args, **kwargs):
        seen["search"] = self
        self.set_params(machines=("linear",), policies=("uncertainty",), alphas=[0.1], n_repeats=1)
        return real(self, *args, **kwargs)

    def watched(model, chosen, **options):
        seen.update(options, model=model, chosen=chosen)

    real = TeamCV.fit
    monkeypatch.setattr(TeamCV, "fit", short)
    monkeypatch.setattr("deferlearn.report.case_report", watched)
    told = _stories.tell(SLEEP, 3, None, "the command")
    card, cases = seen["model"].card_, seen["chosen"].cases
    assert isinstance(seen["model"].team, TeamCV)
    assert seen["search"].budget == card["budget"] == _stories.BUDGET
    assert card["groups"] + len(set(cases.groups)) == 80  # no night is on both sides
    assert card["rows"] + len(cases) == 80 * 3
    assert set(card["columns"]) == set(_stories.AROUND)
    assert seen["chosen"].subgroup == "sleeper"
    assert (card["seed"], seen["seed"]) == (3, 3)
    assert seen["provenance"] == {"command": "the command", "source": SLEEP.title}
    assert any("Dreem Open Datasets (MIT licence)" in note for note in seen["notes"])

    # SVC() on the same features, encoded by hand.
    table = _stories.sleep_table(3)
    train, test = _stories.split(table["night"], 3)
    words = np.column_stack([table[name] for name in _stories.AROUND])
    X = (words[:, :, None] == ["Wake", "N1", "N2", "N3", "REM", "none"]).reshape(len(words), -1)
    said = SVC().fit(X[train], table["truth"][train]).predict(X[test])
    assert told.plain["cases"] == len(test)
    assert abs(told.plain["count"] - (said != table["truth"][test]).sum()) <= 2


# -- what is said -----------------------------------------------------------------------------


def test_tables_picture_and_reports(quick, report, tmp_path):
    result = quick("demo", "--out", tmp_path / "new" / "folder")
    assert result.exit_code == 0, result.output
    names = ("demo.png", "nodules.html", "sleep.html")
    picture, *pages = (tmp_path / "new" / "folder" / name for name in names)
    assert f"Picture: {picture}" in result.stdout
    for page in pages:
        assert str(page) in result.stdout
        assert page.read_text(encoding="utf-8") == report.to_html()
    assert sorted(picture.parent.iterdir()) == sorted([picture, *pages])
    assert matplotlib.image.imread(picture).shape == (630, 1650, 4)
    shown = {PLAIN: (0.25, 0.15, 0.375)}
    for who, name in command.NAMES.items():
        found = report.numbers["errors"][who]
        shown[name] = (found["share"], found["lower"], found["upper"])
    asked = report.numbers["effect"]["deferred"]
    shown["cases that the expert gets"] = (asked["share"], asked["lower"], asked["upper"])
    change = report.numbers["effect"]["difference"]
    shown["team minus machine"] = (change["difference"], change["lower"], change["upper"])
    for name, expected in shown.items():
        cells = r" +│ +([-+\d.]+)% │ +([-+\d.]+)% to ([-+\d.]+)% │"
        rows = re.findall(rf"│ {re.escape(name)}{cells}", result.stdout)
        assert len(rows) == 2  # two stories
        np.testing.assert_allclose(
            np.array(rows[0], dtype=float), 100 * np.array(expected), atol=0.051
        )
    for story in STORIES:
        assert story.title in result.stdout
        assert story.text in result.stdout
    said = f"Does it pay to ask the expert? {report.numbers['effect']['headline']}"
    assert result.stdout.count(said) == 2
    assert command.NOTE in " ".join(result.stdout.split())


def test_a_team_that_hardly_asks_says_why(told):
    one = told[1]
    assert "hardly asks" not in command.verdict(one)
    numbers = json.loads(json.dumps(one.report.numbers))
    numbers["effect"]["deferred"]["share"] = 0.005
    quiet = replace(one, report=replace(one.report, numbers=numbers))
    assert "may ask about 10% of the cases, and hardly asks" in command.verdict(quiet)


def test_says_what_it_is_doing_where_nobody_watches(quick, tmp_path):
    lines = quick("demo", "--out", tmp_path).stderr.splitlines()
    assert [line.split(" (")[0] for line in lines] == [
        f"1 of 2: {SLEEP.title}",
        f"2 of 2: {NODULES.title}",
    ]
    assert "compiles" in lines[0]
    assert "compiles" not in lines[1]


def test_json(quick, report, tmp_path):
    result = quick("demo", "--json", "--out", tmp_path, "--seed", 5)
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    assert told["seed"] == 5
    assert told["picture"] == str(tmp_path / "demo.png")
    assert (tmp_path / "demo.png").exists()
    assert [story["name"] for story in told["stories"]] == ["sleep", "nodules"]
    for story in told["stories"]:
        assert story["report"] == str(tmp_path / f"{story['name']}.html")
        assert (tmp_path / f"{story['name']}.html").exists()
        assert story["report_numbers"]["cases"]["rows"] == 60
        assert story["errors"][PLAIN]["count"] == 15
        assert story["errors"]["team"] == report.numbers["errors"]["team"]


@pytest.mark.slow
def test_the_demo_itself(run, tmp_path):
    """Asking pays in the one story and not in the other, and nowhere is `SVC()` clearly better."""
    result = run("demo", "--json", "--out", tmp_path)
    assert result.exit_code == 0, result.output
    told = {story["name"]: story for story in json.loads(result.stdout)["stories"]}
    sleep, nodules = (told[name]["report_numbers"]["effect"] for name in ("sleep", "nodules"))
    assert sleep["answer"] == "fewer"
    assert nodules["answer"] in ("unclear", "not asked")
    assert nodules["deferred"]["share"] < 0.02
    for story in told.values():
        assert story["report_numbers"]["refits"]["skipped"] is None
        headline = story["report_numbers"]["effect"]["headline"]
        assert headline in (tmp_path / f"{story['name']}.html").read_text(encoding="utf-8")
        assert story["errors"]["team"]["lower"] < story["errors"][PLAIN]["share"]
    assert told["sleep"]["errors"]["team"]["share"] < told["sleep"]["errors"][PLAIN]["share"]


# -- what cannot be done ----------------------------------------------------------------------


def assert_one_line_of_complaint(result, code, *parts):
    assert result.exit_code == code
    assert isinstance(result.exception, SystemExit)
    last = result.stderr.strip().splitlines()[-1]
    for part in ("deferlearn demo: ", *parts):
        assert part in last


@pytest.mark.parametrize("below", ["", "new"])
def test_folder_that_is_a_file(quick, tmp_path, below):
    path = tmp_path / "taken"
    path.write_text("mine")
    result = quick("demo", "--out", path / below)
    assert_one_line_of_complaint(result, 2, "cannot use", "--out", str(path))
    assert "1 of 2" not in result.stderr  # it is said before the work
    assert path.read_text() == "mine"


@pytest.mark.parametrize("name", ["demo.png", "sleep.html", "nodules.html"])
def test_a_folder_in_the_place_of_a_file(quick, tmp_path, name):
    (tmp_path / name).mkdir()
    result = quick("demo", "--out", tmp_path)
    assert_one_line_of_complaint(result, 2, "cannot write", name)
    assert "1 of 2" not in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_disk_that_is_full_leaves_neither_file_nor_folder(quick, tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError(28, "No space left on device")

    old = tmp_path / "old"
    old.mkdir()
    (old / "demo.png").write_text("the old one")
    monkeypatch.setattr("deferlearn.report.CaseReport.to_html", refuse)
    for out in (tmp_path / "new" / "folder", old):
        result = quick("demo", "--out", out)
        assert_one_line_of_complaint(result, 1, "No space left on device", "nothing was changed")
    assert [path.name for path in tmp_path.iterdir()] == ["old"]
    assert [path.read_text() for path in old.iterdir()] == ["the old one"]


def test_ctrl_c_leaves_nothing(quick, tmp_path, monkeypatch):
    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(_stories, "tell", stop)
    result = quick("demo", "--out", tmp_path / "new" / "folder")
    assert_one_line_of_complaint(result, 130, "stopped; nothing was changed")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["matplotlib", "pyarrow", "pandas", "jinja2"])
def test_without_what_it_needs(quick, tmp_path, monkeypatch, name):
    monkeypatch.setattr(
        "deferlearn.cli._errors.find_spec", lambda other: None if other == name else True
    )
    result = quick("demo", "--out", tmp_path / "new")
    assert_one_line_of_complaint(result, 1, name, "pip install 'deferlearn[cli]'")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("seed", [-1, 2**32, "x"])
def test_wrong_seed_is_a_usage_error(run, tmp_path, seed):
    result = run("demo", "--out", tmp_path / "new", f"--seed={seed}")
    assert result.exit_code == 2
    assert "--seed" in result.stderr
    assert not (tmp_path / "new").exists()


def test_version_and_help(run):
    assert run("--version").output.strip() == f"deferlearn {deferlearn.__version__}"
    assert "demo" in run("--help").output
    assert run().exit_code == 2
