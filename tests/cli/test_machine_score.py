"""`--machine-score`: the scores of a machine that cannot be retrained, from end to end."""

import csv

import numpy as np
import pytest
from typer.testing import CliRunner

from case_tables import make_cases, write_csv
from deferlearn import TeamCV
from deferlearn.cli.app import app
from deferlearn.tables import TableEncoder, TableError, fit_table, load_decider, select_cases

COLUMNS = make_cases()
TRUTH = np.array(COLUMNS["diagnosis"])
CLASSES = sorted(set(TRUTH.tolist()))
LUCK = np.random.RandomState(0)
# A product that is right most of the time, and says how sure it is.
SIDE = np.where(CLASSES[1] == TRUTH, 1.0, -1.0)
SCORE = 1 / (1 + np.exp(-2 * SIDE - 1.5 * LUCK.normal(size=80)))
SCORED = COLUMNS | {"ai": SCORE.tolist()}
ROLES = (
    "--label",
    "diagnosis",
    "--human",
    "reader_1",
    "--id",
    "id",
    "--drop",
    "patient",
    "--keep",
    "reader_2",
)


@pytest.fixture
def run(monkeypatch):
    monkeypatch.setenv("COLUMNS", "300")
    return lambda *words: CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture
def model(run, tmp_path):
    path = tmp_path / "model.skops"
    cases = write_csv(tmp_path / "cases.csv", SCORED)
    result = run("fit", cases, *ROLES, "--machine-score", "ai", "--no-evaluate", "--out", path)
    assert result.exit_code == 0, result.output
    assert "the scores in 'ai', calibrated" in result.output
    return path


def test_new_cases_need_the_score(run, model, tmp_path):
    out = tmp_path / "routed.csv"
    new = write_csv(tmp_path / "new.csv", SCORED)
    result = run("apply", model, new, "--out", out)
    assert result.exit_code == 0, result.output
    with out.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    answers = np.array([row["machine_answer"] for row in rows])
    # The machine's answer is the score's side, at a point that is calibrated.
    cut = np.sort(SCORE)[int((answers == CLASSES[0]).sum()) - 1]
    np.testing.assert_array_equal(cut < SCORE, answers == CLASSES[1])
    without = write_csv(tmp_path / "without.csv", COLUMNS)
    result = run("apply", model, without, "--out", tmp_path / "none.csv")
    assert result.exit_code != 0
    assert "'ai'" in result.output
    gap = SCORED | {"ai": [None, *SCORE[1:].tolist()]}
    result = run("apply", model, write_csv(tmp_path / "gap.csv", gap), "--out", tmp_path / "n.csv")
    assert result.exit_code != 0
    assert "is no score: leave the case out, or send it to a human" in result.output


def test_the_decisions_are_those_of_the_estimator(model):
    decider = load_decider(model)
    decided = decider.decide(SCORED)
    features = decider.encoder.features(decider.encoder.codes(SCORED)[0])
    np.testing.assert_array_equal(features[:, -1], SCORE)
    human = np.array(COLUMNS["reader_1"], dtype=object)
    team = TeamCV(random_state=0)
    team.fit(features[:, :-1], TRUTH, human_labels=human, machine_scores=SCORE)
    expected = team.defer(features[:, :-1], machine_scores=SCORE)
    np.testing.assert_array_equal(decided.deferred, expected)
    values = team.decision_function(features[:, :-1], machine_scores=SCORE)
    np.testing.assert_allclose(decided.decision_value, values, rtol=1e-9)
    assert team.best_params_["machine"] == "given scores"


def test_a_score_is_no_feature_of_a_trained_machine():
    cases = select_cases(SCORED, "diagnosis", humans=["reader_1"], machine_score="ai")
    with pytest.raises(TableError, match=r"alpha=0\.1 is for a machine that is trained"):
        fit_table(cases, alpha=0.1)
    with pytest.raises(TableError, match="'ai' is given as human and as machine score"):
        select_cases(SCORED, "diagnosis", humans=["ai"], machine_score="ai")
    with pytest.raises(TableError, match="no column 'nowhere', given as machine score"):
        select_cases(SCORED, "diagnosis", machine_score="nowhere")


def test_the_score_may_be_all_there_is():
    encoder = TableEncoder(score="ai").fit({"ai": SCORE})
    np.testing.assert_array_equal(encoder.transform({"ai": SCORE})[:, 0], SCORE)
    assert list(encoder.get_feature_names_out()) == ["ai"]


def test_an_unknown_column(run, tmp_path):
    cases = write_csv(tmp_path / "cases.csv", SCORED)
    result = run("fit", cases, *ROLES, "--machine-score", "AI", "--out", tmp_path / "m.skops")
    assert result.exit_code != 0
    assert "given by --machine-score" in result.output
