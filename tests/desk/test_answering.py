"""Leases, answers, passes, arbitration, and taking answers back."""

import pytest
from sqlalchemy import update

from deferlearn.desk.answering import give_answer
from deferlearn.desk.database import SECOND
from deferlearn.desk.errors import Conflict, Forbidden, Invalid, NotFound
from deferlearn.desk.leases import LeaseLost, release, renew
from deferlearn.desk.passing import pass_on
from deferlearn.desk.queue import lease_next
from deferlearn.desk.schema import answer, case, expert, expert_day, reading, truth
from deferlearn.desk.settling import ALL_PASSED, DISAGREED
from deferlearn.desk.truths import set_truth
from deferlearn.desk.withdrawing import take_back
from desk.stub_desk import change, count, rows, send, stub_desk

ANN, BOB, ARB = 1, 2, 3


def say(desk, who, value):
    """Lease the next case and answer it."""
    lease = lease_next(desk, who)
    return give_answer(desk, lease.reading_id, lease.token, value, actor=f"user:{who}")


def cannot_tell(desk, who):
    lease = lease_next(desk, who)
    pass_on(desk, lease.reading_id, lease.token, actor=f"user:{who}")


def the_case(desk):
    (row,) = rows(desk, case)
    return row


def end_leases(desk, seconds=3600):
    """Let so much time pass for all leases."""
    change(
        desk,
        update(reading)
        .where(reading.c.state == "leased")
        .values(
            leased_from=reading.c.leased_from - seconds * SECOND,
            leased_until=reading.c.leased_until - seconds * SECOND,
        ),
    )


def test_an_answer_makes_the_case_final(database):
    desk = stub_desk(database, {"Ann": None})
    send(desk, "a", gain=0.5, answer="ill")
    lease = lease_next(desk, ANN)
    assert (lease.case_id, lease.seen["gain"], lease.classes) == ("a", 0.5, ["ill", "well"])
    assert lease.machine_answer is None
    given = give_answer(desk, lease.reading_id, lease.token, "well", note="sure", actor="user:ann")
    assert given.final
    row = the_case(desk)
    assert (row.state, row.answer, row.answered_by, row.version) == (
        "answered",
        "well",
        "expert",
        2,
    )
    assert [one.note for one in rows(desk, answer)] == ["sure"]
    assert lease_next(desk, ANN) is None


def test_experts_see_the_machines_answer_only_if_they_are_not_blind(database):
    desk = stub_desk(database, {"Ann": None}, blind=False)
    send(desk, "a", gain=0.5, answer="well")
    assert lease_next(desk, ANN).machine_answer == "well"


def test_the_same_answer_again_changes_nothing(database):
    desk = stub_desk(database, {"Ann": None})
    send(desk, "a", gain=0.5)
    lease = lease_next(desk, ANN)
    first, second = (
        give_answer(desk, lease.reading_id, lease.token, "ill", actor="user:ann") for _ in range(2)
    )
    assert first == second
    assert count(desk, answer) == 1
    with pytest.raises(Conflict, match="already"):
        give_answer(desk, lease.reading_id, lease.token, "well", actor="user:ann")


def test_a_case_is_in_one_pair_of_hands(database):
    desk = stub_desk(database, {"Ann": None, "Bob": None})
    send(desk, "a", gain=0.5)
    lease = lease_next(desk, ANN)
    assert lease_next(desk, BOB) is None
    again = lease_next(desk, ANN)
    assert again.reading_id == lease.reading_id
    with pytest.raises(LeaseLost):
        give_answer(desk, lease.reading_id, lease.token, "ill", actor="user:ann")
    with pytest.raises(LeaseLost):
        give_answer(desk, lease.reading_id, "guessed", "ill", actor="user:ann")
    with pytest.raises(LeaseLost):
        give_answer(desk, again.reading_id, again.token, "ill", actor="user:bob", expert_id=BOB)
    with pytest.raises(NotFound):
        give_answer(desk, 99, again.token, "ill", actor="user:ann")
    with pytest.raises(Invalid, match="'ill', 'well'"):
        give_answer(desk, again.reading_id, again.token, "dead", actor="user:ann")
    assert give_answer(desk, again.reading_id, again.token, "ill", actor="user:ann").final


