"""A backup of a desk in use is consistent, and restores to either database without loss."""

import os
import shutil
import sqlite3
import threading

import pytest
import sqlalchemy
from sqlalchemy import select, text

from deferlearn.desk import audit, backup, keys, sessions
from deferlearn.desk.database import Database
from deferlearn.desk.errors import Conflict, DeskError, Invalid
from deferlearn.desk.migrations import SchemaError, revision_of
from deferlearn.desk.schema import audit_log, case, session
from desk.filled_desk import add_case, fill, rows_of
from desk.stub_desk import SECRET
from desk.test_users import PASSWORD, accept, create, invite, log_in  # noqa: F401


@pytest.fixture
def filled(database):
    fill(database, 3, waiting=1)
    accept(database, invite(database, create(database).id))
    database.write(lambda c: keys.create(c, name="ris", scopes=["cases:read"], actor="desk"))
    return database


@pytest.fixture(params=["sqlite", "postgresql"])
def empty(request, tmp_path):
    """An empty database of each kind."""
    if request.param == "sqlite":
        database = Database(f"sqlite:///{tmp_path / 'new.db'}", options=audit.key_options(SECRET))
        yield database
        database.close()
        return
    server = request.getfixturevalue("postgres")
    engine = sqlalchemy.create_engine(server.url("postgres"), isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.exec_driver_sql("DROP DATABASE IF EXISTS desk_restored")
        connection.exec_driver_sql("CREATE DATABASE desk_restored")
    engine.dispose()
    database = Database(server.url("desk_restored"), options=audit.key_options(SECRET))
    yield database
    database.close()


def test_all_rows_come_back_in_either_database(filled, empty, tmp_path):
    path = tmp_path / "desk.backup"
    made = backup.back_up(filled, path)
    assert made.cases == 3
    restored = backup.restore(path, empty, SECRET)
    assert restored == made
    before, after = rows_of(filled), rows_of(empty)
    assert len(after["audit_log"]) == len(before["audit_log"]) + 1
    for table in ("audit_log", "audit_head", "session"):
        del before[table], after[table]
    assert before == after
    with empty.snapshot() as connection:
        assert audit.verify(connection, SECRET, [made.head]).faults == []
        last = select(audit_log).order_by(audit_log.c.sequence.desc()).limit(1)
        assert connection.execute(last).one().action == "desk.restored"


def test_a_number_of_a_case_is_not_given_again_after_a_restore(filled, empty, tmp_path):
    def remove_last(connection):
        add_case(connection, "gone", 1, done=False)
        for table in ("reading", "decision", "case_"):
            key = "number" if table == "case_" else "case_number"
            connection.execute(text(f"DELETE FROM {table} WHERE {key} = 4"))

    filled.write(remove_last)
    backup.back_up(filled, tmp_path / "desk.backup")
    backup.restore(tmp_path / "desk.backup", empty, SECRET)
    empty.write(lambda c: add_case(c, "new", 1, done=True))
    with empty.reading() as connection:
        number = connection.execute(select(case.c.number).where(case.c.id == "new")).scalar_one()
    assert number == 5


def test_sessions_do_not_come_back(filled, empty, tmp_path):
    cookie = log_in(filled)
    backup.back_up(filled, tmp_path / "desk.backup")
    backup.restore(tmp_path / "desk.backup", empty, SECRET)
    assert sessions.find(filled, SECRET, cookie) is not None
    assert sessions.find(empty, SECRET, cookie) is None
    with empty.reading() as connection:
        assert connection.execute(select(session.c.revoked_at)).scalar_one() is not None


def test_a_backup_of_a_desk_in_use_has_no_half_of_anything(database, tmp_path):
    fill(database, 2)
    stop = threading.Event()

    def work():
        while not stop.is_set():
            fill(database, 2)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        for attempt in range(3):
            made = backup.back_up(database, tmp_path / "desk.backup")
            assert made.cases % 2 == 0
            copy = Database(f"sqlite:///{tmp_path / 'desk.backup'}")
            with copy.snapshot() as connection:
                found = audit.verify(connection, SECRET)
            copy.close()
            assert found.faults == [], attempt
            assert found.head.sequence == made.cases // 2
    finally:
        stop.set()
        thread.join()


def test_a_log_that_grows_while_it_is_verified_has_no_faults(database):
    fill(database, 1)
    stop = threading.Event()

    def work():
        while not stop.is_set():
            database.write(lambda c: audit.append(c, actor="a", action="b", subject="c"))

    thread = threading.Thread(target=work)
    thread.start()
    try:
        for _ in range(20):
            with database.snapshot() as connection:
                assert audit.verify(connection, SECRET).faults == []
    finally:
        stop.set()
        thread.join()


def test_only_the_owner_can_read_a_backup(filled, tmp_path):
    path = tmp_path / "desk.backup"
    backup.back_up(filled, path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert [p.name for p in tmp_path.glob("*.partial*")] == []
    assert "backup" not in str([p.name for p in tmp_path.glob(".*")])


def test_the_secret_is_not_in_a_backup(filled, tmp_path):
    backup.back_up(filled, tmp_path / "desk.backup")
    assert SECRET.encode() not in (tmp_path / "desk.backup").read_bytes()


def test_a_backup_that_cannot_be_written_leaves_the_old_one(filled, tmp_path, monkeypatch):
    path = tmp_path / "desk.backup"
    path.write_bytes(b"the old one")

    def full(*args):
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(backup, "_vacuum_into" if filled.is_sqlite else "_copy_into", full)
    with pytest.raises(DeskError, match="disk is full"):
        backup.back_up(filled, path)
    assert path.read_bytes() == b"the old one"
    assert list(tmp_path.glob(".*")) == []


def test_a_desk_is_not_restored_over_another_one(filled, tmp_path):
    backup.back_up(filled, tmp_path / "desk.backup")
    before = rows_of(filled)
    with pytest.raises(Conflict, match="has a desk already"):
        backup.restore(tmp_path / "desk.backup", filled, SECRET)
    assert rows_of(filled) == before


@pytest.fixture
def made(sqlite_template, tmp_path):
    """A backup of SQLite."""
    shutil.copy(sqlite_template, tmp_path / "desk.db")
    database = Database(f"sqlite:///{tmp_path / 'desk.db'}", options=audit.key_options(SECRET))
    fill(database, 3)
    backup.back_up(database, tmp_path / "desk.backup")
    database.close()
    return tmp_path / "desk.backup"


@pytest.fixture
def new(tmp_path):
    database = Database(f"sqlite:///{tmp_path / 'new.db'}", options=audit.key_options(SECRET))
    yield database
    database.close()


def test_a_backup_with_another_secret_is_refused_unless_it_is_wanted(made, new):
    with pytest.raises(Invalid, match="Is this the secret of that desk"):
        backup.restore(made, new, "x" * 40)
    assert backup.restore(made, new, "x" * 40, unverified=True).cases == 3


def test_a_backup_that_was_changed_is_refused(made, new):
    with sqlite3.connect(made) as connection:
        connection.execute("UPDATE audit_log SET actor = 'z'")
    with pytest.raises(Invalid, match="entry 1 was changed"):
        backup.restore(made, new, SECRET)


def test_a_damaged_backup_is_refused(made, new):
    content = bytearray(made.read_bytes())
    content[4096 * 3 : 4096 * 12] = os.urandom(4096 * 9)
    made.write_bytes(content)
    with pytest.raises(Invalid, match=r"damaged|not a backup"):
        backup.restore(made, new, SECRET)


def test_rows_without_their_case_are_damage(made, new):
    with sqlite3.connect(made) as connection:
        connection.execute("DELETE FROM case_ WHERE number = 2")
    with pytest.raises(Invalid, match="damaged"):
        backup.restore(made, new, SECRET)


def test_other_files_are_no_backups(tmp_path, new):
    (tmp_path / "text").write_text("not a database at all, but long enough to look like one" * 99)
    sqlite3.connect(tmp_path / "other").execute("CREATE TABLE a (b)").connection.close()
    for name in ("text", "other", "missing"):
        with pytest.raises(Invalid, match="not a backup"):
            backup.restore(tmp_path / name, new, SECRET)


def test_a_backup_of_a_newer_version_is_refused(made, new):
    with sqlite3.connect(made) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(SchemaError, match="install a newer deferlearn"):
        backup.restore(made, new, SECRET)


def test_there_must_be_a_desk_to_back_up(new, tmp_path):
    with pytest.raises(Conflict, match="desk init"):
        backup.back_up(new, tmp_path / "desk.backup")


def test_a_folder_is_not_replaced_by_a_backup(made, new, tmp_path):
    backup.restore(made, new, SECRET)
    (tmp_path / "folder").mkdir()
    with pytest.raises(Invalid, match="is not a file"):
        backup.back_up(new, tmp_path / "folder")


@pytest.mark.parametrize("step", ["copy_rows", "_counted", "_close_sessions"])
def test_an_interrupted_restore_leaves_nothing_and_can_be_made_again(
    filled, empty, tmp_path, monkeypatch, step
):
    path = tmp_path / "desk.backup"
    made = backup.back_up(filled, path)

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(backup, "examine", lambda _: made)  # it counts, too
    with monkeypatch.context() as patch:
        patch.setattr(backup, step, interrupted)
        with pytest.raises(KeyboardInterrupt):
            backup.restore(path, empty, SECRET)
    assert revision_of(empty) is None
    assert backup.restore(path, empty, SECRET) == made


def test_names_of_files_with_signs_of_addresses(filled, tmp_path):
    folder = tmp_path / "50% #1?"
    folder.mkdir()
    backup.back_up(filled, folder / "a#?")
    assert backup.examine(folder / "a#?").cases == 3
