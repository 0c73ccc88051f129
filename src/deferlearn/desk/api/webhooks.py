"""Webhooks and dead letters over HTTP."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Response
from pydantic import BaseModel, Field
from sqlalchemy import Connection

from deferlearn.desk import subscriptions, webhooks
from deferlearn.desk.api.common import After, Body, Limit, Page, RowId, TheDesk, page_of
from deferlearn.desk.api.problems import described
from deferlearn.desk.api.versions import etag, meant
from deferlearn.desk.principal import Principal, require

router = APIRouter(prefix="/api/v1/webhooks", tags=["webhooks"])
Writer = Annotated[Principal, require("webhooks:write")]
Kind = Literal["case.answered", "case.reopened", "alarm.raised"]
Url = Annotated[str, Field(min_length=1, max_length=2000)]
Events = Annotated[list[Kind], Field(min_length=1)]


class NewWebhook(Body):
    """A webhook to be added."""

    url: Url
    events: Events


class WebhookState(NewWebhook):
    """All that can be changed about a webhook."""

    is_active: bool = True


class ShownWebhook(BaseModel):
    """A webhook without its secret."""

    id: int
    url: str
    events: list[Kind]
    is_active: bool
    version: int


class AddedWebhook(ShownWebhook):
    """A webhook with the secret that signs its events, which is not shown again."""

    secret: str


class ShownLetter(BaseModel):
    """A delivery that was given up."""

    id: int
    webhook_id: int
    event_id: int
    kind: str
    attempts: int
    last_error: str | None


def shown_webhook(row: Any) -> dict[str, Any]:
    """A webhook as JSON has it."""
    return {
        "id": row.id,
        "url": row.url,
        "events": row.events,
        "is_active": row.is_active,
        "version": row.version,
    }


@router.get("", response_model=list[ShownWebhook], responses=described())
def list_webhooks(desk: TheDesk, principal: Writer) -> Any:
    """All webhooks."""
    with desk.database.reading() as connection:
        return [shown_webhook(row) for row in subscriptions.list_webhooks(connection)]


@router.post("", response_model=AddedWebhook, status_code=201, responses=described())
def add_webhook(body: NewWebhook, desk: TheDesk, principal: Writer) -> Any:
    """Add a webhook. Its events carry a signature; see the how-to on the desk."""

    def add(connection: Connection) -> dict[str, Any]:
        number, secret = subscriptions.add_webhook(
            connection, body.url, list(body.events), actor=principal.actor
        )
        shown = shown_webhook(subscriptions.find_webhook(connection, number))
        return {**shown, "secret": secret}

    return desk.database.write(add)


@router.get("/dead", response_model=Page[ShownLetter], responses=described())
def list_dead_letters(
    desk: TheDesk, principal: Writer, after: After = 0, limit: Limit = 100
) -> Any:
    """Events that could not be delivered."""
    with desk.database.reading() as connection:
        found = webhooks.dead_letters(connection, after=after, limit=limit + 1)
    return page_of([vars(one) for one in found], [one.id for one in found], limit)


@router.post("/dead/{number}/retry", status_code=204, response_model=None, responses=described(404))
def retry_dead_letter(number: RowId, desk: TheDesk, principal: Writer) -> None:
    """Try to deliver an event again."""
    desk.database.write(
        lambda connection: subscriptions.retry_dead_letter(
            connection, number, actor=principal.actor
        )
    )


@router.get("/{number}", response_model=ShownWebhook, responses=described(404))
def read_webhook(number: RowId, desk: TheDesk, response: Response, principal: Writer) -> Any:
    """A webhook, with the version for `If-Match`."""
    with desk.database.reading() as connection:
        row = subscriptions.find_webhook(connection, number)
    response.headers["ETag"] = etag(row.version)
    return shown_webhook(row)


@router.put("/{number}", response_model=ShownWebhook, responses=described(404, 412, 428))
def change_webhook(
    number: RowId,
    body: WebhookState,
    desk: TheDesk,
    response: Response,
    principal: Writer,
    version: Annotated[int, Depends(meant)],
) -> Any:
    """Change a webhook, or switch it off."""
    row = desk.database.write(
        lambda connection: subscriptions.change_webhook(
            connection, number, body.model_dump(), actor=principal.actor, version=version
        )
    )
    response.headers["ETag"] = etag(row.version)
    return shown_webhook(row)


@router.delete("/{number}", status_code=204, response_model=None, responses=described(404))
def remove_webhook(number: RowId, desk: TheDesk, principal: Writer) -> None:
    """Remove a webhook, with all that was to be delivered to it."""
    desk.database.write(
        lambda connection: subscriptions.remove_webhook(connection, number, actor=principal.actor)
    )
