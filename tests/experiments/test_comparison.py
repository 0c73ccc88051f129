"""Tuned teams against baselines and peers: the splits, the table, and the command that prints it."""

import re

import numpy as np
import pandas as pd
import pytest
from scipy.stats import ttest_rel
from typer.testing import CliRunner

from deferlearn.cli.app import app
from deferlearn.experiments import comparison
from deferlearn.experiments.comparison import (
    BASELINES,
    PARTS,
    SVM_TEAM,
    TEAM,
    comparison_jobs,
    comparison_work,
)
from deferlearn.experiments.comparison_data import NAMES, comparison_split
from deferlearn.experiments.comparison_peers import PEERS
from deferlearn.experiments.comparison_table import (
    BEST_PEER,
    comparison_counts,
    comparison_table,
    dataset_differences,
    group_means,
    rivals_in,
    seconds_per_method,
    with_best_peer,
)
from deferlearn.teams import AssistedSVCCV

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


def test_splits_of_sleep_keep_nights_together():
    from deferlearn.datasets import load_sleep

    split, again = comparison_split("sleep", 3), comparison_split("sleep", 3)
    np.testing.assert_array_equal(split.X_test, again.X_test)
    assert len(set(split.groups_train)) == 24
    assert 1400 < len(split.y_train) < 1700
    assert 5000 < len(split.y_test) < 6500
    assert set(np.unique(split.y_train)) == set(np.unique(split.human_test)) == {-1, 1}
    # Expert 4 = 1 + 3 % 5; the test part by the nights that come next.
    data = load_sleep(expert=4)
    nights = np.setdiff1d(np.unique(data.groups), split.groups_train)
    taken = np.isin(data.groups, np.unique(split.groups_train)) & ~np.isnan(data.human_labels)
    np.testing.assert_array_equal(split.X_train, data.data[taken][::15])
    np.testing.assert_array_equal(split.human_train, data.human_labels[taken][::15])
    assert len(nights) == 56
    assert (comparison_split("sleep", 4).human_test != split.human_test[:1]).any()


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


def test_jobs_differ_in_split_data_and_part():
    jobs = comparison_jobs(["digits", "linear"], 3, seed=5, parts=["peers", "team"])
    found = [tuple(job.parameters[k] for k in ("seed", "dataset", "part")) for job in jobs]
    assert found == [
        (seed, name, part)
        for seed in (5, 6, 7)
        for name in ("digits", "linear")
        for part in ("peers", "team")
    ]
    assert len({job.key for job in jobs}) == 12
    assert all(job.key.startswith(f"team-{job.parameters['part']}-") for job in jobs)
    assert len(comparison_jobs(splits=20)) == 20 * len(NAMES) * len(PARTS)


def rows_of(part, **changed):
    (job,) = comparison_jobs(["linear"], 1, budgets=[0.1, 0.3], parts=[part])
    return pd.DataFrame(comparison_work({**job.parameters, **changed}))


def test_baselines():
    rows = rows_of("baselines", alphas=[0.1])
    assert list(rows["method"].unique()) == list(BASELINES)
    assert list(rows["budget"].unique()) == [0.1, 0.3]
    assert (rows["asked"] <= rows["budget"]).all()
    assert (rows["machine"].str.startswith("kernel linear, alpha 0.1")).all()
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


@pytest.mark.parametrize(("part", "name"), [("team", TEAM), ("svm", SVM_TEAM)])
def test_searches(part, name, monkeypatch):
    small = {"alphas": [0.1], "policies": ["uncertainty", "margin", "automation"]}

    def search(random_state, classes):
        return AssistedSVCCV(**small, random_state=random_state, classes=classes)

    monkeypatch.setattr(comparison, "TEAM_SEARCH", search)
    monkeypatch.setattr(comparison, "AssistedSVCCV", search)
    rows = rows_of(part)
    assert list(rows["method"]) == [name, name]
    assert (rows["asked"] <= rows["budget"]).all()
    assert ((rows["cv_error"] > 0) & (rows["cv_error"] < 0.5)).all()
    assert (rows["n_test"] == 160).all()
    assert set(rows["policy"]) <= set(small["policies"])


