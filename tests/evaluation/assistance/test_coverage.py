"""Do the report's intervals hold, and its verdicts? Simulated data sets, whose truth is known."""

import numpy as np
import pytest

from deferlearn import AssistedSVC, assistance_report
from deferlearn.teams import UncertaintyTriage

pytestmark = pytest.mark.slow

BUDGETS = [0.1, 0.2, 0.3]
N, FOLDS = 100, 5
BATCH = N // FOLDS  # what a test part holds; the batch rule depends on it


def draw(n, rng, machine_learns, human_error):
    """Cases of which a linear machine gets one region wrong; the human errs less there.

    Without anything to learn, labels, features and humans have nothing to do with each other: team,
    machine and human all err on half of the cases, at every budget.
    """
    X = rng.normal(size=(n, 4))
    if not machine_learns:
        y = np.where(rng.permutation(n) % 2, 1, -1)
        return X, y, rng.choice([-1, 1], n)
    strange = X[:, 1] > 0.8
    y = np.where((X[:, 0] > 0) ^ strange, 1, -1)
    chance = np.where(strange, 0.4, 1.0) * human_error
    return X, y, np.where(rng.uniform(size=n) < chance, -y, y)


def true_errors(team, n_training_sets, human_error):
    """Errors of fresh training sets' teams on batches of fresh cases: machine, each budget, human."""
    rng = np.random.default_rng(123)
    found = []
    for _ in range(n_training_sets):
        X, y, human = draw(N - BATCH, rng, True, human_error)
        new, truth, answers = draw(BATCH * 60, rng, True, human_error)
        row = []
        for budget in [0.0, *BUDGETS]:
            team.set_params(budget=budget).fit(X, y, human_labels=human)
            scores = team.deferral_score(new).reshape(-1, BATCH)
            first = np.argsort(-scores, axis=1, kind="stable")[:, : round(budget * BATCH)]
            deferred = np.zeros(scores.shape, dtype=bool)
            np.put_along_axis(deferred, first, True, axis=1)
            wrong = np.where(deferred.ravel(), answers != truth, team.predict(new) != truth)
            row.append(wrong.mean())
        found.append([*row, np.mean(answers != truth)])
    return np.mean(found, axis=0)


def reports(team, n_data_sets, machine_learns, human_error=0.25):
    for seed in range(n_data_sets):
        data = draw(N, np.random.default_rng(seed), machine_learns, human_error)
        yield assistance_report(team, *data, BUDGETS, cv=FOLDS, random_state=seed)


def holds(row, name, truth):
    return row[f"{name}_low"] <= truth <= row[f"{name}_high"]


def coverage(found, truth):
    """How often levels, differences and comparisons with the human hold; differences all together."""
    machine, human = truth[0], truth[-1]
    levels, gains, against = [], [], []
    for report in found:
        rows = report.teams
        levels.append([holds(r, "error", t) for r, t in zip(rows, truth, strict=True)])
        pairs = list(zip(rows[:-1], truth[:-1], strict=True))
        gains.append(all(holds(r, "difference", t - machine) for r, t in pairs[1:]))
        against.append(all(holds(r, "versus_human", t - human) for r, t in pairs))
    return np.mean(levels, axis=0), np.mean(gains), np.mean(against)


TRIAGE = UncertaintyTriage(alpha=0.1, cv=None)
ASSISTED = AssistedSVC(alpha=0.1, cv=None, submodularity_ratio=0.5)


@pytest.mark.parametrize(
    ("team", "n_data_sets", "n_training_sets"), [(TRIAGE, 300, 300), (ASSISTED, 150, 100)]
)
@pytest.mark.filterwarnings("ignore:Humans take")
def test_intervals_hold_as_often_as_they_say(team, n_data_sets, n_training_sets):
    truth = true_errors(team, n_training_sets, 0.25)
    found = list(reports(team, n_data_sets, machine_learns=True))
    levels, gains, against = coverage(found, truth)
    assert levels.min() >= 0.90
    assert levels.mean() <= 0.99
    assert 0.90 <= gains <= 0.99
    assert 0.90 <= against <= 0.99


def test_no_effect_is_not_called_one():
    truth = np.full(len(BUDGETS) + 2, 0.5)
    found = list(reports(TRIAGE, 300, machine_learns=False))
    levels, gains, against = coverage(found, truth)
    said = [report.pays for report in found]
    assert said.count("yes") / 300 <= 0.05
    assert levels.min() >= 0.90
    assert 0.90 <= gains <= 0.99
    assert 0.90 <= against <= 0.99


def test_a_large_effect_is_seen():
    found = list(reports(TRIAGE, 60, machine_learns=True, human_error=0.05))
    assert sum(report.pays == "yes" for report in found) >= 48
