"""A candidate decides along: what it would have done is stored beside the decisions, without effect."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from sqlalchemy import Connection, delete, func, insert, select
from sqlalchemy.exc import IntegrityError

from deferlearn.desk import audit
from deferlearn.desk.database import now
from deferlearn.desk.desk import Desk
from deferlearn.desk.errors import Conflict, DeskError, NotFound
from deferlearn.desk.fields import judge_fields
from deferlearn.desk.judging import Judge, Judgement
from deferlearn.desk.learning.comparing import Comparison, Policy, compare, known_cases
from deferlearn.desk.monitoring.losses import grades_of, losses, most_lost
from deferlearn.desk.monitoring.records import read_records
from deferlearn.desk.rules import hold_configuration, read_setting, store_setting
from deferlearn.desk.schema import case, model, setting, shadow

SHADOW = "shadow model"
# So many cases are judged at a time.
CHUNK = 200
# Only so many of the newest cases are compared.
MOST_CASES = 20_000


def start_shadow(connection: Connection, model_id: int, *, actor: str) -> None:
    """Let a candidate decide along from the next case on; another one stops.

    Parameters
    ----------
    connection : Connection
        A connection that writes.
    model_id : int
        The candidate.
    actor : str
        Who starts it.
    """
    state = connection.execute(select(model.c.state).where(model.c.id == model_id)).scalar()
    if state is None:
        raise NotFound(f"There is no model {model_id}.")
    if state == "active":
        raise Conflict(f"Model {model_id} is active: it decides already.")
    hold_configuration(connection)
    last = connection.execute(select(func.max(case.c.number))).scalar() or 0
    store_setting(connection, SHADOW, {"model": model_id, "after": int(last)})
    audit.append(connection, actor=actor, action="shadow.started", subject=f"model:{model_id}")


def stop_shadow(connection: Connection, *, actor: str) -> None:
    """Stop the candidate that decides along; what it decided stays.

    Parameters
    ----------
    connection : Connection
        A connection that writes.
    actor : str
        Who stops it.
    """
    found = shadow_model(connection)
    if found is None:
        return
    connection.execute(delete(setting).where(setting.c.key == SHADOW))
    audit.append(connection, actor=actor, action="shadow.stopped", subject=f"model:{found[0]}")


def shadow_model(connection: Connection) -> tuple[int, int] | None:
    """The candidate that decides along, and the number of the last case before it began.

    Parameters
    ----------
    connection : Connection
        A connection to the database.

    Returns
    -------
    found : (int, int) or None
    """
    value, _ = read_setting(connection, SHADOW)
    return None if value is None else (int(value["model"]), int(value["after"]))


def follow(desk: Desk) -> int:
    """Let the candidate decide about the cases that have arrived since the last call.

    A thread of the server calls it now and then; cases do not wait for it.

    Parameters
    ----------
    desk : Desk
        The desk.

    Returns
    -------
    count : int
        The number of cases.
    """
    total = 0
    while True:
        with desk.database.reading() as connection:
            found = shadow_model(connection)
            if found is None:
                return total
            model_id, after = found
            own = shadow.c.model_id == model_id
            last = connection.execute(select(func.max(shadow.c.case_number)).where(own)).scalar()
            query = (
                select(case.c.number, case.c.content)
                .where(case.c.number > max(after, last or 0))
                .order_by(case.c.number)
                .limit(CHUNK)
            )
            cases = connection.execute(query).all()
        if not cases:
            return total
        judge = desk.judge(model_id)
        rows = [_row(judge, row) for row in cases]
        try:
            total += desk.database.write(partial(_store, model_id, rows))
        except IntegrityError:
            return total  # somebody else was quicker


def _row(judge: Judge, row: Any) -> dict[str, Any]:
    values: dict[str, Any] = {"case_number": row.number, "model_id": judge.model_id}
    try:
        judged = judge_fields(judge, row.content)
    except DeskError as error:
        return {
            **values,
            "machine_answer": None,
            "deferred": True,
            "expected_machine": None,
            "expected_expert": None,
            "unusual": str(error),
        }
    best = max(judged.gains, key=lambda name: judged.gains[name], default="")
    return {
        **values,
        "machine_answer": judged.answer,
        "deferred": would_defer(judged, judge.card),
        "expected_machine": judged.expected_machine,
        "expected_expert": judged.expected.get(best),
        "unusual": judged.unusual,
    }


def would_defer(judged: Judgement, card: dict[str, Any]) -> bool:
    """Whether a model defers a case at the prices of its own fit, and if experts have time.

    Parameters
    ----------
    judged : Judgement
        What it says.
    card : dict
        Its card.

    Returns
    -------
    deferred : bool
    """
    if judged.unusual:
        return True
    if judged.own_rule:
        return judged.deferred
    prices = {row["expert"]: float(row["price"]) for row in card.get("experts") or []}
    return any(gain > prices.get(name, 0.0) for name, gain in judged.gains.items())


def _store(model_id: int, rows: list[dict[str, Any]], connection: Connection) -> int:
    numbers = [row["case_number"] for row in rows]
    query = select(shadow.c.case_number).where(
        shadow.c.model_id == model_id, shadow.c.case_number.in_(numbers)
    )
    there = set(connection.execute(query).scalars())
    # A case may have been purged while the candidate judged it.
    kept = set(
        connection.execute(select(case.c.number).where(case.c.number.in_(numbers))).scalars()
    )
    at = now(connection)
    new = [
        {**row, "at": at}
        for row in rows
        if row["case_number"] in kept and row["case_number"] not in there
    ]
    if new:
        connection.execute(insert(shadow), new)
    return len(new)


def shadow_comparison(desk: Desk, model_id: int) -> Comparison | None:
    """Compare what a candidate would have decided with what was decided, on the newest cases.

    Parameters
    ----------
    desk : Desk
        The desk.
    model_id : int
        The candidate.

    Returns
    -------
    Comparison or None
        None if the truth of no such case is known.
    """
    with desk.database.reading() as connection:
        query = (
            select(shadow)
            .where(shadow.c.model_id == model_id)
            .order_by(shadow.c.case_number.desc())
            .limit(MOST_CASES)
        )
        rows = {row.case_number: row for row in connection.execute(query)}
        records = None
        if rows:
            records = read_records(connection, after=min(rows) - 1, limit=MOST_CASES)
    if records is None:
        return None
    along = np.array([number in rows for number in records.number.tolist()], dtype=bool)
    # What experts were expected to lose is in the unit of the active model.
    grades = grades_of(desk.active_judge().card)
    at_hand = known_cases(records, along, grades)
    used = at_hand.rows
    if len(used) < 2:
        return None
    own = [rows[number] for number in records.number[used].tolist()]
    said = np.array([row.machine_answer for row in own], dtype=object)
    # A case that the candidate cannot read is deferred, so its answer does not count.
    errors = np.nan_to_num(losses(said, records.truth[used], grades), nan=most_lost(grades))
    candidate = Policy(errors, np.array([row.deferred for row in own], dtype=bool))
    active = Policy(
        losses(records.machine_answer[used], records.truth[used], grades), records.deferred[used]
    )
    return compare(candidate, active, at_hand)
