"""Alarms in the database: raised once, told, closed, continued where they were; and the overview."""

from types import SimpleNamespace

import numpy as np
import pytest

from deferlearn.desk.answering import give_answer
from deferlearn.desk.monitoring.alarms import advance, close_alarm, open_alarms
from deferlearn.desk.monitoring.overview import overview
from deferlearn.desk.monitoring.watches import COLUMN, EXPERT, MACHINE, UNUSUAL
from deferlearn.desk.passing import pass_on
from deferlearn.desk.queue import lease_next
from deferlearn.desk.schema import alarm, audit_log, case, delivery, event, watch
from deferlearn.desk.subscriptions import add_webhook
from deferlearn.desk.truths import set_truth
from deferlearn.tables.guard import learn_guard
from desk.stub_desk import add_model, count, rows, send, stub_desk

ANN = 1


def open_now(desk):
    with desk.database.reading() as connection:
        return open_alarms(connection)


def test_many_unusual_cases_raise_one_alarm_which_is_told(database):
    desk = stub_desk(database, {"Ann": None})
    database.write(
        lambda connection: add_webhook(
            connection, "https://example.org/hook", ["alarm.raised"], actor="test"
        )
    )
    for i in range(3):
        send(desk, f"usual {i}", gain=-1.0)
    assert advance(desk) == []
    assert advance(desk) == [], "nothing is new"
    for i in range(6):
        send(desk, f"odd {i}", gain=-1.0, unusual="'size' is 7")
    (raised,) = advance(desk)
    assert (raised.kind, raised.subject) == (UNUSUAL, "")
    assert raised.sentence.startswith("67% of 9 cases were unlike the training cases; 1% would")
    assert "at most 1%" in raised.sentence
    assert raised.found == "67% of 9 cases were unlike the training cases; 1% would be usual."
    send(desk, "odd again", gain=-1.0, unusual="'size' is 7")
    assert advance(desk) == [], "it is raised already"
    assert open_now(desk) == [raised]
    (told,) = rows(desk, event, kind="alarm.raised")
    assert told.body["sentence"] == raised.sentence
    assert count(desk, delivery) == 1
    assert len(rows(desk, audit_log, action="alarm.raised")) == 1


def test_a_closed_alarm_begins_again_and_needs_new_evidence(database):
    desk = stub_desk(database, {"Ann": None})
    for i in range(6):
        send(desk, f"odd {i}", gain=-1.0, unusual="odd")
    (raised,) = advance(desk)
    database.write(lambda connection: close_alarm(connection, raised.id, actor="user:1"))
    database.write(lambda connection: close_alarm(connection, raised.id, actor="user:2"))
    assert open_now(desk) == []
    assert rows(desk, alarm)[0].closed_by == "user:1"
    send(desk, "one more", gain=-1.0, unusual="odd")
    assert advance(desk) == []
    for i in range(6):
        send(desk, f"odd again {i}", gain=-1.0, unusual="odd")
    assert len(advance(desk)) == 1


def test_errors_of_machine_and_expert_are_found_from_truths(database):
    desk = stub_desk(database, {"Ann": None})
    for i in range(30):
        send(desk, f"case {i}", gain=0.3, answer="ill")  # the machine expects 0.5, the expert 0.2
        lease = lease_next(desk, ANN)
        give_answer(desk, lease.reading_id, lease.token, "well", actor="user:1")
        # Ann is always wrong, and the machine is wrong in half of the cases.
        set_truth(desk, f"case {i}", "ill", actor="key:1") if i % 2 else None
    raised = advance(desk)
    assert [(one.kind, one.subject) for one in raised] == [(EXPERT, "Ann")]
    assert raised[0].sentence.startswith("Ann was wrong in 100% of 15 cases of known truth; 20%")
    for i in range(40):
        send(desk, f"machine's {i}", gain=-1.0, answer="ill")
        set_truth(desk, f"machine's {i}", "well", actor="key:1")
    assert [one.kind for one in advance(desk)] == [MACHINE]


