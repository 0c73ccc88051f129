"""Cases: they are sent, decided at once, read back, and learn what was true."""

from __future__ import annotations

import json
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Annotated, Any, Literal

from fastapi import APIRouter, HTTPException, Query, Request, Response
from pydantic import BaseModel, Field
from sqlalchemy import select

from deferlearn.desk import cases, truths
from deferlearn.desk.api.common import After, Body, Limit, Page, TheDesk, page_of, storable_id
from deferlearn.desk.api.problems import Problem, described, problem
from deferlearn.desk.desk import Desk
from deferlearn.desk.errors import DeskError
from deferlearn.desk.principal import Principal, require
from deferlearn.desk.schema import case, decision, expert, truth
from deferlearn.desk.times import iso

router = APIRouter(prefix="/api/v1/cases", tags=["cases"])

PERMISSION = "cases:write"
Writer = Annotated[Principal, require(PERMISSION)]
Reader = Annotated[Principal, require("cases:read")]
Cell = str | bool | int | float | None
State = Literal["waiting", "answered"]
# The most cases that one query looks up.
LOOKED_UP = 500


class NewCase(Body):
    """A case as its source sends it."""

    id: Annotated[str, Field(min_length=1, max_length=200, description="The source's own id.")]
    fields: dict[str, Cell]


class ShownDecision(BaseModel):
    """Who takes a case, and why."""

    deferred: bool
    expert: str | None
    machine_answer: str
    probabilities: dict[str, float] | None
    expected_machine: float | None
    expected_expert: float | None
    score: float | None
    reason: str
    unusual: str
    prices: dict[str, float]
    model: int
    audited: bool
    audit_probability: float
    at: str


class ShownCase(BaseModel):
    """A case as it stands."""

    id: str
    number: int
    state: State
    answer: str | None
    answered_by: str | None
    answered_at: str | None
    received_at: str
    due_at: str | None
    flag: str | None
    required: int
    version: int


class ArrivedCase(ShownCase):
    """A case that was sent, with the decision about it."""

    created: bool
    decision: ShownDecision


class CaseWithFields(ShownCase):
    """A case with its content, and what was true."""

    fields: dict[str, Cell]
    truth: str | None


class Outcome(BaseModel):
    """What became of one of many cases."""

    id: str
    status: int
    case: ArrivedCase | None = None
    problem: Problem | None = None


class NewTruth(Body):
    """What was true."""

    value: Annotated[str, Field(max_length=1000)]


class StoredTruth(BaseModel):
    """What is known to be true now."""

    value: str
    changed: bool


def shown_case(row: Any) -> dict[str, Any]:
    """A case as JSON has it."""
    return {
        "id": row.id,
        "number": row.number,
        "state": row.state,
        "answer": row.answer,
        "answered_by": row.answered_by,
        "answered_at": None if row.answered_at is None else iso(row.answered_at),
        "received_at": iso(row.received_at),
        "due_at": None if row.due_at is None else iso(row.due_at),
        "flag": row.flag,
        "required": row.required,
        "version": row.version,
    }


def shown_decision(row: Any) -> dict[str, Any]:
    """A decision as JSON has it."""
    return {
        "deferred": row.deferred,
        "expert": row.expert_name,
        "machine_answer": row.machine_answer,
        "probabilities": row.probabilities,
        "expected_machine": row.expected_machine,
        "expected_expert": row.expected_expert,
        "score": row.score,
        "reason": row.reason,
        "unusual": row.unusual,
        "prices": row.prices,
        "model": row.model_id,
        "audited": row.audited,
        "audit_probability": row.audit_probability,
        "at": iso(row.at),
    }


_ARRIVED = (
    select(case, decision, expert.c.name.label("expert_name"))
    .join(decision, decision.c.case_number == case.c.number)
    .outerjoin(expert, expert.c.id == decision.c.expert_id)
)


def shown_arrived(
    desk: Desk, outcomes: Sequence[cases.Arrived | DeskError]
) -> dict[int, dict[str, Any]]:
    """Cases that were sent, with the decisions about them; known ones are looked up.

    Parameters
    ----------
    desk : Desk
        The desk.
    outcomes : sequence of Arrived or DeskError
        What became of the cases.

    Returns
    -------
    shown : dict
        By number, those that were not refused.
    """
    arrived = [one for one in outcomes if isinstance(one, cases.Arrived)]
    rows: list[Any] = [SimpleNamespace(**one.stored) for one in arrived if one.stored is not None]
    known = [one.number for one in arrived if one.stored is None]
    if known:
        with desk.database.reading() as connection:
            for first in range(0, len(known), LOOKED_UP):
                some = known[first : first + LOOKED_UP]
                rows += connection.execute(_ARRIVED.where(case.c.number.in_(some)))
    return {row.number: {**shown_case(row), "decision": shown_decision(row)} for row in rows}


