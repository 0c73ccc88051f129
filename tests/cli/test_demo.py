"""`deferlearn demo`: what it measures against plain loops, what it says against what it measured."""

import json
import re
from dataclasses import replace

import matplotlib.image
import numpy as np
import pytest
from scipy import stats
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from typer.testing import CliRunner

import deferlearn
from case_tables import make_cases
from deferlearn import AssistedSVC
from deferlearn.cli import _demo_report, _study
from deferlearn.cli import demo as command
from deferlearn.cli._study import EVERYONE, HUMAN, MACHINE, SHOWN, TEAM, TRIAGE, Findings, Setting
from deferlearn.cli.app import app
from deferlearn.datasets import load_breast_cancer, load_sleep
from deferlearn.evaluation import AutomationCurve
from deferlearn.report import case_report, select_report_cases
from deferlearn.tables import fit_table, select_cases
from deferlearn.teams import UncertaintyTriage

SMALL = Setting(
    name="small",
    title="Tumours, a SIMULATED expert",
    story="A small set.",
    simulated=True,
    load=lambda seed: [
        load_breast_cancer(random_state=seed),
        load_breast_cancer(random_state=seed + 1),
    ],
    policy="margin",
    n_splits=3,
)


@pytest.fixture(scope="module")
def small():
    return _study.study(SMALL, seed=4, n_jobs=None)


@pytest.fixture(scope="module")
def report():
    """Of a small model, without verdict and curves."""
    model = fit_table(select_cases(make_cases(), "diagnosis", humans=["reader_1"]), alpha=0.1)
    chosen = select_report_cases(make_cases(60, seed=3), model, humans=["reader_1"])
    return case_report(model, chosen, refit_cases=0)


@pytest.fixture
def run(monkeypatch):
    # Wide enough that rich breaks no line.
    monkeypatch.setenv("COLUMNS", "300")
    return lambda *words: CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture
def quick(run, small, report, monkeypatch):
    """Runs with the small setting and a small report measured already."""
    monkeypatch.setattr(_study, "SETTINGS", (SMALL, SMALL))
    monkeypatch.setattr(_study, "study", lambda setting, seed, n_jobs: small)
    monkeypatch.setattr(_demo_report, "measured_report", lambda seed, n_jobs, command: report)
    return run


# -- what is measured -------------------------------------------------------------------------


def test_errors_are_those_of_the_estimators_on_the_same_splits(small):
    """By plain loops over humans, splits and budgets."""
    sets = SMALL.load(4)
    splits = _study.shared_splits([data.groups for data in sets], 3, 4)
    errors = {who: np.zeros((2, 3, 3)) for who in EVERYONE}
    for i, (data, own) in enumerate(zip(sets, splits, strict=True)):
        for j, (train, test) in enumerate(own):
            scaler = StandardScaler().fit(data.data[train])
            X, X_test = scaler.transform(data.data[train]), scaler.transform(data.data[test])
            y, truth, human = data.target[train], data.target[test], data.human_labels[test]
            triage = UncertaintyTriage(alpha=_study.ALPHA, cv=None).fit(X, y)
            machine = triage.predict(X_test)
            for k, budget in enumerate(_study.BUDGETS):
                team = AssistedSVC(
                    budget=budget, alpha=_study.ALPHA, submodularity_ratio=_study.RATIO, cv=None,
                    random_state=4,
                ).fit(X, y, human_labels=data.human_labels[train])  # fmt: skip
                answers = {
                    MACHINE: machine,
                    HUMAN: human,
                    TEAM: team.predict_assisted(X_test, human, batch=True),
                    TRIAGE: np.where(triage.defer_top(X_test, budget), human, machine),
                }
                for who, said in answers.items():
                    errors[who][i, j, k] = np.mean(said != truth)
    for who in EVERYONE:
        expected = errors[who].mean(axis=0)
        np.testing.assert_allclose(small.curves[who].values["error"], expected, atol=1e-12)


