"""The queue over HTTP: lease the next case, keep it, answer it, pass it on, or give it back."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Response
from pydantic import BaseModel, Field

from deferlearn.desk import answering, leases, passing, queue
from deferlearn.desk.api.cases import Cell
from deferlearn.desk.api.common import MOST, Body, RowId, TheDesk, expert_of, own_expert
from deferlearn.desk.api.problems import described
from deferlearn.desk.errors import Invalid
from deferlearn.desk.principal import Principal, require
from deferlearn.desk.times import iso

router = APIRouter(prefix="/api/v1/queue", tags=["queue"])
PERMISSION = "answers:write"
Answerer = Annotated[Principal, require(PERMISSION)]
Token = Annotated[str, Field(max_length=200, description="Of the lease.")]


class NextCase(Body):
    """For whom the next case is."""

    expert: Annotated[int, Field(ge=1, le=MOST)] | None = Field(
        None, description="The id of the expert; only keys name one."
    )


class LeasedCase(BaseModel):
    """A case in an expert's hands."""

    reading: int
    token: str
    until: str
    case: str
    fields: dict[str, Cell]
    classes: list[str]
    machine_answer: str | None = Field(description="null if experts are blind to it.")


class Held(Body):
    """The proof that the case is in these hands."""

    token: Token


class Passed(Held):
    """A case that an expert cannot tell."""

    note: Annotated[str, Field(max_length=answering.LONGEST_NOTE)] = ""


class NewAnswer(Passed):
    """An answer to a case."""

    answer: Annotated[str, Field(max_length=1000)]


class GivenAnswer(BaseModel):
    """What became of an answer."""

    answer: int = Field(description="Its id, with which it can be taken back.")
    case: str
    final: bool | None = Field(
        description="Whether the case needs no further reading; null for experts, since it would tell "
        "audits from other cases."
    )


class Renewed(BaseModel):
    """When a lease ends."""

    until: str


@router.post(
    "/next",
    response_model=LeasedCase,
    responses={**described(404, 409), 204: {"description": "There is nothing to do."}},
)
def next_case(body: NextCase, desk: TheDesk, principal: Answerer) -> Any:
    """Lease the next case. Who has one already gets the same one again, with a new token."""
    lease = queue.lease_next(desk, expert_of(principal, body.expert))
    if lease is None:
        return Response(status_code=204)
    return {
        "reading": lease.reading_id,
        "token": lease.token,
        "until": iso(lease.until),
        "case": lease.case_id,
        "fields": lease.seen,
        "classes": lease.classes,
        "machine_answer": lease.machine_answer,
    }


@router.post("/{reading}/renew", response_model=Renewed, responses=described(404, 409))
def renew(reading: RowId, body: Held, desk: TheDesk, principal: Answerer) -> Any:
    """Keep a case for another while."""
    return {"until": iso(leases.renew(desk, reading, body.token, expert_id=own_expert(principal)))}


@router.post("/{reading}/answer", response_model=GivenAnswer, responses=described(404, 409))
def answer(reading: RowId, body: NewAnswer, desk: TheDesk, principal: Answerer) -> Any:
    """Answer a case. The same answer with the same token again gets the same reply."""
    check_note(body.note)
    given = answering.give_answer(
        desk,
        reading,
        body.token,
        body.answer,
        note=body.note,
        actor=principal.actor,
        expert_id=own_expert(principal),
    )
    final = None if principal.kind == "user" else given.final
    return {"answer": given.answer_id, "case": given.case_id, "final": final}


@router.post("/{reading}/pass", status_code=204, response_model=None, responses=described(404, 409))
def pass_case(reading: RowId, body: Passed, desk: TheDesk, principal: Answerer) -> None:
    """Say that the expert cannot tell; the case goes to the next one."""
    check_note(body.note)
    passing.pass_on(
        desk,
        reading,
        body.token,
        note=body.note,
        actor=principal.actor,
        expert_id=own_expert(principal),
    )


@router.post(
    "/{reading}/release", status_code=204, response_model=None, responses=described(404, 409)
)
def release(reading: RowId, body: Held, desk: TheDesk, principal: Answerer) -> None:
    """Give a case back without an answer."""
    leases.release(desk, reading, body.token, expert_id=own_expert(principal))


def check_note(note: str) -> None:
    """Refuse a note that a database cannot hold.

    Parameters
    ----------
    note : str
        What an expert adds to an answer.
    """
    if "\x00" in note or any("\ud800" <= one <= "\udfff" for one in note):
        raise Invalid("The note holds characters that are not text.")
