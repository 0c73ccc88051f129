"""Experts: who there is, how many cases each takes per day, and who arbitrates."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, insert, select, update
from sqlalchemy.exc import IntegrityError

from deferlearn.desk import audit
from deferlearn.desk.database import now
from deferlearn.desk.errors import Conflict, Invalid, NotFound, Stale
from deferlearn.desk.handing import hand_on_unread
from deferlearn.desk.rules import Expert, Moment, hold_configuration, read_configuration, touch
from deferlearn.desk.rules import list_experts as list_experts
from deferlearn.desk.schema import expert

NAME = re.compile(r"[^\x00-\x1f\x7f\ud800-\udfff]{1,200}")
CHANGEABLE = ("name", "daily_limit", "cost", "is_arbiter", "is_active")
LARGEST_LIMIT = 1_000_000
# An answer is wrong at most once; an expert who costs more is never asked.
LARGEST_COST = 1


def find_expert(connection: Connection, number: int) -> Expert:
    """An expert by the id.

    Parameters
    ----------
    connection : Connection
        A connection to the database.
    number : int
        The id.

    Returns
    -------
    Expert
    """
    row = connection.execute(select(expert).where(expert.c.id == number)).first()
    if row is None:
        raise NotFound(f"There is no expert {number}.")
    return Expert(*row)


def add_expert(
    connection: Connection,
    name: str,
    *,
    actor: str,
    daily_limit: int | None = None,
    is_arbiter: bool = False,
    cost: float = 0.0,
) -> Expert:
    """Add an expert.

    Parameters
    ----------
    connection : Connection
        A connection that writes.
    name : str
        The name, as models know it.
    actor : str
        Who adds the expert.
    daily_limit : int or None, default=None
        The most readings per day; None: there is no limit.
    is_arbiter : bool, default=False
        Whether the expert decides where others disagree.
    cost : float, default=0.0
        Errors that a case must avoid to be worth the expert's time, also when there is plenty of it.

    Returns
    -------
    Expert
    """
    values = {
        "name": name,
        "daily_limit": daily_limit,
        "cost": cost,
        "is_arbiter": is_arbiter,
        "is_active": True,
    }
    _check(values)
    if connection.execute(select(expert.c.id).where(expert.c.name == name)).first() is not None:
        raise Conflict(f"There is already an expert {name!r}.")
    added = insert(expert).values(**values, price=0.0, version=1).returning(expert.c.id)
    number = connection.execute(added).scalar_one()
    touch(connection)
    audit.append(
        connection,
        actor=actor,
        action="expert.added",
        subject=f"expert:{number}",
        detail=values,
    )
    return find_expert(connection, number)


def change_expert(
    connection: Connection,
    number: int,
    changes: Mapping[str, Any],
    *,
    actor: str,
    version: int | None = None,
) -> Expert:
    """Change an expert; readings that then wait for nobody go to other experts.

    Parameters
    ----------
    connection : Connection
        A connection that writes.
    number : int
        The id.
    changes : mapping
        New values by name.
    actor : str
        Who changes them.
    version : int or None, default=None
        The version that was seen; if the expert has another one now, nothing is changed.

    Returns
    -------
    Expert
    """
    for name in changes:
        if name not in CHANGEABLE:
            raise Invalid(f"{name!r} cannot be changed; use one of {', '.join(CHANGEABLE)}.")
    _check(changes)
    hold_configuration(connection)
    before = find_expert(connection, number)
    if version is not None and version != before.version:
        raise Stale(f"The expert has version {before.version}, not {version}: read it again.")
    try:
        changed = connection.execute(
            update(expert)
            .where(expert.c.id == number, expert.c.version == before.version)
            .values(**changes, version=before.version + 1)
        )
    except IntegrityError as error:
        raise Conflict(f"There is already an expert {changes.get('name')!r}.") from error
    if not changed.rowcount:
        raise Stale("The expert was changed at the same time: read it again.")
    touch(connection)
    if not {"is_active", "is_arbiter", "daily_limit"}.isdisjoint(changes):
        # What waits for her would wait in vain.
        hand_on_unread(connection, Moment(now(connection), read_configuration(connection)))
    audit.append(
        connection,
        actor=actor,
        action="expert.changed",
        subject=f"expert:{number}",
        detail=dict(changes),
    )
    return find_expert(connection, number)


def _check(values: Mapping[str, Any]) -> None:
    name = values.get("name", "name")
    if not isinstance(name, str) or not NAME.fullmatch(name) or not name.strip():
        raise Invalid("The name of an expert has 1 to 200 characters, without control characters.")
    limit = values.get("daily_limit")
    if limit is not None and (
        not isinstance(limit, int) or isinstance(limit, bool) or not 0 <= limit <= LARGEST_LIMIT
    ):
        raise Invalid(
            f"daily_limit is {limit!r}; it must be a whole number from 0 to {LARGEST_LIMIT}, or null."
        )
    cost = values.get("cost", 0.0)
    if not isinstance(cost, int | float) or isinstance(cost, bool) or not 0 <= cost <= LARGEST_COST:
        raise Invalid(f"cost is {cost!r}; it must be a number of errors from 0 to {LARGEST_COST}.")
    for key in ("is_arbiter", "is_active"):
        if not isinstance(values.get(key, True), bool):
            raise Invalid(f"{key} is {values[key]!r}; it must be true or false.")
