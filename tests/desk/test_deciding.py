"""Prices, hard daily limits, audits with their probabilities, and deadlines."""

import pytest
from sqlalchemy import update

from deferlearn.desk.answering import give_answer
from deferlearn.desk.cases import arrive_all
from deferlearn.desk.database import SECOND
from deferlearn.desk.deadlines import enforce_deadlines
from deferlearn.desk.deciding import NO_TIME, UNUSUAL_NO_TIME, Luck
from deferlearn.desk.queue import lease_next
from deferlearn.desk.rules import PRICE_OF_ANYONE, Rules, store_setting, touch
from deferlearn.desk.schema import ANYONE, case, decision, expert, expert_day, reading
from deferlearn.desk.settling import LATE, STILL_WAITING
from desk.stub_desk import change, rows, send, stub_desk

ANN, BOB = 1, 2


def seats(desk, number):
    return [row.seat for row in rows(desk, reading, case_number=number)]


def flag(desk, number):
    return rows(desk, case, number=number)[0].flag


def read_all(desk, who):
    """Answer what an expert is given; how many cases that were."""
    done = 0
    while (lease := lease_next(desk, who)) is not None:
        give_answer(desk, lease.reading_id, lease.token, "ill", actor="test")
        done += 1
    return done


@pytest.fixture
def team(database):
    """Experts who are told apart: Ann has time for two cases per day, Bob for one."""
    return stub_desk(database, {"Ann": 2, "Bob": 1}, told_apart=True)


def test_the_expert_who_gains_most_takes_the_case(team):
    assert seats(team, send(team, "a", Ann=0.3, Bob=0.1)) == [ANN]
    assert seats(team, send(team, "b", Ann=0.1, Bob=0.3)) == [BOB]
    number = send(team, "c", Ann=-0.1, Bob=-0.2)
    assert seats(team, number) == []
    reasons = [row.reason for row in rows(team, decision)]
    assert reasons[0].startswith("Ann: expected to avoid 0.3 errors here")
    assert "expected errors: machine 0.5, Ann 0.2" in reasons[0]
    assert reasons[2].startswith("machine: no expert is expected to avoid more errors")


def test_limits_hold_for_cases_that_arrive_together(team):
    fields = {"Ann": 0.3, "Bob": 0.1}
    numbers = [one.number for one in arrive_all(team, [(n, fields) for n in "abcd"], actor="test")]
    assert [seats(team, number) for number in numbers] == [[ANN], [ANN], [BOB], []]
    assert [flag(team, number) for number in numbers] == [None, None, None, NO_TIME]


def test_a_price_keeps_cases_away(team):
    change(team, update(expert).where(expert.c.id == ANN).values(price=0.25))
    team.database.write(touch)
    assert seats(team, send(team, "a", Ann=0.3, Bob=0.1)) == [BOB]
    assert seats(team, send(team, "b", Ann=0.2, Bob=-0.1)) == []
    assert rows(team, decision)[0].prices == {str(ANN): 0.25, str(BOB): 0.0}


def test_experts_who_are_alike_share_the_cases(database):
    desk = stub_desk(database, {"Ann": None, "Bob": None}, told_apart=True)
    taken = {seats(desk, send(desk, f"case {i}", Ann=0.3, Bob=0.3))[0] for i in range(40)}
    assert taken == {ANN, BOB}


def test_daily_limits_are_never_exceeded(team):
    given = [seats(team, send(team, f"case {i}", Ann=0.3, Bob=0.2)) for i in range(5)]
    assert given == [[ANN], [ANN], [BOB], [], []]
    assert flag(team, 4) == NO_TIME
    strange = send(team, "strange", Ann=0.3, Bob=0.2, unusual="odd")
    assert (seats(team, strange), flag(team, strange)) == ([], UNUSUAL_NO_TIME)
    read_all(team, ANN)
    change(team, update(expert_day).values(day="2000-01-01"))
    assert seats(team, send(team, "next day", Ann=0.3, Bob=0.2)) == [ANN]


def test_an_unusual_case_goes_to_an_expert_though_nothing_is_gained(team):
    number = send(team, "a", Ann=-0.3, Bob=-0.2, unusual="'size' is 7")
    assert seats(team, number) == [BOB]
    assert "unusual case, 'size' is 7" in rows(team, decision)[0].reason


