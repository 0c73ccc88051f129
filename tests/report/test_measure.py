"""The numbers of the report against scikit-learn, plain loops and counting by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from sklearn.base import clone
from sklearn.metrics import confusion_matrix
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import StandardScaler

from case_tables import LABELS, make_cases
from deferlearn import AssistedSVC
from deferlearn.report import case_report, select_report_cases
from deferlearn.report.refit_study import RefitStudy, budgets_to_try, draw_cases
from deferlearn.report.where import MISSING, quarters
from deferlearn.tables import TableError, TabularTeam, fit_table, select_cases
from deferlearn.tables.held_out import unfitted_copy
from deferlearn.teams import FullAutomation, UncertaintyTriage

READERS = ("reader_1", "reader_2")


def without(columns, *names):
    return {name: cells for name, cells in columns.items() if name not in names}


@pytest.fixture(scope="module")
def columns():
    return without(make_cases(), "patient")


@pytest.fixture(scope="module")
def model(columns):
    return fit_table(select_cases(columns, "diagnosis", humans=READERS, identifier="id"), alpha=0.1)


@pytest.fixture
def new():
    return without(make_cases(60, seed=7), "patient")


def study_of(model, chosen, **options):
    return RefitStudy(model, chosen, np.arange(len(chosen)), [0.2], **options)


def numbers_of(model, columns, **options):
    options = {"refit_cases": 0, **options}
    return case_report(model, select_report_cases(columns, model), **options).to_dict()


# -- the stored model on new cases ------------------------------------------------------------


def test_confusion_and_errors_are_those_of_scikit_learn(model, new):
    new = without(new, "reader_2")  # one reader: no majority to think about
    found = numbers_of(model, new)
    truth, human = np.array(new["diagnosis"]), np.array(new["reader_1"])
    machine = model.predict(new)
    team = model.predict_assisted(new, human)
    for who, said in (("machine", machine), ("human", human), ("team", team)):
        table = [[found["confusion"][who][t][s] for s in LABELS] for t in LABELS]
        np.testing.assert_array_equal(table, confusion_matrix(truth, said, labels=LABELS))
        assert found["errors"][who]["share"] == np.mean(said != truth)
    assert found["judged_by"] == "the stored model"
    assert found["cases"]["readers"][0]["reader"] == "reader_1"


def test_who_errs_together(model, new):
    found = numbers_of(model, without(new, "reader_2"))
    truth, human = np.array(new["diagnosis"]), np.array(new["reader_1"])
    machine, deferred = model.predict(new), model.defer(new)
    for row in found["together"]:
        both = (machine == truth) == (row["machine"] == "right")
        both &= (human == truth) == (row["human"] == "right")
        assert row["deferred"] == (both & deferred).sum()
        assert row["kept"] == (both & ~deferred).sum()


def test_the_rate_is_what_defer_does(model, new):
    found = numbers_of(model, new)["rate"]
    assert found["observed"]["count"] == model.defer(new).sum()
    assert found["expected"] == model.team.deferral_rate_
    assert found["asked"] == 0.2
    assert found["agrees"] == (
        found["observed"]["lower"] <= found["expected"] <= found["observed"]["upper"]
    )


def test_errors_by_column_add_up(model, new):
    (usual,) = [row for row in numbers_of(model, new)["where"] if row["value"] == "Rome"]
    assert usual["deferred"]["share"] == model.defer(new)[np.array(new["site"]) == "Rome"].mean()
    new["age"] = [None if i % 4 == 0 else i for i in range(60)]
    found = numbers_of(model, new)
    names = [row["column"] for row in found["where"]]
    assert set(names) == set(model.card_["columns"])
    for name in set(names):
        own = [row for row in found["where"] if row["column"] == name]
        assert sum(row["cases"] for row in own) == 60
        for who in ("machine", "human", "team"):
            wrong = sum(row[who]["count"] for row in own)
            assert wrong == found["errors"][who]["count"]
    (rome,) = [row for row in found["where"] if row["value"] == "Rome"]
    there = np.array(new["site"]) == "Rome"
    assert rome["cases"] == there.sum()


def test_parts_with_few_cases_are_left_out(model, new):
    new["site"] = ["Oslo"] * 51 + ["Rome"] * 9
    rows = numbers_of(model, new)["where"]
    assert [row["value"] for row in rows if row["column"] == "site"] == ["Oslo"]


def test_shares_know_about_groups(model, new):
    """Twins: each case twice, so that there is half as much to learn as it seems."""
    once = numbers_of(model, new)
    twice = {name: cells * 2 for name, cells in new.items()}
    twice["id"] = list(range(120))
    twice["patient"] = [f"p{i % 60}" for i in range(120)]
    chosen = select_report_cases(twice, model, group="patient")
    found = case_report(model, chosen, refit_cases=0).numbers

    def width(row):
        return row["upper"] - row["lower"]

    for pick in (
        lambda n: n["effect"]["difference"],
        lambda n: n["effect"]["versus_human"],
        lambda n: n["errors"]["machine"],
        lambda n: n["rate"]["observed"],
        lambda n: n["reliability"]["difference"],
    ):
        assert width(pick(found)) == pytest.approx(width(pick(once)), rel=0.1)
    alone = case_report(model, select_report_cases(twice, model), refit_cases=0).numbers
    for n, least in ((found, 1.2), (once, 1.2)):
        assert width(n["effect"]["difference"]) > least * width(alone["effect"]["difference"])


def test_cases_that_no_human_read_are_not_judged(model, new):
    for reader in READERS:
        new[reader] = [None if i < 20 else said for i, said in enumerate(new[reader])]
    found = numbers_of(model, new)
    rest = numbers_of(model, {name: cells[20:] for name, cells in new.items()})
    assert found["cases"]["judged"] == 40
    assert found["cases"]["rows"] == 60
    assert found["errors"] == rest["errors"]
    assert found["confusion"] == rest["confusion"]
    assert "20 cases that no human has answered are not judged." in found["notes"]


def test_the_table_has_humans_cases_first_and_gaps_where_there_is_no_answer(model, new):
    new["reader_1"] = new["reader_2"] = [None if i % 2 else "ill" for i in range(60)]
    new["diagnosis"][3] = None
    chosen = select_report_cases(new, model)
    table = case_report(model, chosen, refit_cases=0).rows
    headings = [column["name"] for column in table["columns"]]
    assert headings[:2] == ["why", "result"]
    rows = [dict(zip(headings, row, strict=True)) for row in table["rows"]]
    assert table["total"] == len(rows) == 59
    assert "c7-3" not in [row["case"] for row in rows]
    takers = [row["taken by"] for row in rows]
    assert takers == sorted(takers)  # human before machine
    n = takers.count("human")
    for part in (rows[:n], rows[n:]):
        scores = [row["deferral score"] for row in part]
        assert scores == sorted(scores, reverse=True)
    by_id = dict(zip(new["id"], range(60), strict=True))
    for place, row in enumerate(rows):
        i = by_id[row["case"]]
        assert row["truth"] == new["diagnosis"][i]
        assert row["size"] == new["size"][i]
        assert row["human"] == ("" if i % 2 else "ill")
        team = row["human"] if row["taken by"] == "human" else row["machine"]
        assert row["team's answer"] == team
        assert table["teamWrong"][place] == (team not in ("", row["truth"]))
        assert table["machineWrong"][place] == (row["machine"] != row["truth"])
        assert table["humanWrong"][place] == (row["human"] not in ("", row["truth"]))
        wrong = table["machineWrong"][place], table["teamWrong"][place]
        results = {(True, False): "fixed", (False, True): "spoilt", (False, False): "right"}
        assert row["result"] == (results.get(wrong, "wrong") if team else "no answer")
        assert row["why"].startswith(f"{row['taken by']}: score {row['deferral score']:.4g}, limit")


def test_the_table_shows_no_more_digits_than_anybody_reads(model, new):
    new["size"] = [1 / 3, 123456789.0, 1e-9 / 7, -2.5, 1e20, 2 / 3 * 1e6] * 10
    rows = case_report(model, select_report_cases(new, model), refit_cases=0).rows
    place = [column["name"] for column in rows["columns"]].index("size")
    shown = {row[place] for row in rows["rows"]}
    assert shown == {0.3333333, 123456789.0, 1.428571e-10, -2.5, 1e20, 666666.7}


@pytest.mark.parametrize(("budget", "share"), [(0.2, 0.2), (0.15, 0.15), (7, 7 / 61)])
def test_budgets_tried_are_those_that_people_write(budget, share):
    """With 61 cases 20% are 12 of them, 19.67%; that is no other budget."""
    cases = select_cases(make_cases(61), "diagnosis", humans=READERS, group="patient")
    model = fit_table(cases, alpha=0.1, budget=budget)
    assert unfitted_copy(model, batch=True).team.budget == share
    assert budgets_to_try(model, quick=True) == sorted({0.1, 0.2, round(share, 4)})


numbers = st.floats(-1e6, 1e6) | st.just(float("nan")) | st.integers(0, 3).map(float)


@given(st.lists(numbers, min_size=1, max_size=40))
def test_every_number_has_a_quarter_that_holds_it(values):
    values = np.array(values)
    for value, word in zip(values, quarters(values), strict=True):
        if np.isnan(value):
            assert word == MISSING
        else:
            ends = [float(end) for end in word.split(" to ")]
            room = 1e-3 * np.abs(ends).max()  # words have four digits
            assert ends[0] - room <= value <= ends[-1] + room


# -- refitted teams ---------------------------------------------------------------------------


def test_errors_on_training_cases_are_of_teams_that_have_not_seen_them():
    columns = make_cases(60, seed=5)
    table = {k: columns[k] for k in ("size", "dose", "diagnosis", "reader_1")}
    model = fit_table(select_cases(table, "diagnosis", humans=["reader_1"]), alpha=0.1, seed=3)
    told = []
    found = case_report(
        model,
        select_report_cases(table, model),
        seen=True,
        quick=True,
        seed=3,
        progress=lambda *step: told.append(step),
    ).to_dict()
    X = np.array([columns["size"], columns["dose"]]).T
    y, human = np.array(columns["diagnosis"]), np.array(columns["reader_1"])
    machine, team = y.copy(), y.copy()
    taken = np.zeros(60, dtype=bool)
    errors = []
    for train, test in StratifiedKFold(5, shuffle=True, random_state=3).split(X, y):
        scaler = StandardScaler().fit(X[train])
        clf = AssistedSVC(budget=0.2, alpha=0.1, cv=5, random_state=3)
        clf.fit(scaler.transform(X[train]), y[train], human_labels=human[train])
        machine[test] = clf.predict(scaler.transform(X[test]))
        team[test] = clf.predict_assisted(scaler.transform(X[test]), human[test])
        taken[test] = clf.defer(scaler.transform(X[test]))
        errors.append(np.mean(team[test] != y[test]))
    assert found["judged_by"] == "teams fitted without the case"
    for who, said in (("machine", machine), ("human", human), ("team", team)):
        table = [[found["confusion"][who][t][s] for s in LABELS] for t in LABELS]
        np.testing.assert_array_equal(table, confusion_matrix(y, said, labels=LABELS))
    # The curve goes through the same folds.
    curve = study_of(model, select_report_cases(columns, model), seed=3).curves()["team"]
    assert curve.mean["error"][1] == pytest.approx(np.mean(errors))
    assert curve.deferred.mean(axis=0)[1] == pytest.approx(taken.mean())
    low, high = stats.t.interval(0.95, 4, np.mean(errors), stats.sem(errors))
    assert curve.lower["error"][1] == pytest.approx(low)
    assert curve.upper["error"][1] == pytest.approx(high)
    assert set(found["curves"]) == {"team", "uncertainty triage"}
    # Every fit is told, and none is told twice.
    total = told[-1][2]
    assert total == 5 + 5 * 3 + 2 * 3 * 3
    assert sorted({done for _, done, _ in told}) == list(range(total + 1))


def test_subgroups_by_a_column_that_is_no_feature_and_columns_that_keep_their_kinds(columns):
    """The model was told to drop a reader; the cases of the report have no such feature."""
    cases = select_cases(columns, "diagnosis", humans=["reader_1"], identifier="id")
    model = fit_table(cases, alpha=0.1, drop=["reader_2"], category=["age"])
    columns = {**columns, "ward": ["<i>" if i % 3 else "north" for i in range(80)]}
    chosen = select_report_cases(columns, model, subgroup="ward")
    assert study_of(model, chosen).team(batch=True).named_steps["table"].category == ("age", "site")
    report = case_report(model, chosen, quick=True).to_dict()
    assert report["refits"]["skipped"] is None
    found = report["assistance"]
    assert found["subgroup_name"] == "ward"
    counts = {row["subgroup"]: row["n_cases"] for row in found["subgroups"]}
    assert counts == {"<i>": columns["ward"].count("<i>"), "north": columns["ward"].count("north")}
    assert any("'ward'" in sentence for sentence in found["verdict"])


def test_what_cannot_be_refitted_is_left_out_with_the_reason(model, columns):
    few = {name: cells[:14] for name, cells in columns.items()}
    found = numbers_of(model, few, refit_cases=1000, seen=True)
    assert "at least 10 are needed" in found["refits"]["skipped"]
    assert found["assistance"] is found["curves"] is None
    assert any("too low" in note for note in found["notes"])
    assert found["errors"]["machine"]["cases"] == 14


def test_a_triage_has_one_curve_and_nothing_to_certify(model, columns):
    cases = select_report_cases(columns, model).cases
    team = UncertaintyTriage(alpha=0.1, random_state=0)
    triage = TabularTeam([("table", clone(model.encoder)), ("team", team)])
    triage.fit(cases.features, cases.truth, team__human_labels=cases.answers)
    triage.card_ = {**model.card_, "deferral_rate": triage.team.deferral_rate_}
    found = numbers_of(triage, columns, refit_cases=1000, quick=True)
    assert set(found["curves"]) == {"team"}
    assert "nothing to certify" in found["certificate"]["words"][0]


def test_a_model_without_deferral_has_no_budgets_to_compare(model, columns):
    alone = TabularTeam([("table", model.encoder), ("team", FullAutomation(alpha=0.1))])
    alone.card_ = model.card_
    study = study_of(alone, select_report_cases(columns, model))
    assert "every case to the machine" in study.obstacle()


@pytest.mark.parametrize("grouped", [False, True])
def test_groups_are_drawn_whole(model, grouped):
    columns = make_cases(80)
    chosen = select_report_cases(columns, model, group="patient" if grouped else None)
    rows = draw_cases(chosen, 31, seed=1)
    assert len(rows) == (30 if grouped else 31)  # patients have two cases each
    assert len(set(rows.tolist())) == len(rows)
    np.testing.assert_array_equal(rows, draw_cases(chosen, 31, seed=1))
    if grouped:
        patients = np.array(columns["patient"])[rows]
        assert all(np.sum(patients == p) == 2 for p in patients)
    np.testing.assert_array_equal(draw_cases(chosen, 80, seed=1), np.arange(80))


@pytest.mark.parametrize("values", [["1", "2", ""], [1, 2, None], ["a", "b", None]])
def test_subgroups_by_a_feature_with_gaps(values):
    """A triage is fitted in no time."""
    columns = without(make_cases(60), "patient", "age", "reader_2")
    columns["stage"] = values * 20
    cases = select_cases(columns, "diagnosis", humans=["reader_1"], identifier="id")
    model = fit_table(cases, alpha=0.1)
    team = UncertaintyTriage(alpha=0.1, random_state=0)
    triage = TabularTeam([("table", model.encoder), ("team", team)])
    triage.card_ = model.card_
    chosen = select_report_cases(columns, triage, subgroup="stage")
    found = study_of(triage, chosen, quick=True).verdict()
    assert [row["n_cases"] for row in found.subgroups] == [20, 20, 20]
    assert found.subgroup_name == "stage"


# -- mistakes ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        (
            {"diagnosis": ["yes", "no"] * 40},
            {"humans": []},
            "the classes of the model are 'ill' and 'well'",
        ),
        ({}, {"humans": ["site"]}, "column 'site' is a feature of the model"),
        ({}, {"label": "size"}, "column 'size' is a feature of the model"),
        ({}, {"subgroup": "ward"}, "no column 'ward', named as subgroup"),
        ({}, {"subgroup": "id"}, "has 80 values, more than 20"),
        ({"size": None}, {}, "no column 'size', which the model needs"),
        ({"reader_1": None, "reader_2": None}, {}, "name a column of their answers"),
    ],
)
def test_mistakes_are_told(model, columns, change, options, message):
    table = {k: v for k, v in {**columns, **change}.items() if v is not None}
    if change.get("diagnosis"):
        table["reader_1"] = table["reader_2"] = ["yes"] * 80
    with pytest.raises(TableError, match=message):
        select_report_cases(table, model, **options)
