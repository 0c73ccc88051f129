"""The whole story of a desk in real browsers, from the first table to a model that is taken back."""

import csv
import io
import shutil

import numpy as np
import pytest

from chromium import chromium
from deferlearn.desk import audit
from deferlearn.desk.database import Database
from deferlearn.desk.desk import Desk
from deferlearn.desk.experts import add_expert, change_expert
from deferlearn.desk.learning.refitting import refit
from deferlearn.desk.monitoring.alarms import advance
from deferlearn.desk.rules import change_rules
from deferlearn.desk.schema import answer, case, decision, expert, model, truth
from desk.browsing import look_at, press_on, visitors, wait_for_title
from desk.learning.desk_of_rows import draw, make_model, store
from desk.page_clients import app_of
from desk.running import served
from desk.stub_desk import SECRET, count, rows

REPORT = "Cough for three weeks.\nNo weight loss. " + "Breath sounds are normal. " * 20
ANN, BEN, CLEO = 1, 2, 3
# By so much the boundary between the classes has turned since the first model was fitted.
TURNED = np.pi / 3


@pytest.fixture
def desk(sqlite_template, tmp_path):
    """A desk with a small model. Two experts read each case; Cleo decides where they disagree."""
    path = tmp_path / "desk.db"
    shutil.copy(sqlite_template, path)
    database = Database(f"sqlite:///{path}", options=audit.key_options(SECRET))
    store(database, make_model())  # it adds Ann
    database.write(
        lambda c: (
            change_expert(c, ANN, {"daily_limit": 60}, actor="test"),
            add_expert(c, "Ben", actor="test", daily_limit=60),
            add_expert(c, "Cleo", actor="test", daily_limit=30, is_arbiter=True),
            change_rules(
                c, {"readings": 2, "audit_share": 0.0, "cases_per_day": 300}, actor="test"
            ),
        )
    )
    yield Desk(database)
    database.close()


@pytest.fixture
def people(desk):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    with (
        chromium() as browser,
        served(app_of(desk)) as address,
        visitors(browser, desk, address) as them,
    ):
        them.axe = axe
        yield them


def table(records):
    """Rows as the content of a CSV file."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(records[0]))
    writer.writeheader()
    writer.writerows(records)
    return text.getvalue().encode()


def hand_in(page, address, records, *, truths="", only_truths=False):
    """Import a table on its page; what the page says."""
    page.goto(address + "/import")
    content = {"name": "table.csv", "mimeType": "text/csv", "buffer": table(records)}
    page.set_input_files("#file", content)
    page.wait_for_selector("#columns option", state="attached")
    assert page.locator("#columns option").count() == len(records[0])
    page.fill("#identifier", "id")
    page.fill("#truth", truths)
    if only_truths:
        page.check("[value=truths]")
    page.click("main button")
    return page.inner_text(".answer")


def the_case(desk, name):
    return rows(desk, case, id=name)[0]


def answers(desk, name):
    """The answers to a case that count, by the experts' ids."""
    given = rows(desk, answer, case_number=the_case(desk, name).number)
    return {one.expert_id: one.value for one in given if one.withdrawn_at is None}


def test_from_the_first_table_to_a_model_that_is_taken_back(desk, people):
    sue = people.open("/today", "sue", "supervisor", width=1280, scheme="dark")
    cases_arrive_and_are_decided(desk, people, sue)
    two_experts_at_once(desk, people)
    an_audit_that_nobody_notices(desk, people, sue)
    truths_arrive_and_an_alarm_is_raised(desk, people, sue)
    a_capacity_is_changed(desk, people, sue)
    another_model_and_back(desk, people, sue)
    all_is_on_record(desk, people)


