"""For those who look after the desk: is it alive, is it ready, and how busy it is."""

from typing import Annotated

from fastapi import APIRouter, Request, Response
from fastapi.responses import PlainTextResponse

from deferlearn.desk import state
from deferlearn.desk.database import DatabaseUnavailable
from deferlearn.desk.metrics import CONTENT_TYPE
from deferlearn.desk.principal import Principal, require
from deferlearn.desk.refusals import refusal

router = APIRouter(tags=["operations"])


@router.get("/healthz")
async def healthz() -> dict[str, str]:
    """Say that the server runs. It does not ask the database: a restart would not mend that."""
    # Not a plain function: all threads may be waiting for the database.
    return {"status": "alive"}


@router.get("/readyz")
def readyz(request: Request) -> Response:
    """Say whether the server can decide about cases: the database answers, and a model is active."""
    try:
        if state.has_model(request.app.state.database):
            return Response('{"status":"ready"}', media_type="application/json")
        detail = "No model is active. Store one and activate it."
    except DatabaseUnavailable:
        detail = "The database cannot be used now."
    return refusal(503, detail)


@router.get("/metrics", response_class=PlainTextResponse)
def metrics(request: Request, principal: Annotated[Principal, require("metrics:read")]) -> Response:
    """The measurements for Prometheus."""
    return Response(request.app.state.metrics.text(), media_type=CONTENT_TYPE)
