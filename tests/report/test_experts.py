"""The section on several experts: numbers of the team, no ranking without reason, prices in errors."""

import json
from types import SimpleNamespace

import numpy as np
import pytest

from case_tables import make_cases
from deferlearn.experts import ExpertTeam, estimate_skills
from deferlearn.experts.skills import ALIKE, BETTER, UNKNOWN, WORSE
from deferlearn.report import CaseReport, case_report, select_report_cases
from deferlearn.report.experts import expert_facts, experts_of
from deferlearn.tables import fit_table, select_cases
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
    known = {"readings": 1, "budget": None, "arbiter": None, "capacity": shares, "load_": shares}
    own = {"skills_": skills, "experts_": names, "prices_": dict.fromkeys(names, prices)}
    return SimpleNamespace(**known | own | more)


def test_facts_are_those_of_the_team():
    team, (X, _, _) = expert_team(), expert_cases()
    facts = expert_facts(team, X=X)
    skills, takers = team.skills_, team.assign(X)
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
    facts = expert_facts(expert_team(), X=expert_cases()[0])
    page = page_with(plain, facts)
    text = section_of(page)
    assert text.startswith(
        "The experts Ann clearly errs less often than the others. Bob <b> clearly errs more often than the "
        "others. The answers tell no more than that, so nobody else is ranked."
    )
    (table,) = (rows for name, rows in page.tables().items() if "one more case avoids" in name)
    assert table[0][-2:] == ["these cases", "one more case avoids"]
    for row, found in zip(table[1:], facts["rows"], strict=True):
        assert row[:3] == [found["expert"], found["verdict"], str(found["answers"])]
        assert row[5] == f"{1000 * found['capacity']:.0f}"
        assert row[-1] == f"{found['price']:.2g}"
    (classes,) = (rows for name, rows in page.tables().items() if "Each expert's errors" in name)
    assert classes[0] == ["expert", "-1", "1"]
    said = {e["id"]: e["text"] for e in page.elements if e["tag"] == "desc"}
    assert "Bob <b> 3" in said["p-skills-d"]
    assert said["p-load-d"].count("one more case avoids") == 3


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
        ({"prices": 0.0}, "Nobody is short of time", "as the last column says"),
        ({"prices": 0.1}, "as the last column says", "Nobody is short of time"),
        ({"budget": 0.2}, "needs one more in the budget as well.", "is read by"),
        ({"readings": 2}, "Every deferred case is read by 2 experts", "in the budget as well"),
    ],
)
def test_what_more_time_is_worth(plain, changes, words, absent):
    text = section_of(page_with(plain, expert_facts(stub([44, 36], **changes))))
    assert words in text
    assert absent not in text


def test_who_gets_more_than_she_can_take_is_named(plain):
    takers = np.array(["reader_0"] * 30 + ["reader_1"] * 12 + [None] * 58, dtype=object)
    facts = expert_facts(stub([44, 36], assign=lambda X: takers), X=np.zeros((100, 1)))
    # 30 of 100 are clearly more than a tenth; 12 of 100 may be chance.
    assert facts["overloaded"] == ["reader_0"]
    words = "Of these cases, reader_0 would get clearly more than her capacity."
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
    team = stub([44, 36, 30, 41], readings=2, arbiter="reader_3", assign=lambda X: takers)
    rows = {
        row["expert"]: row["assigned"] for row in expert_facts(team, X=np.zeros((4, 1)))["rows"]
    }
    assert rows["reader_0"]["count"] == 2
    assert rows["reader_1"]["share"] == 0.25
    assert (
        rows["reader_3"] is None
    )  # whether an arbiter is needed shows only when the others have read


def test_the_section_is_for_models_of_several_experts(model, plain):
    assert plain.numbers["experts"] is None
    assert not Page(plain.to_html()).all("section", id="experts")
    chosen = select_report_cases(make_cases(seed=1), model)
    X, y, said = expert_cases()
    encoder = SimpleNamespace(transform=lambda features: X[: len(features)])
    several = SimpleNamespace(
        team=expert_team(), chosen=expert_team(), encoder=encoder, card_={"rows": len(X)}
    )
    group = np.arange(len(chosen.cases))
    new, seen = (experts_of(several, chosen.cases, group, own) for own in (False, True))
    assert [row["assigned"]["cases"] for row in new["rows"]] == [len(group)] * 3
    assert [row["assigned"] for row in seen["rows"]] == [None] * 3
    one = ExpertTeam(expert_team().team, {"Ann": 0.1}, skills="class", random_state=0)
    several.team = several.chosen = one.fit(X, y, {"Ann": said["Ann"]})
    assert experts_of(several, chosen.cases, group, False) is None
