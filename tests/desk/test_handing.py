"""Readings that an expert does not do come back, go to others, or end; and the time that they take."""

import threading

import pytest
from sqlalchemy import delete, event, update

from deferlearn.desk import handing
from deferlearn.desk.capacity import take
from deferlearn.desk.database import SECOND
from deferlearn.desk.deadlines import enforce_deadlines
from deferlearn.desk.deciding import NO_TIME
from deferlearn.desk.errors import Conflict
from deferlearn.desk.experts import change_expert
from deferlearn.desk.handing import look_after_unread
from deferlearn.desk.leases import release
from deferlearn.desk.passing import pass_on
from deferlearn.desk.purge import purge
from deferlearn.desk.queue import lease_next
from deferlearn.desk.schema import ANYONE, audit_log, case, expert, expert_day, reading
from deferlearn.desk.settling import ALL_PASSED, DISAGREED, LATE
from deferlearn.desk.withdrawing import take_back
from desk.stub_desk import change, rows, send, stub_desk
from desk.test_answering import ANN, ARB, BOB, cannot_tell, end_leases, say, the_case


def be_late(desk):
    """Let the deadlines of all cases pass."""
    change(desk, update(case).values(due_at=case.c.due_at - 3600 * SECOND))
    enforce_deadlines(desk)


def next_day(desk):
    """Nothing has been taken yet on a new day."""
    change(desk, delete(expert_day))


def switch(desk, who, **changes):
    desk.database.write(lambda c: change_expert(c, who, changes, actor="test"))


def states(desk):
    return [(row.seat, row.state) for row in rows(desk, reading)]


@pytest.mark.parametrize("way", ["lease ends", "released", "taken back"])
def test_a_case_that_is_answered_does_not_come_back(database, way):
    desk = stub_desk(database, {"Ann": 1, "Bob": None}, deadline_seconds=60)
    send(desk, "a", gain=1)
    lease = lease_next(desk, ANN)
    be_late(desk)
    assert the_case(desk).answered_by == "deadline"
    if way == "lease ends":
        end_leases(desk)
    elif way == "released":
        release(desk, lease.reading_id, lease.token)
    else:
        given = say(desk, ANN, "well")
        take_back(desk, given.answer_id, expert_id=ANN, actor="user:ann")
    assert lease_next(desk, BOB) is None
    assert lease_next(desk, ANN) is None
    assert [row.state for row in rows(desk, reading)] == ["cancelled"]
    assert {row.taken for row in rows(desk, expert_day, expert_id=ANN)} == {0}


def test_an_audit_comes_back_though_its_case_is_answered(database):
    desk = stub_desk(database, {"Ann": None, "Bob": None}, audit_share=1.0)
    send(desk, "a", gain=0)
    lease = lease_next(desk, ANN)
    release(desk, lease.reading_id, lease.token)
    assert lease_next(desk, BOB).reading_id == lease.reading_id


@pytest.mark.parametrize("told_apart", [False, True])
def test_cases_that_nobody_read_take_no_time(database, told_apart):
    desk = stub_desk(database, {"Ann": 2, "Bob": 0}, told_apart=told_apart, deadline_seconds=60)
    for name in ("a", "b"):
        send(desk, name, gain=0.5, Ann=0.5, Bob=0.0)
    be_late(desk)
    number = send(desk, "c", gain=0.5, Ann=0.5, Bob=0.0)
    assert rows(desk, case, number=number)[0].state == "waiting"


@pytest.mark.parametrize("told_apart", [False, True])
def test_nobody_reads_more_per_day_than_the_limit_and_the_queue_gets_shorter(database, told_apart):
    desk = stub_desk(database, {"Ann": 2, "Bob": 0}, told_apart=told_apart)
    waiting, read = [], []
    for day in range(4):
        for place in range(3):
            send(desk, f"{day} {place}", gain=0.5, Ann=0.5, Bob=0.0)
        waiting.append(len(rows(desk, reading, state="waiting")))
        if day >= 2:  # nobody is there on the first two days
            done = 0
            while lease_next(desk, ANN):
                say(desk, ANN, "ill")
                done += 1
            read.append(done)
        next_day(desk)
    # What was left takes the third day, and the queue never holds more than a day's work.
    assert (waiting, read) == ([2, 2, 2, 2], [2, 2])
    flags = [row.flag for row in rows(desk, case)]
    assert flags == [None, None, *[NO_TIME] * 7, None, None, NO_TIME]


@pytest.mark.parametrize("change_", [{"is_active": False}, {"daily_limit": 0}])
def test_cases_of_an_expert_who_is_switched_off_go_to_others(database, change_):
    desk = stub_desk(database, {"Ann": None, "Bob": None}, told_apart=True, audit_share=1.0)
    send(desk, "a", Ann=0.5, Bob=0.1)
    for place in range(6):
        send(desk, f"audit {place}", Ann=-0.5, Bob=-0.5)
    switch(desk, ANN, **change_)
    open_seats = {row.seat for row in rows(desk, reading) if row.state == "waiting"}
    assert open_seats == {BOB}
    done = 0
    while lease_next(desk, BOB):
        say(desk, BOB, "ill")
        done += 1
    assert done == 7
    assert len(rows(desk, audit_log, action="case.handed_on")) >= 1


