"""What the desk knows, as tables: cases, decisions, answers and the audit log."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Row, Select, func, select

from deferlearn.desk import audit
from deferlearn.desk.database import Database
from deferlearn.desk.errors import Invalid
from deferlearn.desk.schema import answer, audit_log, case, decision, expert, model, reading, truth
from deferlearn.desk.times import iso
from deferlearn.tables.writing import StagedFiles, table_writer

# So many rows are in memory at a time.
_ROWS = 1000
KINDS = {
    "cases": "the fields of each case and its truth, as `deferlearn fit` reads them",
    "decisions": "what was decided about each case and what became of it, without its fields",
    "answers": "one row per answer, with case, reader and answer, as `deferlearn fit` reads them",
    "audit": "the audit log",
}


def export(database: Database, kind: str, path: Path, *, actor: str, delimiter: str = ",") -> int:
    """Write a table to a file, completely or not at all, and note in the audit log that it was done.

    Parameters
    ----------
    database : Database
        Of the desk, which may be in use meanwhile.
    kind : str
        One of `KINDS`.
    path : Path
        The file: parquet for .parquet and .pq, Excel for .xlsx, CSV otherwise; - is the standard output.
    actor : str
        Who exports it.
    delimiter : str, default=","
        The character between cells of a CSV file.

    Returns
    -------
    rows : int
    """
    import pyarrow as pa

    if kind not in KINDS:
        raise Invalid(f"{kind[:50]!r} cannot be exported; use {', '.join(KINDS)}.")
    total = 0
    with StagedFiles() as files, database.snapshot() as connection:
        names, rows = _TABLES[kind](connection)
        writer = table_writer(path, files.open(path), delimiter)
        for part in _parts(rows):
            columns = {
                name: pa.array([row.get(name) for row in part], pa.string()) for name in names
            }
            writer.write(pa.table(columns))
            total += len(part)
        writer.close()
        # The entry is there before the file is.
        database.write(
            lambda writing: audit.append(
                writing,
                actor=actor,
                action="desk.exported",
                subject=kind,
                detail={"rows": total},
            )
        )
    return total


def _parts(rows: Iterator[dict[str, str | None]]) -> Iterator[list[dict[str, str | None]]]:
    """Rows in parts; at least one part, so that an empty table has its header."""
    part: list[dict[str, str | None]] = []
    begun = False
    for row in rows:
        part.append(row)
        if len(part) == _ROWS:
            yield part
            part, begun = [], True
    if part or not begun:
        yield part


def _paged(connection: Connection, query: Select[Any], key: Any) -> Iterator[Row[Any]]:
    """All rows of a query in the order of a key, few at a time."""
    last = -1
    while rows := connection.execute(query.where(key > last).order_by(key).limit(_ROWS)).all():
        yield from rows
        last = rows[-1][0]


def _text(value: Any) -> str | None:
    """A value as a cell; text as it is."""
    return value if value is None or isinstance(value, str) else json.dumps(value)


def _time(value: int | None) -> str | None:
    return None if value is None else iso(value)


def _cases(connection: Connection) -> tuple[list[str], Iterator[dict[str, str | None]]]:
    plain = select(case.c.number, case.c.content)
    fields: dict[str, None] = {}
    for row in _paged(connection, plain, case.c.number):
        fields |= dict.fromkeys(row.content)
    # Our own columns make way for fields of the same name.
    name = next(n for n in ("case", "case_id", "desk_case") if n not in fields)
    true = next(n for n in ("truth", "case_truth", "desk_truth") if n not in fields)
    now_true = (truth.c.case_number == case.c.number) & truth.c.replaced_at.is_(None)
    query = select(case.c.number, case.c.id, case.c.content, truth.c.value).outerjoin(
        truth, now_true
    )

    def rows() -> Iterator[dict[str, str | None]]:
        for row in _paged(connection, query, case.c.number):
            cells = {field: _text(value) for field, value in row.content.items()}
            yield cells | {name: row.id, true: row.value}

    return [name, *fields, true], rows()


def _decisions(connection: Connection) -> tuple[list[str], Iterator[dict[str, str | None]]]:
    plain = ["machine_answer", "deferred", "expected_machine", "expected_expert", "score"]
    plain += ["reason", "unusual", "audited", "audit_probability"]
    outcome = ["state", "answer", "answered_by", "answered_at", "flag"]
    query = (
        select(
            case.c.number,
            case.c.id.label("case"),
            case.c.received_at,
            func.substr(model.c.digest, 1, 12).label("model"),
            expert.c.name.label("expert"),
            *(decision.c[name] for name in plain),
            *(case.c[name] for name in outcome),
        )
        .join(decision, decision.c.case_number == case.c.number)
        .join(model, model.c.id == decision.c.model_id)
        .outerjoin(expert, expert.c.id == decision.c.expert_id)
    )
    names = ["case", "received_at", "model", "expert", *plain, *outcome]

    def rows() -> Iterator[dict[str, str | None]]:
        for row in _paged(connection, query, case.c.number):
            cells = {name: _text(getattr(row, name)) for name in names}
            times = {name: _time(getattr(row, name)) for name in ("received_at", "answered_at")}
            yield cells | times

    return names, rows()


def _answers(connection: Connection) -> tuple[list[str], Iterator[dict[str, str | None]]]:
    query = (
        select(
            answer.c.id,
            case.c.id.label("case"),
            expert.c.name.label("reader"),
            answer.c.value.label("answer"),
            reading.c.kind,
            answer.c.at,
            answer.c.seconds,
            answer.c.note,
        )
        .join(case, case.c.number == answer.c.case_number)
        .join(expert, expert.c.id == answer.c.expert_id)
        .join(reading, reading.c.id == answer.c.reading_id)
        .where(answer.c.withdrawn_at.is_(None))
    )
    names = ["case", "reader", "answer", "kind", "at", "seconds", "note"]

    def rows() -> Iterator[dict[str, str | None]]:
        for row in _paged(connection, query, answer.c.id):
            cells = {name: _text(getattr(row, name)) for name in names}
            yield cells | {"at": _time(row.at)}

    return names, rows()


def _audit(connection: Connection) -> tuple[list[str], Iterator[dict[str, str | None]]]:
    names = [column.name for column in audit_log.c]

    def rows() -> Iterator[dict[str, str | None]]:
        for row in _paged(connection, select(audit_log), audit_log.c.sequence):
            cells = {name: _text(getattr(row, name)) for name in names}
            yield cells | {"at": _time(row.at)}

    return names, rows()


_TABLES = {"cases": _cases, "decisions": _decisions, "answers": _answers, "audit": _audit}
