"""The field's methods in the comparison: tuned on the folds of the searches, and judged alike."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier

from deferlearn.experiments.comparison_data import comparison_split
from deferlearn.experiments.comparison_peers import (
    ALONE,
    PEERS,
    Candidate,
    fold_context,
    grid_of,
    held_out_error,
    peer_rows,
)
from deferlearn.teams import AssistedSVCCV, CompareConfidence, DifferentiableTriage

FOREST = RandomForestClassifier(10, min_samples_leaf=5)
# One or two quick settings of each kind of peer.
FEW = {
    **{name: PEERS[name][:1] for name in ("CC", "OvA", "LCE", "RS", "DT")},
    "RF": [
        Candidate("ten trees", "gain", CompareConfidence(machine=FOREST)),
        Candidate(
            "ten trees", "full budget", CompareConfidence(machine=FOREST, use_full_budget=True)
        ),
    ],
    "RF alone": [Candidate("ten trees", ALONE, CompareConfidence(machine=FOREST))],
}


@pytest.fixture(scope="module")
def split():
    return comparison_split("linear", 0)


@pytest.fixture(scope="module")
def rows(split):
    return pd.DataFrame(peer_rows(split, 0, [0.1, 0.3], FEW))


def test_rows(rows):
    assert list(rows["method"]) == [name for name in FEW for _ in range(2)]
    assert (rows["asked"] <= rows["budget"]).all()
    assert (rows["error"].between(0, 0.6)).all()
    alone = rows[rows["method"] == "RF alone"]
    assert (alone["asked"] == 0).all()
    assert alone["error"].nunique() == alone["cv_error"].nunique() == 1
    full = rows[rows["policy"] == "full budget"]
    np.testing.assert_allclose(full["asked"], full["budget"])


def test_rows_are_the_same_again(split, rows):
    again = pd.DataFrame(peer_rows(split, 0, [0.1, 0.3], FEW))
    pd.testing.assert_frame_equal(again.drop(columns="seconds"), rows.drop(columns="seconds"))


def test_folds_are_those_of_the_searches(split):
    context = fold_context(split, 7)
    search = AssistedSVCCV(alphas=[0.1], random_state=7).open_search(
        split.X_train, split.y_train, human_labels=split.human_train
    )
    for fold, other in zip(context.folds, search.context.folds, strict=True):
        np.testing.assert_array_equal(fold, other)


def test_nights_stay_in_one_fold():
    split = comparison_split("sleep", 0)
    nights = [set(split.groups_train[fold]) for fold in fold_context(split, 0).folds]
    assert len(nights) == 5
    assert sum(len(night) for night in nights) == len(set.union(*nights)) == 24


@pytest.mark.parametrize("full", [False, True])
def test_error_on_folds_by_hand(split, full):
    context = fold_context(split, 0)
    team = CompareConfidence(alpha=0.03, use_full_budget=full)
    machine, score = np.empty(240), np.empty(240)
    for train, test in context.splits:
        fitted = (
            clone(team)
            .set_params(cv=None)
            .fit(split.X_train[train], split.y_train[train], human_labels=split.human_train[train])
        )
        machine[test] = fitted.predict(split.X_train[test])
        score[test] = fitted.deferral_score(split.X_train[test])
    asked = np.zeros(240, dtype=bool)
    asked[np.argsort(-score)[:48]] = True
    asked &= full | (score > 0)
    wrong = np.where(asked, split.human_train, machine) != split.y_train
    found = held_out_error(Candidate("", "", team), 0.2, context)
    np.testing.assert_allclose(found, wrong.mean(), atol=1e-12)
    alone = held_out_error(Candidate("", ALONE, team), 0.2, context)
    np.testing.assert_allclose(alone, np.mean(machine != split.y_train), atol=1e-12)


def test_setting_with_the_least_error_on_the_folds_is_taken(split):
    candidates = PEERS["OvA"]
    (row,) = peer_rows(split, 0, [0.2], {"OvA": candidates})
    context = fold_context(split, 0)
    errors = [held_out_error(candidate, 0.2, context) for candidate in candidates]
    best = candidates[int(np.argmin(errors))]
    assert (row["machine"], row["policy"]) == (best.machine, best.policy)
    np.testing.assert_allclose(row["cv_error"], min(errors))
    team = clone(best.team).set_params(budget=0.2, random_state=0)
    team.fit(split.X_train, split.y_train, human_labels=split.human_train)
    said = team.predict_assisted(split.X_test, split.human_test, batch=True)
    np.testing.assert_allclose(row["error"], np.mean(said != split.y_test))


def test_triage_that_is_trained_for_a_budget_keeps_the_rate_of_its_training(split):
    given = {"DT": [Candidate("", "policy", DifferentiableTriage(alpha=0.3))]}
    # Only where the machine is worse than chance can somebody gain who is always wrong.
    split = replace(split, human_train=-split.y_train)
    (row,) = peer_rows(split, 0, [0.9], given)
    team = DifferentiableTriage(0.9, alpha=0.3, random_state=0)
    team.fit(split.X_train, split.y_train, human_labels=split.human_train)
    assert team.deferred_.mean() < 0.9
    assert row["asked"] == int(team.deferred_.mean() * 160 + 1e-9) / 160


def test_every_setting_has_a_name_of_its_own():
    said = grid_of()
    assert len(set(said)) == len(said) == sum(map(len, PEERS.values()))
    assert "RS: alpha 0.03, joint_weight 0.5, full budget" in said