def test_two_readings_are_by_two_experts(database):
    desk = stub_desk(database, {"Ann": 9, "Bob": 9, "Arb": 9}, told_apart=True, readings=2)
    number = send(desk, "a", Ann=0.3, Bob=-0.1, Arb=0.9)
    assert seats(desk, number) == [ANN, BOB], "the arbiter is kept for disagreement"


def test_limits_of_all_hold_if_experts_are_not_told_apart(database):
    desk = stub_desk(database, {"Ann": 1, "Bob": 2})
    given = [seats(desk, send(desk, f"case {i}", gain=0.3)) for i in range(4)]
    assert given == [[ANYONE]] * 3 + [[]]
    assert flag(desk, 4) == NO_TIME
    lease = lease_next(desk, ANN)
    give_answer(desk, lease.reading_id, lease.token, "ill", actor="user:ann")
    assert lease_next(desk, ANN) is None, "she has no time left"
    assert lease_next(desk, BOB) is not None


def test_a_price_of_anyone_raises_the_threshold(database):
    desk = stub_desk(database, {"Ann": 100})
    database.write(lambda connection: store_setting(connection, PRICE_OF_ANYONE, 0.2))
    database.write(touch)
    assert [seats(desk, send(desk, f"{gain}", gain=gain)) for gain in (0.3, 0.1)] == [[ANYONE], []]


def test_audits_are_drawn_and_their_probability_is_stored(database, monkeypatch):
    desk = stub_desk(database, {"Ann": 2, "Bob": 0}, told_apart=True, audit_share=0.25)
    draws = iter([0.2, 0.3, 0.1, 0.1, 0.9])
    monkeypatch.setattr(Luck, "draw", classmethod(lambda cls: cls(next(draws), 0.5, 1)))
    for place in range(5):
        send(desk, f"case {place}", Ann=-0.5, Bob=-0.5, answer="well")
    found = [(row.audited, row.audit_probability) for row in rows(desk, decision)]
    # Ann has time for two; after that nothing is audited, whatever is drawn.
    assert found == [(True, 0.25), (False, 0.25), (True, 0.25), (False, 0.0), (False, 0.0)]
    assert [row.answered_by for row in rows(desk, case)] == ["machine"] * 5
    lease = lease_next(desk, ANN)
    give_answer(desk, lease.reading_id, lease.token, "ill", actor="user:ann")
    assert rows(desk, case)[0].answer == "well", "an audit changes no answer"
    assert [row.kind for row in rows(desk, reading)] == ["audit", "audit"]


def test_the_share_of_audits_is_the_one_that_was_asked_for(sqlite_desk):
    draws = [Luck.draw() for _ in range(4000)]
    assert 0.17 < sum(luck.audit < 0.2 for luck in draws) / 4000 < 0.23
    assert len({luck.seed for luck in draws}) > 3990


@pytest.mark.parametrize("rule", ["machine answers", "wait"])
def test_a_case_is_late_once(database, rule):
    desk = stub_desk(database, {"Ann": None}, deadline_seconds=60, deadline_rule=rule)
    for name in ("a", "b"):
        send(desk, name, gain=0.5, answer="well")
    lease = lease_next(desk, ANN)
    assert enforce_deadlines(desk) == 0
    change(desk, update(case).values(due_at=case.c.due_at - 61 * SECOND))
    assert (enforce_deadlines(desk), enforce_deadlines(desk)) == (2, 0)
    first, second = rows(desk, case)
    if rule == "wait":
        assert (first.state, first.flag) == ("waiting", STILL_WAITING)
        return
    assert (second.answer, second.answered_by, second.flag) == ("well", "deadline", LATE)
    assert [row.state for row in rows(desk, reading)] == ["leased", "cancelled"]
    # Who is at it may still answer; the case keeps its answer.
    give_answer(desk, lease.reading_id, lease.token, "ill", actor="user:ann")
    assert rows(desk, case)[0].answer == "well"


def test_a_day_begins_at_midnight_of_the_time_zone():
    noon = 1_000_000_000 * SECOND  # 2001-09-09 01:46:40 UTC
    assert Rules(timezone="UTC").day(noon) == "2001-09-09"
    assert Rules(timezone="America/New_York").day(noon) == "2001-09-08"
    assert Rules(timezone="Asia/Tokyo").day(noon) == "2001-09-09"
