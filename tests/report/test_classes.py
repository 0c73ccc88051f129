"""The report of several classes: the same numbers by scikit-learn, and a page that can be read."""

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score, confusion_matrix, f1_score, recall_score

from case_tables import STAGES, make_cases, make_stages
from deferlearn.report import case_report, select_report_cases
from deferlearn.report.effect import effect, errors
from deferlearn.report.verdict import headline
from deferlearn.report.words import PerThousand
from deferlearn.tables import TableError, fit_table, select_cases
from deferlearn.tables.decisions import Decisions
from hostile_tables import HOSTILE
from html_page import Page

# Some cases have no answer, of which a fit warns.
pytestmark = pytest.mark.filterwarnings("ignore:no answer was given")
HUMANS = ["reader_1", "reader_2"]


def model_of(columns, grades=None):
    cases = select_cases(columns, "stage", humans=HUMANS, identifier="id", grades=grades)
    return fit_table(cases, alpha=0.1)


@pytest.fixture(scope="module")
def graded():
    """A model of grades, and its report on other cases; of one grade there are none."""
    model = model_of(make_stages(), STAGES)
    new = make_stages(120, seed=1)
    kept = [row for row, stage in enumerate(new["stage"]) if stage != "severe"]
    new = {name: [column[row] for row in kept] for name, column in new.items()}
    new["reader_1"][3] = new["reader_2"][3] = None  # nobody has read this case
    chosen = select_report_cases(new, model)
    return model, chosen, case_report(model, chosen, refit_cases=0)


def test_measures_by_another_road(graded):
    model, chosen, report = graded
    answers, read = chosen.cases.human_answers(chosen.cases.truth)
    truth = chosen.cases.truth[read]
    assert 0 < read.sum() < len(read)
    machine = model.predict(chosen.cases.features)[read]
    deferred = model.defer(chosen.cases.features)[read]
    said = {"machine": machine, "human": answers[read]}
    said["team"] = np.where(deferred, said["human"], machine)
    place = {stage: k for k, stage in enumerate(STAGES)}
    codes = np.array([place[label] for label in truth])
    for who, own in said.items():
        numbers = report.numbers["measures"][who]
        seen = sorted({*truth, *own})
        assert numbers["macro_f1"] == pytest.approx(
            f1_score(truth, own, labels=seen, average="macro")
        )
        off = np.abs(np.array([place[label] for label in own]) - codes)
        assert numbers["grade_error"] == pytest.approx(off.mean())
        kappa = cohen_kappa_score(truth, own, labels=STAGES, weights="quadratic")
        assert numbers["quadratic_kappa"] == pytest.approx(kappa)
        counts = confusion_matrix(truth, own, labels=STAGES)
        found = [list(row.values()) for row in report.numbers["confusion"][who].values()]
        assert found == counts.tolist()
        recall = recall_score(truth, own, labels=STAGES[:3], average=None)
        missed = [row[who]["share"] for row in report.numbers["classes"][:3]]
        np.testing.assert_allclose(missed, 1 - recall)
        assert report.numbers["classes"][3][who] is None  # there is no such case


def test_grades_keep_their_order(graded):
    _, _, report = graded
    assert [row["class"] for row in report.numbers["classes"]] == list(STAGES)
    page = Page(report.to_html())
    tables = page.all("table", **{"class": "confusion"})
    assert len(tables) == 3
    words = tables[0]["text"].split()
    assert words[:6] == ["truth", *STAGES, STAGES[0]]


def test_a_label_that_the_model_does_not_know(graded):
    model, _, _ = graded
    new = make_stages(40, seed=2)
    new["stage"][5] = "fatal"
    with pytest.raises(TableError, match=r"'stage' holds 'fatal' in row 6 .* none of the model's"):
        select_report_cases(new, model)


def test_verdict_and_page_of_three_classes():
    columns = make_stages(150, labels=("a", "b", "c"))
    model = model_of(columns)
    report = case_report(model, select_report_cases(columns, model), seen=True, quick=True)
    teams = report.numbers["assistance"]["teams"]
    assert all(0.0 <= row["macro_f1"] <= 1.0 for row in teams)
    assert not any("sensitivity" in row or "grade_error" in row for row in teams)
    assert report.numbers["judged_by"] == "teams fitted without the case"
    page = Page(report.to_html())
    headings = [element["text"] for element in page.all("th", scope="col")]
    assert headings.count("macro F1") == 2
    assert "quadratic kappa" not in headings


