"""The comparison on data with several classes and with grades."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from deferlearn import datasets
from deferlearn.experiments import comparison
from deferlearn.experiments.comparison import comparison_jobs, peers_for, search_rows
from deferlearn.experiments.comparison_classes import CLASS_NAMES, GRADED, TEN_DIGITS, class_split
from deferlearn.experiments.comparison_peers import (
    CLASS_PEERS,
    PEERS,
    error_of,
    fold_context,
    grid_of,
    held_out_error,
    peer_rows,
)
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
