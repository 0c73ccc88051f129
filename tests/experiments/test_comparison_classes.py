"""The comparison on data with several classes and with grades."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from deferlearn import datasets
from deferlearn.experiments import comparison
from deferlearn.experiments.comparison import comparison_jobs, peers_for, search_rows
from deferlearn.experiments.comparison_classes import CLASS_NAMES, GRADED, TEN_DIGITS, class_split
from deferlearn.experiments.comparison_page import comparison_figure, comparison_page, shown_in
from deferlearn.experiments.comparison_peers import (
    CLASS_PEERS,
    PEERS,
    error_of,
    fold_context,
    grid_of,
    held_out_error,
    peer_rows,
)
from deferlearn.experiments.comparison_table import BEST_PEER, comparison_table, where_it_pays
from deferlearn.teams import TeamCV


def test_ten_digits():
    split = class_split(TEN_DIGITS, 3)
    assert split.X_train.shape == (1078, 64)
    assert sorted(set(split.y_test)) == list(range(10))
    np.testing.assert_allclose(split.X_train.mean(axis=0), 0.0, atol=1e-9)
    assert 0.15 < np.mean(split.human_test != split.y_test) < 0.25
    again, other = class_split(TEN_DIGITS, 3), class_split(TEN_DIGITS, 4)
    np.testing.assert_array_equal(split.human_test, again.human_test)
    assert not np.array_equal(split.y_test, other.y_test)


def test_stages_of_sleep_are_split_by_nights():
    first, second = (class_split(f"stages-{expert}", 0) for expert in (1, 2))
    assert len(set(first.y_train)) == 5
    assert set(first.human_train) <= set(first.y_train)
    nights = datasets.load_sleep(expert=1, classes="stages").groups
    assert len(set(first.groups_train)) == 24 < len(set(nights))
    # The nights are the same for every expert; the answers are not.
    assert set(first.groups_train) == set(second.groups_train)
    errors = [np.mean(split.human_test != split.y_test) for split in (first, second)]
    assert errors[0] != errors[1]
    assert max(errors) < 0.3


@pytest.mark.parametrize("name", GRADED)
def test_grades_of_retinas(name, authors_data):
    split = class_split(name, 0)
    assert split.classes == "grades"
    assert split.y_train.dtype.kind == "i"
    off = np.abs(split.human_test - split.y_test)
    assert 0 < off.mean() < 0.5


def test_the_error_of_grades_is_how_far_answers_are_off():
    split = class_split(TEN_DIGITS, 0)
    off = np.where(np.arange(len(split.y_test)) < 100, 3, 0)
    answers = np.abs(split.y_test - off)
    assert error_of(answers, split) == np.mean(answers != split.y_test)
    graded = replace(split, classes="grades")
    assert error_of(answers, graded) == np.abs(answers - split.y_test).mean()


def test_peers_of_several_classes():
    assert set(CLASS_PEERS) == {"UT", "OvA", "HGB"}
    assert peers_for("linear") is PEERS
    assert all(peers_for(name) is CLASS_PEERS for name in CLASS_NAMES)
    said = grid_of(CLASS_PEERS)
    assert len(set(said)) == len(said)
    (job,) = comparison_jobs([TEN_DIGITS], 1, parts=["peers"])
    assert job.parameters["grid"] == said


def test_rows_of_peers_and_of_the_team():
    whole = class_split("stages-1", 0)
    rows = slice(None, None, 6)
    split = replace(
        whole,
        X_train=whole.X_train[rows],
        y_train=whole.y_train[rows],
        human_train=whole.human_train[rows],
        groups_train=whole.groups_train[rows],
    )
    few = {name: candidates[:2] for name, candidates in CLASS_PEERS.items() if name != "HGB"}
    found = pd.DataFrame(peer_rows(split, 0, [0.1], few))
    context = fold_context(split, 0)
    best = min(held_out_error(candidate, 0.1, context) for candidate in few["UT"])
    np.testing.assert_allclose(found.loc[found["method"] == "UT", "cv_error"], best)
    search = TeamCV(machines=["linear"], alphas=2, policies=["expected_cost"], random_state=0)
    (row,) = search_rows(search, split, [0.1], {comparison.TEAM: None})
    assert 0.0 < row["error"] < 0.5
    assert row["asked"] <= 0.1


def made_rows(name, errors):
    """Rows of three splits at two budgets; the team's error differs a little between splits."""
    return [
        {
            "dataset": name,
            "budget": budget,
            "seed": seed,
            "method": method,
            "error": by_budget[place] + 1e-3 * (seed == 1) * (method == comparison.TEAM),
            "cv_error": by_budget[place],
            "asked": budget,
            "humans": 0.15,
            "policy": "expected_cost",
            "seconds": 1.0,
        }
        for method, by_budget in errors.items()
        for place, budget in enumerate((0.1, 0.2))
        for seed in (0, 1, 2)
    ]