def test_hostile_classes_are_text():
    """Also in headings that stand upright, which five classes have."""
    labels = HOSTILE[:5]
    columns = make_stages(150, labels=labels)
    columns["site"] = [HOSTILE[i % len(HOSTILE)] for i in range(150)]
    model = model_of(columns, labels)
    report = case_report(model, select_report_cases(columns, model), refit_cases=0)
    page = Page(report.to_html())
    assert len(page.all("script")) == 2
    assert page.all("img") == []
    tall = [th["text"] for th in page.all("th", **{"class": "n tall"})]
    assert tall == [*labels] * 3


@pytest.mark.parametrize(
    ("grades", "costs", "expected", "unit"),
    [
        (STAGES, None, "expected grades off", "grades of error"),
        (
            None,
            {"classes": STAGES, "costs": (3 - 3 * np.eye(4)).tolist()},
            "expected cost",
            "units of cost",
        ),
        (None, None, "expected errors", "errors"),
    ],
)
def test_expected_losses_of_experts_have_their_unit(grades, costs, expected, unit):
    table = make_stages(120)
    cases = select_cases(
        table, "stage", humans=HUMANS, identifier="id", grades=grades, cost_matrix=costs
    )
    model = fit_table(cases, capacity={"reader_1": 0.1, "reader_2": 0.1}, alpha=0.1)
    report = case_report(model, select_report_cases(make_stages(60, seed=1), model), refit_cases=0)
    page = Page(report.to_html())
    text = page.one("section", id="experts")["text"]
    assert f"{unit} avoided per 1,000 more cases" in text
    limits = page.one("section", id="limits")["text"]
    assert ("except its curves of single cases, which count errors" in limits) == bool(costs)
    tables = [name for name in page.tables() if "experts" in name or "expert" in name]
    assert any(f"{unit} avoided per 1,000 more cases in the expert's time" in one for one in tables)
    (readings,) = (rows for name, rows in page.tables().items() if "readers per case" in name)
    assert readings[0][-1] == expected
    why = [row[0] for row in report.rows["rows"]]
    if unit == "errors":
        assert all("the machine would err on" in one and "of 1,000" in one for one in why)
        assert report.numbers["effect"]["cost"] is None
    else:
        assert all(f": {expected} of the machine " in one for one in why)
        assert not any("of 1,000" in one for one in why)


@pytest.mark.parametrize("costs", [None, [[0, 1], [5, 0]]])
def test_the_verdict_of_two_classes_counts_errors_only_without_costs(costs):
    matrix = costs and {"classes": ["well", "ill"], "costs": costs}
    cases = select_cases(make_cases(), "diagnosis", humans=["reader_1"], cost_matrix=matrix)
    model = fit_table(cases, alpha=0.1)
    report = case_report(model, select_report_cases(make_cases(seed=1), model), refit_cases=0)
    text = Page(report.to_html()).one("section", id="classes")["text"]
    assert ("matters more than the verdict" in text) == (costs is None)
    assert ("are counted, whatever they cost" in text) == (costs is not None)


def test_what_costs_say_is_said_first():
    """Errors become fewer, and their cost larger: with a cost matrix the answer is about costs."""
    truth = np.array(["a", "b", "c"] * 60)
    machine, human = truth.copy(), truth.copy()
    machine[::3][:30] = "b"  # thirty cases of a, at 1 each
    human[2::3][:20] = "a"  # twenty of c, at 9 each
    judged = Decisions(truth, machine, human, np.ones(180, bool), np.ones(180, bool))
    rows = ((0.0, 1.0, 1.0), (1.0, 0.0, 1.0), (9.0, 9.0, 0.0))
    group = np.arange(180)
    plain = effect(judged, group)
    costly = effect(judged, group, None, judged.costs(("a", "b", "c"), rows), 9.0)
    assert costly["cost"]["machine"] == pytest.approx(30 / 180)
    assert costly["cost"]["team"] == pytest.approx(180 / 180)
    assert costly["cost"]["difference"]["difference"] == pytest.approx(150 / 180)
    assert costly["difference"] == plain["difference"]
    assert plain["answer"] == "unclear"
    assert costly["answer"] == "more"
    found = errors(judged, group)
    told = PerThousand(own["share"] for own in found.values())
    assert headline(plain, found, told).startswith(
        "Not shown. Per 1,000 cases, humans read 1,000 and errors"
    )
    said = headline(costly, found, told)
    assert said.startswith(
        "No. Per 1,000 cases, humans read 1,000 and the cost of errors rises from 167 to 1,000: 833 more"
    )
