"""Experts and their capacities over HTTP."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Response
from pydantic import BaseModel, Field
from sqlalchemy import Connection

from deferlearn.desk import experts
from deferlearn.desk.api.common import Body, RowId, TheDesk
from deferlearn.desk.api.problems import described
from deferlearn.desk.api.versions import etag, meant
from deferlearn.desk.principal import Principal, require
from deferlearn.desk.rules import Expert

router = APIRouter(prefix="/api/v1/experts", tags=["experts"])
Writer = Annotated[Principal, require("experts:write")]
Name = Annotated[str, Field(min_length=1, max_length=200)]
DailyLimit = Annotated[int, Field(ge=0, le=experts.LARGEST_LIMIT)]


Cost = Annotated[float, Field(ge=0, le=experts.LARGEST_COST, allow_inf_nan=False)]


class NewExpert(Body):
    """An expert to be added."""

    name: Name
    daily_limit: DailyLimit | None = None
    cost: Cost = 0.0
    is_arbiter: bool = False


class ExpertState(NewExpert):
    """All that can be changed about an expert."""

    is_active: bool = True


class ShownExpert(BaseModel):
    """An expert as it is."""

    id: int
    name: str
    daily_limit: int | None
    is_arbiter: bool
    is_active: bool
    cost: float
    price: float
    version: int


@router.get("", response_model=list[ShownExpert], responses=described())
def list_experts(desk: TheDesk, principal: Writer) -> Any:
    """All experts."""
    with desk.database.reading() as connection:
        return [one._asdict() for one in experts.list_experts(connection)]


@router.post("", response_model=ShownExpert, status_code=201, responses=described(409))
def add_expert(body: NewExpert, desk: TheDesk, principal: Writer) -> Any:
    """Add an expert."""

    def add(connection: Connection) -> Expert:
        return experts.add_expert(connection, **body.model_dump(), actor=principal.actor)

    return desk.database.write(add)._asdict()


@router.get("/{number}", response_model=ShownExpert, responses=described(404))
def read_expert(number: RowId, desk: TheDesk, response: Response, principal: Writer) -> Any:
    """An expert, with the version for `If-Match`."""
    with desk.database.reading() as connection:
        found = experts.find_expert(connection, number)
    response.headers["ETag"] = etag(found.version)
    return found._asdict()


@router.put("/{number}", response_model=ShownExpert, responses=described(404, 409, 412, 428))
def change_expert(
    number: RowId,
    body: ExpertState,
    desk: TheDesk,
    response: Response,
    principal: Writer,
    version: Annotated[int, Depends(meant)],
) -> Any:
    """Change an expert; what the body leaves out gets its usual value."""

    def change(connection: Connection) -> Expert:
        return experts.change_expert(
            connection, number, body.model_dump(), actor=principal.actor, version=version
        )

    found = desk.database.write(change)
    response.headers["ETag"] = etag(found.version)
    return found._asdict()