def cases_arrive_and_are_decided(desk, people, sue):
    hard = [
        {"id": name, "a": 0.02, "b": 0.5, "report": REPORT} for name in ("first", "second", "third")
    ]
    easy = [{"id": f"easy {n}", "a": 2.0 - 4 * (n % 2), "b": 0.1, "report": ""} for n in range(4)]
    assert "New: 6 cases" in hand_in(sue, people.address, hard[:2] + easy)
    assert "New: 1 case. Known before: 6" in hand_in(sue, people.address, hard + easy)
    assert [row.deferred for row in rows(desk, decision)] == [True] * 2 + [False] * 4 + [True]
    waiting = {row.id for row in rows(desk, case) if row.answered_by is None}
    assert waiting == {"first", "second", "third"}
    assert {row.answered_by for row in rows(desk, case) if row.id not in waiting} == {"machine"}
    abe = people.open("/fields", "abe", "admin")
    abe.select_option("[name='kind:report']", "text")
    abe.fill("[name='group:a']", "Measured")
    abe.fill("[name='group:b']", "Measured")
    abe.click("text=Save")
    abe.wait_for_selector("text=The change is stored.")


def two_experts_at_once(desk, people):
    """By the keyboard alone; Ben has a phone, on which it is dark."""
    ann = people.open("/work", "ann", "expert", ANN)
    ben = people.open("/work", "ben", "expert", BEN, width=400, scheme="dark")
    for page in (ann, ben):
        wait_for_title(page, "Case first")
        shown = page.inner_text("article.case")
        assert all(part in shown for part in ("Measured", "0.02", "Breath sounds"))
        assert "ill" not in shown, "experts are blind to the machine's answer"
        look_at(page, people.axe)
    # One key answers, and brings the next case.
    ann.keyboard.press("1")
    wait_for_title(ann, "Case second")
    assert "You answered ill to case first." in ann.inner_text(".status")
    ben.keyboard.press("2")
    wait_for_title(ben, "Case second")
    assert answers(desk, "first") == {ANN: "ill", BEN: "well"}
    # Ann takes her answer back, which brings the case again, and gives another one with a note.
    ann.keyboard.press("u")
    wait_for_title(ann, "Case first")
    assert answers(desk, "first") == {BEN: "well"}
    ann.keyboard.press("n")
    ann.keyboard.type("looks like 2, not 1")
    ann.keyboard.press("Escape")
    ann.keyboard.press("2")
    wait_for_title(ann, "Case second")
    found = the_case(desk, "first")
    assert (found.state, found.answer, found.answered_by) == ("answered", "well", "experts")
    # They disagree about the second one, and Ann passes the third.
    ann.keyboard.press("1")
    wait_for_title(ann, "Case third")
    ben.keyboard.press("2")
    wait_for_title(ben, "Case third")
    ann.keyboard.press("p")
    wait_for_title(ann, "Nothing waits for you now.")
    assert "Come back" in ann.inner_text(".empty")
    look_at(ann, people.axe)
    ben.keyboard.press("1")
    wait_for_title(ben, "Nothing waits for you now.")
    assert the_case(desk, "third").state == "waiting"
    cleo = people.open("/work", "cleo", "expert", CLEO, width=400)
    wait_for_title(cleo, "Case second")
    cleo.keyboard.press("1")
    cleo.wait_for_selector("text=You answered ill to case second.")
    found = the_case(desk, "second")
    assert (found.state, found.answer, found.answered_by) == ("answered", "ill", "arbiter")
    people.ann = ann


def an_audit_that_nobody_notices(desk, people, sue):
    sue.goto(people.address + "/rules")
    sue.fill("#audit_percent", "100")
    press_on(sue, "main .main-button")
    sue.wait_for_selector("text=The change is stored.")
    hand_in(sue, people.address, [{"id": "audited", "a": 2.0, "b": 0.1, "report": REPORT}])
    assert the_case(desk, "audited").answered_by == "machine"
    people.ann.keyboard.press("Enter")  # she looks again at once
    wait_for_title(people.ann, "Case audited")
    assert "audited" not in people.ann.inner_text("main").replace("Case audited", "")
    people.ann.keyboard.press("1")
    people.ann.wait_for_selector("text=You answered ill to case audited.")
    found, decided = the_case(desk, "audited"), rows(desk, decision)[-1]
    assert (found.answered_by, decided.audited, decided.audit_probability) == ("machine", True, 1.0)
    desk.database.write(lambda c: change_rules(c, {"audit_share": 0.05}, actor="test"))