@pytest.mark.parametrize("seconds", [901, -3600], ids=["time is over", "clock was set back"])
def test_a_lease_that_has_ended_comes_back(database, seconds):
    desk = stub_desk(database, {"Ann": 1, "Bob": None})
    send(desk, "a", gain=0.5)
    lease = lease_next(desk, ANN)
    end_leases(desk, seconds)
    with pytest.raises(LeaseLost):
        renew(desk, lease.reading_id, lease.token)
    taken = lease_next(desk, BOB)
    assert taken.reading_id == lease.reading_id
    with pytest.raises(LeaseLost):
        give_answer(desk, lease.reading_id, lease.token, "ill", actor="user:ann")
    # The time of who did nothing is not used up.
    assert {row.expert_id: row.taken for row in rows(desk, expert_day)} == {ANN: 0, BOB: 1}


def test_a_lease_is_renewed_and_released(database):
    desk = stub_desk(database, {"Ann": 1, "Bob": None})
    send(desk, "a", gain=0.5)
    lease = lease_next(desk, ANN)
    end_leases(desk, 600)
    assert renew(desk, lease.reading_id, lease.token) > lease.until - 600 * SECOND
    end_leases(desk, 600)
    assert lease_next(desk, BOB) is None
    release(desk, lease.reading_id, lease.token)
    with pytest.raises(LeaseLost):
        release(desk, lease.reading_id, lease.token)
    assert lease_next(desk, ANN).reading_id == lease.reading_id


def test_the_most_useful_case_comes_first_and_waiting_counts(database):
    desk = stub_desk(database, {"Ann": None})
    for name, gain in (("little", 0.1), ("much", 0.4), ("strange", 0.1), ("old", 0.1)):
        send(desk, name, gain=gain, unusual="odd" if name == "strange" else "")
    old = update(reading).where(reading.c.case_number == 4)
    change(desk, old.values(priority=reading.c.priority - 24 * 3600 * SECOND))
    order = []
    while (lease := lease_next(desk, ANN)) is not None:
        order.append(lease.case_id)
        give_answer(desk, lease.reading_id, lease.token, "ill", actor="user:ann")
    assert order == ["old", "strange", "much", "little"]


def test_readers_who_agree_decide(database):
    desk = stub_desk(database, {"Ann": None, "Bob": None}, readings=2)
    send(desk, "a", gain=0.5)
    assert not say(desk, ANN, "well").final
    assert lease_next(desk, ANN) is None, "nobody reads a case twice"
    assert say(desk, BOB, "well").final
    row = the_case(desk)
    assert (row.answer, row.answered_by, row.flag) == ("well", "experts", None)


def test_an_arbiter_decides_where_readers_disagree(database):
    desk = stub_desk(database, {"Ann": None, "Bob": None, "Arb": None}, readings=2)
    send(desk, "a", gain=0.5, answer="well")
    say(desk, ANN, "well")
    assert not say(desk, BOB, "ill").final
    assert lease_next(desk, ANN) is None
    assert say(desk, ARB, "ill").final
    row = the_case(desk)
    assert (row.answer, row.answered_by, row.flag) == ("ill", "arbiter", None)


def test_an_arbiter_who_has_read_the_case_does_not_decide(database):
    desk = stub_desk(database, {"Ann": None, "Arb": None}, readings=2)
    send(desk, "a", gain=0.5, answer="ill")
    say(desk, BOB, "well")  # who is an arbiter here
    assert say(desk, ANN, "ill").final
    row = the_case(desk)
    assert (row.answer, row.flag) == ("ill", DISAGREED)


def test_without_an_arbiter_the_majority_decides(database):
    desk = stub_desk(database, {"Ann": None, "Bob": None, "Cem": None}, readings=3)
    send(desk, "a", gain=0.5, answer="ill")
    say(desk, 1, "well")
    say(desk, 2, "ill")
    assert say(desk, 3, "well").final
    assert (the_case(desk).answer, the_case(desk).flag) == ("well", DISAGREED)


def test_who_passes_sends_the_case_to_the_next(database):
    desk = stub_desk(database, {"Ann": None, "Bob": None})
    send(desk, "a", gain=0.5)
    cannot_tell(desk, ANN)
    assert lease_next(desk, ANN) is None
    assert say(desk, BOB, "well").final


