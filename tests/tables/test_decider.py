"""Decisions from arrays: the same alone as in a batch, and the same as the estimator's, bit for bit."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier

import deferlearn
from case_tables import make_cases
from deferlearn.tables import (
    TableEncoder,
    TableError,
    TabularTeam,
    as_table,
    fit_table,
    load_decider,
    select_cases,
)
from deferlearn.tables.decider import FORMAT, MEMBER
from deferlearn.teams import AssistedSVC, AssistedSVCCV, DeferralPolicy, FullAutomation
from deferlearn.teams.candidates import DEFAULT_POLICIES
from deferlearn.teams.decider import Decider
from stub_team import StubTeam

USED = ["size", "dose", "age", "site", "smoker"]
TEAMS = {
    **{
        policy: AssistedSVCCV(0.3, alphas=[0.1], policies=[policy], cv=3, random_state=0)
        for policy in DEFAULT_POLICIES
    },
    "rbf": AssistedSVC(0.3, alpha=0.1, kernel="rbf", gamma=0.1, cv=3, random_state=0),
    "signed margin": AssistedSVC(
        0.3, alpha=0.1, policy=DeferralPolicy(signed=True), cv=3, random_state=0
    ),
    "forest on x": AssistedSVC(
        0.3, alpha=0.1, policy=RandomForestClassifier(9), cv=3, random_state=0
    ),
    "nothing to learn": AssistedSVC(0, alpha=0.1, cv=3, random_state=0),
}


def rows_of(n, seed):
    """Numbers, categories, booleans, and gaps of every kind."""
    columns = make_cases(n, seed)
    rng = np.random.default_rng(seed)
    columns["smoker"] = rng.choice([True, False, None], n).tolist()
    columns["site"] = [None if i % 13 == 5 else site for i, site in enumerate(columns["site"])]
    return columns


@pytest.fixture(scope="module")
def new():
    """New cases as a DataFrame: some of their categories did not occur in training."""
    columns = rows_of(150, 1)
    columns["site"][3:6] = ["Paris", " Rome ", "NA"]
    frame = pd.DataFrame({name: columns[name] for name in USED})
    frame["unused"] = pd.Timestamp("2026-01-01")
    return frame


@pytest.fixture(scope="module")
def models():
    """Fits each team once."""
    made = {}

    def model(name):
        if name not in made:
            columns = rows_of(120, 0)
            table = {column: columns[column] for column in USED}
            fitted = TabularTeam([("table", TableEncoder()), ("team", TEAMS[name])])
            fitted.fit(table, columns["diagnosis"], team__human_labels=columns["reader_1"])
            fitted.card_ = {"format": FORMAT}
            made[name] = fitted
        return made[name]

    return model


def assert_same(decided, others):
    for name, values in decided._asdict().items():
        joined = np.concatenate([getattr(other, name) for other in others])
        np.testing.assert_array_equal(values, joined, err_msg=name)


@pytest.mark.parametrize("name", TEAMS)
def test_one_by_one_is_the_batch_and_the_estimator(name, models, new, tmp_path):
    model = models(name)
    deferlearn.save(model, tmp_path / "model.skops")
    decider = load_decider(tmp_path / "model.skops")
    assert isinstance(decider.team, Decider)
    batch = decider.decide(new)
    cases = new.astype(object).where(new.notna(), None).to_dict("records")
    assert_same(batch, [decider.decide(case) for case in cases])
    assert_same(batch, [decider.decide(new.iloc[[row]]) for row in range(len(new))])
    assert_same(batch, [decider.decide(cases)])
    assert_same(batch, [decider.decide(as_table(new))])
    assert_same(batch, [model.decider().decide(new)])
    again = deferlearn.load(tmp_path / "model.skops")
    for team in (model, again):
        np.testing.assert_array_equal(batch.decision_value, team.decision_function(new))
        np.testing.assert_array_equal(batch.deferral_score, team.deferral_score(new))
        unusual = np.array(team.unusual(new))
        np.testing.assert_array_equal(batch.unusual, unusual)
        np.testing.assert_array_equal(batch.deferred, team.defer(new) | (unusual != ""))
        np.testing.assert_array_equal(batch.machine_answer, team.predict(new))
    features = model.encoder.transform(new)
    for budget in (None, 0, 7, 0.5, 1.0):
        top = decider.team.defer_top(features, budget)
        np.testing.assert_array_equal(top, model.defer_top(new, budget))
    assert decider.team.deferral_threshold_ == model.team.deferral_threshold_
    expected = decider.chosen.expected_errors(features)
    if "advantage" in name:
        np.testing.assert_array_equal(expected, model.chosen.expected_errors(features))
    else:
        assert expected is None


@pytest.mark.parametrize("team", [AssistedSVC(0.3, alpha=0.1, policy="mlp", cv=None), StubTeam()])
@pytest.mark.filterwarnings("ignore:Stochastic Optimizer")
def test_other_teams_decide_as_estimators(team, new, tmp_path):
    columns = rows_of(60, 0)
    model = TabularTeam([("table", TableEncoder()), ("team", team)])
    model.fit({name: columns[name] for name in USED}, columns["diagnosis"])
    model.card_ = {"format": FORMAT}
    deferlearn.save(model, tmp_path / "m.skops", trusted=["stub_team.StubTeam"])
    if isinstance(team, StubTeam):
        assert model.decider().team is model.team
        return
    decider = load_decider(tmp_path / "m.skops")
    assert isinstance(decider.team, AssistedSVC)
    assert decider.version.startswith("deferlearn-")
    batch = decider.decide(new)
    usual = decider.decide(new, defer_unusual=False)
    np.testing.assert_array_equal(usual.deferred, model.defer(new))
    assert batch.deferred.tolist() == [
        bool(decider.decide(new.iloc[[row]]).deferred[0]) for row in range(len(new))
    ]


def test_a_search_that_ends_in_automation_is_stored(monkeypatch, tmp_path):
    monkeypatch.setattr("deferlearn.tables.team.make_team", lambda *_, **__: TEAMS["automation"])
    columns = make_cases()
    cases = select_cases(columns, "diagnosis", humans=["reader_1"], identifier="id")
    model = fit_table(cases, drop=["patient", "reader_2"])
    assert isinstance(model.chosen, FullAutomation)
    deferlearn.save(model, tmp_path / "model.skops")
    decided = load_decider(tmp_path / "model.skops").decide(columns)
    assert not decided.deferred.any()
    assert decided.machine_answer.tolist() == model.predict(columns).tolist()


def test_cells_of_other_kinds_are_read_by_arrow(models, new):
    decider = models("margin").decider()
    case = new.iloc[0].to_dict() | {"unused": object()}
    plain = decider.decide(case)
    for age in (np.float32(case["age"]), np.int64(1), " +1 ", float("nan"), None, "1."):
        one = decider.decide(case | {"age": age})
        columns = {name: [cell] for name, cell in case.items() if name in USED}
        assert_same(one, [decider.decide(columns | {"age": [age]})])
    assert_same(
        decider.decide(case | {"site": "\u2003Oslo"}), [decider.decide(case | {"site": "Oslo"})]
    )
    assert_same(decider.decide([case, case]), [plain, plain])


def test_frames_of_every_kind(models, new):
    decider = models("advantage").decider()
    batch = decider.decide(new)
    for frame in (new.convert_dtypes(), new.astype({"site": "category"}), new.astype(object)):
        assert_same(batch, [decider.decide(frame)])
        assert_same(batch, [decider.decide(frame.iloc[[row]]) for row in range(len(frame))])
    twice = pd.concat([new, new[["age"]]], axis=1).iloc[[0]]
    with pytest.raises(TableError, match="Duplicate column names"):
        decider.decide(twice)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"age": "old"}, "column 'age' holds 'old' in row 1"),
        ({"age": float("inf")}, "column 'age' holds 'inf'"),
        ({"age": 1e300}, "so far from the training cases"),
        ({"age": True}, "column 'age' holds 'true'"),
    ],
)
def test_cells_that_no_model_can_take(models, new, change, message):
    decider = models("margin").decider()
    with pytest.raises(TableError, match=message):
        decider.decide(new.iloc[0].drop("unused").to_dict() | change)
    with pytest.raises(TableError, match=message):
        decider.decide(new.iloc[[0]].astype(object).assign(**change))


def test_cases_without_a_column(models, new):
    decider = models("margin").decider()
    with pytest.raises(TableError, match="no column 'age', which the model needs"):
        decider.decide({"size": 1.0, "dose": 0.0, "site": "Oslo", "smoker": True})
    full = new.iloc[0].drop("unused").to_dict()
    part = {name: cell for name, cell in full.items() if name != "age"}
    with pytest.raises(TableError, match="some of the cases have no 'age'"):
        decider.decide([full, part])
    with pytest.raises(TableError, match="no column 'age'"):
        decider.decide(new.drop(columns="age"))


def test_files_that_hold_no_table_model(tmp_path, models, monkeypatch):
    path = tmp_path / "model.skops"
    with pytest.raises(TableError, match="cannot read"):
        load_decider(path)
    path.write_bytes(b"no archive")
    with pytest.raises(TableError, match="damaged"):
        load_decider(path)
    deferlearn.save(TEAMS["rbf"], path)
    with pytest.raises(TableError, match="did not write"):
        load_decider(path)
    model = models("margin")
    with monkeypatch.context() as patch:
        patch.setattr(model, "card_", {"format": 0})
        deferlearn.save(model, path)
    with pytest.raises(TableError, match="another version"):
        load_decider(path)
    with monkeypatch.context() as patch:
        patch.setattr(TabularTeam, "archive_members", lambda self: {MEMBER: b"no arrays"})
        deferlearn.save(model, path)
    with pytest.raises(TableError, match="cannot be read"):
        load_decider(path)


def test_models_of_other_versions_are_noted(tmp_path, models, monkeypatch):
    from deferlearn.teams import storage

    here = storage.versions()
    monkeypatch.setattr(storage, "versions", lambda: {**here, "deferlearn": "99.0.0"})
    deferlearn.save(models("margin"), tmp_path / "model.skops")
    monkeypatch.undo()
    with pytest.warns(UserWarning, match=r"99\.0\.0"):
        load_decider(tmp_path / "model.skops")


def test_one_decision_loads_no_engine(tmp_path, models):
    deferlearn.save(models("advantage_forest"), tmp_path / "model.skops")
    code = f"""
import sys
from deferlearn.tables import load_decider
case = dict(size=1.0, dose=0.0, age=None, site="Paris", smoker=True)
print(load_decider({str(tmp_path / "model.skops")!r}).decide(case).machine_answer[0])
print([name for name in ("numba", "sklearn", "scipy", "pandas", "pyarrow") if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.split("\n")[1] == "[]", done.stderr