def reply_to_one(arrived: cases.Arrived, shown: dict[int, dict[str, Any]]) -> Response:
    """The reply to a case that was sent alone.

    Parameters
    ----------
    arrived : Arrived
        What became of it.
    shown : dict
        As from `shown_arrived`.

    Returns
    -------
    Response
    """
    content = {**shown[arrived.number], "created": arrived.created}
    return _json(content, 201 if arrived.created else 200)


def _json(content: Any, status: int) -> Response:
    # Text that comes from outside is sent as ASCII: half characters cannot break it.
    return Response(json.dumps(content, allow_nan=False), status, media_type="application/json")


@router.post(
    "",
    responses={
        **described(409),
        200: {"model": ArrivedCase | list[Outcome], "description": "Known, or many cases."},
        201: {"model": ArrivedCase, "description": "The case is stored and decided."},
    },
    response_model=None,
)
def send_cases(
    body: NewCase | Annotated[list[NewCase], Field(min_length=1)],
    desk: TheDesk,
    principal: Writer,
    request: Request,
) -> Response:
    """Send one case or many; each is decided and stored before the reply.

    The same case again gets the same reply. Of many, some may be refused while the others are stored.
    """
    if isinstance(body, NewCase):
        one = cases.arrive(desk, body.id, body.fields, actor=principal.actor)
        return reply_to_one(one, shown_arrived(desk, [one]))
    most = request.app.state.settings.max_cases
    if len(body) > most:
        detail = f"The request has {len(body)} cases; the most are {most}. Send them in parts."
        raise HTTPException(413, detail)
    return _many(desk, body, principal.actor)


def _many(desk: TheDesk, body: list[NewCase], actor: str) -> Response:
    outcomes = cases.arrive_all(desk, [(one.id, one.fields) for one in body], actor=actor)
    shown = shown_arrived(desk, outcomes)
    items: list[dict[str, Any]] = []
    for sent, outcome in zip(body, outcomes, strict=True):
        if isinstance(outcome, DeskError):
            told = problem(outcome.status, str(outcome))
            items.append(
                {"id": sent.id, "status": outcome.status, "problem": json.loads(bytes(told.body))}
            )
        else:
            item = {**shown[outcome.number], "created": outcome.created}
            items.append({"id": sent.id, "status": 201 if outcome.created else 200, "case": item})
    return _json(items, 200)


@router.get("", response_model=Page[ShownCase], responses=described())
def list_cases(
    desk: TheDesk,
    principal: Reader,
    after: After = 0,
    limit: Limit = 100,
    state: State | None = None,
    id: Annotated[str | None, Query(max_length=200)] = None,
) -> Any:
    """Cases in the order in which they arrived; with `id`, the one that has it."""
    with desk.database.reading() as connection:
        if id is not None:
            found = connection.execute(select(case).where(case.c.id == storable_id(id))).all()
        else:
            found = list(cases.case_rows(connection, after=after, limit=limit + 1, state=state))
    return page_of([shown_case(row) for row in found], [row.number for row in found], limit)


# An id may have slashes, so the more specific addresses come first.


@router.get("/{case_id:path}/decision", response_model=ShownDecision, responses=described(404))
def read_decision(case_id: str, desk: TheDesk, principal: Reader) -> Any:
    """Who takes the case, and why."""
    with desk.database.reading() as connection:
        number = cases.case_row(connection, storable_id(case_id)).number
        return shown_decision(cases.decision_row(connection, number))


@router.post("/{case_id:path}/truth", response_model=StoredTruth, responses=described(404))
def report_truth(
    case_id: str,
    body: NewTruth,
    desk: TheDesk,
    principal: Annotated[Principal, require("truth:write")],
) -> Any:
    """Report what was true; another truth than before is a correction, and both are kept."""
    changed = truths.set_truth(desk, storable_id(case_id), body.value, actor=principal.actor)
    return {"value": body.value, "changed": changed}


@router.get("/{case_id:path}", response_model=CaseWithFields, responses=described(404))
def read_case(case_id: str, desk: TheDesk, principal: Reader) -> Any:
    """A case with its content."""
    with desk.database.reading() as connection:
        row = cases.case_row(connection, storable_id(case_id))
        true = connection.execute(
            select(truth.c.value).where(
                truth.c.case_number == row.number, truth.c.replaced_at.is_(None)
            )
        ).scalar()
    return {**shown_case(row), "fields": row.content, "truth": true}
