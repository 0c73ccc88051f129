"""The section on several experts: numbers of the team, no ranking without reason, prices in errors."""

import json
from types import SimpleNamespace

import numpy as np
import pytest

from case_tables import make_cases
from deferlearn.experts import estimate_skills
from deferlearn.experts.skills import ALIKE, BETTER, UNKNOWN, WORSE
from deferlearn.report import CaseReport, case_report, select_report_cases
from deferlearn.report.experts import expert_facts
from deferlearn.tables import TableError, fit_table, select_cases
from experts_team import CAPACITY, expert_cases, expert_team
from html_page import Page


@pytest.fixture(scope="module")
def model():
    return fit_table(select_cases(make_cases(), "diagnosis", humans=["reader_1"]), alpha=0.1)


@pytest.fixture(scope="module")
def plain(model):
    return case_report(model, select_report_cases(make_cases(seed=1), model), refit_cases=0)


def page_with(plain, facts):
    json.dumps(facts, allow_nan=False)
    return Page(CaseReport({**plain.numbers, "experts": facts}, plain.rows).to_html())


def section_of(page):
    return " ".join(page.one("section", id="experts")["text"].split())


def stub(wrong, answered=400, prices=0.1, **more):
    """A team with these skills, as far as the section asks."""
    wrong = np.asarray(wrong, dtype=float)[:, None]
    names = tuple(f"reader_{e}" for e in range(len(wrong)))
    answered = np.broadcast_to(answered, wrong.shape)
    skills = estimate_skills(wrong, answered, np.ones(1), names, np.array(["ill"]))
    shares = dict.fromkeys(names, 0.1)
    known = {"readings": 1, "budget": None, "arbiter": None, "capacity_": shares, "load_": shares}
    own = {"skills_": skills, "experts_": names, "prices_": dict.fromkeys(names, prices)}
    return SimpleNamespace(**known | own | more)


def test_facts_are_those_of_the_team():
    team, (X, _, _) = expert_team(), expert_cases()
    skills, takers = team.skills_, team.assign(X)
    facts = expert_facts(team, takers=takers)
    assert skills.verdict == (BETTER, WORSE, UNKNOWN)
    assert (facts["better"], facts["worse"]) == (["Ann"], ["Bob <b>"])
    assert [row["expert"] for row in facts["rows"]] == list(CAPACITY)
    for e, row in enumerate(facts["rows"]):
        name = row["expert"]
        error = {"share": skills.error[e], "lower": skills.low[e], "upper": skills.high[e]}
        assert row["error"] == error
        assert row["answers"] == skills.answers[e].sum()
        assert row["load"] == team.load_[name]
        assert row["capacity"] == CAPACITY[name]
        assert row["price"] == team.prices_[name]
        assert row["assigned"]["share"] == np.mean(takers == name)
        for k, own in enumerate(row["classes"]):
            assert own["class"] == str(team.classes_[k])
            assert own["answers"] == skills.answers[e, k]
            assert own["error"]["share"] == skills.error_by_class[e, k]
    assert {row["assigned"] for row in expert_facts(team)["rows"]} == {None}


def test_the_section_says_it_in_words_tables_and_pictures(plain):
    facts = expert_facts(expert_team(), takers=expert_team().assign(expert_cases()[0]))
    page = page_with(plain, facts)
    text = section_of(page)
    assert text.startswith(
        "The experts Ann clearly errs less often than the others. Bob <b> clearly errs more often than the "
        "others. The answers tell no more than that, so nobody else is ranked."
    )
    (table,) = (rows for name, rows in page.tables().items() if "per 1,000 more" in name)
    assert table[0][-2:] == ["these cases", "avoided per 1,000 more"]
    for row, found in zip(table[1:], facts["rows"], strict=True):
        assert row[:3] == [found["expert"], found["verdict"], str(found["answers"])]
        assert row[5] == f"{1000 * found['capacity']:.0f}"
        assert row[-1] == f"{1000 * found['price']:.0f}"
    (classes,) = (rows for name, rows in page.tables().items() if "Each expert's errors" in name)
    assert classes[0] == ["expert", "-1", "1"]
    said = {e["id"]: e["text"] for e in page.elements if e["tag"] == "desc"}
    assert "Bob <b> 3" in said["p-skills-d"]
    assert said["p-load-d"].count("per 1,000 more cases") == 3


