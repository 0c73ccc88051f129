"""Machines for several classes as arrays decide as the teams that they were made from, bit for bit."""

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.ensemble import (
    ExtraTreesClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.naive_bayes import GaussianNB

import deferlearn
from deferlearn._utils.packing import packed, unpacked
from deferlearn.teams import (
    AdvantageTriage,
    AssistedSVC,
    DeferralPolicy,
    FullAutomation,
    UncertaintyTriage,
)
from deferlearn.teams.blend import Blend
from deferlearn.teams.brought import ScoreColumn
from deferlearn.teams.decider import Decider

RNG = np.random.RandomState(0)
X = RNG.normal(size=(150, 3))
# In the order of the alphabet, the grades are in another order than in that of their severity.
GRADES = ["none", "mild", "severe"]
LEVEL = np.digitize(X[:, 0] + 0.5 * X[:, 1] + 0.3 * RNG.normal(size=150), [-0.5, 0.6])
Y = np.array(GRADES)[LEVEL]
HUMAN = np.where(RNG.uniform(size=150) < 0.2, RNG.permutation(Y), Y)
NEW = RNG.normal(size=(60, 3))
COSTS = [[0, 1, 2], [1, 0, 1], [6, 3, 0]]

SVMS = [FullAutomation(alpha=0.1), FullAutomation(alpha=0.01, kernel="rbf", gamma=0.5)]
OTHERS = {"machine_error": "forest", "human_error": "forest"}
TEAMS: dict[str, Any] = {
    "linear": AdvantageTriage(0.3, alpha=0.1),
    "rbf": UncertaintyTriage(0.3, alpha=0.01, kernel="rbf", gamma=0.5),
    "by truth": AdvantageTriage(0.3, alpha=0.1, machine_error="probability", human_error="truth"),
    "by forests": AdvantageTriage(0.3, machine=RandomForestClassifier(9), **OTHERS),
    "costs": AdvantageTriage(0.3, alpha=0.1, cost_matrix=COSTS),
    "forest": UncertaintyTriage(0.3, machine=RandomForestClassifier(20)),
    "extra trees": UncertaintyTriage(0.3, machine=ExtraTreesClassifier(20)),
    "boosting": AdvantageTriage(0.3, machine=HistGradientBoostingClassifier(max_iter=9)),
    "scores": UncertaintyTriage(0.3, machine=ScoreColumn()),
    "blend": AdvantageTriage(
        0.3, machine=Blend([*SVMS, HistGradientBoostingClassifier(max_iter=9)])
    ),
    "automation": FullAutomation(alpha=0.1),
    "assisted": AssistedSVC(0.3, alpha=0.1, cv=3),
    "assisted forest": AssistedSVC(0.3, alpha=0.1, policy=RandomForestClassifier(9), cv=3),
    "assisted by margin and x": AssistedSVC(
        0.3,
        alpha=0.1,
        policy=DeferralPolicy(RandomForestClassifier(9), features="both"),
        cv=3,
    ),
    "nothing deferred": AssistedSVC(0, alpha=0.1, cv=3),
}


def fitted(team: Any, classes: Any) -> Any:
    return team.set_params(classes=classes, random_state=0).fit(X, Y, human_labels=HUMAN)


@pytest.mark.parametrize("classes", ["auto", GRADES], ids=["classes", "grades"])
@pytest.mark.parametrize("name", TEAMS)
def test_the_same_decisions(name, classes):
    team = fitted(TEAMS[name], classes)
    decider = Decider.from_values(unpacked(packed(team.decider().values())))
    near = {"rtol": 1e-12, "atol": 1e-12}
    judged = decider.judge(NEW)
    assert_allclose(judged.decision, team.decision_function(NEW), **near)
    assert_allclose(judged.score, team.deferral_score(NEW), **near)
    assert_array_equal(judged.deferred, team.defer(NEW))
    assert_array_equal(decider.defer_top(NEW, 0.2), team.defer_top(NEW, 0.2))
    assert_array_equal(decider.answers(judged.decision), team.predict(NEW))
    assert_allclose(decider.probabilities(judged.decision), team.predict_proba(NEW), **near)
    if hasattr(team, "expected_errors"):
        assert_allclose(judged.expected, team.expected_errors(NEW), **near)
    for row in range(len(NEW)):
        one = decider.judge(NEW[[row]])
        assert_array_equal(one.decision[0], judged.decision[row])
        assert one.score[0] == judged.score[row]
        assert one.deferred[0] == judged.deferred[row]


@pytest.mark.parametrize("name", ["blend", "assisted", "scores", "rbf"])
def test_a_stored_team(name, tmp_path):
    team = fitted(TEAMS[name], GRADES)
    deferlearn.save(team, tmp_path / "team.skops")
    again = deferlearn.load(tmp_path / "team.skops")
    assert_array_equal(again.predict_proba(NEW), team.predict_proba(NEW))
    assert_array_equal(again.predict(NEW), team.predict(NEW))
    assert_array_equal(again.defer(NEW), team.defer(NEW))


def test_other_machines_have_no_such_form():
    assert fitted(UncertaintyTriage(machine=GaussianNB()), "auto").decider() is None
    signed = AssistedSVC(0.3, alpha=0.1, policy=DeferralPolicy(signed=True), cv=3)
    assert fitted(signed, "auto").decider() is None


def test_given_scores_are_in_the_order_of_the_grades():
    """Not in the order of the alphabet, in which a classifier would have its classes."""
    scores = np.full((150, 3), 0.1)
    scores[np.arange(150), LEVEL] = 0.8
    team = UncertaintyTriage(0.1, classes=GRADES, random_state=0)
    team.fit(X, Y, human_labels=HUMAN, machine_scores=scores)
    assert_array_equal(team.predict(X, machine_scores=scores), Y)


def test_deciding_needs_no_scikit_learn(tmp_path):
    team = fitted(TEAMS["blend"], GRADES)
    path = tmp_path / "decider.npz"
    path.write_bytes(packed(team.decider().values()))
    code = (
        "import sys, numpy as np\n"
        "from deferlearn._utils.packing import unpacked\n"
        "from deferlearn.teams.decider import Decider\n"
        f"decider = Decider.from_values(unpacked(open({str(path)!r}, 'rb').read()))\n"
        "decision = decider.judge(np.zeros((1, 3))).decision\n"
        "print(decider.answers(decision)[0], *sorted(m for m in sys.modules if m in "
        "('sklearn', 'pandas')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [team.predict(np.zeros((1, 3)))[0]]