def test_machine_and_human_by_scikit_learn(small):
    sets = SMALL.load(4)
    splits = _study.shared_splits([data.groups for data in sets], 3, 4)
    machine, human = [], []
    for data, own in zip(sets, splits, strict=True):
        for train, test in own:
            C = 1.0 / (2.0 * _study.ALPHA * len(train))
            svc = make_pipeline(StandardScaler(), SVC(kernel="linear", C=C, tol=1e-8))
            svc.fit(data.data[train], data.target[train])
            machine.append(np.mean(svc.predict(data.data[test]) != data.target[test]))
            human.append(np.mean(data.human_labels[test] != data.target[test]))
    for who, errors in ((MACHINE, machine), (HUMAN, human)):
        means = np.reshape(errors, (2, 3)).mean(axis=0)
        half = stats.t.ppf(0.975, 2) * means.std(ddof=1) / np.sqrt(3)
        found = small.error(who, 0.1)
        assert found.mean == pytest.approx(means.mean(), abs=1e-12)
        assert found.lower == pytest.approx(means.mean() - half, abs=1e-12)
        assert found.upper == pytest.approx(means.mean() + half, abs=1e-12)


def test_without_a_budget_everyone_but_the_human_is_the_machine(small):
    for who in (TEAM, TRIAGE):
        np.testing.assert_array_equal(
            small.curves[who].values["error"][:, 0], small.curves[MACHINE].values["error"][:, 0]
        )


@pytest.mark.parametrize("setting", _study.SETTINGS[:2], ids=lambda setting: setting.name)
def test_patients_are_on_one_side_for_all_readers(setting):
    sets = setting.load(0)
    assert len(sets) == 4
    splits = _study.shared_splits([data.groups for data in sets], 2, 7)
    for number in range(2):
        trained = np.concatenate([sets[i].groups[splits[i][number][0]] for i in range(4)])
        tested = np.concatenate([sets[i].groups[splits[i][number][1]] for i in range(4)])
        assert not set(trained.tolist()) & set(tested.tolist())
        for data, own in zip(sets, splits, strict=True):
            rows = np.sort(np.concatenate(own[number]))
            np.testing.assert_array_equal(rows, np.arange(len(data.target)))
            assert len(own[number][1]) / len(rows) == pytest.approx(0.4, abs=0.08)


def test_seed_decides_splits_and_expert():
    first, again, other = (_study.study(replace(SMALL, n_splits=2), s, None) for s in (1, 1, 2))
    for who in EVERYONE:
        np.testing.assert_array_equal(
            first.curves[who].values["error"], again.curves[who].values["error"]
        )
    assert (first.curves[HUMAN].values["error"] != other.curves[HUMAN].values["error"]).any()


# -- what is said -----------------------------------------------------------------------------


def findings(team, triage, machine=0.2):
    """Made-up errors that vary by 0.001 between splits."""
    noise = np.array([-0.001, 0.0, 0.001])

    def curve(level, slope):
        values = np.full((3, 3), level) + slope * noise[:, None]
        return AutomationCurve(np.array(_study.BUDGETS), {"error": values}, np.zeros((3, 3)))

    curves = {MACHINE: curve(machine, 1), HUMAN: curve(0.3, 1), TEAM: curve(team, 2)}
    return Findings(SMALL, {**curves, TRIAGE: curve(triage, 3)}, 100)


@pytest.mark.parametrize(
    ("team", "triage", "parts", "end"),
    [
        (
            0.1,
            0.15,
            ["errs 0.100 less than the machine", "It also errs less than uncertainty"],
            "yes.",
        ),
        (0.1, 0.1, ["errs 0.100 less than the machine", "does not clearly differ"], "yes."),
        (
            0.25,
            0.2,
            ["errs 0.050 more", "let the machine answer", "triage errs less"],
            "errs less.",
        ),
        (0.2, 0.2, ["does not clearly differ from the machine"], "no clear difference."),
    ],
)
def test_words_follow_the_intervals(team, triage, parts, end):
    result = findings(team, triage)
    said = _study.verdict(result)
    for part in parts:
        assert said.count(part) == 2  # once per budget
    assert command.conclusion([result]).endswith(end)
    assert "SIMULATED" in command.conclusion([result])