def test_tests_go_on_where_they_were_and_begin_again_with_a_model(database):
    desk = stub_desk(database, {"Ann": None})
    for i in range(3):
        send(desk, f"odd {i}", gain=-1.0, unusual="odd" if i else "")
    advance(desk)
    (state,) = rows(desk, watch, kind=UNUSUAL)
    assert state.state["evidence"]["count"] == 3
    send(desk, "next", gain=-1.0)
    advance(desk)
    (state,) = rows(desk, watch, kind=UNUSUAL)
    assert state.state["evidence"]["count"] == 4
    assert state.state["count"] == 4
    assert state.state["happened"] == 2.0
    add_model(database, "another", active=False)
    assert {row.model_id for row in rows(desk, watch)} == {1}


def test_a_column_that_shifts_is_named(database):
    luck = np.random.default_rng(0)
    guard = learn_guard(["size", "age"], {}, luck.lognormal(size=(400, 2)))
    desk = stub_desk(database, {"Ann": None})

    class Encoder:
        numbers, categories, scores = ("size", "age"), {}, ()

        def codes(self, table):
            return np.column_stack([table["size"], table["age"]]), {}

    desk.judge(1).decider = SimpleNamespace(guard=guard, encoder=Encoder())
    for i, (size, age) in enumerate(luck.lognormal(size=(40, 2))):
        send(desk, f"case {i}", gain=-1.0, size=1000 * size, age=age)
    (raised,) = advance(desk)
    assert (raised.kind, raised.subject) == (COLUMN, "size")
    figures = {(one.name, one.about): one for one in overview(desk).figures}
    assert "multiplied by about 1,000" in figures["shift", "size"].sentence


def test_overview_says_what_it_did_not_look_at(database, monkeypatch):
    desk = stub_desk(database, {"Ann": None}, audit_share=1.0)
    for i in range(4):
        send(desk, f"case {i}", gain=-0.3)
    lease = lease_next(desk, ANN)
    pass_on(desk, lease.reading_id, lease.token, actor="user:1")
    lease = lease_next(desk, ANN)
    give_answer(desk, lease.reading_id, lease.token, "well", actor="user:1")
    found = overview(desk)
    figures = {(one.name, one.about): one for one in found.figures}
    sentence = figures["machine's disagreement with experts", ""].sentence
    assert "2 more cases are audited, and the outcome is not known yet." in sentence
    assert "1 case could not be audited, because all experts passed" in sentence
    assert (found.cases, found.since) == (4, None)
    monkeypatch.setattr("deferlearn.desk.monitoring.overview.MOST_CASES", 3)
    found = overview(desk)
    assert (found.cases, found.since) == (3, rows(desk, case)[1].received_at)


def test_overview_has_all_numbers(database):
    desk = stub_desk(database, {"Ann": 100, "Bob": 100}, audit_share=1.0)
    for i in range(12):
        send(desk, f"case {i}", gain=0.3 if i in (0, 1, 2, 11) else -0.3, answer="ill")
        if i != 11:
            lease = lease_next(desk, ANN)
            give_answer(desk, lease.reading_id, lease.token, "well", actor="user:1")
        set_truth(desk, f"case {i}", "well" if i in (0, 5) else "ill", actor="key:1")
    found = overview(desk)
    assert found.cases == 12
    figures = {(one.name, one.about): one for one in found.figures}
    assert figures["share deferred", ""].interval.mean == pytest.approx(4 / 12)
    # Of eight cases of the machine, all of them audited, one was wrong.
    assert figures["machine's error", ""].interval.mean == pytest.approx(1 / 8)
    assert figures["machine's disagreement with experts", ""].interval.mean == 1.0
    assert figures["expert's error", "Ann"].interval.mean == pytest.approx(9 / 11)
    assert figures["team's error", ""].count == 11
    assert figures["load", "Ann"].expected == 100
    assert figures["both wrong", ""].interval.mean == 0.0
    assert figures["errors above those expected", "the machine"].count == 12
    assert "still wait" in figures["time within which 90% are answered", ""].sentence
