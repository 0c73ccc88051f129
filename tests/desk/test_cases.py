"""Cases arrive: decided and stored once, whoever sends them how often."""

import threading

import pytest
from sqlalchemy import update

from deferlearn.desk import cases
from deferlearn.desk.audit import verify
from deferlearn.desk.cases import Arrived, arrive, arrive_all
from deferlearn.desk.database import DatabaseUnavailable
from deferlearn.desk.errors import Conflict, Invalid
from deferlearn.desk.rules import touch
from deferlearn.desk.schema import ANYONE, audit_log, case, decision, model, reading
from desk.stub_desk import SECRET, StubJudge, add_model, change, count, rows, send, stub_desk

HOSTILE = [
    ("", {"gain": 1}),
    (" ", {"gain": 1}),
    ("a\x00b", {"gain": 1}),
    ("a\nb", {"gain": 1}),
    ("\ud800", {"gain": 1}),
    ("x" * 201, {"gain": 1}),
    ("a", {}),
    ("a", {"": 1}),
    ("a", {"x\x00": 1}),
    ("a", {"x": float("nan")}),
    ("a", {"x": float("inf")}),
    ("a", {"x": 10**400}),
    ("a", {"x": [1]}),
    ("a", {"x": {"y": 1}}),
    ("a", {"x": "\x00"}),
    ("a", {"x": "\udfff"}),
    ("a", {"x": "y" * 20_001}),
    ("a", {str(i): i for i in range(2001)}),
]


def test_the_machine_answers_at_once_and_experts_get_the_rest(database):
    desk = stub_desk(database, {"Ann": None})
    easy, hard = send(desk, "easy", gain=-1.0, answer="well"), send(desk, "hard", gain=1.0)
    (first,), (second,) = rows(desk, case, number=easy), rows(desk, case, number=hard)
    assert (first.state, first.answer, first.answered_by) == ("answered", "well", "machine")
    assert (second.state, second.answer, second.required) == ("waiting", None, 1)
    (waiting,) = rows(desk, reading)
    assert (waiting.case_number, waiting.seat, waiting.state) == (hard, ANYONE, "waiting")
    decided = rows(desk, decision)
    assert [row.deferred for row in decided] == [False, True]
    assert "machine: by the rule" in decided[0].reason
    assert "expert: by the rule" in decided[1].reason
    assert decided[1].expected_expert == -0.5
    with database.reading() as connection:
        assert verify(connection, SECRET).faults == []


def test_the_same_case_is_stored_once(database):
    desk = stub_desk(database)
    first = arrive(desk, "a", {"gain": 1, "x": "y"}, actor="key:one")
    again = arrive(desk, "a", {"x": "y", "gain": 1.0}, actor="key:two")
    assert (first.created, again.created) == (True, False)
    assert first.number == again.number
    with pytest.raises(Conflict, match="other content"):
        arrive(desk, "a", {"gain": 2, "x": "y"}, actor="key:one")
    assert count(desk, case) == count(desk, decision) == count(desk, reading) == 1
    assert len(rows(desk, audit_log, action="case.arrived")) == 1


def test_the_same_case_from_many_threads_is_stored_once(database):
    desk = stub_desk(database, {"Ann": 5})
    ready = threading.Barrier(6)
    found = []

    def work():
        ready.wait()
        found.append(arrive(desk, "a", {"gain": 1}, actor="key:one"))

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(one.created for one in found) == [False] * 5 + [True]
    assert len({one.number for one in found}) == 1
    assert count(desk, reading) == 1


def test_a_case_that_the_database_always_refuses_is_given_up(database, monkeypatch):
    desk, tries = stub_desk(database), []

    def refuse(*arguments):
        tries.append(1)
        raise cases._Again

    monkeypatch.setattr(cases, "_store", refuse)
    with pytest.raises(DatabaseUnavailable, match="could not be stored in 10 attempts"):
        arrive(desk, "a", {"gain": 1}, actor="key:one")
    assert (len(tries), count(desk, case)) == (cases.ATTEMPTS, 0)


def test_some_of_many_cases_may_be_refused(database):
    desk = stub_desk(database)
    sent = [(f"case {i}", {"gain": 0}) for i in range(30)]
    sent[7] = ("case 7", {"gain": [1]})
    sent[29] = ("case 0", {"gain": 5})
    outcomes = arrive_all(desk, sent, actor="key:one")
    assert isinstance(outcomes[7], Invalid)
    assert isinstance(outcomes[29], Conflict)
    assert sum(isinstance(one, Arrived) for one in outcomes) == count(desk, case) == 28


@pytest.mark.parametrize("place", range(len(HOSTILE)))
def test_what_is_not_a_case_is_refused(sqlite_desk, place):
    case_id, fields = HOSTILE[place]
    with pytest.raises(Invalid):
        arrive(sqlite_desk, case_id, fields, actor="key:one")


def test_markup_and_sql_are_stored_as_they_are(database):
    desk = stub_desk(database)
    text = "'; DROP TABLE case_; -- <script>alert(1)</script> \u202e %s {} \\ \u0007 \U0001f600"
    send(desk, "../../etc/passwd?x=1#'\"", gain=0, x=text)
    (row,) = rows(desk, case)
    assert row.content["x"] == text
    assert row.id == "../../etc/passwd?x=1#'\""


def test_without_a_model_cases_are_refused(database):
    desk = stub_desk(database)
    change(desk, update(model).values(state="retired"))
    database.write(touch)
    with pytest.raises(Conflict, match="No model is active"):
        send(desk, "a")


def test_the_model_that_is_active_at_the_commit_decides(database):
    desk = stub_desk(database)
    send(desk, "a")
    second = add_model(database, "second", active=False)
    desk._judges[second] = StubJudge(second, [])
    change(desk, update(model).where(model.c.id != second).values(state="retired"))
    change(desk, update(model).where(model.c.id == second).values(state="active"))
    database.write(touch)
    send(desk, "b")
    assert [row.model_id for row in rows(desk, decision)] == [1, second]


def test_a_case_that_was_accepted_stays_accepted_when_the_model_cannot_read_it(database):
    desk = stub_desk(database)
    number = send(desk, "a", gain=1)

    def refuse(fields):
        raise Invalid("no")

    desk._judges[1].judge = refuse
    again = arrive(desk, "a", {"gain": 1}, actor="key:one")
    assert (again.created, again.number) == (False, number)
    with pytest.raises(Invalid):
        send(desk, "b", gain=1)