def test_a_case_of_the_only_expert_is_answered_by_the_machine_or_waits(database):
    desk = stub_desk(database, {"Ann": None}, told_apart=False)
    send(desk, "a", gain=0.5)
    switch(desk, ANN, is_active=False)
    assert the_case(desk).state == "waiting", "it waits for the first expert"
    switch(desk, ANN, is_active=True, daily_limit=0)
    assert (the_case(desk).answered_by, the_case(desk).flag) == ("machine", NO_TIME)


def test_a_lease_of_an_expert_who_was_switched_off_ends_elsewhere(database):
    desk = stub_desk(database, {"Ann": None, "Bob": None}, told_apart=True)
    send(desk, "a", Ann=0.5, Bob=0.1)
    lease_next(desk, ANN)
    switch(desk, ANN, is_active=False)
    assert states(desk) == [(ANN, "leased")], "she may still answer"
    end_leases(desk)
    assert say(desk, BOB, "well").final


def test_an_answer_of_an_expert_who_is_away_is_taken_back(database):
    desk = stub_desk(database, {"Ann": None, "Bob": None}, told_apart=True)
    send(desk, "a", Ann=0.5, Bob=0.1)
    given = say(desk, ANN, "ill")
    switch(desk, ANN, is_active=False)
    take_back(desk, given.answer_id, expert_id=None, actor="key:one")
    assert say(desk, BOB, "well").final


def test_fewer_experts_than_readings(database):
    desk = stub_desk(database, {"Ann": None, "Bob": None}, readings=2)
    send(desk, "a", gain=0.5)
    say(desk, ANN, "well")
    switch(desk, BOB, is_active=False)
    row = the_case(desk)
    assert (row.answer, row.answered_by, row.flag) == ("well", "expert", NO_TIME)


def test_the_last_arbiter_goes(database):
    desk = stub_desk(database, {"Ann": None, "Bob": None, "Arb": None}, readings=2)
    send(desk, "a", gain=0.5, answer="ill")
    say(desk, ANN, "well")
    say(desk, BOB, "ill")
    switch(desk, ARB, is_arbiter=False)
    assert (the_case(desk).answer, the_case(desk).flag) == ("ill", DISAGREED)


def test_a_case_that_was_given_to_an_expert_while_she_went_is_found(database):
    desk = stub_desk(database, {"Ann": None, "Bob": None}, told_apart=True)
    send(desk, "a", Ann=0.5, Bob=0.1)
    # As another server leaves it, which did not know yet.
    change(desk, update(expert).where(expert.c.id == ANN).values(is_active=False))
    desk._configuration = None
    assert (look_after_unread(desk), look_after_unread(desk)) == (1, 0)
    assert say(desk, BOB, "well").final


def test_a_long_queue_is_looked_at_without_keeping_writers_waiting(database, monkeypatch):
    desk = stub_desk(database, {"Ann": None, "Bob": None, "Cem": None}, readings=2)
    for place in range(3):
        send(desk, f"{place}", gain=0.5)
    monkeypatch.setattr(database, "write", lambda job: pytest.fail("nothing is to be changed"))
    assert look_after_unread(desk) == 0


@pytest.mark.parametrize("readings", [1, 2])
def test_many_readings_are_handed_on_in_parts(database, monkeypatch, readings):
    monkeypatch.setattr(handing, "AT_ONCE", 3)
    monkeypatch.setattr(handing, "CHUNK", 2)
    names = {"Ann": None, "Bob": None, "Cem": None, "Dan": None}
    desk = stub_desk(database, names, told_apart=True, readings=readings)
    for place in range(8):
        send(desk, f"{place}", Ann=0.4, Bob=0.3, Cem=0.2, Dan=0.1)
    switch(desk, ANN, is_active=False)
    assert [seat for seat, state in states(desk) if state == "waiting"].count(ANN) == 5
    parts, write = [], database.write

    def noted(job):
        parts.append(write(job))
        return parts[-1]

    monkeypatch.setattr(database, "write", noted)
    assert look_after_unread(desk) == 5
    assert parts == [2, 2, 1]
    waiting = [seat for seat, state in states(desk) if state == "waiting"]
    assert ANN not in waiting
    assert len(waiting) == 8 * readings


def test_a_case_that_is_purged_while_it_is_handed_on_is_left_out(database, monkeypatch):
    desk = stub_desk(database, {"Ann": None, "Bob": None}, told_apart=True, audit_share=1.0)
    send(desk, "audited", Ann=-0.5, Bob=-0.5)
    away = rows(desk, reading)[0].seat
    change(desk, update(expert).where(expert.c.id == away).values(is_active=False))
    change(desk, update(case).values(answered_at=0))
    desk._configuration, write = None, database.write

    def purged_before(job):
        monkeypatch.setattr(database, "write", write)
        assert purge(database, 1, actor="test") == 1
        return write(job)

    monkeypatch.setattr(database, "write", purged_before)
    assert look_after_unread(desk) == 0