METHODS = (TEAM, SVM_TEAM, *BASELINES, *PEERS)
PART_OF = {
    **dict.fromkeys(PEERS, "peers"),
    **dict.fromkeys(BASELINES, "baselines"),
    SVM_TEAM: "svm",
    TEAM: "team",
}


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
            "cv_error": 0.2 + 0.01 * rng.rand(),
            "asked": budget,
            "humans": 0.1,
            "policy": "margin" if split else "uncertainty",
            "machine": "alpha 1",
            "seconds": 0.5,
        }
        for budget in (0.1, 0.3)
        for split in range(10)
        for method in METHODS
    )


def test_best_peer_is_the_one_that_cross_validation_picks():
    rows = made_up()
    every = with_best_peer(rows)
    assert len(every) == len(rows) + 20
    picked = every[every["method"] == BEST_PEER]
    for line in picked.to_dict("records"):
        cell = rows[(rows["budget"] == line["budget"]) & (rows["seed"] == line["seed"])]
        own = cell[cell["method"].isin(list(PEERS))].set_index("method")
        # Not the least error on the test part, and never the team or a baseline.
        assert line["peer"] == own["cv_error"].idxmin()
        assert line["error"] == own.loc[line["peer"], "error"]
    assert (picked["error"].to_numpy() != rows.groupby(["budget", "seed"])["error"].min()).any()


def test_of_peers_that_tie_on_the_folds_the_first_is_taken():
    rows = made_up().assign(cv_error=0.25)
    # Peers are in another order in the rows, and differ by rounding alone.
    rows.loc[rows["method"] == "RF", "cv_error"] -= 1e-15
    picked = with_best_peer(rows.iloc[::-1]).query("method == @BEST_PEER")
    assert set(picked["peer"]) == {next(iter(PEERS))}


def test_table_has_paired_intervals():
    rows = made_up()
    table = comparison_table(rows)
    every = with_best_peer(rows)
    for line in table.to_dict("records"):
        cell = every[every["budget"] == line["budget"]].pivot(
            index="seed", columns="method", values="error"
        )
        assert set(rivals_in(table)) == {BEST_PEER, SVM_TEAM, *BASELINES, *PEERS}
        for name in rivals_in(table):
            interval = ttest_rel(cell[TEAM], cell[name]).confidence_interval(0.95)
            np.testing.assert_allclose([line[f"low {name}"], line[f"high {name}"]], interval)
            np.testing.assert_allclose(line[f"minus {name}"], (cell[TEAM] - cell[name]).mean())
        assert line["policy"] == "margin"
        assert line["splits"] == 10
    for counts in comparison_counts(table).values():
        assert counts["cells"] == 2
        assert counts["better"] >= 1
        assert counts["better"] + counts["no difference"] + counts["worse"] == 2
    worse = rows.assign(error=rows["error"] + 0.15 * (rows["method"] == TEAM))
    for counts in comparison_counts(comparison_table(worse)).values():
        assert counts["worse"] == counts["much worse"] == 2


def test_groups_and_data_sets():
    parts = [made_up(k).assign(dataset=name) for k, name in enumerate(NAMES)]
    table = comparison_table(pd.concat(parts))
    means = group_means(table)
    assert means["group"].tolist() == ["six medical sets", "linear, quadratic, digits", "sleep"]
    assert means["cells"].tolist() == [12, 6, 2]
    sleep = table[table["dataset"] == "sleep"]
    np.testing.assert_allclose(means[TEAM].iloc[2], sleep[TEAM].mean())
    # A group that lacks a data set has no mean, and other budgets have no part in it.
    fewer = table[table["dataset"] != "digits"]
    assert group_means(fewer)["group"].tolist() == ["six medical sets", "sleep"]
    other = comparison_table(parts[-1].assign(budget=parts[-1]["budget"].replace(0.3, 0.05)))
    assert group_means(other)["cells"].tolist() == [1]
    found = dataset_differences(table).set_index("dataset")
    assert list(found.index) == list(NAMES)
    np.testing.assert_allclose(found.loc["sleep", "mean"], sleep[f"minus {BEST_PEER}"].mean())
    assert found.loc["sleep", "at budget"] == 0.1
    assert found.loc["sleep", "largest"] == sleep[f"minus {BEST_PEER}"].max()