def test_page_of_several_classes_says_where_assistance_pays():
    errors = {
        comparison.TEAM: (0.05, 0.12),
        comparison.ALONE: (0.1, 0.1),
        "UT": (0.06, 0.06),
        "OvA": (0.08, 0.08),
        "HGB": (0.07, 0.07),
    }
    rows = pd.DataFrame(made_rows("stages-1", errors))
    table = comparison_table(rows)
    # Uncertainty triage is a peer that may be picked, though only with several classes.
    assert list(table["peer"]) == ["UT", "UT"]
    np.testing.assert_allclose(table[BEST_PEER], 0.06)
    (line,) = where_it_pays(table).to_dict("records")
    assert (line["pays"], line["harms"], line["best"]) == ([0.1], [0.2], 0.1)
    np.testing.assert_allclose([line["human"], line["machine"]], [0.15, 0.1])
    page = comparison_page(rows, table, "the command")
    assert page.startswith("# Tuned teams against tuned peers: several classes, and grades\n")
    assert "| stages-1 | 0.150 | 0.100 | 0.050 at 0.1 | 0.1 | 0.2 |" in page
    assert "Mozannar" not in page  # a method that is not in the table
    assert shown_in(table) == [BEST_PEER, comparison.ALONE, "UT", "OvA", "HGB"]


def test_numbers_of_grades_have_a_scale_of_their_own():
    errors = dict.fromkeys((comparison.TEAM, comparison.ALONE, *CLASS_PEERS), (0.05, 0.12))
    tens = {name: tuple(10 * value for value in pair) for name, pair in errors.items()}
    tens["HGB"] = (3.0, 3.0)
    rows = pd.DataFrame(made_rows("stages-1", errors) + made_rows("stare-grades", tens))
    axes = comparison_figure(comparison_table(rows)).axes
    assert len(axes) == 10
    shares, grades = axes[4], axes[9]  # minus gradient boosting
    assert shares.get_title() == "minus HGB"
    assert abs(shares.get_xlim()[0]) < 0.1 < 2.0 < abs(grades.get_xlim()[0])
    first = [axes[row].get_yticklabels()[0].get_text() for row in (0, 5)]
    assert first == ["stages-1  0.1", "stare-grades  0.1"]


def test_the_machine_alone_is_judged_beside_the_team(monkeypatch):
    whole = class_split(TEN_DIGITS, 0)
    few = replace(
        whole,
        X_train=whole.X_train[:150],
        y_train=whole.y_train[:150],
        human_train=whole.human_train[:150],
    )
    monkeypatch.setattr(comparison, "class_split", lambda name, seed: few)
    monkeypatch.setattr(
        comparison,
        "TEAM_SEARCH",
        lambda **options: TeamCV(
            machines=["linear"], alphas=[0.1], policies=["expected_cost"], **options
        ),
    )
    (job,) = comparison_jobs([TEN_DIGITS], 1, budgets=[0.1], parts=["team"])
    team, alone = comparison.comparison_work(job.parameters)
    assert (team["method"], alone["method"]) == (comparison.TEAM, comparison.ALONE)
    assert alone["asked"] == 0.0
    assert alone["policy"] == "automation"
    assert team["humans"] == alone["humans"]
