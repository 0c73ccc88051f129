"""Answers that were given: an expert reads them again, and takes one back in time."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import BaseModel
from sqlalchemy import select

from deferlearn.desk import withdrawing
from deferlearn.desk.api.common import MOST, Limit, RowId, TheDesk, expert_of, own_expert
from deferlearn.desk.api.problems import described
from deferlearn.desk.principal import Principal, require
from deferlearn.desk.schema import answer, case
from deferlearn.desk.times import iso

router = APIRouter(prefix="/api/v1/answers", tags=["answers"])
Answerer = Annotated[Principal, require("answers:write")]


class OwnAnswer(BaseModel):
    """An answer that an expert gave."""

    answer: int
    case: str
    value: str
    note: str
    at: str
    seconds: float
    withdrawn: bool


@router.get("", response_model=list[OwnAnswer], responses=described())
def own_answers(
    desk: TheDesk,
    principal: Answerer,
    expert: Annotated[int | None, Query(ge=1, le=MOST)] = None,
    limit: Limit = 100,
) -> Any:
    """The last answers of an expert, the newest first."""
    query = (
        select(answer, case.c.id.label("case_id"))
        .join(case, case.c.number == answer.c.case_number)
        .where(answer.c.expert_id == expert_of(principal, expert))
        .order_by(answer.c.at.desc(), answer.c.id.desc())
        .limit(limit)
    )
    with desk.database.reading() as connection:
        return [
            {
                "answer": row.id,
                "case": row.case_id,
                "value": row.value,
                "note": row.note,
                "at": iso(row.at),
                "seconds": row.seconds,
                "withdrawn": row.withdrawn_at is not None,
            }
            for row in connection.execute(query)
        ]


@router.delete("/{number}", status_code=204, response_model=None, responses=described(404, 409))
def take_back(number: RowId, desk: TheDesk, principal: Answerer) -> None:
    """Take an answer back while the rules allow it; the case waits for the expert again."""
    withdrawing.take_back(desk, number, expert_id=own_expert(principal), actor=principal.actor)
