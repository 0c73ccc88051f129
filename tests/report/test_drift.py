"""Whether cases are like those in training: what has changed is found, and what has not is not."""

import copy
import itertools

import numpy as np
import pytest
from scipy import stats

from deferlearn.report import case_report, select_report_cases
from deferlearn.report.beyond import beyond_by_chance
from deferlearn.report.drift import drift
from deferlearn.report.effect import errors
from deferlearn.report.estimates import groups_of
from deferlearn.report.reliability import reliability
from deferlearn.report.verdict import most_changed
from deferlearn.report.words import PerThousand
from deferlearn.tables import fit_table, select_cases
from deferlearn.tables.decisions import Decisions
from deferlearn.tables.summary import column_summary
from html_page import Page

COLUMNS = ("size", "age", "dose", "site")


def table_of(n, seed, shift=0.0, sites=("Oslo", "Rome"), gaps=0.1, errs=0.1):
    rng = np.random.default_rng(seed)
    size, dose = rng.normal(size=(2, n))
    truth = np.where(size + 0.5 * rng.normal(size=n) > 0, "ill", "well")
    other = np.where(truth == "ill", "well", "ill")
    age = rng.integers(30, 80, n).astype(object)
    age[rng.random(n) < gaps] = None
    return {
        "size": size,
        "age": age.tolist(),
        "dose": dose + shift,
        "site": rng.choice(sites, n),
        "truth": truth,
        "human": np.where(rng.random(n) < errs, other, truth),
        "patient": [f"p{i // 4}" for i in range(n)],
    }


@pytest.fixture(scope="module")
def model():
    known = select_cases(table_of(300, 0), "truth", humans=["human"])
    return fit_table(known, alpha=0.1, drop=["patient"])


def drift_of(model, table, **options):
    chosen = select_report_cases(table, model, **options)
    cases = chosen.cases
    group = groups_of(cases)
    judged = Decisions.of(cases, model.predict(cases.features), model.defer(cases.features))
    found = drift(model, cases, group, judged, errors(judged, group))
    return {row["column"]: row for row in found["columns"]}, found


def test_what_has_changed_is_found(model):
    rows, found = drift_of(model, table_of(250, 1, 0.6, ("Oslo", "Rome", "Kyiv"), 0.4, 0.3))
    assert {name for name, row in rows.items() if row["supported"]} == {"dose", "site", "age"}
    assert rows["site"]["new_values"] == pytest.approx(1 / 3, abs=0.1)
    assert rows["age"]["missing"] == pytest.approx(0.4, abs=0.1)
    assert 0.0 < rows["dose"]["outside"] < 0.1
    told = PerThousand([0.1])
    for name, value in (("site", "a new category"), ("age", "missing"), ("dose", "above")):
        assert most_changed(rows[name]["spread"], told).startswith(value)
    for row in rows.values():
        for key in ("training", "now"):
            assert sum(part[key] for part in row["spread"]) == pytest.approx(1.0)
    assert rows["dose"]["moved"] > 2 * rows["dose"]["by_chance"]
    sizes = [row["moved"] for row in found["columns"]]
    assert sizes == sorted(sizes, reverse=True)
    (human,) = found["errors"]
    assert human["who"] == "human"
    assert human["difference"]["supported"]
    assert human["difference"]["difference"] == pytest.approx(0.2, abs=0.07)


def test_what_has_not_changed_is_rarely_found(model):
    """In one of twenty reports, whatever the number of columns; 30 reports here."""
    alarms, moved = 0, []
    for seed in range(30):
        rows, _ = drift_of(model, table_of(100, 10 + seed))
        alarms += any(row["supported"] for row in rows.values())
        moved.append([rows[name]["moved"] / rows[name]["by_chance"] for name in COLUMNS])
    assert alarms <= 5
    np.testing.assert_allclose(np.mean(moved, axis=0), 1.0, atol=0.25)


def test_groups_are_no_independent_cases(model):
    """Each case four times: the same case, so no more of a change than once."""
    table = table_of(60, 3, shift=0.35)
    once, _ = drift_of(model, table)
    four = {
        name: np.repeat(np.array(column, dtype=object), 4).tolist()
        for name, column in table.items()
    }
    alone, _ = drift_of(model, four)
    four["patient"] = [f"p{i // 4}" for i in range(240)]
    grouped, _ = drift_of(model, four, group="patient")
    assert alone["dose"]["p_value"] < grouped["dose"]["p_value"] / 10
    assert grouped["dose"]["p_value"] > once["dose"]["p_value"] / 10
    assert grouped["dose"]["by_chance"] > 1.5 * alone["dose"]["by_chance"]


def test_a_model_of_an_earlier_version_has_no_summary(model):
    old = copy.copy(model)
    old.card_ = {k: v for k, v in model.card_.items() if k != "column_summary"}
    table = table_of(60, 5)
    report = case_report(old, select_report_cases(table, old), refit_cases=0)
    (row,) = report.numbers["drift"]["columns"]
    assert row["column"] == "truth"
    spread = [np.unique(t["truth"], return_counts=True)[1] for t in (table_of(300, 0), table)]
    found = stats.chi2_contingency(spread, correction=False)
    assert row["p_value"] == pytest.approx(found.pvalue)  # of one column: nothing to correct
    said = Page(report.to_html()).one("section", id="drift")["text"]
    assert "written by an earlier version" in said


def test_held_out_errors_of_the_fit_are_what_was_expected(model):
    told = copy.copy(model)
    held_out = {"error": 0.02, "lower": 0.0, "upper": 0.1, "wrong": 6, "cases": 300}
    told.card_ = model.card_ | {"errors": dict.fromkeys(("machine", "human", "team"), held_out)}
    _, found = drift_of(told, table_of(200, 6))
    assert [row["who"] for row in found["errors"]] == ["machine", "human", "team"]
    for row in found["errors"]:
        assert row["training"]["share"] == 0.02
        away = row["now"]["share"] - 0.02
        assert row["difference"]["difference"] == pytest.approx(away)


