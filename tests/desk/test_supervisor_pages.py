"""The supervisor's pages: today, monitoring, experts with the effect of a change, models, import, cases."""

import re
from datetime import date, timedelta

import numpy as np
import pytest
from sqlalchemy import delete, insert, update

from deferlearn.desk.experts import add_expert
from deferlearn.desk.forecast import forecast, with_expert
from deferlearn.desk.monitoring.columns import column_shifts
from deferlearn.desk.monitoring.overview import Overview
from deferlearn.desk.monitoring.records import days_at_work
from deferlearn.desk.pages.charts import interval_bar
from deferlearn.desk.pages.common import first_case_since, start_of_day
from deferlearn.desk.pages.monitoring_view import sections_of
from deferlearn.desk.pages.today import HOUR, look_at_today
from deferlearn.desk.rules import change_rules
from deferlearn.desk.schema import case, decision, expert, expert_day, model
from deferlearn.tables.guard import learn_guard
from desk.page_clients import app_of, browser_of
from desk.stub_desk import add_model, change, open_stub, rows, send, stub_desk


@pytest.fixture
def client(sqlite_desk):
    return browser_of(app_of(sqlite_desk), sqlite_desk, "sue", "supervisor")


def test_today_says_what_is_wrong(sqlite_desk, client):
    assert "No case has arrived today." in client.get("/today").text
    for number in range(10):
        send(sqlite_desk, f"a{number}", gain=0.4 if number < 4 else -0.1)
    page = client.get("/today").text
    assert "Experts got 40% of 10 cases today. There is no budget" in page
    assert "4 readings wait, the oldest for" in page
    sqlite_desk.database.write(
        lambda c: (
            change_rules(c, {"cases_per_day": 1000, "deadline_seconds": 1}, actor="test"),
            c.execute(expert.update().values(daily_limit=10)),
        )
    )
    fragment = client.get("/today", headers={"HX-Request": "true"}).text
    assert fragment.lstrip().startswith("<h1>Today</h1>")
    assert "they have time for 1%. That is more than chance explains." in fragment


