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


COSTS = np.array([[0, 1, 2, 3], [4, 0, 5, 6], [7, 8, 0, 9], [10, 11, 12, 0]], dtype=float)


@pytest.fixture(scope="module")
def costly():
    factors = [0.0, 1.0, 1000.0]
    return report_of(
        list(STAGES),
        cost_matrix=COSTS,
        deferral_cost=0.5,
        human_error_factors=factors,
        subgroup=COLUMNS["site"],
    )


def test_costs_by_another_road(costly):
    team = UncertaintyTriage(0.3, alpha=0.1, cv=None, classes=list(STAGES))
    train, test = SPLITS[0]
    test = test[[answer is not None for answer in HUMAN[test]]]
    team.fit(X[train], Y[train], human_labels=HUMAN[train])
    deferred = team.defer_top(X[test])
    place = {stage: k for k, stage in enumerate(STAGES)}

    def mean_cost(said, time):
        pairs = zip(Y[test], said, strict=True)
        each = np.array([COSTS[place[truth], place[answer]] for truth, answer in pairs])
        return (each + 0.5 * time), each

    human, of_answers = mean_cost(HUMAN[test], np.ones(len(test)))
    machine, of_machine = mean_cost(team.predict(X[test]), 0.0)
    both, of_team = mean_cost(np.where(deferred, HUMAN[test], team.predict(X[test])), deferred)
    rows = {row["who"]: row for row in costly.teams}
    for who, own in (("human", human), ("machine", machine), ("team", both)):
        assert rows[who]["cost"] == pytest.approx(own.mean())
        assert rows[who]["cost_low"] <= rows[who]["cost"] <= rows[who]["cost_high"]
    assert rows["team"]["difference"] == pytest.approx((both - machine).mean())
    assert rows["team"]["versus_human"] == pytest.approx((both - human).mean())
    assert costly.measure == "cost"
    assert costly.settings["cost_matrix"] == tuple(map(tuple, COSTS))
    site = np.array(COLUMNS["site"])[test]
    for row in costly.subgroups:
        own = site == row["subgroup"]
        assert row["difference"] == pytest.approx((of_team - of_machine)[own].mean())
    least, same, most = costly.factors
    assert same["cost"] == pytest.approx(both.mean())
    # Humans who never err leave the machine's costs on its own cases, and time.
    kept = np.where(deferred, 0.0, of_machine) + 0.5 * deferred
    assert least["cost"] == pytest.approx(kept.mean())
    # If all errors on a class become as frequent as they can be, they stay of the same kinds.
    worse = np.where(deferred, 0.0, of_machine)
    for k in range(4):
        own = deferred & (Y[test] == STAGES[k])
        wrong = own & (HUMAN[test] != Y[test])
        worse[own] = of_answers[wrong].mean() if wrong.any() else 0.0
    assert most["cost"] == pytest.approx((worse + 0.5 * deferred).mean())


def test_a_break_even_factor_of_costs(costly):
    row = costly.teams[1]
    factor = row["break_even_factor"]
    assert factor is not None
    again = report_of(
        list(STAGES), cost_matrix=COSTS, deferral_cost=0.5, human_error_factors=[factor]
    )
    (at,) = (row for row in again.factors if row["factor"] == factor)
    assert at["cost"] == pytest.approx(again.teams[0]["cost"])


def test_equal_costs_are_errors():
    plain, equal = report_of("auto"), report_of("auto", cost_matrix=1 - np.eye(4))
    assert equal.measure == "cost"
    for one, other in zip(plain.teams, equal.teams, strict=True):
        assert other["cost"] == pytest.approx(one["error"])
        assert other.get("difference") == pytest.approx(one.get("difference"))
    for one, other in zip(plain.factors, equal.factors, strict=True):
        assert other["cost"] == pytest.approx(one["cost"])
    assert equal.teams[1]["break_even_factor"] == pytest.approx(plain.teams[1]["break_even_factor"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cost_matrix": np.ones((4, 4))}, "zeros on its diagonal"),
        ({"cost_matrix": np.zeros((4, 4))}, "all errors cost 0"),
        ({"cost_matrix": np.zeros((3, 3))}, r"shape \(3, 3\), but there are 4 classes"),
        ({"cost_matrix": -COSTS}, "finite and not negative"),
        ({"cost_matrix": COSTS, "false_negative": 2, "false_positive": 2}, "give either cost_mat"),
    ],
)
def test_costs_that_mean_nothing(options, message):
    with pytest.raises(ValueError, match=message):
        report_of("auto", **options)


def test_costs_of_two_classes_are_those_of_two_errors():
    labels = np.where(np.isin(Y, STAGES[2:]), "ill", "well")
    human = np.where(np.arange(150) % 7, labels, "ill")
    team = UncertaintyTriage(alpha=0.1, cv=None)
    found = [
        assistance_report(team, X, labels, human, [0.3], cv=SPLITS, pos_label=positive, **costs)
        for positive, costs in [
            ("ill", {"cost_matrix": [[0, 5], [2, 0]]}),  # in the order ill, well
            ("ill", {"false_negative": 5, "false_positive": 2}),
            ("well", {"cost_matrix": [[0, 5], [2, 0]]}),
        ]
    ]
    costs = [[row["cost"] for row in report.teams] for report in found]
    assert costs[0] == costs[1]
    assert costs[2] == pytest.approx(costs[0])


def test_all_of_it_is_text(graded):
    assert "quadratic kappa" in str(graded)
    assert "<th>grade error</th>" in graded._repr_html_()
    assert graded.to_dict()["sensitivities"][0]["class"] == "none"
