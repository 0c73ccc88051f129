"""The expert's pages: answer, pass, undo, a lease that was lost, and an empty queue."""

import re

import pytest
from sqlalchemy import update

from deferlearn.desk.database import SECOND
from deferlearn.desk.display import Display, change_display
from deferlearn.desk.experts import change_expert
from deferlearn.desk.rules import change_rules
from deferlearn.desk.schema import answer, case, reading
from desk.page_clients import app_of, browser_of
from desk.stub_desk import change, rows, send
from desk.test_pages import held


@pytest.fixture
def client(sqlite_desk):
    return browser_of(app_of(sqlite_desk), sqlite_desk, "ann", "expert", 1)


def test_to_look_at_the_page_takes_no_case(sqlite_desk, client):
    send(sqlite_desk, "a", gain=0.4)
    page = client.get("/work")
    assert 'hx-post="/work/next" hx-trigger="load"' in page.text
    assert rows(sqlite_desk, reading)[0].state == "waiting"
    assert "Case a" in client.post("/work/next").text
    assert rows(sqlite_desk, reading)[0].state == "leased"


def test_an_answer_brings_the_next_case(sqlite_desk, client):
    send(sqlite_desk, "a", gain=0.4, answer="ill", size=3.0)
    send(sqlite_desk, "b", gain=0.3, answer="ill")
    first = client.post("/work/next")
    assert "The machine’s answer" not in first.text
    assert re.findall(r'data-key="(.)" aria-keyshortcuts', first.text) == ["1", "2", "p"]
    number, token = held(first)
    fragment = client.post(
        f"/work/{number}/answer",
        data={"token": token, "answer": "well", "note": " sure "},
        headers={"HX-Request": "true"},
    )
    assert fragment.text.startswith("<title>Case b")
    assert "<html" not in fragment.text
    assert "You answered <strong>well</strong> to case a." in fragment.text
    assert "<strong>1</strong> answered today" in fragment.text
    (given,) = rows(sqlite_desk, answer)
    assert (given.value, given.note) == ("well", "sure")
    # The same key again, because the reply got lost, changes nothing.
    again = client.post(f"/work/{number}/answer", data={"token": token, "answer": "well"})
    assert "Case b" in again.text
    assert len(rows(sqlite_desk, answer)) == 1


def test_the_machines_answer_is_shown_if_the_rules_say_so(sqlite_desk, client):
    sqlite_desk.database.write(lambda c: change_rules(c, {"blind": False}, actor="test"))
    send(sqlite_desk, "a", gain=0.4, answer="well")
    assert "The machine’s answer: <strong>well</strong>" in client.post("/work/next").text


def test_a_pass_and_an_empty_queue_that_says_when_to_come_back(sqlite_desk, client):
    for name in "abcd":
        send(sqlite_desk, name, gain=0.4)
    page = client.post("/work/next")
    for _ in range(4):
        number, token = held(page)
        page = client.post(f"/work/{number}/pass", data={"token": token})
    assert "You passed the case on" in page.text
    assert "Nothing waits for you now." in page.text
    assert "Come back in about" in page.text
    assert {row.state for row in rows(sqlite_desk, reading)} == {"passed"}


def test_what_an_expert_says_who_cannot_tell_is_kept(sqlite_desk, client):
    send(sqlite_desk, "a", gain=0.4)
    number, token = held(client.post("/work/next"))
    client.post(f"/work/{number}/pass", data={"token": token, "note": " blurred <image> "})
    assert rows(sqlite_desk, reading)[0].remark == "blurred <image>"
    sue = browser_of(client.app, sqlite_desk, "sue", "supervisor")
    assert "blurred &lt;image&gt;" in sue.get("/cases/1").text


def test_who_has_done_the_share_of_a_day_comes_back_tomorrow(sqlite_desk, client):
    sqlite_desk.database.write(
        lambda c: (
            change_expert(c, 1, {"daily_limit": 1}, actor="test"),
            change_rules(c, {"timezone": "Asia/Tokyo"}, actor="test"),
        )
    )
    send(sqlite_desk, "a", gain=0.4)
    number, token = held(client.post("/work/next"))
    page = client.post(f"/work/{number}/answer", data={"token": token, "answer": "ill"})
    assert "You have done your share of today." in page.text
    assert "begins at 00:00 (Asia/Tokyo)" in page.text