def test_budgets_that_disagree_are_not_averaged_away():
    result = findings(0.1, 0.2)
    result.curves[TEAM].values["error"][:, -1] += 0.2
    assert "errs 0.100 less" in _study.verdict(result)
    assert "errs 0.100 more" in _study.verdict(result)
    assert command.conclusion([result]).endswith("it depends on the budget.")


def test_tables_picture_and_report(quick, small, report, tmp_path):
    result = quick("demo", "--out", tmp_path / "new" / "folder")
    assert result.exit_code == 0, result.output
    picture, page = (tmp_path / "new" / "folder" / name for name in ("demo.png", "demo.html"))
    assert f"Picture: {picture}" in result.stdout
    assert f"Report: {page}" in result.stdout
    assert "evaluated on 60 epochs" in result.stdout
    assert page.read_text(encoding="utf-8") == report.to_html()
    assert sorted(picture.parent.iterdir()) == sorted([picture, page])
    assert matplotlib.image.imread(picture).shape == (720, 1650, 4)
    cells = r"(-?\+?[\d.]+) \[([-+\d.]+), ([-+\d.]+)\]"
    names = {
        MACHINE: "machine alone",
        HUMAN: "human alone",
        TEAM: r"team \(AssistedSVC\)",
        TRIAGE: TRIAGE,
    }
    for who, name in names.items():
        rows = re.findall(rf"│ {name} +│ +{cells} │ +{cells} │", result.stdout)
        assert len(rows) == 2  # two settings
        expected = [value for budget in SHOWN for value in vars(small.error(who, budget)).values()]
        np.testing.assert_allclose(np.array(rows[0], dtype=float), expected, atol=6e-4)
    for name, pair in command.COMPARED.items():
        (row, _) = re.findall(rf"│ {name} +│ +{cells} │ +{cells} │", result.stdout)
        expected = [v for b in SHOWN for v in vars(small.difference(*pair, b)).values()]
        np.testing.assert_allclose(np.array(row, dtype=float), expected, atol=6e-4)
    assert _study.verdict(small) in result.stdout
    assert command.NOTE in " ".join(result.stdout.split())  # longer than a line


def test_says_what_it_is_doing_where_nobody_watches(quick, tmp_path):
    lines = quick("demo", "--out", tmp_path).stderr.splitlines()
    assert "Compiling" in lines[0]
    assert lines[1:] == [
        *(f"{i} of 3: {SMALL.title}, 3 splits" for i in (1, 2)),
        f"3 of 3: {_demo_report.TITLE}",
    ]


def test_what_to_look_at_tells_the_verdict_of_the_report(report, tmp_path):
    text = "\n".join(command.what_to_look_at(report, tmp_path / "a.png", tmp_path / "a.html"))
    assert f"Does it pay to ask the expert? {report.numbers['effect']['headline']}" in text


def test_the_table_of_epochs_is_that_of_the_data_set():
    table, data = _demo_report.sleep_table(3), load_sleep(expert=_demo_report.EXPERT)
    n = len(table["truth"])
    assert len(set(table["epoch"])) == n == 80 * _demo_report.EPOCHS_PER_NIGHT
    place = {pair: row for row, pair in enumerate(zip(data.groups, data.epochs, strict=True))}
    rows = [place[tuple(map(int, re.findall(r"\d+", name)))] for name in table["epoch"]]
    np.testing.assert_array_equal(table["night"], data.groups[rows])
    np.testing.assert_array_equal(table["truth"] == "REM", data.target[rows] == 1)
    np.testing.assert_array_equal(table["expert"] == "REM", data.human_labels[rows] == 1)
    np.testing.assert_array_equal(table["sleeper"] == "healthy", data.sets[rows] == "dodh")
    for k, name in enumerate(_demo_report.AROUND):
        for stage in ("Wake", "N1", "N2", "N3", "REM"):
            column = data.feature_names.index(f"Tsinalis_{stage}_{f'{k - 2:+d}' if k != 2 else 0}")
            np.testing.assert_array_equal(table[name] == stage, data.data[rows, column] == 1)