def test_the_summary_counts_the_training_cases(model):
    table = table_of(300, 0)
    summary = model.card_["column_summary"]
    assert set(summary) == set(COLUMNS)
    for name in COLUMNS:
        assert sum(summary[name]["counts"]) + summary[name]["missing"] == 300
    assert summary["size"]["counts"] == [30] * 10
    assert (summary["size"]["least"], summary["size"]["most"]) == (
        table["size"].min(),
        table["size"].max(),
    )
    oslo = int(np.sum(table["site"] == "Oslo"))
    assert summary["site"]["counts"] == [oslo, 300 - oslo]
    assert summary["age"]["missing"] == table["age"].count(None)
    empty = {**table, "age": [None] * 300}
    codes = model.encoder.codes(empty)[0]
    found = column_summary(model.encoder.encoding_, codes)["age"]
    assert found == {
        "edges": [],
        "least": None,
        "most": None,
        "counts": [0],
        "unknown": 0,
        "missing": 300,
    }


# -- the machine's probabilities --------------------------------------------------------------


@pytest.mark.parametrize(
    ("right", "answer"),
    [
        (lambda p: p, "agrees"),
        (lambda p: p - 0.15, "too sure"),
        (lambda p: p + 0.12, "not sure enough"),
        (lambda p: 1.45 - p, "in parts"),
    ],
)
def test_a_machine_that_says_too_much_or_too_little(right, answer):
    rng = np.random.default_rng(2)
    sure = rng.uniform(0.5, 0.95, 1500)
    hits = rng.random(1500) < right(sure)
    found = reliability(sure, hits, np.arange(1500))
    assert found["answer"] == answer
    assert len(found["bins"]) == 10


def test_no_probabilities_and_equal_ones():
    assert reliability(np.full(5, np.nan), np.ones(5, dtype=bool), np.arange(5)) is None
    rng = np.random.default_rng(0)
    nearly = 0.9 + 1e-9 * rng.random(100)
    found = reliability(nearly, rng.random(100) < 0.9, np.arange(100))
    assert len(found["bins"]) == 1


# -- cases unlike all training cases -----------------------------------------------------------


def report_of(model, table):
    report = case_report(model, select_report_cases(table, model), refit_cases=0)
    page = Page(report.to_html())
    return report.numbers, page.one("section", id="drift")["text"], page.one("main")["text"]


def test_a_few_cases_in_another_unit_are_no_ordinary_cases(model):
    """In tenths of the training cases they hardly show; the machine is wrong on them all the same."""
    table = table_of(400, 9)
    table["size"][::20] *= 1000.0
    numbers, said, page = report_of(model, table)
    strange = np.array([bool(reason) for reason in model.unusual(table)])
    found = numbers["unusual"]
    assert strange[::20].sum() == 20
    assert found["share"]["count"] == strange.sum()
    assert found["deferred"] == strange.sum()  # humans take them first
    assert found["columns"] == ["size"]
    assert found["many"]
    wrong = model.predict(table) != table["truth"]
    assert found["wrong"]["machine"] == wrong[strange].sum()
    assert found["wrong"]["team"] == (table["human"] != table["truth"])[strange].sum()
    assert "Not in every respect: they differ in size" in said
    assert f"{strange.sum()} of them are unlike all training cases, in size" in said
    assert f"{strange.sum()} of 400 cases are unusual" in said
    warning = f"Warning: {strange.sum()} cases of 400 are unlike all training cases, in size."
    assert warning in page[: page.index("What was compared?")]


def test_numbers_beyond_the_training_range_are_no_chance(model):
    """A unit that has changed in few rows: in tenths of the training cases it hardly shows."""
    table = table_of(400, 11)
    most = np.abs(table_of(300, 0)["dose"]).max()
    table["dose"][:16] = most + 0.1 * np.arange(1, 17)
    rows, _ = drift_of(model, table)
    row = rows["dose"]
    assert row["by_range"]
    assert row["supported"]
    assert row["outside"] >= 16 / 400
    _, said, _ = report_of(model, table)
    assert "Not in every respect: they differ in dose" in said
    # Of a patient with sixteen cases the numbers say as much as one.
    table["patient"] = ["p"] * 16 + [f"p{i}" for i in range(16, 400)]
    rows, _ = drift_of(model, table, group="patient")
    assert not rows["dose"]["supported"]


@pytest.mark.parametrize(("beyond", "new", "known"), [(1, 3, 4), (2, 3, 4), (3, 3, 4), (2, 5, 2)])
def test_chance_beyond_the_range_by_all_orders(beyond, new, known):
    orders = list(itertools.combinations(range(new + known), new))
    there = sum(all(place >= new + known - beyond for place in sorted(o)[-beyond:]) for o in orders)
    assert beyond_by_chance(beyond, new, known) == pytest.approx(there / len(orders))


def test_nobody_beyond_says_nothing():
    assert beyond_by_chance(0, 5, 5) == 1.0


def test_cases_like_those_in_training_bring_no_warning(model):
    numbers, said, page = report_of(model, table_of(400, 10))
    assert not numbers["unusual"]["many"]
    assert "unlike all training cases" not in said
    assert "Warning" not in page


def test_training_cases_are_not_unusual(model):
    report = case_report(
        model, select_report_cases(table_of(300, 0), model), seen=True, refit_cases=0
    )
    assert report.numbers["unusual"] is None
    report.to_html()