def test_undo_brings_the_case_back_in_place_of_the_open_one(sqlite_desk, client):
    send(sqlite_desk, "a", gain=0.4)
    send(sqlite_desk, "b", gain=0.3)
    number, token = held(client.post("/work/next"))
    page = client.post(f"/work/{number}/answer", data={"token": token, "answer": "ill"})
    second, token = held(page)
    (given,) = rows(sqlite_desk, answer)
    form = {"reading": second, "token": token}
    page = client.post(f"/work/answers/{given.id}/undo", data=form)
    assert "Case a" in page.text
    assert "Your answer was taken back." in page.text
    assert rows(sqlite_desk, answer)[0].withdrawn_at is not None
    assert rows(sqlite_desk, case, id="a")[0].state == "waiting"
    assert rows(sqlite_desk, reading)[1].state == "waiting"


def test_undo_brings_its_case_though_another_one_is_more_urgent(sqlite_desk, client):
    send(sqlite_desk, "a", gain=0.1)
    number, token = held(client.post("/work/next"))
    send(sqlite_desk, "b", gain=1.0, unusual="odd")
    page = client.post(f"/work/{number}/answer", data={"token": token, "answer": "ill"})
    second, token = held(page)
    page = client.post("/work/answers/1/undo", data={"reading": second, "token": token})
    assert "Case a" in page.text
    number, token = held(page)
    page = client.post(f"/work/{number}/answer", data={"token": token, "answer": "well"})
    assert "Case b" in page.text


def test_history_offers_undo_as_long_as_it_works(sqlite_desk, client):
    for name in "ab":
        send(sqlite_desk, name, gain=0.4)
        number, token = held(client.post("/work/next"))
        client.post(f"/work/{number}/answer", data={"token": token, "answer": "ill"})
    change(
        sqlite_desk, update(answer).where(answer.c.id == 1).values(at=answer.c.at - 301 * SECOND)
    )
    page = client.get("/work/history").text
    assert "/work/answers/2/undo" in page
    assert "/work/answers/1/undo" not in page
    assert client.post("/work/answers/1/undo").status_code == 409
    done = client.post("/work/answers/2/undo")
    assert done.headers["location"] == "/work/history?said=undone"
    assert "(taken back)" in client.get(done.headers["location"]).text


def test_nobody_takes_back_the_answer_of_another_expert(sqlite_desk, client):
    send(sqlite_desk, "a", gain=0.4)
    number, token = held(client.post("/work/next"))
    client.post(f"/work/{number}/answer", data={"token": token, "answer": "ill"})
    change(sqlite_desk, update(answer).values(expert_id=1))
    other = browser_of(client.app, sqlite_desk, "nobody", "supervisor")
    assert other.post("/work/answers/1/undo").status_code == 403
    assert rows(sqlite_desk, answer)[0].withdrawn_at is None


def test_a_lease_that_was_lost_stores_nothing_and_says_so(sqlite_desk, client):
    send(sqlite_desk, "a", gain=0.4)
    number, token = held(client.post("/work/next"))
    assert client.post(f"/work/{number}/renew", data={"token": token}).status_code == 204
    newer = client.post("/work/next")  # in another window
    assert client.post(f"/work/{number}/renew", data={"token": token}).status_code == 409
    page = client.post(f"/work/{number}/answer", data={"token": token, "answer": "ill"})
    assert "Your answer was not stored." in page.text
    assert "Case a" in page.text
    assert rows(sqlite_desk, answer) == []
    assert held(newer)[1] != token


def test_fields_are_shown_as_the_administrator_wants(sqlite_desk, client):
    display = Display(
        kinds={"secret": "hidden", "scan": "image", "elsewhere": "image", "told": "text"},
        groups={"pulse": "Measured"},
        image_sources=["https://images.example.org"],
    )
    sqlite_desk.database.write(lambda c: change_display(c, display, actor="test", version=0))
    fields = {
        "pulse": 80.0,
        "secret": "who it is",
        "scan": "https://images.example.org/1.png",
        "elsewhere": "https://tracker.example.org/1.png",
        "told": "fever",
        "run": "javascript:alert(1)",
    }
    send(sqlite_desk, "a", gain=0.4, **fields)
    page = client.post("/work/next")
    assert "who it is" not in page.text
    assert '<section class="group" aria-label="Measured">' in page.text
    assert '<dd class="number">80</dd>' in page.text
    assert '<div class="long">fever</div>' in page.text
    assert re.findall(r'<img src="([^"]+)"', page.text) == [fields["scan"]]
    assert 'href="https://tracker' not in page.text
    policy = page.headers["content-security-policy"]
    assert "img-src 'self' https://images.example.org;" in policy


def test_more_answers_than_keys_stay_clickable():
    from deferlearn.desk.pages.work_pages import ANSWER_KEYS, _with_keys

    named = _with_keys([str(number) for number in range(40)])
    assert len(named) == 40
    assert [key for key, _ in named[: len(ANSWER_KEYS)]] == list(ANSWER_KEYS)
    assert {key for key, _ in named[len(ANSWER_KEYS) :]} == {""}
    assert not set("npu") & set(ANSWER_KEYS)