def test_a_case_that_waits_for_somebody_new_is_left_alone(database):
    desk = stub_desk(database, {"Ann": None}, deadline_rule="wait")
    send(desk, "a", gain=0.5)
    cannot_tell(desk, ANN)
    assert look_after_unread(desk) == 0
    assert states(desk) == [(ANYONE, "passed"), (ANYONE, "waiting")]


def test_a_passed_audit_goes_to_the_next_expert(database):
    desk = stub_desk(database, {"Ann": None, "Bob": None}, audit_share=1.0)
    send(desk, "a", gain=0)
    cannot_tell(desk, ANN)
    lease = lease_next(desk, BOB)
    pass_on(desk, lease.reading_id, lease.token, actor="user:bob")
    assert [row.state for row in rows(desk, reading)] == ["passed", "passed"]
    assert (the_case(desk).state, the_case(desk).flag) == ("answered", None)


def test_an_answer_that_is_taken_back_after_the_deadline_has_time_again(database):
    desk = stub_desk(database, {"Ann": None}, deadline_seconds=60)
    send(desk, "a", gain=1, answer="ill")
    given = say(desk, ANN, "well")
    change(desk, update(case).values(due_at=case.c.due_at - 3600 * SECOND))
    take_back(desk, given.answer_id, expert_id=ANN, actor="user:ann")
    assert enforce_deadlines(desk) == 0
    assert say(desk, ANN, "well").final
    assert the_case(desk).answered_by == "expert"


def test_arbiters_are_kept_for_disagreement_if_experts_are_not_told_apart(database):
    desk = stub_desk(database, {"Ann": None, "Bob": None, "Arb": None}, readings=2)
    send(desk, "a", gain=0.5, answer="well")
    assert lease_next(desk, ARB) is None
    say(desk, ANN, "well")
    say(desk, BOB, "ill")
    assert say(desk, ARB, "ill").final
    assert the_case(desk).answered_by == "arbiter"


def test_an_arbiter_reads_what_all_others_have_passed(database):
    desk = stub_desk(database, {"Ann": None, "Bob": None, "Arb": None}, readings=2)
    send(desk, "a", gain=0.5)
    cannot_tell(desk, ANN)
    say(desk, BOB, "well")
    assert say(desk, ARB, "well").final
    assert the_case(desk).flag is None


@pytest.mark.parametrize("has_time", [True, False])
def test_an_arbiter_reads_or_decides_if_one_of_three_passes(database, has_time):
    desk = stub_desk(database, {"Ann": None, "Bob": None, "Cem": None, "Arb": 1}, readings=3)
    send(desk, "a", gain=0.5, answer="well")
    say(desk, 1, "well")
    say(desk, 2, "ill")
    with database.reading() as connection:
        today = desk.look(connection).day
    if not has_time:
        database.write(lambda connection: take(connection, 4, today, 1))
    cannot_tell(desk, 3)
    if not has_time:
        assert the_case(desk).state == "waiting", "tomorrow the arbiter decides"
        next_day(desk)
    assert say(desk, 4, "ill").final
    row = the_case(desk)
    expected = ("experts", DISAGREED) if has_time else ("arbiter", ALL_PASSED)
    assert (row.answer, row.answered_by, row.flag) == ("ill", *expected)


def test_flags_stay(database):
    desk = stub_desk(database, {"Ann": None, "Bob": None}, readings=2)
    send(desk, "a", gain=0.5)
    cannot_tell(desk, ANN)
    assert the_case(desk).flag == ALL_PASSED
    given = say(desk, BOB, "ill")
    assert (given.final, the_case(desk).flag) == (True, ALL_PASSED)
    take_back(desk, given.answer_id, expert_id=BOB, actor="user:bob")
    assert say(desk, BOB, "well").final, "one reading fewer still does"
    assert the_case(desk).flag == ALL_PASSED


def test_a_case_that_was_late_says_so(database):
    desk = stub_desk(database, {"Ann": None}, deadline_seconds=60, deadline_rule="wait")
    send(desk, "a", gain=1)
    be_late(desk)
    say(desk, ANN, "ill")
    assert the_case(desk).flag == LATE


def test_an_arbiter_who_takes_the_case_at_the_same_time_keeps_it(database):
    if database.is_sqlite:
        pytest.skip("SQLite has one writer at a time")
    desk = stub_desk(database, {"Ann": None, "Bob": None, "Arb": None}, readings=2)
    send(desk, "a", gain=0.5)
    given = say(desk, ANN, "ill")
    say(desk, BOB, "well")
    taken, worker = [], threading.current_thread()

    def before(connection, cursor, statement, values, context, many):
        mine = threading.current_thread() is worker
        if mine and not taken and "UPDATE reading SET state" in statement:
            taken.append(None)
            other = threading.Thread(target=lambda: taken.append(lease_next(desk, ARB)))
            other.start()
            other.join()

    event.listen(database.writer, "before_cursor_execute", before)
    with pytest.raises(Conflict, match="An arbiter has the case"):
        take_back(desk, given.answer_id, expert_id=ANN, actor="user:ann")
    assert taken[1].case_id == "a"
