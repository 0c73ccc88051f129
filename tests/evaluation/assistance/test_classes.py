"""The report on assistance with several classes and with grades."""

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score, f1_score, recall_score

from case_tables import STAGES, make_stages
from deferlearn import assistance_report
from deferlearn.teams import UncertaintyTriage

COLUMNS = make_stages(150)
X = np.column_stack([COLUMNS["size"], COLUMNS["dose"]])
Y = np.array(COLUMNS["stage"])
HUMAN = np.array(COLUMNS["reader_1"], dtype=object)
SPLITS = [(np.arange(0, 150, 2), np.arange(1, 150, 2))]


def report_of(classes, **options):
    team = UncertaintyTriage(alpha=0.1, cv=None, classes=classes)
    return assistance_report(team, X, Y, HUMAN, budgets=[0.3], cv=SPLITS, **options)


@pytest.fixture(scope="module")
def graded():
    return report_of(list(STAGES))


def test_numbers_by_another_road(graded):
    team = UncertaintyTriage(0.3, alpha=0.1, cv=None, classes=list(STAGES))
    train, test = SPLITS[0]
    read = np.array([answer is not None for answer in HUMAN[test]])
    test = test[read]
    team.fit(X[train], Y[train], human_labels=HUMAN[train])
    place = {stage: k for k, stage in enumerate(STAGES)}
    truth = Y[test]
    said = {
        "machine": team.predict(X[test]),
        "team": team.predict_assisted(X[test], HUMAN[test], batch=True),
        "human": HUMAN[test].astype(str),
    }
    for row in graded.teams:
        own = said[row["who"]]
        off = [abs(place[a] - place[b]) for a, b in zip(own, truth, strict=True)]
        assert row["error"] == pytest.approx(np.mean(own != truth))
        assert row["macro_f1"] == pytest.approx(f1_score(truth, own, average="macro"))
        assert row["grade_error"] == pytest.approx(np.mean(off))
        assert row["grade_error_low"] <= row["grade_error"] <= row["grade_error_high"]
        kappa = cohen_kappa_score(truth, own, labels=STAGES, weights="quadratic")
        assert row["quadratic_kappa"] == pytest.approx(kappa)
        recall = recall_score(truth, own, labels=STAGES, average=None)
        found = [part[f"{row['who']}_sensitivity"] for part in graded.sensitivities]
        np.testing.assert_allclose(found, recall)
    assert [row["class"] for row in graded.sensitivities] == list(STAGES)


def test_classes_without_an_order():
    report = report_of("auto", subgroup=COLUMNS["site"])
    assert report.settings["graded"] is False
    assert report.settings["pos_label"] is None
    assert not any("grade_error" in row for row in report.teams)
    assert not any("n_positive" in row for row in report.subgroups)
    text = str(report)
    assert "macro f1" in text
    assert "Share of each class that is found, at a budget of 30%" in text
    assert "positive" not in text
    assert len(report.to_frame("sensitivities")) == 4


def test_human_errors_by_a_factor(graded):
    """A factor of 0 leaves no human error; a large one makes every answer wrong."""
    report = report_of(list(STAGES), human_error_factors=[0.0, 1.0, 1000.0])
    least, same, most = report.factors
    assert least["human_error"] == 0.0
    assert same["error"] == pytest.approx(report.teams[1]["error"])
    assert least["error"] < same["error"] < most["error"]


def test_all_of_it_is_text(graded):
    assert "quadratic kappa" in str(graded)
    assert "<th>grade error</th>" in graded._repr_html_()
    assert graded.to_dict()["sensitivities"][0]["class"] == "none"
