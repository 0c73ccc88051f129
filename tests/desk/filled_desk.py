"""Rows in all tables of a desk, put there directly, for tests of what happens to rows."""

from sqlalchemy import func, insert, select

from deferlearn.desk import audit
from deferlearn.desk.database import SECOND, now
from deferlearn.desk.schema import (
    answer,
    case,
    decision,
    delivery,
    event,
    expert,
    metadata,
    model,
    reading,
    truth,
    webhook,
)

DAY = 24 * 3600 * SECOND
CONTENT = {"size": 1.5, "site": "Mrs Smith, Oslo"}


def fill(database, n_cases, *, days_old=0, waiting=0):
    """Add cases that were answered so many days ago, of which the last ones are still waiting."""

    def add(connection):
        moment = now(connection) - days_old * DAY
        if connection.execute(select(func.count()).select_from(model)).scalar_one() == 0:
            add_others(connection, moment)
        begin = connection.execute(select(func.count()).select_from(case)).scalar_one()
        for number in range(n_cases):
            done = number < n_cases - waiting
            add_case(connection, f"case {begin + number} of {days_old}", moment, done)
        audit.append(connection, actor="desk", action="test", subject="cases")

    database.write(add)


def add_others(connection, moment):
    connection.execute(
        insert(model).values(
            digest="d" * 64,
            name="first",
            created_at=moment,
            created_by="desk",
            state="active",
            blob=bytes(range(256)),
            card={"classes": ["ill", "well"], "columns": {"size": "number", "site": "category"}},
        )
    )
    values = {"name": "Ann", "is_arbiter": False, "is_active": True, "price": 0.1, "version": 1}
    connection.execute(insert(expert).values(values))
    connection.execute(
        insert(webhook).values(
            url="https://x", secret="s", events=["case.answered"], is_active=True, version=1
        )
    )


def add_case(connection, name, moment, done):
    number = connection.execute(
        insert(case)
        .values(
            id=name,
            content=CONTENT,
            digest="c" * 64,
            received_at=moment,
            source="key:ris",
            state="answered" if done else "waiting",
            required=1,
            answer="ill" if done else None,
            answered_by="expert" if done else None,
            answered_at=moment if done else None,
            version=1,
        )
        .returning(case.c.number)
    ).scalar_one()
    connection.execute(
        insert(decision).values(
            case_number=number,
            model_id=1,
            at=moment,
            machine_answer="well",
            deferred=True,
            expert_id=1,
            reason="r",
            unusual="",
            prices={"1": 0.1},
            audited=False,
            audit_probability=0.02,
            **({"gains": {}} if "gains" in decision.c else {}),
        )
    )
    values = {"case_number": number, "kind": "reading", "seat": 1, "priority": 1}
    state = "answered" if done else "waiting"
    new = insert(reading).values(**values, created_at=moment, state=state)
    place = connection.execute(new.returning(reading.c.id)).scalar_one()
    if not done:
        return
    connection.execute(
        insert(answer).values(
            reading_id=place,
            case_number=number,
            expert_id=1,
            value="ill",
            note="=1+1",
            at=moment,
            seconds=3.5,
        )
    )
    connection.execute(
        insert(truth).values(case_number=number, value="ill", at=moment, source="key:ris")
    )
    new = insert(event).values(kind="case.answered", case_number=number, body={}, at=moment)
    happened = connection.execute(new.returning(event.c.id)).scalar_one()
    connection.execute(
        insert(delivery).values(
            webhook_id=1, event_id=happened, state="done", attempts=1, next_at=moment
        )
    )


def rows_of(database):
    """All rows of all tables."""
    with database.snapshot() as connection:
        return {
            table.name: sorted(map(str, connection.execute(select(table)).all()))
            for table in metadata.sorted_tables
        }
