"""Both databases: the schema, the clock, and transactions that share a commit."""

import threading
import time

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import func, insert, select

from deferlearn.desk.database import Database, now
from deferlearn.desk.migrations import SchemaError, check_schema, migrate, newest, revision_of
from deferlearn.desk.schema import metadata, setting


def settings_in(database):
    with database.reading() as connection:
        return connection.execute(select(func.count()).select_from(setting)).scalar_one()


def put(key):
    return lambda connection: connection.execute(
        insert(setting).values(key=key, value=[key], version=1)
    )


def test_the_migrations_make_the_tables_of_the_schema(database):
    with database.reading() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": False})
        assert compare_metadata(context, metadata) == []
    assert revision_of(database) == newest()
    assert migrate(database) == (newest(), newest())


def test_an_empty_database_is_refused_with_what_to_run(tmp_path):
    database = Database(f"sqlite:///{tmp_path / 'new.db'}")
    with pytest.raises(SchemaError, match="deferlearn desk init"):
        check_schema(database)
    migrate(database)
    check_schema(database)
    database.close()


def test_the_clock_counts_microseconds(database):
    with database.reading() as connection:
        assert abs(now(connection) / 1e6 - time.time()) < 1.0


def test_an_error_undoes_one_of_several_transactions_that_share_a_commit(database):
    ready = threading.Barrier(12)
    failed = []

    def work(place):
        def job(connection):
            put(f"key {place}")(connection)
            if place % 3 == 0:
                raise ZeroDivisionError
            return place

        ready.wait()
        try:
            assert database.write(job) == place
        except ZeroDivisionError:
            failed.append(place)

    threads = [threading.Thread(target=work, args=(place,)) for place in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(failed) == [0, 3, 6, 9]
    assert settings_in(database) == 8
