"""Experiments from end to end on small settings: rows against witnesses, tables, pictures."""

import sys

import matplotlib.colors
import matplotlib.image
import numpy as np
import pandas as pd
import pytest
from scipy.optimize import linprog
from sklearn.svm import SVC

from deferlearn.experiments import EXPERIMENTS, Config, fig1, fig2, fig4, reproduce, style
from deferlearn.experiments.data import split_of
from deferlearn.experiments.reproduce import draw, prepare

SMALL = Config.preset(
    "repeated", quick=True, splits=2, n_samples=60, budgets=(0.0, 0.2), size_budgets=(0.0, 0.5),
    spreads=(0.2, 0.8),
)  # fmt: skip
MEDICAL = Config.preset(
    "repeated", quick=True, splits=2, datasets=("stare",), retina_budgets=(0.0, 0.1),
    human_weights=(0.0, 0.75), alphas=(1.0,), n_samples=40, submodularity_ratio=0.5,
)  # fmt: skip


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    folder = tmp_path_factory.mktemp("out")
    return {n: reproduce(n, SMALL, folder) for n in ("fig1", "fig2", "fig3", "fig4")}


def test_files(outcomes):
    for name, outcome in outcomes.items():
        assert {path.suffix for path in outcome.files} == {
            ".parquet",
            ".csv",
            ".pdf",
            ".svg",
            ".png",
        }
        for path in outcome.files:
            assert path.stat().st_size > 100
        rows = pd.read_parquet(next(p for p in outcome.files if p.suffix == ".parquet"))
        assert len(rows) == len(outcome.rows)
        picture = matplotlib.image.imread(next(p for p in outcome.files if p.suffix == ".png"))
        assert picture.shape[1] == style.WIDTH * style.DPI, name
        # Nothing is cut off at the sides: there is white all around.
        for edge in (picture[:, 0], picture[:, -1], picture[0], picture[-1]):
            assert (edge == 1.0).all(), name


def test_the_same_rows_give_the_same_files(outcomes, tmp_path):
    first = outcomes["fig4"]
    again = style.save(draw(EXPERIMENTS["fig4"], first.rows, SMALL), tmp_path, "fig4")
    for path in again:
        before = next(p for p in first.files if p.suffix == path.suffix)
        assert path.read_bytes() == before.read_bytes(), path.suffix


@pytest.mark.parametrize("s", [1, 2, 3, 5])
def test_corners_of_reduced_hulls(s):
    """The farthest point in any direction, by a linear program over the weights."""
    X, _ = fig1.samples(0)
    X = X[:12]
    corners = fig1.hull(X, s)
    for direction in np.random.RandomState(0).normal(size=(20, 2)):
        best = linprog(-X @ direction, A_eq=np.ones((1, 12)), b_eq=[1], bounds=(0, 1 / s))
        assert (corners @ direction).max() == pytest.approx(-best.fun, rel=1e-3, abs=1e-3)
        assert (corners @ direction).max() <= -best.fun + 1e-9


def test_hulls_come_apart_once(outcomes):
    for _, rows in outcomes["fig1"].rows.groupby("seed"):
        distance = rows.sort_values("s")["distance_of_hulls"].to_numpy()
        assert (np.diff(distance) >= -1e-9).all()
        assert rows["s_star"].iloc[0] == 1 + np.argmax(distance > 0)
    # The hulls that are shown: no line parts those before s*, and one parts those of s*.
    X, y = fig1.samples(fig1.SHOWN_SEED)
    angles = np.linspace(0, 2 * np.pi, 2000)
    directions = np.array([np.cos(angles), np.sin(angles)])
    star = int(fig1.separating_hulls(fig1.SVMObjective(X, y)).s)
    gaps = [
        (
            (fig1.hull(X[y > 0], s) @ directions).min(0)
            - (fig1.hull(X[y < 0], s) @ directions).max(0)
        )
        for s in (star - 1, star)
    ]
    assert gaps[0].max() < 0 < gaps[1].max()


def test_counts_of_fig2_by_scikit_learn(outcomes):
    rows = outcomes["fig2"].rows
    chosen = (rows["method"] == "distorted") & (rows["dataset"] == "linear")
    for _, row in rows[chosen].iterrows():
        split, how = split_of(row), fig2.Selecting.of(row)
        (chosen,) = fig2.selections(split, 1.0, "distorted", [row["budget"]], how)
        picks = chosen.picks
        kept = np.setdiff1d(np.arange(len(split.y_train)), picks)
        machine = SVC(C=1 / (2 * len(kept)), tol=1e-10, **split.kernel)
        machine.fit(split.X_train[kept], split.y_train[kept])
        margin = machine.decision_function(split.X_train)
        # Samples that lie on the margin or the boundary may fall on either side by rounding.
        near = np.sum(np.abs(np.abs(margin) - 1) < 1e-4) + np.sum(np.abs(margin) < 1e-4)
        wrong = split.y_train * margin < 0
        assert row["n_deferred"] == len(picks)
        assert abs(row["deferred_wrong"] - wrong[picks].sum()) <= near
        assert abs(row["kept_inside"] - (np.abs(margin[kept]) <= 1).sum()) <= near