def test_nobody_is_ranked_where_the_data_cannot_tell(plain):
    facts = expert_facts(stub([44, 36, 40]))
    assert {row["verdict"] for row in facts["rows"]} == {ALIKE}
    assert [row["expert"] for row in facts["rows"]] == ["reader_0", "reader_1", "reader_2"]
    page = page_with(plain, facts)
    text = section_of(page)
    assert "The answers do not tell who errs less often, so there is no ranking" in text
    assert "clearly" not in text
    assert (
        text.count(ALIKE) == 1 + 3 + 3
    )  # above the picture's rows, in its description, in the table


def test_a_class_without_answers_has_a_dash_instead_of_a_number(plain):
    facts = expert_facts(stub([40, 0, 41], [[400], [0], [400]]))
    page = page_with(plain, facts)
    (rows,) = (rows for name, rows in page.tables().items() if "Each expert's errors" in name)
    assert {row[0]: row[1] == "–" for row in rows[1:]} == {
        "reader_0": False,
        "reader_1": True,
        "reader_2": False,
    }


@pytest.mark.parametrize(
    ("changes", "words", "absent"),
    [
        ({"prices": 0.0}, "Nobody is short of time", "The last column says"),
        ({"prices": 0.1}, "The last column says", "Nobody is short of time"),
        ({"budget": 0.2}, "needs one more in the budget as well.", "is read by"),
        ({"readings": 2}, "Every deferred case is read by 2 experts", "in the budget as well"),
    ],
)
def test_what_more_time_is_worth(plain, changes, words, absent):
    text = section_of(page_with(plain, expert_facts(stub([44, 36], **changes))))
    assert words in text
    assert absent not in text


def test_who_gets_more_than_the_capacity_is_named(plain):
    takers = np.array(["reader_0"] * 30 + ["reader_1"] * 12 + [None] * 58, dtype=object)
    facts = expert_facts(stub([44, 36]), takers=takers)
    # 30 of 100 are clearly more than a tenth; 12 of 100 may be chance.
    assert facts["overloaded"] == ["reader_0"]
    words = "Of these cases, reader_0 would get clearly more than the capacity given."
    assert words in section_of(page_with(plain, facts))
    facts = expert_facts(stub([44, 36]))
    assert facts["overloaded"] == []
    assert "would get" not in section_of(page_with(plain, facts))


def test_twenty_experts_stay_apart(plain):
    names = [f"Doctor of the ward number {e}" for e in range(20)]
    facts = expert_facts(stub(range(20, 60, 2)))
    for row, name in zip(facts["rows"], names, strict=True):
        row["expert"] = name
    page = page_with(plain, facts)
    shown = [e["text"] for e in page.all("text", **{"text-anchor": "end"}) if "…" in e["text"]]
    assert len(shown) == 2 * len(set(shown)) == 40


def test_a_reading_by_several_is_one_for_each_of_them():
    takers = np.array(
        [("reader_0", "reader_1"), ("reader_0", "reader_2"), None, None], dtype=object
    )
    team = stub([44, 36, 30, 41], readings=2, arbiter="reader_3")
    rows = {row["expert"]: row["assigned"] for row in expert_facts(team, takers=takers)["rows"]}
    assert rows["reader_0"]["count"] == 2
    assert rows["reader_1"]["share"] == 0.25
    assert (
        rows["reader_3"] is None
    )  # whether an arbiter is needed shows only when the others have read


def test_the_section_is_for_models_of_several_experts(plain):
    assert plain.numbers["experts"] is None
    assert not Page(plain.to_html()).all("section", id="experts")
    assert plain.rows["takers"] == ["human", "machine"]


READERS = ("reader_1", "reader_2")


def cases_with_gaps(n=120, seed=0):
    table = make_cases(n, seed=seed)
    table["reader_1"][::3] = [None] * len(table["reader_1"][::3])
    return table


@pytest.fixture(scope="module")
def several():
    cases = select_cases(cases_with_gaps(), "diagnosis", humans=READERS)
    return fit_table(cases, capacity={"reader_1": 0.1, "reader_2": 12}, alpha=0.1, drop=["patient"])


@pytest.fixture(scope="module")
def later():
    return cases_with_gaps(90, seed=1)


@pytest.fixture(scope="module")
def about_several(several, later):
    return case_report(several, select_report_cases(later, several), quick=True)


