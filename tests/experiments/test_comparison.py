"""Tuned teams against tuned baselines: the splits, the table, and the command that prints it."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import ttest_rel
from typer.testing import CliRunner

from deferlearn.cli.app import app
from deferlearn.experiments import comparison
from deferlearn.experiments.comparison import (
    BASELINES,
    TEAM,
    comparison_counts,
    comparison_jobs,
    comparison_table,
    comparison_work,
)
from deferlearn.experiments.comparison_data import NAMES, comparison_split

OPEN = ("lidc-majority", "breast-cancer", "digits", "linear", "quadratic")


@pytest.mark.parametrize("name", OPEN)
def test_splits(name):
    split, again, other = (
        comparison_split(name, 3),
        comparison_split(name, 3),
        comparison_split(name, 4),
    )
    np.testing.assert_array_equal(split.X_train, again.X_train)
    np.testing.assert_array_equal(split.human_test, again.human_test)
    assert split.X_train.shape != other.X_train.shape or (split.X_train != other.X_train).any()
    assert set(np.unique(split.y_train)) == set(np.unique(split.y_test)) == {-1, 1}
    n_train, n_test = len(split.y_train), len(split.y_test)
    assert abs(n_test / (n_train + n_test) - 0.4) < 0.03
    # No case is on both sides; of patients neither.
    rows = {row.tobytes() for row in split.X_train.round(9)}
    shared = [row for row in split.X_test.round(9) if row.tobytes() in rows]
    assert len(shared) <= (5 if name == "digits" else 0)  # digits has a few equal rows


def test_experts_err_by_region():
    split = comparison_split("digits", 0)
    wrong = np.concatenate([split.human_train != split.y_train, split.human_test != split.y_test])
    X = np.vstack([split.X_train, split.X_test])
    X = (X - X.mean(axis=0)) / np.where(X.std(axis=0) > 0, X.std(axis=0), 1.0)
    first = np.linalg.svd(X, full_matrices=False)[2][0]
    rates = sorted([wrong[X @ first > 0].mean(), wrong[X @ first <= 0].mean()])
    np.testing.assert_allclose(rates, [0.05, 0.35], atol=0.03)


def test_unknown_data():
    with pytest.raises(ValueError, match="no data set is named 'iris'; there are messidor"):
        comparison_split("iris", 0)


def test_jobs_differ_in_split_and_data():
    jobs = comparison_jobs(["digits", "linear"], 3, seed=5)
    assert [(job.parameters["seed"], job.parameters["dataset"]) for job in jobs] == [
        (seed, name) for seed in (5, 6, 7) for name in ("digits", "linear")
    ]
    assert len({job.key for job in jobs}) == 6


@pytest.fixture(scope="module")
def rows():
    (job,) = comparison_jobs(["linear"], 1, budgets=[0.1, 0.3])
    return pd.DataFrame(comparison_work({**job.parameters, "alphas": [0.1]}))


def test_work(rows):
    assert list(rows["method"].unique()) == [TEAM, *BASELINES]
    assert list(rows["budget"].unique()) == [0.1, 0.3]
    assert (rows["asked"] <= rows["budget"]).all()
    alone = rows[rows["method"] == "automation"]
    assert (alone["asked"] == 0).all()
    assert alone["error"].nunique() == 1
    # Fitted by hand: the machine's errors on the test part, and those of the least sure for humans.
    from sklearn.svm import SVC

    split = comparison_split("linear", 0)
    n = len(split.y_train)
    machine = SVC(kernel="linear", C=1 / (2 * 0.1 * n), tol=1e-9).fit(split.X_train, split.y_train)
    margin = machine.decision_function(split.X_test)
    said = np.where(margin > 0, 1, -1)
    assert alone["error"].iloc[0] == np.mean(said != split.y_test)
    asked = np.argsort(np.abs(margin))[: int(0.3 * len(margin))]
    said[asked] = split.human_test[asked]
    by_hand = np.mean(said != split.y_test)
    found = rows[(rows["method"] == "uncertainty") & (rows["budget"] == 0.3)]
    np.testing.assert_allclose(found["error"], by_hand, atol=1e-12)


def made_up(seed=0):
    """Ten splits of one data set at two budgets; the team is clearly better at the second."""
    rng = np.random.RandomState(seed)
    return pd.DataFrame(
        {
            "dataset": "made up",
            "budget": budget,
            "seed": split,
            "method": method,
            "error": 0.2 + 0.01 * rng.rand() - (0.1 if method == TEAM and budget > 0.2 else 0.0),
            "asked": budget,
            "humans": 0.1,
            "policy": "margin" if split else "uncertainty",
        }
        for budget in (0.1, 0.3)
        for split in range(10)
        for method in (TEAM, *BASELINES)
    )


def test_table_has_paired_intervals():
    rows = made_up()
    table = comparison_table(rows)
    for line in table.to_dict("records"):
        cell = rows[rows["budget"] == line["budget"]].pivot(
            index="seed", columns="method", values="error"
        )
        for name in BASELINES:
            interval = ttest_rel(cell[TEAM], cell[name]).confidence_interval(0.95)
            np.testing.assert_allclose([line[f"low {name}"], line[f"high {name}"]], interval)
            np.testing.assert_allclose(line[f"minus {name}"], (cell[TEAM] - cell[name]).mean())
        assert line["policy"] == "margin"
        assert line["splits"] == 10
    for counts in comparison_counts(table).values():
        assert counts["cells"] == 2
        assert counts["better"] == 1
        assert counts["worse"] == 0
    worse = rows.assign(error=rows["error"] + 0.15 * (rows["method"] == TEAM))
    for counts in comparison_counts(comparison_table(worse)).values():
        assert counts["worse"] == counts["much worse"] == 2


def pretend(parameters):
    """What a job would return, at once."""
    rows = made_up(parameters["seed"])
    return rows[rows["seed"] == 0].drop(columns=["dataset", "seed"]).to_dict("records")


@pytest.fixture
def run(monkeypatch):
    monkeypatch.setenv("COLUMNS", "300")
    monkeypatch.setattr(comparison, "comparison_work", pretend)
    return lambda *words: CliRunner().invoke(app, ["bench", "team", *(str(word) for word in words)])


def test_command(run, tmp_path):
    words = ["digits", "linear", "--out", tmp_path, "--splits", 3, "--seed", 4, "--jobs", 1]
    result = run(*words)
    assert result.exit_code == 0, result.output
    assert "seeds 4 to 6" in result.output
    assert "against uncertainty: cells 4" in result.output
    rows = pd.read_parquet(tmp_path / "team" / "rows.parquet")
    assert sorted(rows["seed"].unique()) == [4, 5, 6]
    table = pd.read_csv(tmp_path / "team" / "team.csv")
    assert list(table["dataset"]) == ["digits", "digits", "linear", "linear"]
    assert (table["splits"] == 3).all()
    page = (tmp_path / "team" / "team.md").read_text()
    assert "`deferlearn bench team digits linear --splits 3 --seed 4`" in page
    assert "seeds 4 to 6" in page
    # At the larger budget the team is better by a tenth, at the smaller one by nothing.
    assert "| uncertainty | 2 | 2 | 0 | 0 |" in page
    assert page.count("better") == 2 * len(BASELINES) + 1
    assert "| all | 12 |" in page  # two data sets, three splits, two budgets, one policy
    assert (tmp_path / "team" / "team.png").stat().st_size > 1000


def test_command_goes_on(run, tmp_path, monkeypatch):
    assert run("linear", "--out", tmp_path, "--splits", 2, "--jobs", 1).exit_code == 0
    asked = []
    monkeypatch.setattr(
        comparison, "comparison_work", lambda p: asked.append(p["seed"]) or pretend(p)
    )
    result = run("linear", "--out", tmp_path, "--splits", 4, "--jobs", 1)
    assert result.exit_code == 0, result.output
    assert asked == [2, 3]


def test_quick_is_five_splits(run, tmp_path):
    assert run("linear", "--out", tmp_path, "--quick", "--jobs", 1).exit_code == 0
    assert pd.read_csv(tmp_path / "team" / "team.csv")["splits"].tolist() == [5, 5]


def test_command_refuses_other_data(run, tmp_path):
    result = run("iris", "--out", tmp_path / "new")
    assert result.exit_code == 2
    assert "no data set has the name 'iris'; use " + ", ".join(NAMES) in result.output
    assert not (tmp_path / "new").exists()


def test_job_that_fails(run, tmp_path, monkeypatch):
    def fail(parameters):
        raise RuntimeError("out of luck")

    monkeypatch.setattr(comparison, "comparison_work", fail)
    result = run("linear", "--out", tmp_path, "--splits", 2, "--jobs", 1)
    assert result.exit_code not in (0, 2)
    assert "out of luck" in result.output
    assert "Traceback" not in result.output
