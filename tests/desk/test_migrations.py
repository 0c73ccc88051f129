"""Moving to a newer schema: nothing is lost, nothing is half done, and old schemas are refused."""

import hashlib
import shutil

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import insert, select, text

from deferlearn.desk import audit, keys, migrations
from deferlearn.desk.api.app import make_app
from deferlearn.desk.database import Database
from deferlearn.desk.migrations import SchemaError, migrate, revision_of
from deferlearn.desk.schema import api_key, case, decision, metadata, reading
from deferlearn.desk.settings import Settings
from desk.stub_desk import SECRET, stub_desk

NEWEST = migrations.newest()
# Columns of tables with cases that the first schema does not have.
LATER = ("remark",)
NEWER = """
import sqlalchemy as sa
from alembic import op

revision = "9999"
down_revision = "{before}"


def upgrade():
    op.add_column("case_", sa.Column("hospital", sa.Text(), nullable=True))
    op.create_index("ix_case_hospital", "case_", ["hospital"])
    op.execute("UPDATE case_ SET hospital = 'first'")
    {last}
"""


@pytest.fixture
def newer(tmp_path, monkeypatch):
    """Writes a migration that comes after all others."""
    folder = tmp_path / "migrations"
    shutil.copytree(migrations.VERSIONS, folder, ignore=shutil.ignore_patterns("__pycache__"))
    before = migrations.newest()
    monkeypatch.setattr(migrations, "VERSIONS", folder)

    def write(last=""):
        (folder / "versions" / "v9999.py").write_text(NEWER.format(before=before, last=last))

    return write


def fill(database, total):
    """Many cases, half of them deferred, by as few statements as possible."""

    def job(connection):
        for first in range(0, total, 5000):
            numbers = range(first + 1, min(first + 5000, total) + 1)
            connection.execute(
                insert(case),
                [
                    {
                        "id": f"case {n}",
                        "content": {"place": n, "text": "x" * 50},
                        "digest": "0" * 64,
                        "received_at": n,
                        "source": "test",
                        "state": "waiting" if n % 2 else "answered",
                        "required": n % 2,
                        "version": 1,
                    }
                    for n in numbers
                ],
            )
            shared = {"model_id": 1, "at": 1, "machine_answer": "ill", "deferred": False}
            more = {"reason": "", "unusual": "", "audited": False, "audit_probability": 0.0}
            empty = {"gains": {}, "prices": {}}
            connection.execute(
                insert(decision),
                [{"case_number": n, **shared, **more, **empty} for n in numbers],
            )
            connection.execute(
                insert(reading),
                [
                    {
                        "case_number": n,
                        "kind": "reading",
                        "seat": 0,
                        "state": "waiting",
                        "priority": n,
                        "created_at": n,
                    }
                    for n in numbers
                    if n % 2
                ],
            )

    database.write(job)


def fingerprint(database):
    """A digest of all rows, by the columns of the first schema."""
    digest = hashlib.sha256()
    with database.reading() as connection:
        for table in (case, decision, reading):
            names = [column.name for column in table.c if column.name not in LATER]
            order = table.primary_key.columns
            for row in connection.execute(
                select(*(table.c[name] for name in names)).order_by(*order)
            ):
                digest.update(repr(tuple(row)).encode())
    return digest.hexdigest()


def move(database, newer, total):
    stub_desk(database)
    fill(database, total)
    before = fingerprint(database)
    newer()
    with pytest.raises(SchemaError, match="desk migrate"):
        make_app(database, Settings(secret="s" * 40))
    try:
        assert migrate(database) == (NEWEST, "9999")
        assert fingerprint(database) == before
        with database.reading() as connection:
            moved = connection.execute(text("SELECT count(*) FROM case_ WHERE hospital = 'first'"))
            assert moved.scalar_one() == total
    finally:
        undo(database)  # tests share one database of PostgreSQL


def undo(database):
    def job(connection):
        connection.execute(text("DROP INDEX ix_case_hospital"))
        connection.execute(text("ALTER TABLE case_ DROP COLUMN hospital"))
        connection.execute(text(f"UPDATE alembic_version SET version_num = '{NEWEST}'"))

    database.write(job)


def test_a_database_of_the_first_schema_moves_without_loss(database, newer):
    move(database, newer, 500)


@pytest.mark.slow
def test_a_large_database_of_the_first_schema_moves_without_loss(database, newer):
    move(database, newer, 100_000)


def move_from_the_first(url, total):
    """Fill a new database of the first schema, and move it to the newest one."""
    database = Database(url, options=audit.key_options(SECRET))
    migrate(database, "0001")
    stub_desk(database)
    fill(database, total)
    before = fingerprint(database)
    with pytest.raises(SchemaError, match="desk migrate"):
        make_app(database, Settings(secret=SECRET))
    assert migrate(database) == ("0001", NEWEST)
    assert fingerprint(database) == before
    with database.reading() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": False})
        assert compare_metadata(context, metadata) == []
    make_app(database, Settings(secret=SECRET), keep=False)
    database.close()


def test_the_first_schema_moves_to_the_newest_with_its_cases(tmp_path):
    move_from_the_first(f"sqlite:///{tmp_path / 'old.db'}", 100)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_the_first_schema_moves_to_the_newest_with_many_cases(kind, tmp_path, request):
    url = f"sqlite:///{tmp_path / 'old.db'}"
    if kind == "postgresql":
        server = request.getfixturevalue("postgres")
        server.add_database("old")
        url = server.url("old")
    move_from_the_first(url, 100_000)


def test_later_keys_of_one_name_get_another(tmp_path):
    database = Database(f"sqlite:///{tmp_path / 'old.db'}", options=audit.key_options(SECRET))
    migrate(database, "0004")
    names = ["ris", "ris (2)", "ris", "ris", "old", "old"]

    def fill_keys(connection):
        for number, name in enumerate(names):
            revoked = 5 if (name, number) == ("old", 4) else None
            values = {"id": number + 1, "name": name, "prefix": str(number), "key_hash": "x"}
            values |= {"scopes": [], "created_at": 1, "revoked_at": revoked}
            connection.execute(insert(api_key).values(values))

    database.write(fill_keys)
    assert migrate(database) == ("0004", NEWEST)
    with database.reading() as connection:
        found = [one.name for one in keys.all_of(connection)]
    database.close()
    assert found == ["ris", "ris (2)", "ris (3)", "ris (4)", "old", "old"]


def test_a_migration_that_fails_leaves_nothing(database, newer):
    stub_desk(database)
    newer('op.execute("INSERT INTO nowhere VALUES (1)")')
    with pytest.raises(Exception, match="nowhere"):
        migrate(database)
    assert revision_of(database) == NEWEST
    with database.reading() as connection, pytest.raises(Exception, match="hospital"):
        connection.execute(text("SELECT hospital FROM case_"))


def test_a_schema_from_the_future_is_refused(sqlite_desk):
    database = sqlite_desk.database
    database.write(lambda c: c.execute(text("UPDATE alembic_version SET version_num = '7777'")))
    with pytest.raises(SchemaError, match="newer deferlearn"):
        make_app(database, Settings(secret="s" * 40))
