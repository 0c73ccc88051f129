"""Old cases are removed for good, the rest stays, and the audit log says so."""

import json
from pathlib import Path

import pytest
from sqlalchemy import select

from deferlearn.desk import audit, purge
from deferlearn.desk.errors import Invalid
from deferlearn.desk.schema import audit_log, case
from desk.filled_desk import fill, rows_of
from desk.stub_desk import SECRET


def ids(database):
    with database.reading() as connection:
        return set(connection.execute(select(case.c.id)).scalars())


def test_old_answered_cases_go_with_all_that_belongs_to_them(database):
    fill(database, 3, days_old=400, waiting=1)
    fill(database, 2, days_old=10)
    assert purge.count_old(database, 365) == 2
    assert purge.purge(database, 365, actor="user:anna") == 2
    assert ids(database) == {"case 2 of 400", "case 3 of 10", "case 4 of 10"}
    rows = rows_of(database)
    counts = {name: len(rows[name]) for name in ("decision", "reading", "answer", "truth")}
    assert counts == {"decision": 3, "reading": 3, "answer": 2, "truth": 2}
    assert len(rows["event"]) == len(rows["delivery"]) == 2
    assert len(rows["model"]) == len(rows["expert"]) == 1


def test_a_purge_is_on_record_and_the_log_stays_whole(database):
    fill(database, 3, days_old=400)
    purge.purge(database, 365, actor="user:anna")
    with database.snapshot() as connection:
        assert audit.verify(connection, SECRET).faults == []
        rows = connection.execute(select(audit_log)).all()
    entry = rows[-1]
    assert (entry.actor, entry.action) == ("user:anna", "cases.purged")
    detail = json.loads(entry.detail)
    assert (detail["cases"], detail["first"], detail["last"]) == (3, 1, 3)
    assert detail["answered_before"].startswith("20")


def test_many_cases_are_removed_in_parts_each_on_record(database, monkeypatch):
    monkeypatch.setattr(purge, "CHUNK", 2)
    fill(database, 5, days_old=2)
    assert purge.purge(database, 1, actor="a") == 5
    with database.reading() as connection:
        purged = select(audit_log.c.detail).where(audit_log.c.action == "cases.purged")
        details = [json.loads(text)["cases"] for text in connection.execute(purged).scalars()]
    assert details == [2, 2, 1]


def test_nothing_old_is_nothing_done(database):
    fill(database, 2)
    before = rows_of(database)
    assert purge.purge(database, 1, actor="a") == 0
    assert rows_of(database) == before


@pytest.mark.parametrize("days", [0, -1, float("nan"), float("inf")])
def test_a_wrong_number_of_days_removes_nothing(database, days):
    fill(database, 1, days_old=400)
    with pytest.raises(Invalid, match="number of days"):
        purge.purge(database, days, actor="a")
    assert len(ids(database)) == 1


def test_the_file_of_sqlite_does_not_hold_what_was_removed(database):
    if not database.is_sqlite:
        return  # PostgreSQL clears its files by itself
    fill(database, 40, days_old=400)
    files = [Path(database.url.database + end) for end in ("", "-wal")]

    def held():
        return any(b"Mrs Smith" in path.read_bytes() for path in files if path.exists())

    assert held()
    purge.purge(database, 365, actor="a")
    assert not held()
