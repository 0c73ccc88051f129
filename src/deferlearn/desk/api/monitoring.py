"""Monitoring over HTTP: the numbers of the last days, alarms, reports on candidates, and the shadow."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field
from sqlalchemy import select

from deferlearn.desk.api.common import MOST, Body, RowId, TheDesk
from deferlearn.desk.api.problems import described
from deferlearn.desk.errors import NotFound
from deferlearn.desk.learning import shadowing
from deferlearn.desk.monitoring import alarms
from deferlearn.desk.monitoring.overview import overview
from deferlearn.desk.principal import Principal, require
from deferlearn.desk.schema import model_report
from deferlearn.desk.times import iso

router = APIRouter(prefix="/api/v1", tags=["monitoring"])
Watcher = Annotated[Principal, require("models:write")]
Days = Annotated[int, Query(ge=1, le=3650, description="How many days are looked at.")]


class ShownFigure(BaseModel):
    """A number with its 95% interval; null is what is not known."""

    name: str
    about: str
    value: float | None
    low: float | None
    high: float | None
    count: int
    expected: float | None
    sentence: str


class ShownAlarm(BaseModel):
    """An open alarm."""

    id: int
    model: int
    kind: str
    subject: str
    raised_at: str
    sentence: str


class ShownOverview(BaseModel):
    """What the last days say."""

    cases: int
    since: str | None = Field(
        description="If the days have more cases than are looked at: when the first of these arrived."
    )
    figures: list[ShownFigure]
    alarms: list[ShownAlarm]


class ShownReport(BaseModel):
    """How a candidate compares with the model that was active when it was fitted."""

    model: int
    at: str
    report: dict[str, Any]


class Shadow(Body):
    """The candidate that decides along; null if there is none."""

    model: int | None = Field(ge=1, le=MOST)


@router.get("/monitoring", response_model=ShownOverview, responses=described(409))
def read_overview(desk: TheDesk, principal: Watcher, days: Days = 7) -> Any:
    """The numbers of the last days, each with its interval and what it means, and the open alarms."""
    found = overview(desk, days)
    return {
        "cases": found.cases,
        "since": None if found.since is None else iso(found.since),
        "figures": [one.plain() for one in found.figures],
        "alarms": _open(desk),
    }


@router.get("/alarms", response_model=list[ShownAlarm], responses=described())
def list_alarms(desk: TheDesk, principal: Watcher) -> Any:
    """The open alarms, the newest first."""
    return _open(desk)


@router.post(
    "/alarms/{number}/close", status_code=204, response_model=None, responses=described(404)
)
def close_alarm(number: RowId, desk: TheDesk, principal: Watcher) -> None:
    """Close an alarm; its test begins again."""
    desk.database.write(
        lambda connection: alarms.close_alarm(connection, number, actor=principal.actor)
    )


@router.get("/models/{number}/report", response_model=ShownReport, responses=described(404))
def read_report(number: RowId, desk: TheDesk, principal: Watcher) -> Any:
    """How a candidate compares with the model that was active when it was fitted."""
    with desk.database.reading() as connection:
        row = connection.execute(
            select(model_report).where(model_report.c.model_id == number)
        ).first()
    if row is None:
        raise NotFound(f"There is no report on model {number}.")
    return {"model": row.model_id, "at": iso(row.at), "report": row.report}


@router.get("/shadow", response_model=Shadow, responses=described())
def read_shadow(desk: TheDesk, principal: Watcher) -> Any:
    """The candidate that decides along."""
    with desk.database.reading() as connection:
        found = shadowing.shadow_model(connection)
    return {"model": None if found is None else found[0]}


@router.put("/shadow", response_model=Shadow, responses=described(404, 409))
def change_shadow(body: Shadow, desk: TheDesk, principal: Watcher) -> Any:
    """Let a candidate decide along without effect, or none."""
    number, actor = body.model, principal.actor
    if number is None:
        desk.database.write(lambda connection: shadowing.stop_shadow(connection, actor=actor))
    else:
        desk.database.write(
            lambda connection: shadowing.start_shadow(connection, number, actor=actor)
        )
    return {"model": number}


def _open(desk: TheDesk) -> list[dict[str, Any]]:
    with desk.database.reading() as connection:
        found = alarms.open_alarms(connection)
    return [
        {
            "id": one.id,
            "model": one.model_id,
            "kind": one.kind,
            "subject": one.subject,
            "raised_at": iso(one.raised_at),
            "sentence": one.sentence,
        }
        for one in found
    ]
