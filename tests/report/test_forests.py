"""Forests of the report: grown once for all budgets, and not a number changes."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.ensemble import RandomForestRegressor

from case_tables import make_cases
from deferlearn.report import forests, refits
from deferlearn.report.forests import RememberedForest, with_memory
from deferlearn.tables import TabularTeam, select_cases
from deferlearn.tables.encoder import TableEncoder
from deferlearn.teams import AdvantageTriage, advantage

SMALL = RandomForestRegressor(n_estimators=4, min_samples_leaf=5)


@pytest.fixture
def grown(monkeypatch):
    """How many forests have grown since; the memory is empty at the start."""
    forests._grown.clear()
    count = []
    fit = RandomForestRegressor.fit

    def watched(self, *arguments, **options):
        count.append(self)
        return fit(self, *arguments, **options)

    monkeypatch.setattr(RandomForestRegressor, "fit", watched)
    return count


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    return rng.normal(size=(50, 3)), rng.normal(size=50)


def test_it_predicts_what_a_forest_does(data, grown):
    X, y = data
    plain = RandomForestRegressor(7, max_depth=3, random_state=5).fit(X, y)
    mine = RememberedForest(7, max_depth=3, random_state=5).fit(X, y)
    again = RememberedForest(7, max_depth=3, random_state=5).fit(X.copy(order="F"), y.copy())
    assert len(grown) == 2
    for forest in (mine, again):
        for cases in (X, X[:7], X[::-1]):
            expected = plain.predict(cases)
            np.testing.assert_array_equal(forest.predict(cases), expected)
            forest.predict(cases)[:] = 0.0  # what a caller does with it is not remembered
            np.testing.assert_array_equal(forest.predict(cases), expected)


@pytest.mark.parametrize(
    "change",
    [
        lambda X, y, own: (X + 1e-12, y, own),
        lambda X, y, own: (X, y + 1e-12, own),
        lambda X, y, own: (X.reshape(-1, 1)[:50], y, own),
        lambda X, y, own: (X.astype(np.float32), y, own),
        lambda X, y, own: (X, y, own | {"random_state": 1}),
        lambda X, y, own: (X, y, own | {"max_depth": 2}),
    ],
)
def test_anything_else_grows_another(data, grown, change):
    own = {"n_estimators": 3, "random_state": 0}
    RememberedForest(**own).fit(*data)
    X, y, own = change(*data, own)
    mine = RememberedForest(**own).fit(X, y)
    assert len(grown) == 2
    expected = RandomForestRegressor(**own).fit(X, y).predict(X)
    np.testing.assert_array_equal(mine.predict(X), expected)


def test_chance_weights_and_sparse_cases_are_not_remembered(data, grown):
    X, y = data
    for _ in range(2):
        RememberedForest(2).fit(X, y)
        RememberedForest(2, random_state=np.random.RandomState(0)).fit(X, y)
        RememberedForest(2, random_state=0).fit(X, y, np.ones(50))
        sparse = RememberedForest(2, random_state=0).fit(sp.csr_array(X), y)
    assert len(grown) == 8
    np.testing.assert_array_equal(sparse.predict(sp.csr_array(X)), sparse.predict(X))
    assert not forests._grown


def test_the_memory_is_short(data, grown):
    X, y = data
    for seed in [*range(forests.MOST + 1), 0]:
        RememberedForest(1, random_state=seed).fit(X, y)
    assert len(forests._grown) == forests.MOST
    assert len(grown) == forests.MOST + 2  # the first had been forgotten


def make_team(**options):
    team = AdvantageTriage(alpha=0.1, random_state=0, **options)
    encoder = TableEncoder(drop=("patient", "id", "reader_2"))
    return TabularTeam([("table", encoder), ("team", team)])


def test_teams_of_all_budgets_share_their_forests(grown, monkeypatch):
    monkeypatch.setattr(advantage, "FOREST", SMALL)
    monkeypatch.setattr(forests, "FOREST", SMALL)
    cases = select_cases(make_cases(50), "diagnosis", humans=["reader_1"])
    team = make_team(machine_error="forest", human_error="forest")
    plan = refits.Plan([0.2], quick=True, n_verdict=10, n_curve=6)

    def measure():
        answer = refits.verdict(team, cases, plan).to_dict()
        curve = refits.curves({"team": team}, cases, plan)["team"]
        return answer, curve.values["error"].tolist(), curve.deferred.tolist()

    found = measure()
    # Five and three splits; a team has two forests for each of its five folds, and two for all.
    assert len(grown) == (5 + 3) * 2 * (5 + 1)
    assert "RememberedForest" not in found[0]["settings"]["estimator"]
    monkeypatch.setattr(refits, "with_memory", lambda team: team)
    assert measure() == found
    assert len(grown) == (5 + 3) * 12 * (1 + 2)


def test_only_forests_of_the_word_are_exchanged():
    own = RandomForestRegressor(2)
    kept = with_memory(make_team(machine_error=own, human_error="class")).team
    assert type(kept.machine_error) is RandomForestRegressor
    assert kept.human_error == "class"
    team = make_team(human_error="forest")
    assert isinstance(with_memory(team).team.human_error, RememberedForest)
    assert team.team.human_error == "forest"
