"""Models over HTTP: store one, look at its card, activate it, go back to an older one."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel
from sqlalchemy import select
from starlette.concurrency import run_in_threadpool

from deferlearn.desk import models
from deferlearn.desk.api.common import After, Limit, Page, RowId, TheDesk, page_of
from deferlearn.desk.api.problems import described
from deferlearn.desk.errors import NotFound
from deferlearn.desk.principal import Principal, require
from deferlearn.desk.schema import model
from deferlearn.desk.times import iso

router = APIRouter(prefix="/api/v1/models", tags=["models"])
Writer = Annotated[Principal, require("models:write")]


class ShownModel(BaseModel):
    """A model without its file."""

    id: int
    name: str
    digest: str
    state: Literal["candidate", "active", "retired"]
    created_at: str
    created_by: str
    activated_at: str | None
    activated_by: str | None


class ModelWithCard(ShownModel):
    """A model with its card."""

    card: dict[str, Any]


def shown_model(row: Any) -> dict[str, Any]:
    """A model as JSON has it."""
    return {
        "id": row.id,
        "name": row.name,
        "digest": row.digest,
        "state": row.state,
        "created_at": iso(row.created_at),
        "created_by": row.created_by,
        "activated_at": None if row.activated_at is None else iso(row.activated_at),
        "activated_by": row.activated_by,
        "card": row.card,
    }


@router.get("", response_model=Page[ShownModel], responses=described())
def list_models(desk: TheDesk, principal: Writer, after: After = 0, limit: Limit = 100) -> Any:
    """All models."""
    query = select(*models.SHOWN).where(model.c.id > after).order_by(model.c.id).limit(limit + 1)
    with desk.database.reading() as connection:
        found = connection.execute(query).all()
    return page_of([shown_model(row) for row in found], [row.id for row in found], limit)


@router.get("/{number}", response_model=ModelWithCard, responses=described(404))
def read_model(number: RowId, desk: TheDesk, principal: Writer) -> Any:
    """A model with its card."""
    return _read(desk, number)


@router.post(
    "",
    response_model=ShownModel,
    status_code=201,
    responses={**described(), 200: {"model": ShownModel, "description": "Known already."}},
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {
                "application/octet-stream": {"schema": {"type": "string", "format": "binary"}}
            },
        }
    },
)
async def store_model(
    request: Request,
    response: Response,
    desk: TheDesk,
    principal: Writer,
    name: Annotated[str, Query(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]+$")],
) -> Any:
    """Store the file of a model as a candidate; it is the body of the request."""
    content = await request.body()

    def store() -> tuple[int, bool]:
        card = models.load_model(content).card_
        return desk.database.write(
            lambda connection: models.store_model(
                connection, content, card, name=name, actor=principal.actor
            )
        )

    number, created = await run_in_threadpool(store)
    response.status_code = 201 if created else 200
    return await run_in_threadpool(_read, desk, number)


@router.post("/{number}/activate", response_model=ShownModel, responses=described(404))
def activate_model(number: RowId, desk: TheDesk, principal: Writer) -> Any:
    """Let a model decide about all cases from now on; the one before is kept, and can come back."""
    desk.database.write(
        lambda connection: models.activate_model(connection, number, actor=principal.actor)
    )
    return _read(desk, number)


def _read(desk: TheDesk, number: int) -> dict[str, Any]:
    with desk.database.reading() as connection:
        row = connection.execute(select(*models.SHOWN).where(model.c.id == number)).first()
    if row is None:
        raise NotFound(f"There is no model {number}.")
    return shown_model(row)
