"""Machines as arrays decide as the machines that they were made from, also after they were stored."""

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.naive_bayes import GaussianNB

from deferlearn._utils.packing import packed, unpacked
from deferlearn.teams import AdvantageTriage, FullAutomation
from deferlearn.teams.blend import Blend
from deferlearn.teams.brought import ScoreColumn
from deferlearn.teams.decider import Decider
from deferlearn.teams.forest import ForestClassifier
from deferlearn.teams.forest_arrays import boosting_arrays

RNG = np.random.RandomState(0)
X = RNG.normal(size=(160, 3))
Y = np.where(X[:, 0] * X[:, 1] + 0.3 * RNG.normal(size=160) > 0, "ill", "well")
HUMAN = np.where(RNG.uniform(size=160) < 0.15, Y[::-1], Y)
NEW = RNG.normal(size=(60, 3))

SVMS = [FullAutomation(alpha=0.1), FullAutomation(alpha=0.01, kernel="rbf", gamma=0.5)]
MACHINES: dict[str, Any] = {
    "linear": SVMS[0],
    "rbf": SVMS[1],
    "our forest": ForestClassifier(20),
    "forest": RandomForestClassifier(20),
    "boosting": HistGradientBoostingClassifier(max_iter=20),
    "scores": ScoreColumn(),
    "blend": Blend([*SVMS, ForestClassifier(20), HistGradientBoostingClassifier(max_iter=20)]),
}


def fitted(machine: Any) -> AdvantageTriage:
    team = AdvantageTriage(
        0.3, machine=machine, machine_error="probability", human_error="truth", random_state=0
    )
    return team.fit(X, Y, human_labels=HUMAN)


@pytest.mark.parametrize("machine", MACHINES.values(), ids=MACHINES)
def test_the_same_decisions(machine):
    team = fitted(machine)
    decider = Decider.from_values(unpacked(packed(team.decider().values())))
    assert_allclose(
        decider.decision_function(NEW), team.decision_function(NEW), rtol=1e-12, atol=1e-12
    )
    assert_allclose(decider.deferral_score(NEW), team.deferral_score(NEW), rtol=1e-12, atol=1e-12)
    assert_array_equal(decider.defer(NEW), team.defer(NEW))
    assert_array_equal(decider.defer_top(NEW, 0.2), team.defer_top(NEW, 0.2))
    assert_allclose(decider.expected_errors(NEW), team.expected_errors(NEW), rtol=1e-12, atol=1e-12)


def test_the_mean_of_machines_in_the_last_digits():
    team = fitted(MACHINES["blend"])
    members = [fitted(machine).decision_function(NEW) for machine in MACHINES["blend"].machines[2:]]
    # The members that are not SVMs are calibrated in the same way alone.
    found = team.decider().machine.members[2:]
    for member, expected in zip(found, members, strict=True):
        assert_allclose(member.decision_function(NEW), expected, rtol=1e-9, atol=1e-12)


def test_an_unknown_machine_has_no_such_form():
    assert fitted(GaussianNB()).decider() is None
    assert fitted(Blend([GaussianNB(), ForestClassifier(5)])).decider() is None


def test_boosting_by_another_road():
    """Trees are followed node by node, in Python."""
    model = HistGradientBoostingClassifier(max_iter=5, random_state=0).fit(X, Y)
    total = np.full(len(NEW), float(np.ravel(model._baseline_prediction)[0]))
    for (predictor,) in model._predictors:
        for i, row in enumerate(NEW):
            node = predictor.nodes[0]
            while not node["is_leaf"]:
                left = row[node["feature_idx"]] <= node["num_threshold"]
                node = predictor.nodes[node["left"] if left else node["right"]]
            total[i] += node["value"]
    (trees,), (baseline,) = boosting_arrays(model)
    assert_allclose(baseline + 5 * trees.mean(NEW), total, rtol=1e-12)
    assert_allclose(total, model.decision_function(NEW), rtol=1e-12)


def test_boosting_with_categories_has_no_such_form():
    Z = np.column_stack([RNG.randint(0, 3, 160), X])
    model = HistGradientBoostingClassifier(max_iter=5, categorical_features=[0])
    assert boosting_arrays(model.fit(Z, Z[:, 0] == 1)) is None
    # Nor if no tree looks at the category: the other columns have moved.
    noise = HistGradientBoostingClassifier(max_iter=1, max_leaf_nodes=2, categorical_features=[3])
    assert boosting_arrays(noise.fit(Z[:, [1, 2, 3, 0]], Z[:, 1] > 0)) is None
    assert boosting_arrays(GaussianNB()) is None
