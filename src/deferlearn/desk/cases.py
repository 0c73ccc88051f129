"""Cases arrive: each is decided and stored in one transaction, and the same case is stored once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from sqlalchemy import Connection, bindparam, insert, select
from sqlalchemy.exc import IntegrityError

from deferlearn.desk import audit
from deferlearn.desk.capacity import TimeLeft
from deferlearn.desk.database import DatabaseUnavailable
from deferlearn.desk.deciding import Choice, Luck, choose, places_of
from deferlearn.desk.desk import Desk
from deferlearn.desk.errors import Conflict, DeskError, Invalid, NotFound
from deferlearn.desk.fields import CASE_ID, check_fields, digest_of, judge_fields
from deferlearn.desk.judging import Judgement
from deferlearn.desk.priorities import priority_of
from deferlearn.desk.rules import Moment
from deferlearn.desk.schema import ANYONE, WAITING, case, decision, expert, reading
from deferlearn.desk.webhooks import announce

# So many cases share a transaction: more would keep others waiting.
CHUNK = 25
# So often cases are judged and stored again before the desk gives up.
ATTEMPTS = 10
# Statements of every case are made once: to make one takes as long as to run it.
_KNOWN = select(case.c.id, case.c.number, case.c.digest).where(
    case.c.id.in_(bindparam("ids", expanding=True))
)
_ADD_CASES = insert(case).returning(case.c.id, case.c.number)
_ADD_DECISIONS, _ADD_READINGS = insert(decision), insert(reading)
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


class Sent(NamedTuple):
    """A case as it was sent.

    Attributes
    ----------
    id : str
        The id that the source has for it.
    fields : mapping
        Its content.
    actor : str
        Who sends it.
    """

    id: str
    fields: Mapping[str, Any]
    actor: str


@dataclass(frozen=True)
class _Prepared:
    """A case that can be stored, with all that takes time done before the transaction."""

    sent: Sent
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
        If there is a case with this id and other content, or no model is active.
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
        outcomes += arrive_together(desk, [Sent(*one, actor) for one in part])
    return outcomes


def arrive_together(desk: Desk, cases: Sequence[Sent]) -> list[Arrived | DeskError]:
    """Decide about a few cases and store them in one transaction, whoever sent them.

    Parameters
    ----------
    desk : Desk
        The desk.
    cases : sequence of Sent
        CHUNK cases at most.

    Returns
    -------
    outcomes : list of Arrived or DeskError

    Raises
    ------
    DatabaseUnavailable
        Also if the database refuses the cases each time although none of them is known.
    """
    last: _Again | None = None
    for _ in range(ATTEMPTS):
        prepared = [_prepare(desk, one) for one in cases]
        try:
            return desk.database.write(partial(_store_all, desk, prepared=prepared))
        except _Again as error:
            last = error
    raise DatabaseUnavailable(f"The cases could not be stored in {ATTEMPTS} attempts") from last


def _prepare(desk: Desk, sent: Sent) -> _Prepared:
    model_id, judged, refused, digest = None, None, None, ""
    try:
        if not CASE_ID.fullmatch(sent.id) or not sent.id.strip():
            raise Invalid("The id of a case has 1 to 200 characters, without control characters.")
        check_fields(sent.fields)
        digest = digest_of(sent.fields)
        judge = desk.active_judge()
        model_id = judge.model_id
        judged = judge_fields(judge, sent.fields)
    except DeskError as error:
        refused = error
    return _Prepared(sent, digest, model_id, judged, refused, Luck.draw())


def _store_all(
    desk: Desk, connection: Connection, prepared: list[_Prepared]
) -> list[Arrived | DeskError]:
    moment = desk.look(connection)
    # Also if the model refused a case: another one may read it.
    if any(one.model_id not in (None, moment.configuration.model_id) for one in prepared):
        raise _Again
    ids = [one.sent.id for one in prepared if one.digest]
    rows = connection.execute(_KNOWN, {"ids": ids}) if ids else ()
    known = {row.id: (row.number, row.digest) for row in rows}
    new: dict[str, _Prepared] = {}
    for one in prepared:
        if one.judged is not None and one.sent.id not in known:
            new.setdefault(one.sent.id, one)
    stored = _store(connection, moment, list(new.values())) if new else {}
    outcomes: list[Arrived | DeskError] = []
    for one in prepared:
        case_id = one.sent.id
        if new.get(case_id) is one:
            number = stored[case_id]["number"]
            known[case_id] = (number, one.digest)
            outcomes.append(Arrived(case_id, True, number, stored[case_id]))
        elif one.digest and case_id in known:
            # A case that was accepted before stays accepted, whatever the present model reads.
            outcomes.append(_known_case(one, *known[case_id]))
        else:
            outcomes.append(one.refused or Invalid("The case was not judged."))
    return outcomes


def _known_case(one: _Prepared, number: int, digest: str) -> Arrived | Conflict:
    """What is said of a case whose id is known."""
    if digest != one.digest:
        return Conflict(f"There is already a case {one.sent.id!r} with other content.")
    return Arrived(one.sent.id, False, number)


def _store(
    connection: Connection, moment: Moment, cases: list[_Prepared]
) -> dict[str, dict[str, Any]]:
    """Decide about new cases and store them; what was stored of each, by id."""
    judgements = [one.judged for one in cases if one.judged is not None]
    left = TimeLeft(connection, moment, places_of(moment.configuration, judgements[0]))
    choices = [
        choose(left, moment, judged, one.luck)
        for one, judged in zip(cases, judgements, strict=True)
    ]
    values = [
        _case(moment, one, judged, choice)
        for one, judged, choice in zip(cases, judgements, choices, strict=True)
    ]
    try:
        numbers = {row.id: row.number for row in connection.execute(_ADD_CASES, values)}
    except IntegrityError as error:
        raise _Again from error
    decisions, readings, entries = [], [], []
    stored: dict[str, dict[str, Any]] = {}
    for row, judged, choice in zip(values, judgements, choices, strict=True):
        number = numbers[row["id"]]
        decided = _decision(moment, number, judged, choice)
        decisions.append(decided)
        readings += _readings(moment, number, judged, choice)
        entries.append(_entry(connection, number, row, judged, choice))
        expert_id = decided["expert_id"]
        name = None if expert_id is None else moment.configuration.experts[expert_id].name
        stored[row["id"]] = {**row, **decided, "number": number, "expert_name": name}
    connection.execute(_ADD_DECISIONS, decisions)
    if readings:
        connection.execute(_ADD_READINGS, readings)
    for row in values:
        if row["state"] == "answered":
            announce(
                connection, moment, "case.answered", numbers[row["id"]], row["id"], row, version=1
            )
    audit.append_all(connection, entries)
    return stored


def _case(moment: Moment, one: _Prepared, judged: Judgement, choice: Choice) -> dict[str, Any]:
    """The columns of a new case but for its number."""
    deadline = moment.rules.deadline_seconds
    waits = bool(choice.seats)
    return {
        "id": one.sent.id,
        "content": dict(one.sent.fields),
        "digest": one.digest,
        "received_at": moment.now,
        "source": one.sent.actor,
        "state": "waiting" if waits else "answered",
        "required": len(choice.seats),
        "due_at": moment.after(deadline) if waits and deadline is not None else None,
        "answer": None if waits else judged.answer,
        "answered_by": None if waits else "machine",
        "answered_at": None if waits else moment.now,
        "flag": choice.flag,
        "version": 1,
    }


def _entry(
    connection: Connection, number: int, row: dict[str, Any], judged: Judgement, choice: Choice
) -> audit.Entry:
    """What the audit log says about a new case."""
    return audit.Entry(
        row["source"],
        "case.arrived",
        f"case:{number}",
        {
            "digest": audit.fingerprint(connection, row["digest"]),
            "model": judged.model_id,
            "machine_answer": judged.answer,
            "taken_by": choice.seats or "machine",
        },
    )


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


def _readings(
    moment: Moment, number: int, judged: Judgement, choice: Choice
) -> list[dict[str, Any]]:
    """The columns of the readings of a new case."""
    seats = choice.seats if choice.auditor is None else [choice.auditor]
    rank = priority_of(moment.now, judged)
    return [
        {
            "case_number": number,
            "kind": "reading" if choice.auditor is None else "audit",
            "seat": seat,
            "state": "waiting",
            "priority": rank,
            "created_at": moment.now,
        }
        for seat in seats
    ]


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