def truths_arrive_and_an_alarm_is_raised(desk, people, sue):
    names = ["first", "second", "easy 0", "easy 1", "audited"]
    records = [{"id": name, "biopsy": "well"} for name in names]
    said = hand_in(sue, people.address, records, truths="biopsy", only_truths=True)
    assert "New: 0 cases" in said
    assert "New truths: 5" in said
    # Cases have changed since: the boundary has turned, and somebody sends another unit.
    X, y = draw(240, np.random.default_rng(1), TURNED)
    drifted = [
        {"id": f"later {n}", "a": a, "b": b, "biopsy": true}
        for n, (a, b, true) in enumerate(zip(X[:, 0], X[:, 1], y, strict=True))
    ]
    odd = [{"id": f"odd {n}", "a": 1000.0, "b": 0.5, "biopsy": ""} for n in range(10)]
    said = hand_in(sue, people.address, drifted + odd, truths="biopsy")
    assert "New: 250 cases" in said
    assert count(desk, truth) == 245
    assert advance(desk), "the keeper of a server does this every few seconds"
    sue.goto(people.address + "/today")
    assert "Alarm: unusual cases" in sue.inner_text("main")
    look_at(sue, people.axe)
    sue.goto(people.address + "/monitoring")
    told = sue.inner_text("main")
    assert "Team’s error" in told or "Team's error" in told
    assert "95% interval" in told
    look_at(sue, people.axe)
    press_on(sue, "[aria-label^='Close the alarm unusual']")
    sue.wait_for_selector("text=The alarm is closed")
    assert "Alarm: unusual cases" not in sue.inner_text("main")


def a_capacity_is_changed(desk, people, sue):
    sue.goto(people.address + "/experts")
    press_on(sue, "[title='Change Ann']")
    sue.wait_for_selector("#effect >> text=By the last 258 cases")
    press_on(sue, "#daily_limit", "7")
    # Then Ann and Ben have time for 67 readings of 300 cases, two per case; Cleo arbitrates.
    sue.wait_for_selector("tr:has-text('Cases that experts get') td:nth-of-type(2) >> text=11%")
    effect = sue.inner_text("#effect")
    assert "Half are answered within" in effect
    assert rows(desk, expert)[0].daily_limit == 60, "nothing is stored yet"
    look_at(sue, people.axe)
    press_on(sue, "main .main-button")
    sue.wait_for_selector("text=The change is stored.")
    assert rows(desk, expert)[0].daily_limit == 7
    assert sue.inner_text("tr:has-text('Ann') td:nth-of-type(2)") == "7"


def another_model_and_back(desk, people, sue):
    found = refit(desk, actor="user:sue", name="November")
    assert found.comparison.is_better
    sue.on("dialog", lambda dialog: dialog.accept())
    sue.goto(people.address + f"/models/{found.model_id}")
    assert "The candidate is better than the active model" in sue.inner_text(".answer")
    look_at(sue, people.axe)
    press_on(sue, "form[action$='/activate'] button")
    sue.wait_for_selector("text=The model is active")
    assert [row.state for row in rows(desk, model)] == ["retired", "active"]
    hand_in(sue, people.address, [{"id": "by the new one", "a": 2.0, "b": 0.1}])
    sue.goto(people.address + "/models")
    press_on(sue, "[aria-label='Go back to model 1']")
    sue.wait_for_selector("text=The model is active")
    assert [row.state for row in rows(desk, model)] == ["active", "retired"]
    hand_in(sue, people.address, [{"id": "by the old one", "a": 2.0, "b": 0.1}])
    assert [row.model_id for row in rows(desk, decision)[-2:]] == [2, 1]


def all_is_on_record(desk, people):
    ada = people.open("/log", "ada", "admin", width=400)
    told = ada.inner_text("main")
    assert told.count("model.activated") == 2
    with desk.database.reading() as connection:
        assert audit.verify(connection, SECRET).faults == []
