"""Months of a desk in a few milliseconds: rows that a small model decided, stored all at once."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from sqlalchemy import insert, text

import deferlearn
from deferlearn.desk.database import SECOND, now
from deferlearn.desk.experts import add_expert
from deferlearn.desk.models import activate_model, load_model, store_model
from deferlearn.desk.schema import answer, case, decision, reading, truth
from deferlearn.tables import fit_table, select_cases

LABELS = np.array(["ill", "well"])
WRONG = 0.1  # the expert's error


def draw(n: int, luck: np.random.Generator, angle: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """Cases of two numbers, and their truth; the angle turns the boundary between both classes."""
    X = luck.normal(size=(n, 2))
    score = np.cos(angle) * X[:, 0] + np.sin(angle) * X[:, 1] + 0.3 * luck.normal(size=n)
    return X, LABELS[(score > 0).astype(int)]


def expert_answers(y: np.ndarray, luck: np.random.Generator) -> np.ndarray:
    other = LABELS[(y == LABELS[0]).astype(int)]
    return np.where(luck.random(len(y)) < WRONG, other, y)


def make_model(n: int = 200, seed: int = 0) -> bytes:
    """A model of the first month, as a file."""
    luck = np.random.default_rng(seed)
    X, y = draw(n, luck)
    table = {"a": X[:, 0], "b": X[:, 1], "truth": y, "expert": expert_answers(y, luck)}
    model = fit_table(select_cases(table, "truth", humans=["expert"]), alpha=0.05, budget=0.2)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.skops"
        deferlearn.save(model, path)
        return path.read_bytes()


def store(database: Any, content: bytes) -> int:
    """Store a model, activate it, and add an expert."""
    card = load_model(content).card_

    def job(connection):
        number, _ = store_model(connection, content, card, name="first", actor="test")
        activate_model(connection, number, actor="test")
        add_expert(connection, "Ann", actor="test")
        return number

    return database.write(job)


def add_rows(
    database: Any,
    content: bytes,
    n: int,
    luck: np.random.Generator,
    *,
    angle: float = 0.0,
    audits: float = 0.2,
    truths: float = 1.0,
    first: int = 1,
    model_id: int = 1,
) -> None:
    """Cases that a model decided, with the answers of Ann and the truth of a share of them."""
    X, y = draw(n, luck, angle)
    decided = load_model(content).decide({"a": X[:, 0], "b": X[:, 1]})
    said = expert_answers(y, luck)
    deferred = decided.deferred
    audited = ~deferred & (luck.random(n) < audits)
    read, known = deferred | audited, luck.random(n) < truths

    def job(connection):
        at = now(connection)
        numbers = list(range(first, first + n))
        final = np.where(deferred, said, decided.machine_answer)
        cases = [
            {
                "number": number,
                "id": f"case {number}",
                "content": {"a": float(X[i, 0]), "b": float(X[i, 1])},
                "digest": "",
                "received_at": at + i * SECOND,
                "source": "test",
                "state": "answered",
                "required": int(deferred[i]),
                "answer": str(final[i]),
                "answered_by": "expert" if deferred[i] else "machine",
                "answered_at": at + i * SECOND,
                "version": 1,
            }
            for i, number in enumerate(numbers)
        ]
        decisions = [
            {
                "case_number": number,
                "model_id": model_id,
                "at": at,
                "machine_answer": str(decided.machine_answer[i]),
                "deferred": bool(deferred[i]),
                "gains": {},
                "reason": "",
                "unusual": str(decided.unusual[i]),
                "prices": {},
                "audited": bool(audited[i]),
                "audit_probability": 0.0 if deferred[i] else audits,
            }
            for i, number in enumerate(numbers)
        ]
        readings = [
            {
                "id": number,
                "case_number": number,
                "kind": "reading" if deferred[i] else "audit",
                "seat": 0,
                "state": "answered",
                "priority": 0,
                "created_at": at,
            }
            for i, number in enumerate(numbers)
            if read[i]
        ]
        answers = [
            {
                "reading_id": number,
                "case_number": number,
                "expert_id": 1,
                "value": str(said[i]),
                "note": "",
                "at": at,
                "seconds": 5.0,
            }
            for i, number in enumerate(numbers)
            if read[i]
        ]
        facts = [
            {"case_number": number, "value": str(y[i]), "at": at, "source": "test"}
            for i, number in enumerate(numbers)
            if known[i]
        ]
        for table, rows in (
            (case, cases),
            (decision, decisions),
            (reading, readings),
            (answer, answers),
            (truth, facts),
        ):
            connection.execute(insert(table), rows)
        if connection.dialect.name == "postgresql":  # which does not count numbers that it is given
            for table, key in (("case_", "number"), ("reading", "id")):
                last = f"SELECT setval(pg_get_serial_sequence('{table}', '{key}'), max({key})) FROM {table}"
                connection.execute(text(last))

    database.write(job)
