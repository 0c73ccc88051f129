"""Models in the database: stored with their digest, activated by a supervisor, loaded by every server."""

from __future__ import annotations

import hashlib
import tempfile
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, insert, select, update

from deferlearn.desk import audit
from deferlearn.desk.database import now
from deferlearn.desk.errors import Invalid, NotFound
from deferlearn.desk.rules import (
    PRICE_OF_ANYONE,
    hold_configuration,
    read_configuration,
    store_setting,
    touch,
)
from deferlearn.desk.schema import expert, model
from deferlearn.tables import TableDecider, TableError, load_decider
from deferlearn.teams.budget import ROUNDING, share_of

# All that is known of a model, without the file itself.
SHOWN = [column for column in model.c if column.name != "blob"]


def load_model(content: bytes) -> TableDecider:
    """The part of a model file that decides.

    A file that `deferlearn.load` does not trust is refused, and so is a model with a cost matrix.

    Parameters
    ----------
    content : bytes
        What `deferlearn fit` wrote.

    Returns
    -------
    TableDecider
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.skops"
        path.write_bytes(content)
        try:
            decider = load_decider(path)
        except TableError as error:
            reason = str(error).replace(str(path), "the file")
            raise Invalid(f"This is not a model that can be used: {reason}") from error
    # Alarms, calibration and comparisons count errors, or grades off: not what mistakes cost.
    if decider.card_.get("cost_matrix") is not None:
        raise Invalid(
            "The model expects costs, because it was fitted with a cost matrix, but the desk counts "
            "errors: fit it without --cost-matrix."
        )
    return decider


def store_model(
    connection: Connection, content: bytes, card: dict[str, Any], *, name: str, actor: str
) -> tuple[int, bool]:
    """Store a model as a candidate; the same file is stored once.

    Parameters
    ----------
    connection : Connection
        A connection that writes.
    content : bytes
        The file.
    card : dict
        The card of the model, from `load_model`: loading takes too long for a transaction.
    name : str
        What people call it.
    actor : str
        Who stores it.

    Returns
    -------
    id : int
    created : bool
        Whether it was not there before.
    """
    digest = hashlib.sha256(content).hexdigest()
    known = connection.execute(select(model.c.id).where(model.c.digest == digest)).scalar()
    if known is not None:
        return int(known), False
    row = insert(model).values(
        digest=digest,
        name=name,
        created_at=now(connection),
        created_by=actor,
        state="candidate",
        blob=content,
        card=plain_card(card),
    )
    number = int(connection.execute(row.returning(model.c.id)).scalar_one())
    audit.append(
        connection,
        actor=actor,
        action="model.stored",
        subject=f"model:{number}",
        detail={"digest": digest, "name": name},
    )
    return number, True


def active_card(connection: Connection) -> dict[str, Any]:
    """The card of the active model; empty if no model is active.

    Parameters
    ----------
    connection : Connection
        A connection to the database.

    Returns
    -------
    card : dict
    """
    query = select(model.c.card).where(model.c.state == "active")
    return connection.execute(query).scalar() or {}


def activate_model(connection: Connection, number: int, *, actor: str) -> None:
    """Let a model decide about all cases from now on.

    Experts whom the desk does not know yet are added, with the share of the day that the model was fitted
    for as their limit. All of the model's experts get its prices. The price of anyone, for a model that
    does not tell experts apart, begins at 0.

    Parameters
    ----------
    connection : Connection
        A connection that writes.
    number : int
        The model.
    actor : str
        Who activates it.
    """
    hold_configuration(connection)
    row = connection.execute(
        select(model.c.id, model.c.state, model.c.card).where(model.c.id == number)
    ).first()
    if row is None:
        raise NotFound(f"There is no model {number}.")
    if row.state == "active":
        return
    connection.execute(update(model).where(model.c.state == "active").values(state="retired"))
    connection.execute(
        update(model)
        .where(model.c.id == number)
        .values(state="active", activated_at=now(connection), activated_by=actor)
    )
    _add_experts(connection, row.card)
    # The old one is in units of the scores of the old model; the desk finds the new one by itself.
    store_setting(connection, PRICE_OF_ANYONE, 0.0)
    touch(connection)
    audit.append(connection, actor=actor, action="model.activated", subject=f"model:{number}")


def _add_experts(connection: Connection, card: dict[str, Any]) -> None:
    configuration = read_configuration(connection)
    known = {one.name for one in configuration.experts.values()}
    rows = card.get("experts") or []
    common = float(card.get("budget_price", 0.0))
    # Limits are such that all together keep within the budget, which may be less than they could take.
    shares = sum(row["share"] for row in rows)
    budget = share_of(card["budget"], card["rows"]) if "budget" in card else shares
    per_day = configuration.rules.cases_per_day * (budget / shares if shares > budget else 1.0)
    for row in rows:
        price = row["price"] + common
        if row["expert"] in known:
            connection.execute(
                update(expert).where(expert.c.name == row["expert"]).values(price=price)
            )
            continue
        connection.execute(
            insert(expert).values(
                name=row["expert"],
                daily_limit=int(row["share"] * per_day + ROUNDING),
                is_arbiter=False,
                is_active=True,
                price=price,
                version=1,
            )
        )


def plain_card(value: Any) -> Any:
    """A card without numbers that JSON does not have."""
    if isinstance(value, dict):
        return {str(key): plain_card(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain_card(one) for one in value]
    if isinstance(value, float) and value - value != 0:
        return None
    return value
