"""Copy all rows from one database of the desk to another, of the same kind or not."""

from __future__ import annotations

from sqlalchemy import Connection, MetaData, Table, delete, insert, select, text

# So many rows are in memory at a time; a model may have megabytes.
_ROWS = 200
# The table of the migrations, which both databases have already.
_VERSION = "alembic_version"


def copy_rows(source: Connection, target: Connection) -> dict[str, int]:
    """Copy all rows to a database that has the same tables and that nobody has used.

    Parameters
    ----------
    source : Connection
        Sees one state of its database.
    target : Connection
        In a transaction that writes.

    Returns
    -------
    numbers : dict
        The rows of each table.
    """
    here, there = MetaData(), MetaData()
    here.reflect(source)
    there.reflect(target)
    tables = [table for table in here.sorted_tables if table.name != _VERSION]
    for table in reversed(tables):
        target.execute(delete(there.tables[table.name]))  # rows that a migration puts there
    numbers = {}
    for table in tables:
        rows = source.execution_options(yield_per=_ROWS).execute(select(table))
        numbers[table.name] = 0
        for part in rows.mappings().partitions():
            target.execute(insert(there.tables[table.name]), [dict(row) for row in part])
            numbers[table.name] += len(part)
    # A number of a case that was removed must not be given to another one: the audit log has it.
    for table in tables:
        _count_on(target, table, _last_number(source, table))
    return numbers


def _key(table: Table) -> str | None:
    """The column in which the database itself counts up."""
    columns = list(table.primary_key.columns)
    whole = len(columns) == 1 and columns[0].type.python_type is int
    return columns[0].name if whole else None


def _last_number(connection: Connection, table: Table) -> int:
    """The last number that a database gave to a row of a table; 0 if it gave none."""
    key = _key(table)
    if key is None:
        return 0
    if connection.dialect.name == "sqlite":
        exists = text("SELECT 1 FROM sqlite_master WHERE name = 'sqlite_sequence'")
        if connection.execute(exists).first() is None:
            return 0
        query = text("SELECT seq FROM sqlite_sequence WHERE name = :name")
        return connection.execute(query, {"name": table.name}).scalar() or 0
    sequence = _sequence(connection, table.name, key)
    if sequence is None:
        return 0
    last, used = connection.execute(text(f"SELECT last_value, is_called FROM {sequence}")).one()
    return last if used else 0


def _count_on(connection: Connection, table: Table, last: int) -> None:
    """Let the next number of a table be larger than all that were given."""
    key = _key(table)
    if key is None:
        return
    if connection.dialect.name == "sqlite":
        query = text("UPDATE sqlite_sequence SET seq = max(seq, :last) WHERE name = :name")
        values = {"last": last, "name": table.name}
        if last and not connection.execute(query, values).rowcount:
            new = text("INSERT INTO sqlite_sequence (name, seq) VALUES (:name, :last)")
            connection.execute(new, values)
        return
    sequence = _sequence(connection, table.name, key)
    if sequence is None:
        return
    largest = connection.execute(text(f'SELECT max("{key}") FROM "{table.name}"')).scalar() or 0
    last = max(last, largest)
    if last:
        connection.execute(text("SELECT setval(:name, :last)"), {"name": sequence, "last": last})


def _sequence(connection: Connection, table: str, key: str) -> str | None:
    """What counts up a column of PostgreSQL."""
    query = text("SELECT pg_get_serial_sequence(:table, :key)")
    return connection.execute(query, {"table": f'"{table}"', "key": key}).scalar()
