"""The rules of the desk over HTTP."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Response
from pydantic import BaseModel, Field

from deferlearn.desk import rules
from deferlearn.desk.api.common import Body, TheDesk
from deferlearn.desk.api.problems import described
from deferlearn.desk.api.versions import etag, meant
from deferlearn.desk.permissions import SETTINGS
from deferlearn.desk.principal import Principal, require

router = APIRouter(prefix="/api/v1/rules", tags=["rules"])
Seconds = Annotated[int, Field(ge=1, le=86400)]


class RuleChanges(Body):
    """What is to be changed; what is left out stays."""

    readings: Annotated[int, Field(ge=1, le=rules.MOST_READINGS)] | None = None
    audit_share: Annotated[float, Field(ge=0, le=1)] | None = None
    deadline_seconds: Annotated[int, Field(ge=1, le=10**9)] | None = None
    deadline_rule: Literal["machine answers", "wait"] | None = None
    blind: bool | None = None
    lease_seconds: Seconds | None = None
    undo_seconds: Annotated[int, Field(ge=0, le=86400)] | None = None
    cases_per_day: Annotated[int, Field(ge=1, le=10**9)] | None = None
    timezone: Annotated[str, Field(max_length=100)] | None = None


class ShownRules(BaseModel):
    """The rules as they are."""

    readings: int
    audit_share: float
    deadline_seconds: int | None
    deadline_rule: str
    blind: bool
    lease_seconds: int
    undo_seconds: int
    cases_per_day: int
    timezone: str


@router.get("", response_model=ShownRules, responses=described())
def read_rules(
    desk: TheDesk, response: Response, principal: Annotated[Principal, require("experts:write")]
) -> Any:
    """The rules, with the version for `If-Match`."""
    with desk.database.reading() as connection:
        found, version = rules.read_rules(connection)
    response.headers["ETag"] = etag(version)
    return asdict(found)


@router.patch("", response_model=ShownRules, responses=described(412, 428))
def change_rules(
    body: RuleChanges,
    desk: TheDesk,
    response: Response,
    principal: Annotated[Principal, require(SETTINGS)],
    version: Annotated[int, Depends(meant)],
) -> Any:
    """Change some of the rules; `deadline_seconds` of null removes the deadline."""
    changes = {name: getattr(body, name) for name in body.model_fields_set}
    kept = {
        name: value
        for name, value in changes.items()
        if value is not None or name == "deadline_seconds"
    }
    found, newer = desk.database.write(
        lambda connection: rules.change_rules(
            connection, kept, actor=principal.actor, version=version
        )
    )
    response.headers["ETag"] = etag(newer)
    return asdict(found)