@pytest.mark.parametrize("rule", ["machine answers", "wait"])
def test_a_case_that_all_have_passed(database, rule):
    desk = stub_desk(database, {"Ann": None, "Bob": None}, deadline_rule=rule)
    send(desk, "a", gain=0.5, answer="well")
    cannot_tell(desk, ANN)
    cannot_tell(desk, BOB)
    row = the_case(desk)
    assert row.flag == ALL_PASSED
    if rule == "wait":
        assert row.state == "waiting"
        assert lease_next(desk, ANN) is None
    else:
        assert (row.state, row.answer, row.answered_by) == ("answered", "well", "machine")


def test_one_reading_does_if_nobody_is_left_for_the_second(database):
    desk = stub_desk(database, {"Ann": None, "Bob": None}, readings=2)
    send(desk, "a", gain=0.5)
    say(desk, ANN, "well")
    cannot_tell(desk, BOB)
    row = the_case(desk)
    assert (row.answer, row.answered_by, row.flag) == ("well", "expert", ALL_PASSED)


def test_one_reading_does_if_the_other_is_passed_before(database):
    desk = stub_desk(database, {"Ann": None, "Bob": None}, readings=2)
    send(desk, "a", gain=0.5)
    cannot_tell(desk, BOB)
    assert the_case(desk).state == "waiting"
    assert say(desk, ANN, "well").final


def test_an_arbiter_who_passes_leaves_it_to_the_majority(database):
    desk = stub_desk(database, {"Ann": None, "Bob": None, "Arb": None}, readings=2)
    send(desk, "a", gain=0.5, answer="ill")
    say(desk, ANN, "well")
    say(desk, BOB, "ill")
    cannot_tell(desk, ARB)
    assert (the_case(desk).answer, the_case(desk).flag) == ("ill", DISAGREED)


def test_an_answer_is_taken_back_in_time(database):
    desk = stub_desk(database, {"Ann": None, "Bob": None})
    send(desk, "a", gain=0.5)
    given = say(desk, ANN, "well")
    with pytest.raises(Forbidden):
        take_back(desk, given.answer_id, expert_id=BOB, actor="user:bob")
    take_back(desk, given.answer_id, expert_id=ANN, actor="user:ann")
    assert (the_case(desk).state, the_case(desk).answer) == ("waiting", None)
    with pytest.raises(Conflict):
        take_back(desk, given.answer_id, expert_id=ANN, actor="user:ann")
    assert lease_next(desk, BOB) is None, "it waits for Ann"
    assert say(desk, ANN, "ill").final
    assert the_case(desk).answer == "ill"
    assert [one.withdrawn_at is None for one in rows(desk, answer)] == [False, True]


def test_an_answer_is_not_taken_back_too_late_or_after_an_arbiter(database):
    desk = stub_desk(database, {"Ann": None, "Bob": None, "Arb": None}, readings=2)
    send(desk, "a", gain=0.5)
    first, second = say(desk, ANN, "well"), say(desk, BOB, "ill")
    take_back(desk, second.answer_id, expert_id=None, actor="key:one")
    assert lease_next(desk, ARB) is None, "nobody disagrees any more"
    second = say(desk, BOB, "ill")
    lease_next(desk, ARB)
    with pytest.raises(Conflict, match="arbiter"):
        take_back(desk, second.answer_id, expert_id=BOB, actor="user:bob")
    change(desk, update(answer).values(at=answer.c.at - 301 * SECOND))
    with pytest.raises(Conflict, match="over"):
        take_back(desk, first.answer_id, expert_id=ANN, actor="user:ann")


def test_an_expert_who_is_away_gets_nothing(database):
    desk = stub_desk(database, {"Ann": None})
    send(desk, "a", gain=0.5)
    change(desk, update(expert).values(is_active=False))
    with pytest.raises(Conflict, match="takes no cases"):
        lease_next(desk, ANN)
    with pytest.raises(NotFound):
        lease_next(desk, 77)


def test_truth_is_stored_once_and_corrected(database):
    desk = stub_desk(database)
    send(desk, "a")
    assert set_truth(desk, "a", "ill", actor="key:one")
    assert not set_truth(desk, "a", "ill", actor="key:one")
    assert set_truth(desk, "a", "well", actor="key:one")
    with pytest.raises(Invalid):
        set_truth(desk, "a", "dead", actor="key:one")
    with pytest.raises(NotFound):
        set_truth(desk, "b", "ill", actor="key:one")
    assert [(row.value, row.replaced_at is None) for row in rows(desk, truth)] == [
        ("ill", False),
        ("well", True),
    ]