def test_fig4_table(outcomes):
    rows, table = outcomes["fig4"].rows, outcomes["fig4"].tables[""]
    assert (rows["n_deferred"] + rows["unused"] == rows["n"]).all()
    assert (rows["unused"] >= 0).all()
    assert set(table["n"]) == {0, 18}


def test_fig3_has_every_method_and_its_colour(outcomes):
    outcome = outcomes["fig3"]
    assert set(outcome.rows["method"]) == set(style.METHODS)
    figure = draw(EXPERIMENTS["fig3"], outcome.rows, SMALL)
    for ax in figure.axes:
        drawn = {matplotlib.colors.to_hex(line.get_color()) for line in ax.lines}
        assert drawn == {matplotlib.colors.to_hex(look[1]) for look in style.METHODS.values()}
    assert len(figure.legends) == 1
    assert all(ax.get_legend() is None for ax in figure.axes)


def test_methods_and_levels_are_told_apart():
    looks = [(marker, dashes) for _, _, marker, dashes in style.METHODS.values()]
    assert len(set(looks)) == len(looks)  # without any colour
    for count in range(1, 7):
        colours, markers = zip(*style.level_looks(count), strict=True)
        assert len(set(markers)) == count
        grey = np.array([c[:3] for c in colours]) @ [0.299, 0.587, 0.114]
        assert (np.diff(grey) > 0.1).all()


@pytest.mark.parametrize("name", ["fig5", "runtime", "bounds"])
def test_medical_experiments(authors_data, tmp_path, name):
    outcome = reproduce(name, MEDICAL, tmp_path)
    assert set(outcome.rows["dataset"]) >= {"stare"}
    assert not outcome.tables[""].empty


def test_levels_of_fig6(authors_data, tmp_path):
    outcome = reproduce("fig6", MEDICAL, tmp_path)
    errors = outcome.rows.groupby("human_weight")["human_error"].mean()
    assert errors[0.75] > errors[0.0] + 0.1
    changes = outcome.tables["differences"]
    assert (changes.loc[changes["budget"] == 0.0, "error"] == 0.0).all()


def test_samples_on_the_margin_are_inside():
    """A machine without a boundary answers +1 or -1 everywhere, up to rounding: all are on its margin."""
    p = {"dataset": "linear", "n_samples": 400, "spread": 0.2, "seed": 8, "budgets": [0.12]}
    p |= {"on_margin": fig2.ON_MARGIN, "protocol": "repeated", "submodularity_ratio": 0.5}
    rows = fig2.work({**p, "delta": 0.5, "epsilon": 0.1})
    assert not any(row["has_boundary"] for row in rows)
    assert all(row["kept_inside"] == row["n_kept"] for row in rows)


def test_falls_of_fig2_are_those_of_machines_with_a_boundary():
    rows = pd.DataFrame(
        [
            {
                "dataset": "linear", "method": "distorted", "budget": budget, "n": 1, "seed": seed,
                "n_deferred": 1, "n_kept": 9, "deferred_wrong": 1, "kept_wrong": 0,
                "kept_inside": inside, "inside_before": 9, "has_boundary": boundary,
            }
            for seed, boundary in [(0, True), (1, True), (2, False)]
            for budget, inside in [(0.12, 7 + seed), (0.3, 4)]
        ]
    )  # fmt: skip
    (line,) = fig2.tables(rows)["differences"].to_dict("records")
    assert (line["all_runs"], line["runs"], line["runs_with_fewer"]) == (3, 2, 2)
    assert line["kept_inside"] == -3.5


def test_only_data_that_are_asked_for_are_fetched(monkeypatch, tmp_path):
    fetched = []
    # By its module, whose name the function `reproduce` has too.
    monkeypatch.setattr(sys.modules[prepare.__module__], "retina", fetched.append)
    monkeypatch.setattr(
        sys.modules[prepare.__module__], "published_run", lambda name: fetched.append(f"{name} run")
    )
    assert prepare(["fig1", "fig4"], SMALL, tmp_path) > 0
    assert fetched == []
    prepare(["fig6"], MEDICAL, tmp_path)
    assert fetched == ["aptos"]
    prepare(["fig5", "fig6"], MEDICAL, tmp_path)
    assert fetched == ["aptos", "stare", "aptos"]
    fetched.clear()
    prepare(["fig5"], Config.preset("published", datasets=("stare",)), tmp_path)
    assert fetched == ["stare", "stare run"]


def test_unknown_names():
    with pytest.raises(ValueError, match="no experiment is named 'fig7'; there are fig1, fig2"):
        reproduce("fig7")


def test_draws_of_fig4_are_paired():
    seeds = {job.parameters["seed"] for job in fig4.jobs(SMALL)}
    assert len(fig4.jobs(SMALL)) == len(seeds) * len(SMALL.spreads)