def test_the_team_answers_as_the_expert_who_takes_the_case(several, later, about_several):
    numbers = about_several.numbers
    X = several.encoder.transform(later)
    takers, first = several.team.assign(X), several.team.preferred(several.team.gains(X))
    machine, truth = several.team.predict(X), later["diagnosis"]
    who = [name or other for name, other in zip(takers, first, strict=True)]
    said = [later[name][row] for row, name in enumerate(who)]
    counted = [row for row, answer in enumerate(said) if answer is not None]
    team = [said[row] if takers[row] else machine[row] for row in counted]
    assert numbers["cases"]["judged"] == len(counted) < 90
    assert numbers["errors"]["machine"]["count"] == sum(machine[r] != truth[r] for r in counted)
    assert numbers["errors"]["human"]["count"] == sum(said[r] != truth[r] for r in counted)
    assert numbers["errors"]["team"]["count"] == sum(
        answer != truth[row] for answer, row in zip(team, counted, strict=True)
    )
    assert numbers["effect"]["deferred"]["count"] == sum(bool(takers[row]) for row in counted) > 0
    unanswered = [row for row in range(90) if takers[row] and said[row] is None]
    note = f"are not judged. Deferred among them: {len(unanswered)}."
    assert any(
        f"{90 - len(counted)} cases without an answer" in n and note in n for n in numbers["notes"]
    )
    # What the model expects of experts in training is compared with the same on these cases.
    assert [row["who"] for row in numbers["drift"]["errors"]] == []


def test_the_page_about_several_experts(several, later, about_several):
    facts = about_several.numbers["experts"]
    takers = several.team.assign(several.encoder.transform(later))
    for row in facts["rows"]:
        assert row["assigned"]["count"] == np.sum(takers == row["expert"])
        assert row["assigned"]["cases"] == 90
    assert [row["readings"] for row in facts["by_readings"]] == [1, 2]
    page = Page(about_several.to_html())
    text = section_of(page)
    assert "One reader, or several?" in text
    (table,) = (rows for name, rows in page.tables().items() if "readers per case" in name)
    assert [row[0] for row in table[1:]] == ["1", "2"]
    assert about_several.rows["takers"] == ["reader_1", "reader_2", "machine"]
    names = [column["name"] for column in about_several.rows["columns"]]
    taken, first = names.index("taken by"), names.index("expert, or the first in line")
    for row in about_several.rows["rows"]:
        assert row[taken] in (row[first], "machine")
        assert row[0].startswith(f"{row[taken]}: the machine would err on ")
        assert f", {row[first]} on " in row[0]
    assert (
        "other budgets are compared only for models that do not tell"
        in page.one("section", id="refits")["text"]
    )


def test_cases_seen_in_training_are_judged_by_other_teams(several):
    chosen = select_report_cases(cases_with_gaps(60), several)
    report = case_report(several, chosen, seen=True, quick=True)
    numbers = report.numbers
    assert numbers["judged_by"] == "teams fitted without the case"
    assert numbers["errors"]["team"]["cases"] < 60
    assert {row["assigned"] for row in numbers["experts"]["rows"]} == {None}
    assert numbers["experts"]["by_readings"] == []
    assert numbers["assistance"] is None


def test_one_expert_is_the_human():
    cases = select_cases(make_cases(), "diagnosis", humans=["reader_2"])
    options = {"alpha": 0.1, "drop": ["patient", "reader_1"]}
    one = fit_table(cases, capacity={"reader_2": 0.2}, **options)
    plain = fit_table(cases, budget=0.2, **options)
    table = make_cases(60, seed=1)
    told, same = (
        case_report(model, select_report_cases(table, model), refit_cases=0).numbers
        for model in (one, plain)
    )
    assert told["experts"] is None
    assert told["errors"] == same["errors"]


def test_nobody_was_asked_whom_the_model_would_ask(several, later):
    table = {name: column for name, column in later.items() if name != "reader_2"}
    X = several.encoder.transform(later)
    place = several.team.preferred(several.team.gains(X)).tolist().index("reader_2")
    table["reader_1"] = ["ill" if row == place else None for row in range(90)]
    chosen = select_report_cases(table, several)
    with pytest.raises(TableError, match="no case has an answer of the expert to whom it goes"):
        case_report(several, chosen, refit_cases=0)
