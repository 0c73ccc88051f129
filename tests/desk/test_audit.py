"""The audit log finds every change, gap and reordering, also at its end."""

import threading

import pytest
from sqlalchemy import delete, insert, select, text, update

from deferlearn.desk import audit, users
from deferlearn.desk.audit import Entry, Head
from deferlearn.desk.database import Database
from deferlearn.desk.schema import audit_head, audit_log
from desk.stub_desk import SECRET, add_model


@pytest.fixture
def filled(database):
    """A database whose log has six entries."""
    for number in range(3):
        database.write(lambda c, n=number: audit.append(c, actor="a", action="b", subject=f"{n}"))
    entries = [
        Entry("key:ris", "case.arrived", f"case:{n}", {"n": n, "é": None}) for n in (1, 2, 3)
    ]
    database.write(lambda c: audit.append_all(c, entries))
    return database


def verify(database, *noted, secret=SECRET):
    with database.reading() as connection:
        return audit.verify(connection, secret, noted)


def tamper(database, *queries):
    database.write(lambda c: [c.execute(query) for query in queries] and None)


def row(database, sequence):
    with database.reading() as connection:
        query = select(audit_log).where(audit_log.c.sequence == sequence)
        return dict(connection.execute(query).one()._mapping)


def test_a_log_as_it_was_written_has_no_faults(filled):
    found = verify(filled)
    assert found.faults == []
    assert found.head.sequence == 6
    assert found.head.hash == row(filled, 6)["hash"]
    assert row(filled, 5)["detail"] == '{"n":2,"\\u00e9":null}'


def test_an_empty_log_has_no_faults(database):
    assert verify(database) == audit.Verified(Head(0, audit.START), [])


CHANGES = {"at": 1, "actor": "z", "action": "z", "subject": "z", "detail": '{"n":9}'}


@pytest.mark.parametrize("column", CHANGES)
def test_a_changed_entry_is_found(filled, column):
    query = update(audit_log).where(audit_log.c.sequence == 4)
    tamper(filled, query.values({column: CHANGES[column]}))
    assert verify(filled).faults == ["entry 4 was changed"]


def test_a_changed_entry_with_a_hash_of_another_secret_is_found(filled):
    forged = row(filled, 4) | {"actor": "z"}
    forged["hash"] = audit._hash(b"guessed", forged)
    tamper(filled, update(audit_log).where(audit_log.c.sequence == 4).values(forged))
    assert verify(filled).faults == ["entry 4 was changed", "entry 5 does not follow entry 4"]


def test_a_removed_entry_is_found(filled):
    tamper(filled, delete(audit_log).where(audit_log.c.sequence.in_([2, 3])))
    assert verify(filled).faults == ["entries 2 to 3 are missing"]


def test_a_removed_entry_is_found_if_the_others_are_numbered_again(filled):
    down = update(audit_log).where(audit_log.c.sequence == 4).values(sequence=3)
    tamper(filled, delete(audit_log).where(audit_log.c.sequence == 3), down)
    assert "entry 3 was changed" in verify(filled).faults


def test_the_first_entry_cannot_be_removed(filled):
    tamper(filled, delete(audit_log).where(audit_log.c.sequence == 1))
    assert verify(filled).faults == ["entries 1 to 1 are missing"]


def test_entries_removed_at_the_end_are_found(filled):
    tamper(filled, delete(audit_log).where(audit_log.c.sequence > 4))
    assert verify(filled).faults == ["the log ends with entry 4, but its head is 6"]


def test_entries_removed_at_the_end_are_found_if_the_head_is_set_back(filled):
    cut = delete(audit_log).where(audit_log.c.sequence > 4)
    back = update(audit_head).values(sequence=4, hash=row(filled, 4)["hash"])
    tamper(filled, cut, back)
    assert verify(filled).faults == ["the head of the log was changed"]