def test_cases_are_in_the_hour_in_which_they_arrived(database):
    desk = stub_desk(database)
    send(desk, "a")
    with database.reading() as connection:
        moment = desk.look(connection)
    begin = start_of_day(moment)
    late = moment._replace(now=begin + 23 * HOUR + 45 * HOUR // 60)
    for hour, minute in ((0, 0), (7, 29), (7, 31), (23, 36)):
        at = begin + hour * HOUR + minute * HOUR // 60
        change(desk, update(decision).values(at=at))
        with database.reading() as connection:
            today = look_at_today(connection, late)
        assert [row for row in today.hours if row[1]] == [(hour, 1, 0)]


def test_the_first_case_of_a_day_is_found_without_reading_all(sqlite_desk):
    for number in range(7):
        send(sqlite_desk, f"a{number}")
    sqlite_desk.database.write(
        lambda c: (
            c.execute(case.update().values(received_at=case.c.number * 10)),
            # Numbers have gaps after a purge; nothing else refers to the case then.
            c.execute(case.update().where(case.c.number == 3).values(received_at=30)),
        )
    )
    with sqlite_desk.database.reading() as connection:
        found = [first_case_since(connection, at) for at in (0, 10, 11, 30, 70, 71)]
    assert found == [1, 1, 2, 3, 7, 8]


def test_monitoring_shows_numbers_with_their_sentences(sqlite_desk, client):
    for number in range(30):
        send(sqlite_desk, f"a{number}", gain=0.4 if number < 10 else -0.1)
    page = client.get("/monitoring", params={"days": 1}).text
    assert "The last 1 day: 30 cases" in page
    assert "No alarm is open." in page
    assert "Experts get 33% of 30 cases" in page
    assert "95% interval: 19% to 51%" in page
    assert page.count('class="sentence"') >= 6
    assert "Ann was given 0 readings today" in page
    assert client.get("/monitoring", params={"days": 0}).status_code == 422
    assert client.post("/monitoring/alarms/1/close").status_code == 404


def test_the_load_of_a_new_desk_counts_the_days_since_its_first_case(database):
    desk = stub_desk(database, {"Ann": None})
    client = browser_of(app_of(desk), desk, "sue", "supervisor")
    with database.reading() as connection:
        moment = desk.look(connection)
        assert days_at_work(connection, moment, 7) == 7, "nothing is known yet"
    today = date.fromisoformat(moment.day)
    taken = {today - timedelta(days=2): 4, today - timedelta(days=1): 2}
    days = [{"expert_id": 1, "day": str(day), "taken": n} for day, n in taken.items()]
    first, _ = send(desk, "first", gain=-1), send(desk, "second", gain=-1)
    three_days_ago = moment.now - 3 * 24 * HOUR
    change(desk, update(case).where(case.c.number == first).values(received_at=three_days_ago))
    change(desk, insert(expert_day).values(days))
    assert "Ann was given 1.5 readings per day" in client.get("/monitoring").text
    with database.reading() as connection:
        assert [days_at_work(connection, moment, n) for n in (1, 2, 4, 7)] == [1, 2, 4, 4]
    change(desk, delete(decision).where(decision.c.case_number == first))
    change(desk, delete(case).where(case.c.number == first))
    with database.reading() as connection:
        assert days_at_work(connection, moment, 7) == 3, "the days of experts outlive a purge"


def test_columns_that_are_as_in_training_are_folded_away():
    luck = np.random.default_rng(0)
    guard = learn_guard(["dose", "age"], {}, luck.lognormal(size=(500, 2)))
    figures = column_shifts(guard, luck.lognormal(size=(300, 2)) * [1000, 1])
    (section,) = sections_of(Overview(300, None, figures, {}))
    assert [one.about for one in section.figures] == ["dose"]
    assert [one.about for one in section.quiet] == ["age"]


def test_bars_of_numbers_below_zero_begin_left_of_it():
    figure = {"value": -0.5, "low": -1.0, "high": 0.0, "expected": 0.0}
    parts = r'M([\d.]+) .*H([\d.]+)".*cx="([\d.]+)".*x1="([\d.]+)"'
    low, high, dot, mark = map(float, re.search(parts, interval_bar(figure, -1.0, 1.0)).groups())
    assert low < dot < high == mark


def told(effect, name):
    """What a row of a table says."""
    row = re.search(rf"<th[^>]*>{name}</th>(.*?)</tr>", effect, re.S)[1]
    return re.findall(r"<td[^>]*>(.*?)</td>", row)


def test_the_effect_of_a_capacity_is_told_before_it_is_stored(sqlite_desk, client):
    for number in range(60):
        send(sqlite_desk, f"a{number}", gain=number / 100 - 0.3)
    sqlite_desk.database.write(lambda c: change_rules(c, {"cases_per_day": 100}, actor="test"))
    page = client.get("/experts/1").text
    version = re.search(r'name="version" value="(\d+)"', page)[1]
    form = {"name": "Ann", "daily_limit": "10", "is_active": "true", "version": version}
    effect = client.post("/experts/1/effect", data=form).text
    assert "By the last 60 cases" in effect
    assert told(effect, "Cases that experts get") == ["48%", "10%"]
    assert rows(sqlite_desk, expert)[0].daily_limit is None
    nobody = client.post("/experts/1/effect", data={"daily_limit": ""}).text
    assert "Nobody would take cases then" in nobody
    done = client.post("/experts/1", data=form)
    assert done.headers["location"] == "/experts?said=changed"
    assert rows(sqlite_desk, expert)[0].daily_limit == 10
    late = client.post("/experts/1", data={**form, "daily_limit": "20"})
    assert late.status_code == 412, "somebody else changed it meanwhile"
    assert rows(sqlite_desk, expert)[0].daily_limit == 10
    wrong = client.post("/experts/1", data={**form, "daily_limit": "-3"})
    assert wrong.status_code == 422
    assert "must be a whole number" in wrong.text
    assert client.post("/experts", data={"name": "Ben"}).status_code == 303
    assert rows(sqlite_desk, expert)[1].name == "Ben"


def test_a_forecast_moves_load_from_an_expert_whose_day_gets_shorter(sqlite_desk):
    sqlite_desk.database.write(lambda c: add_expert(c, "Ben", actor="test"))
    desk = open_stub(sqlite_desk.database, 1, ["Ann", "Ben"])
    desk.database.write(lambda c: change_rules(c, {"cases_per_day": 100}, actor="test"))
    for number in range(60):
        send(desk, f"a{number}", Ann=0.3 + number / 1000, Ben=0.2)
    with desk.database.reading() as connection:
        configuration = desk.look(connection).configuration
        before = forecast(connection, configuration)
        ann = configuration.experts[1]._replace(daily_limit=25)
        after = forecast(connection, with_expert(configuration, ann))
    assert before.loads == {1: pytest.approx(100), 2: 0}
    assert after.loads[1] == pytest.approx(25, abs=2)
    assert after.loads[2] == pytest.approx(75, abs=2)
    assert after.prices[1] > before.prices[1]
    assert after.error > before.error


def test_a_candidate_becomes_active_and_the_old_model_comes_back(sqlite_desk, client):
    number = add_model(sqlite_desk.database, "second", active=False)
    assert "candidate" in client.get(f"/models/{number}").text
    states = []
    for one in (number, 1):
        assert client.post(f"/models/{one}/activate").headers["location"].startswith("/models")
        states.append([row.state for row in rows(sqlite_desk, model)])
    assert states == [["retired", "active"], ["active", "retired"]]
    assert client.post("/models/99/activate").status_code == 404
    assert client.post(f"/models/{number}/shadow").status_code == 303
    assert "It decides along, without effect." in client.get(f"/models/{number}").text
    assert client.post(f"/models/{number}/unshadow").status_code == 303
    broken = client.post("/models", data={"name": "x"}, files={"file": ("m.skops", b"no model")})
    assert broken.status_code == 422
    assert "This is not a model that can be used" in broken.text


def test_import_of_a_table(sqlite_desk, client):
    table = "id,gain,diagnosis\nx1,0.4,ill\nx2,-0.1,\nx2,0.3,\n"
    sqlite_desk._judges[1].card |= {"machine_score": None}

    def post(content, name="cases.csv", **form):
        sent = {"identifier": "id", **form}
        return client.post("/import", data=sent, files={"file": (name, content)})

    page = post(table, truth="diagnosis").text
    assert "New: 2 cases. Known before: 0. Refused: 1. New truths: 1." in page
    assert "row 3: There is already a case" in page
    assert {row.id for row in rows(sqlite_desk, case)} == {"x1", "x2"}
    deep = post("id,gain,text\nx3,0.1," + "[" * 100 + "\n")
    assert "New: 1 case." in deep.text, "brackets of a table nest nothing"
    assert "no column &#39;name&#39;" in post(table, identifier="name").text
    assert post(table, "cases.exe").status_code == 422
    assert "New truths: 1" in post("id,truth\nx2,well\n", truth="truth", what="truths").text


def test_the_story_of_a_case(sqlite_desk, client):
    number = send(sqlite_desk, "a/b", gain=0.4, pulse=80)
    assert "a/b" in client.get("/cases", params={"only": "waiting"}).text
    assert "There are none." in client.get("/cases", params={"only": "flagged"}).text
    found = client.get("/cases", params={"id": "a/b"})
    assert found.headers["location"] == f"/cases/{number}"
    story = client.get(f"/cases/{number}").text
    assert "It waits for experts" in story
    assert "by the rule" in story
    assert client.get("/cases/99").status_code == 404
