"""The audit log, for administrators."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query, Request, Response
from sqlalchemy import select

from deferlearn.desk.api.common import MOST, TheDesk
from deferlearn.desk.pages.common import Reader, pages
from deferlearn.desk.pages.rendering import render
from deferlearn.desk.schema import audit_log

router = pages()
MOST_ENTRIES = 100


@router.get("/log")
def read_log(
    request: Request,
    desk: TheDesk,
    principal: Reader,
    before: Annotated[int, Query(ge=1, le=MOST)] = MOST,
) -> Response:
    """Entries, the newest first."""
    query = (
        select(audit_log)
        .where(audit_log.c.sequence < before)
        .order_by(audit_log.c.sequence.desc())
        .limit(MOST_ENTRIES)
    )
    with desk.database.reading() as connection:
        moment = desk.look(connection)
        rows = connection.execute(query).all()
    more = rows[-1].sequence if len(rows) == MOST_ENTRIES and rows[-1].sequence > 1 else None
    return render(request, "log.html", principal, entries=rows, more=more, moment=moment)