def test_a_log_that_was_emptied_as_if_it_was_new_is_found_by_a_head_that_was_noted(filled):
    noted = verify(filled).head
    new = update(audit_head).values(sequence=0, hash=audit.START, seal="")
    tamper(filled, delete(audit_log), new)
    assert verify(filled).faults == []  # without users or models, only the note can tell this
    assert verify(filled, noted).faults == ["entry 6 was noted, but is not in the log"]


@pytest.mark.parametrize("what", ["user", "model"])
def test_a_log_that_was_emptied_as_if_it_was_new_is_found_if_the_desk_is_in_use(database, what):
    if what == "model":
        add_model(database)
    else:
        database.write(lambda c: users.create(c, name="anna", role="admin", actor="desk"))
    database.write(lambda c: audit.append(c, actor="a", action="b", subject="c"))
    assert verify(database).faults == []
    new = update(audit_head).values(sequence=0, hash=audit.START, seal="")
    tamper(database, delete(audit_log), new)
    assert verify(database).faults == ["the log is empty, but there are users or models"]


def test_another_log_in_its_place_is_found_by_a_head_that_was_noted(filled):
    assert verify(filled, Head(4, row(filled, 4)["hash"])).faults == []
    assert verify(filled, Head(4, "f" * 64)).faults == ["entry 4 is not the one that was noted"]


def test_the_head_cannot_be_removed(filled):
    tamper(filled, delete(audit_head))
    assert verify(filled).faults == ["the head of the log is missing"]


def test_entries_in_another_order_are_found(filled):
    a, b = row(filled, 4), row(filled, 5)
    both = delete(audit_log).where(audit_log.c.sequence.in_([4, 5]))
    tamper(filled, both, insert(audit_log).values([a | {"sequence": 5}, b | {"sequence": 4}]))
    faults = verify(filled).faults
    assert "entry 4 was changed" in faults
    assert "entry 5 was changed" in faults


def test_an_inserted_entry_is_found(filled):
    tamper(filled, insert(audit_log).values(row(filled, 6) | {"sequence": 7}))
    assert "entry 7 was changed" in verify(filled).faults
    assert "the log ends with entry 7, but its head is 6" in verify(filled).faults


def test_another_secret_does_not_verify(filled):
    assert "the head of the log was changed" in verify(filled, secret="x" * 40).faults


def test_a_log_that_is_wrong_throughout_is_not_listed_throughout(database):
    entries = [Entry("a", "b", "c")] * 300
    database.write(lambda c: audit.append_all(c, entries))
    tamper(database, update(audit_log).values(actor="z"))
    faults = verify(database).faults
    assert len(faults) == audit.MOST_FAULTS + 1
    assert faults[-1] == "there may be more"


def test_a_longer_log_is_read_in_parts(database):
    database.write(lambda c: audit.append_all(c, [Entry("a", "b", "c")] * 2100))
    assert verify(database) == audit.Verified(verify(database).head, [])
    tamper(database, delete(audit_log).where(audit_log.c.sequence == 1001))
    assert verify(database).faults == ["entries 1001 to 1001 are missing"]


def test_an_entry_is_undone_with_its_transaction(filled):
    def fail(connection):
        audit.append(connection, actor="a", action="b", subject="c")
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        filled.write(fail)
    assert verify(filled).faults == []
    assert verify(filled).head.sequence == 6


def test_writers_at_the_same_time_make_one_chain(database):
    def work(name):
        for number in range(10):
            database.write(
                lambda c, n=number: audit.append(c, actor=name, action="b", subject=f"{n}")
            )

    threads = [threading.Thread(target=work, args=[f"writer {n}"]) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = verify(database)
    assert (found.head.sequence, found.faults) == (40, [])


def test_without_the_key_nothing_is_appended(database_url):
    keyless = Database(database_url)
    with pytest.raises(RuntimeError, match="key_options"):
        keyless.write(lambda c: audit.append(c, actor="a", action="b", subject="c"))
    with keyless.reading() as connection:
        assert connection.execute(text("SELECT count(*) FROM audit_log")).scalar_one() == 0
    keyless.close()
