"""What is configured, changed by several people at once, and by the activation of a model."""

import threading
import time

import pytest
from sqlalchemy import event

from deferlearn.desk.cases import arrive
from deferlearn.desk.display import Display, change_display, read_display
from deferlearn.desk.errors import Invalid, Stale
from deferlearn.desk.models import activate_model
from deferlearn.desk.rules import (
    PRICE_OF_ANYONE,
    change_rules,
    hold_configuration,
    read_configuration,
    read_rules,
    store_setting,
    touch,
)
from deferlearn.desk.schema import case, model, webhook
from deferlearn.desk.subscriptions import add_webhook, remove_webhook
from desk.stub_desk import StubJudge, add_model, open_stub, rows, send, stub_desk


def at_once(database, *jobs):
    """Run jobs at the same time, each in a transaction that lasts for a while; what came of them."""
    ready, found = threading.Barrier(len(jobs)), []

    def work(job):
        def slowly(connection):
            job(connection)
            time.sleep(0.2)

        ready.wait()
        try:
            database.write(slowly)
        except Exception as error:
            found.append(type(error))
        else:
            found.append(None)

    threads = [threading.Thread(target=work, args=(job,)) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sorted(found, key=str)


def edit_rules(version, **changes):
    return lambda c: change_rules(c, changes, actor="test", version=version)


def test_of_two_who_saw_the_same_rules_one_changes_them(database):
    stub_desk(database)
    with database.reading() as connection:
        version = read_rules(connection)[1]
    jobs = [edit_rules(version, undo_seconds=111), edit_rules(version, lease_seconds=222)]
    assert at_once(database, *jobs) == [Stale, None]


def test_two_changes_without_a_version_are_both_kept(database):
    stub_desk(database)
    jobs = [edit_rules(None, undo_seconds=111), edit_rules(None, lease_seconds=222)]
    assert at_once(database, *jobs) == [None, None]
    with database.reading() as connection:
        rules = read_rules(connection)[0]
    assert (rules.undo_seconds, rules.lease_seconds) == (111, 222)


@pytest.mark.parametrize("version", [0, 1])
def test_of_two_who_saw_the_same_fields_one_changes_them(database, version):
    for number in range(version):
        database.write(lambda c, n=number: change_display(c, Display(), actor="test", version=n))

    def edit(name):
        display = Display(groups={name: name})
        return lambda c: change_display(c, display, actor="test", version=version)

    assert at_once(database, edit("a"), edit("b")) == [Stale, None]
    with database.reading() as connection:
        assert read_display(connection)[1] == version + 1


def test_two_models_are_activated_at_once(database):
    stub_desk(database)
    new = [add_model(database, name, active=False) for name in ("second", "third")]
    jobs = [lambda c, n=number: activate_model(c, n, actor="test") for number in new]
    assert at_once(database, *jobs) == [None, None]
    with database.reading() as connection:
        assert read_configuration(connection).model_id in new


def test_a_new_model_begins_without_the_price_of_the_old_one(database):
    desk = stub_desk(database, {"Ann": 10})

    def make_dear(connection):
        hold_configuration(connection)
        store_setting(connection, PRICE_OF_ANYONE, 5.0)
        touch(connection)

    database.write(make_dear)
    send(desk, "a", gain=0.9)
    new = add_model(database, "new", active=False)
    database.write(lambda c: activate_model(c, new, actor="test"))
    send(open_stub(database, new), "b", gain=0.9)
    assert [row.state for row in rows(desk, case)] == ["answered", "waiting"]


def test_a_model_that_is_no_longer_active_refuses_nothing(database):
    class Old(StubJudge):
        def judge(self, fields):
            raise Invalid("an old model cannot read it")

    stub_desk(database)
    other = open_stub(database)
    other._judges[1] = Old(1, [])
    with database.reading() as connection:
        other.look(connection)
    new = add_model(database, "new", active=False)
    other._judges[new] = StubJudge(new, [])
    database.write(lambda c: activate_model(c, new, actor="test"))
    assert arrive(other, "a", {"gain": 0}, actor="key:one").created
    assert [row.state for row in rows(other, model)] == ["retired", "active"]


def test_a_webhook_that_is_removed_at_the_same_time_refuses_no_case(database):
    if database.is_sqlite:
        pytest.skip("SQLite has one writer at a time")
    desk = stub_desk(database)
    hook, _ = database.write(
        lambda c: add_webhook(c, "https://example.org/", ["case.answered"], actor="test")
    )
    others = []

    def remove(connection):
        remove_webhook(connection, hook, actor="test")

    def before(connection, cursor, statement, values, context, many):
        if statement.startswith("INSERT INTO event") and not others:
            others.append(threading.Thread(target=database.write, args=(remove,)))
            others[0].start()
            others[0].join(0.5)

    event.listen(database.writer, "before_cursor_execute", before)
    send(desk, "a", gain=-1)
    others[0].join()
    assert (len(rows(desk, case)), rows(desk, webhook)) == (1, [])