def test_seconds_are_sums_over_budgets_and_means_over_splits():
    seconds = seconds_per_method(made_up())
    assert list(seconds.index) == list(METHODS)
    assert (seconds["made up"] == 1.0).all()


def pretend(parameters):
    """What a job would return, at once."""
    rows = made_up(parameters["seed"])
    own = rows["method"].map(PART_OF) == parameters["part"]
    return rows[own & (rows["seed"] == 0)].drop(columns=["dataset", "seed"]).to_dict("records")


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
    assert f"against {BEST_PEER}: cells 4" in result.output
    rows = pd.read_parquet(tmp_path / "team" / "rows.parquet")
    assert sorted(rows["seed"].unique()) == [4, 5, 6]
    table = pd.read_csv(tmp_path / "team" / "team.csv")
    counts = pd.read_csv(tmp_path / "team" / "counts.csv").set_index("rival")
    for rival, line in counts.iterrows():
        assert line["better"] == (table[f"high {rival}"] < 0).sum()
        assert line["worse"] == (table[f"low {rival}"] > 0).sum()
    assert "best peer" in counts.index
    assert list(table["dataset"]) == ["digits", "digits", "linear", "linear"]
    assert (table["splits"] == 3).all()
    page = (tmp_path / "team" / "team.md").read_text()
    assert "`deferlearn bench team digits linear --splits 3 --seed 4`" in page
    assert "seeds 4 to 6" in page
    # At the larger budget the team is better by a tenth.
    assert re.search(r"\| best peer \| [234] \| \d \| 0 \| 0 \|", page)
    assert "| all | 12 |" in page  # two data sets, three splits, two budgets, one policy
    assert all(name in page for name in METHODS)
    assert (tmp_path / "team" / "team.png").stat().st_size > 1000


def test_command_goes_on(run, tmp_path, monkeypatch):
    assert run("linear", "--out", tmp_path, "--splits", 2, "--jobs", 1).exit_code == 0
    asked = []
    monkeypatch.setattr(
        comparison,
        "comparison_work",
        lambda p: asked.append((p["seed"], p["part"])) or pretend(p),
    )
    result = run("linear", "--out", tmp_path, "--splits", 4, "--jobs", 1)
    assert result.exit_code == 0, result.output
    assert asked == [(seed, part) for seed in (2, 3) for part in PARTS]
    # The team again, and nothing of its rivals.
    asked.clear()
    words = ["linear", "--out", tmp_path, "--splits", 2, "--jobs", 1, "--again", "team"]
    assert run(*words).exit_code == 0
    assert asked == [(0, "team"), (1, "team")]


def test_command_computes_a_part(run, tmp_path, monkeypatch):
    words = ["linear", "--out", tmp_path, "--splits", 2, "--jobs", 1]
    result = run(*words, "--part", "peers", "--part", "svm")
    assert result.exit_code == 0, result.output
    assert "Processor seconds per split" in result.output
    assert not (tmp_path / "team" / "team.md").exists()
    kept = sorted(path.name.split("-")[1] for path in (tmp_path / "team" / "parts").iterdir())
    assert kept == ["peers", "peers", "svm", "svm"]
    asked = []
    monkeypatch.setattr(
        comparison, "comparison_work", lambda p: asked.append(p["part"]) or pretend(p)
    )
    assert run(*words).exit_code == 0
    assert asked == ["baselines", "team", "baselines", "team"]
    assert (tmp_path / "team" / "team.md").exists()


@pytest.mark.parametrize("option", ["--part", "--again"])
def test_command_refuses_other_parts(run, tmp_path, option):
    result = run("linear", "--out", tmp_path / "new", option, "rivals")
    assert result.exit_code == 2
    assert "no part has the name 'rivals'; use peers, baselines, svm, team" in result.output
    assert not (tmp_path / "new").exists()


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