def test_the_model_is_judged_on_other_nights(monkeypatch):
    seen = {}

    def watched(model, chosen, **options):
        seen.update(options, model=model, chosen=chosen)

    monkeypatch.setattr("deferlearn.report.case_report", watched)
    monkeypatch.setattr(_demo_report, "EPOCHS_PER_NIGHT", 4)  # a small table, fitted in no time
    _demo_report.measured_report(3, None, "the command")
    card, cases = seen["model"].card_, seen["chosen"].cases
    assert card["groups"] + len(set(cases.groups)) == 80  # no night is on both sides
    assert card["rows"] + len(cases) == 80 * 4
    assert set(card["columns"]) == set(_demo_report.AROUND)
    assert seen["chosen"].subgroup == "sleeper"
    assert (card["budget"], card["seed"], seen["seed"]) == (0.2, 3, 3)
    assert seen["provenance"] == {"command": "the command", "source": _demo_report.SOURCE}
    assert any("Dreem Open Datasets (MIT licence)" in note for note in seen["notes"])


def test_json(quick, small, tmp_path):
    result = quick("demo", "--json", "--out", tmp_path, "--seed", 5)
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    assert told["seed"] == 5
    assert told["picture"] == str(tmp_path / "demo.png")
    assert (tmp_path / "demo.png").exists()
    assert told["report"] == str(tmp_path / "demo.html")
    assert (tmp_path / "demo.html").exists()
    assert told["report_numbers"]["cases"]["rows"] == 60
    first = told["settings"][0]
    assert first["simulated"] is True
    assert [entry["budget"] for entry in first["results"]] == list(_study.BUDGETS)
    for entry in first["results"]:
        for who in EVERYONE:
            assert entry["error"][who] == vars(small.error(who, entry["budget"]))
        means = {who: entry["error"][who]["mean"] for who in EVERYONE}
        assert entry["difference"]["team - machine"]["mean"] == pytest.approx(
            means[TEAM] - means[MACHINE]
        )
        assert entry["difference"]["team - triage"]["mean"] == pytest.approx(
            means[TEAM] - means[TRIAGE]
        )


@pytest.mark.slow
def test_the_demo_itself(run, tmp_path):
    """Real answers do not help there, the simulated expert does: that is the demo's message."""
    result = run("demo", "--json", "--out", tmp_path)
    assert result.exit_code == 0, result.output
    everything = json.loads(result.stdout)
    assert everything["report_numbers"]["refits"]["skipped"] is None
    effect = everything["report_numbers"]["effect"]
    assert effect["answer"] == "fewer"
    assert effect["headline"] in (tmp_path / "demo.html").read_text(encoding="utf-8")
    told = {setting["name"]: setting for setting in everything["settings"]}
    for entry in told["nodules"]["results"][1:]:
        assert entry["difference"]["team - machine"]["lower"] > 0
    for entry in told["digits"]["results"][1:]:
        assert entry["difference"]["team - machine"]["upper"] < 0
    assert [told[name]["simulated"] for name in ("nodules", "nodules_decided", "digits")] == [
        False,
        False,
        True,
    ]


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
    assert "Compiling" not in result.stderr  # it is said before the work
    assert path.read_text() == "mine"


@pytest.mark.parametrize("name", ["demo.png", "demo.html"])
def test_a_folder_in_the_place_of_a_file(quick, tmp_path, name):
    (tmp_path / name).mkdir()
    result = quick("demo", "--out", tmp_path)
    assert_one_line_of_complaint(result, 2, "cannot write", name)
    assert "Compiling" not in result.stderr
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

    monkeypatch.setattr(_demo_report, "measured_report", stop)
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
