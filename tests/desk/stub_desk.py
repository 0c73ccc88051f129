"""A desk with a model that needs no training: the fields of a case say what the model says about it."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from sqlalchemy import func, insert, select

from deferlearn.desk.cases import arrive
from deferlearn.desk.database import Database, now
from deferlearn.desk.desk import Desk
from deferlearn.desk.experts import add_expert
from deferlearn.desk.judging import SOMEBODY, Judge, Judgement
from deferlearn.desk.rules import change_rules, touch
from deferlearn.desk.schema import model

SECRET = "the secret of the desk in all tests"
CLASSES = ["ill", "well"]


class StubJudge(Judge):
    """Fields: `answer`, `unusual`, and `gain` of anyone or the gains of experts by their names."""

    def __init__(self, model_id: int, experts: list[str]) -> None:
        self.model_id, self.experts = model_id, experts
        self.card = {"classes": CLASSES, "columns": {}}

    def judge(self, fields: Any) -> Judgement:
        names = self.experts or [SOMEBODY]
        gains = {name: float(fields.get(name or "gain", 0.0)) for name in names}
        own_rule = len(self.experts) < 2
        return Judgement(
            model_id=self.model_id,
            answer=fields.get("answer", "ill"),
            probabilities={"ill": 0.75, "well": 0.25},
            score=max(gains.values()),
            deferred=own_rule and max(gains.values()) > 0,
            unusual=fields.get("unusual", ""),
            gains=gains,
            own_rule=own_rule,
            expected_machine=0.5,
            expected={name: 0.5 - gain for name, gain in gains.items()},
            _decision=np.array([0.5]),
            _clause="by the rule",
        )


def add_model(database: Database, name: str = "stub", *, active: bool = True) -> int:
    """A model that is only a row."""

    def job(connection):
        number = connection.execute(
            insert(model)
            .values(
                digest=hashlib.sha256(name.encode()).hexdigest(),
                name=name,
                created_at=now(connection),
                created_by="test",
                state="active" if active else "candidate",
                blob=b"",
                card={"classes": CLASSES, "columns": {}, "experts": []},
            )
            .returning(model.c.id)
        ).scalar_one()
        touch(connection)
        return number

    return database.write(job)


def stub_desk(
    database: Database, experts: dict[str, int | None] | None = None, *, told_apart=False, **rules
) -> Desk:
    """A desk with these experts and their daily limits; arbiters have a name that begins with Arb."""
    number = add_model(database)

    def job(connection):
        for name, limit in (experts or {}).items():
            arbiter = name.startswith("Arb")
            add_expert(connection, name, actor="test", daily_limit=limit, is_arbiter=arbiter)
        change_rules(connection, {"audit_share": 0.0, **rules}, actor="test")

    database.write(job)
    return open_stub(database, number, list(experts or {}) if told_apart else [])


def open_stub(database: Database, number: int = 1, names: list[str] | None = None) -> Desk:
    """The same desk in another process."""
    desk = Desk(database)
    desk._judges[number] = StubJudge(number, names or [])
    return desk


def send(desk: Desk, case_id: str, **fields: Any) -> int:
    """Send a case; its number."""
    return arrive(desk, case_id, fields or {"gain": 0.0}, actor="key:test").number


def rows(desk: Desk, table: Any, **where: Any) -> list[Any]:
    """Rows of a table by the order of their keys."""
    query = select(table).where(*(table.c[name] == value for name, value in where.items()))
    with desk.database.reading() as connection:
        return list(connection.execute(query.order_by(*table.primary_key.columns)).all())


def count(desk: Desk, table: Any) -> int:
    with desk.database.reading() as connection:
        return connection.execute(select(func.count()).select_from(table)).scalar_one()


def change(desk: Desk, statement: Any) -> None:
    """Change the database behind the desk's back."""
    desk.database.write(lambda connection: connection.execute(statement))
