"""The audit log over HTTP."""

from __future__ import annotations

import json
from typing import Annotated, Any

from fastapi import APIRouter
from pydantic import BaseModel
from sqlalchemy import select

from deferlearn.desk.api.common import After, Limit, Page, TheDesk, page_of
from deferlearn.desk.api.problems import described
from deferlearn.desk.principal import Principal, require
from deferlearn.desk.schema import audit_log
from deferlearn.desk.times import iso

router = APIRouter(prefix="/api/v1/audit", tags=["audit"])


class ShownEntry(BaseModel):
    """An entry of the log, with the hash that chains it to the one before."""

    sequence: int
    at: str
    actor: str
    action: str
    subject: str
    detail: dict[str, Any]
    hash: str


@router.get("", response_model=Page[ShownEntry], responses=described())
def read_log(
    desk: TheDesk,
    principal: Annotated[Principal, require("audit:read")],
    after: After = 0,
    limit: Limit = 100,
) -> Any:
    """Entries in their order. `deferlearn desk audit verify` checks the chain."""
    query = (
        select(audit_log)
        .where(audit_log.c.sequence > after)
        .order_by(audit_log.c.sequence)
        .limit(limit + 1)
    )
    with desk.database.reading() as connection:
        found = connection.execute(query).all()
    items = [
        {
            "sequence": row.sequence,
            "at": iso(row.at),
            "actor": row.actor,
            "action": row.action,
            "subject": row.subject,
            "detail": json.loads(row.detail),
            "hash": row.hash,
        }
        for row in found
    ]
    return page_of(items, [row.sequence for row in found], limit)
