"""Cases arrive: each is decided and stored in one transaction, and the same case is stored once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, bindparam, insert, select
from sqlalchemy.exc import IntegrityError

from deferlearn.desk import audit
from deferlearn.desk.deciding import Choice, Luck, choose
from deferlearn.desk.desk import Desk
from deferlearn.desk.errors import Conflict, DeskError, Invalid, NotFound
from deferlearn.desk.fields import CASE_ID, check_fields, digest_of, judge_fields
from deferlearn.desk.judging import Judgement
from deferlearn.desk.priorities import priority_of
from deferlearn.desk.rules import Moment
from deferlearn.desk.schema import ANYONE, WAITING, case, decision, expert, reading
from deferlearn.desk.webhooks import announce

# So many cases of one request share a transaction: more would keep others waiting.
CHUNK = 25
# Statements of every case are made once: to make one takes as long as to run it.
_KNOWN = select(case.c.number, case.c.digest).where(case.c.id == bindparam("id"))
_ADD_CASE = insert(case).returning(case.c.number)
_ADD_DECISION, _ADD_READING = insert(decision), insert(reading)
_DECISION = (
    select(decision, expert.c.name.label("expert_name"))
    .outerjoin(expert, expert.c.id == decision.c.expert_id)
    .where(decision.c.case_number == bindparam("number"))
)


@dataclass(frozen=True)
class Arrived:
    """What became of a case that was sent.

    Attributes
    ----------
    id : str
        Its id.
    created : bool
        Whether it is new.
    number : int
        Its number at the desk.
    stored : mapping or None
        What was stored about a new case: the columns of the case and of the decision, and
        ``expert_name``. None if the case was known before.
    """

    id: str
    created: bool
    number: int
    stored: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class _Prepared:
    """A case that can be stored, with all that takes time done before the transaction."""

    id: str
    fields: Mapping[str, Any]
    digest: str
    model_id: int | None
    judged: Judgement | None
    refused: DeskError | None
    luck: Luck


class _Again(Exception):
    """Another model has become active since the case was judged, or the same case came at the same time."""


def arrive(desk: Desk, case_id: str, fields: Mapping[str, Any], *, actor: str) -> Arrived:
    """Decide about a case and store it; a case that is known already is left as it is.

    Parameters
    ----------
    desk : Desk
        The desk.
    case_id : str
        The id that the source has for it.
    fields : mapping
        Its content.
    actor : str
        Who sends it.

    Returns
    -------
    Arrived

    Raises
    ------
    Conflict
        If there is a case with this id and another content, or no model is active.
    Invalid
        If the model cannot read a field.
    """
    (found,) = arrive_all(desk, [(case_id, fields)], actor=actor)
    if isinstance(found, DeskError):
        raise found
    return found


def arrive_all(
    desk: Desk, cases: Sequence[tuple[str, Mapping[str, Any]]], *, actor: str
) -> list[Arrived | DeskError]:
    """Decide about cases and store them, in their order.

    Some may be refused, and the others are stored. Cases are stored in several transactions: after an
    outage, send all of them again.

    Parameters
    ----------
    desk : Desk
        The desk.
    cases : sequence of (id, fields)
        The cases.
    actor : str
        Who sends them.

    Returns
    -------
    outcomes : list of Arrived or DeskError
    """
    outcomes: list[Arrived | DeskError] = []
    for first in range(0, len(cases), CHUNK):
        part = cases[first : first + CHUNK]
        while True:
            prepared = [_prepare(desk, *one) for one in part]
            try:
                outcomes += desk.database.write(
                    lambda connection, prepared=prepared: _store_all(  # type: ignore[misc]
                        desk, connection, prepared, actor
                    )
                )
                break
            except _Again:
                continue
    return outcomes


def _prepare(desk: Desk, case_id: str, fields: Mapping[str, Any]) -> _Prepared:
    model_id, judged, refused, digest = None, None, None, ""
    try:
        if not CASE_ID.fullmatch(case_id) or not case_id.strip():
            raise Invalid("The id of a case has 1 to 200 characters, without control characters.")
        check_fields(fields)
        digest = digest_of(fields)
        judge = desk.active_judge()
        model_id = judge.model_id
        judged = judge_fields(judge, fields)
    except DeskError as error:
        refused = error
    return _Prepared(case_id, fields, digest, model_id, judged, refused, Luck.draw())


def _store_all(
    desk: Desk, connection: Connection, prepared: list[_Prepared], actor: str
) -> list[Arrived | DeskError]:
    moment = desk.look(connection)
    outcomes: list[Arrived | DeskError] = []
    entries: list[audit.Entry] = []
    for one in prepared:
        # Also if the model refused it: another one may read it.
        if one.model_id not in (None, moment.configuration.model_id):
            raise _Again
        outcomes.append(_store(connection, moment, one, actor, entries))
    audit.append_all(connection, entries)
    return outcomes


def _store(
    connection: Connection,
    moment: Moment,
    one: _Prepared,
    actor: str,
    entries: list[audit.Entry],
) -> Arrived | DeskError:
    if one.judged is None or one.refused is not None:
        # A case that was accepted before stays accepted, whatever the present model reads.
        known = _known(connection, one) if one.digest else None
        return known or one.refused or Invalid("The case was not judged.")
    known = _known(connection, one)
    if known is not None:
        return known
    choice = choose(connection, moment, one.judged, one.luck)
    deadline = moment.rules.deadline_seconds
    waits = bool(choice.seats)
    values: dict[str, Any] = {
        "id": one.id,
        "content": dict(one.fields),
        "digest": one.digest,
        "received_at": moment.now,
        "source": actor,
        "state": "waiting" if waits else "answered",
        "required": len(choice.seats),
        "due_at": moment.after(deadline) if waits and deadline is not None else None,
        "answer": None if waits else one.judged.answer,
        "answered_by": None if waits else "machine",
        "answered_at": None if waits else moment.now,
        "flag": choice.flag,
        "version": 1,
    }
    try:
        number = connection.execute(_ADD_CASE, values).scalar_one()
    except IntegrityError as error:
        raise _Again from error
    decided = _decision(moment, number, one.judged, choice)
    connection.execute(_ADD_DECISION, decided)
    _store_readings(connection, moment, number, one.judged, choice)
    if not choice.seats:
        announce(connection, moment, "case.answered", number, one.id, values, version=1)
    entries.append(
        audit.Entry(
            actor,
            "case.arrived",
            f"case:{number}",
            {
                "digest": audit.fingerprint(connection, one.digest),
                "model": one.judged.model_id,
                "machine_answer": one.judged.answer,
                "taken_by": choice.seats or "machine",
            },
        )
    )
    expert_id = decided["expert_id"]
    name = None if expert_id is None else moment.configuration.experts[expert_id].name
    stored = {**values, **decided, "number": number, "expert_name": name}
    return Arrived(one.id, True, number, stored)


def _known(connection: Connection, one: _Prepared) -> Arrived | Conflict | None:
    """The case that has this id already."""
    found = connection.execute(_KNOWN, {"id": one.id}).first()
    if found is None:
        return None
    if found.digest != one.digest:
        return Conflict(f"There is a case {one.id!r} with another content already.")
    return Arrived(one.id, False, found.number)


def _decision(moment: Moment, number: int, judged: Judgement, choice: Choice) -> dict[str, Any]:
    """The columns of the decision about a case."""
    named = [seat for seat in choice.seats if seat != ANYONE]
    return {
        "case_number": number,
        "model_id": judged.model_id,
        "at": moment.now,
        "machine_answer": judged.answer,
        "probabilities": judged.probabilities,
        "deferred": bool(choice.seats),
        "expert_id": named[0] if named else None,
        "expected_machine": judged.expected_machine,
        "expected_expert": judged.expected.get(choice.compared),
        "expected": judged.expected,
        "gains": choice.gains,
        "score": judged.score,
        "reason": choice.reason,
        "unusual": judged.unusual,
        "prices": choice.prices,
        "audited": choice.auditor is not None,
        "audit_probability": choice.audit_probability,
    }


def _store_readings(
    connection: Connection, moment: Moment, number: int, judged: Judgement, choice: Choice
) -> None:
    seats = choice.seats if choice.auditor is None else [choice.auditor]
    if not seats:
        return
    kind = "reading" if choice.auditor is None else "audit"
    rank = priority_of(moment.now, judged)
    connection.execute(
        _ADD_READING,
        [
            {
                "case_number": number,
                "kind": kind,
                "seat": seat,
                "state": "waiting",
                "priority": rank,
                "created_at": moment.now,
            }
            for seat in seats
        ],
    )


def case_row(connection: Connection, case_id: str) -> Any:
    """A case by its id.

    Parameters
    ----------
    connection : Connection
        A connection to the database.
    case_id : str
        The id that the source has for it.

    Returns
    -------
    row : Row
    """
    row = connection.execute(select(case).where(case.c.id == case_id)).first()
    if row is None:
        raise NotFound(f"There is no case {case_id!r}.")
    return row


def decision_row(connection: Connection, number: int) -> Any:
    """The decision about a case, with the name of the expert.

    Parameters
    ----------
    connection : Connection
        A connection to the database.
    number : int
        The case.

    Returns
    -------
    row : Row
    """
    return connection.execute(_DECISION, {"number": number}).one()


def case_rows(
    connection: Connection, *, after: int = 0, limit: int = 100, state: str | None = None
) -> Sequence[Any]:
    """Cases in the order of their numbers.

    Parameters
    ----------
    connection : Connection
        A connection to the database.
    after : int, default=0
        The number after which to begin.
    limit : int, default=100
        The most cases.
    state : {"waiting", "answered"} or None, default=None
        Only cases in this state.

    Returns
    -------
    rows : list of Row
    """
    query = select(case).where(case.c.number > after).order_by(case.c.number).limit(limit)
    if state is not None:
        query = query.where(case.c.state == (WAITING if state == "waiting" else state))
    return connection.execute(query).all()
